"""The instance as the compiled kernels of the price engine read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

_EPS = float(np.finfo(np.float64).eps)

#: Share of the work that bounds see at least, where rounding could hide all of it.
_LEAST_NEED = 1e-6


#: A job of :class:`PricingData`; its modes are ``mode_start : mode_end``.
JOB = np.dtype(
    [
        *((name, np.float64) for name in ("weight", "need", "target", "deadline")),
        *((name, np.float64) for name in ("restart_s", "migration_s", "loss_left_s")),
        *((name, np.int64) for name in ("first", "end", "running", "last_site")),
        *((name, np.int64) for name in ("mode_start", "mode_end")),
        *((name, np.bool_) for name in ("priced", "must_meet", "malleable", "lossy")),
    ],
    align=True,
)

#: A mode of :class:`PricingData`.
MODE = np.dtype([("rate", np.float64), ("site", np.int64), ("units", np.int64)], align=True)


class KernelTables(NamedTuple):
    """The same as records: with an array for each field kernels take far longer to compile.

    Parameters
    ----------
    boundaries, capacity, most_segments, most_modes
        As in :class:`PricingData`.
    jobs, modes
        (n,) and (M,) records :data:`JOB` and :data:`MODE`.
    """

    boundaries: FloatArray
    capacity: IntArray
    jobs: np.ndarray[Any, Any]
    modes: np.ndarray[Any, Any]
    most_segments: int
    most_modes: int


class PricingData(NamedTuple):
    """Jobs, their modes and slots, flat; n jobs, K sites, T slots, M modes that are kept.

    Parameters
    ----------
    boundaries
        (T+1,) seconds.
    capacity
        (K, T) units.
    priced
        (n,) whether the job has a deadline and a worth: the others play no part in level 1.
    weight
        (n,) worth of meeting the deadline.
    need
        (n,) work as the bounds see it: ``required`` less a few units of rounding, so that no plan
        which the checker accepts in floating point falls short of it; above 0.
    target
        (n,) work as plans are built for it: ``required`` plus as many units of rounding.
    deadline
        (n,) seconds, +inf for best effort.
    first, end
        (n,) slots ``first : end`` can help to meet the deadline.
    must_meet, malleable
        (n,) flags.
    restart_s, migration_s, loss_left_s
        (n,) losses in seconds.
    running
        (n,) position of the running mode among the kept modes, -1 = idle.
    last_site
        (n,) index of the site where the job last ran, -1 = never.
    lossy
        (n,) whether any loss can befall the job.
    mode_start
        (n+1,) first kept mode of each job.
    site, units, rate
        (M,) of the kept modes, sorted by job, site and units.
    mode_id
        (M,) number of the mode in :class:`~edgeflow_opt.problem.arrays.ProblemArrays`.
    most_segments
        Largest number of modes times slots of one job, at least 1: size of work arrays.
    most_modes
        Largest number of modes of one job, at least 1.
    tables
        What the kernels read of all this.
    """

    boundaries: FloatArray
    capacity: IntArray
    priced: BoolArray
    weight: FloatArray
    need: FloatArray
    target: FloatArray
    deadline: FloatArray
    first: IntArray
    end: IntArray
    must_meet: BoolArray
    malleable: BoolArray
    restart_s: FloatArray
    migration_s: FloatArray
    loss_left_s: FloatArray
    running: IntArray
    last_site: IntArray
    lossy: BoolArray
    mode_start: IntArray
    site: IntArray
    units: IntArray
    rate: FloatArray
    mode_id: IntArray
    most_segments: int
    most_modes: int
    tables: KernelTables

    def in_kept_modes(self, plan: IntArray) -> tuple[IntArray, BoolArray]:
        """Return a plan of the instance in the modes that are kept here.

        Parameters
        ----------
        plan
            (m, T) modes of the instance; -1 = none. A row may be of any job.

        Returns
        -------
        rows
            (m, T) positions among the kept modes; -1 = none, or one that is left out.
        whole
            (m,) whether nothing of the row is left out.
        """
        most = max(self.mode_id.max(initial=-1), plan.max(initial=-1))
        # The last entry is that of no mode.
        position = np.full(most + 2, -1, dtype=np.int64)
        position[self.mode_id] = np.arange(len(self.mode_id))
        rows: IntArray = position[plan]
        whole: BoolArray = np.all((rows >= 0) | (plan < 0), axis=1)
        return rows, whole

    def with_fates(self, must_meet: BoolArray, priced: BoolArray) -> PricingData:
        """Return the same with other jobs that must be met and that are priced."""
        jobs = self.tables.jobs.copy()
        jobs["must_meet"], jobs["priced"] = must_meet, priced
        return self._replace(
            must_meet=must_meet, priced=priced, tables=self.tables._replace(jobs=jobs)
        )

    def with_weights(self, weight: FloatArray, priced: BoolArray) -> PricingData:
        """Return the same with other worths of meeting the deadlines, and jobs that are priced."""
        jobs = self.tables.jobs.copy()
        jobs["weight"], jobs["priced"] = weight, priced
        return self._replace(weight=weight, priced=priced, tables=self.tables._replace(jobs=jobs))


def pricing_data(arrays: ProblemArrays) -> PricingData:
    """Return the kernels' view of `arrays`.

    Dominated modes are left out, which changes neither the optimum nor any bound. A moldable job
    that runs keeps its running mode only, since it may have no other (nor any, if that mode has
    become unusable).
    """
    kept = arrays.mode_kept.copy()
    job = arrays.mode_job
    if len(kept):
        fixed = (~arrays.malleable & (arrays.running_mode >= 0))[job]
        kept &= ~fixed | (arrays.running_mode[job] == np.arange(arrays.num_modes))
    ids = np.flatnonzero(kept)
    order = np.lexsort((arrays.mode_units[ids], arrays.mode_site[ids], job[ids]))
    ids = ids[order].astype(np.int64)
    mode_start = np.searchsorted(job[ids], np.arange(arrays.num_jobs + 1)).astype(np.int64)
    position = np.full(arrays.num_modes + 1, -1, dtype=np.int64)
    position[ids] = np.arange(len(ids))
    rounding = 8.0 * _EPS * (arrays.num_slots + 16)
    # Credits are differences of what is held and what is lost, and rounded as the larger of these.
    losses = np.maximum(arrays.restart_s, arrays.migration_s)
    losses = np.maximum(losses, np.where(arrays.running_mode >= 0, arrays.loss_left_s, 0.0))
    fastest = np.zeros(arrays.num_jobs)
    np.maximum.at(fastest, job, arrays.mode_rate)
    room = rounding * (arrays.required + fastest * losses)
    has_deadline = arrays.has_deadline
    end = np.maximum(arrays.first_slot, arrays.end_slot)
    modes = np.diff(mode_start)
    fields: dict[str, Any] = {
        "boundaries": arrays.boundaries,
        "capacity": np.ascontiguousarray(arrays.capacity, dtype=np.int64),
        "priced": has_deadline & ((arrays.weight > 0) | arrays.must_meet),
        "weight": arrays.weight,
        "need": np.maximum(arrays.required - room, _LEAST_NEED * arrays.required),
        "target": arrays.required + room,
        "deadline": arrays.deadline,
        "first": arrays.first_slot,
        "end": end,
        "must_meet": arrays.must_meet,
        "malleable": arrays.malleable,
        "restart_s": arrays.restart_s,
        "migration_s": arrays.migration_s,
        "loss_left_s": arrays.loss_left_s,
        "running": position[arrays.running_mode],
        "last_site": arrays.last_site,
        "lossy": arrays.has_losses,
        "mode_start": mode_start,
        "site": arrays.mode_site[ids],
        "units": arrays.mode_units[ids],
        "rate": arrays.mode_rate[ids],
        "mode_id": ids,
        "most_segments": int(max(1, (modes * (end - arrays.first_slot)).max(initial=1))),
        "most_modes": int(max(1, modes.max(initial=1))),
    }
    return PricingData(**fields, tables=_tables(fields))


def _tables(fields: dict[str, Any]) -> KernelTables:
    """Return the records of the arrays in `fields`."""
    jobs = np.empty(len(fields["weight"]), JOB)
    for name in JOB.names or ():
        if name in fields and name != "mode_start":
            jobs[name] = fields[name]
    jobs["mode_start"], jobs["mode_end"] = fields["mode_start"][:-1], fields["mode_start"][1:]
    modes = np.empty(len(fields["rate"]), MODE)
    for name in MODE.names or ():
        modes[name] = fields[name]
    return KernelTables(
        fields["boundaries"],
        fields["capacity"],
        jobs,
        modes,
        fields["most_segments"],
        fields["most_modes"],
    )
