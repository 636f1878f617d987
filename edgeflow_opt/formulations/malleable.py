r"""The malleable model: time-indexed, with exact restart and migration losses.

Every job j follows a path through its states, one state per slot s. A state is

* ``idle[j, s, h]``: idle, having last run on site h (or never, h = -1);
* ``start[j, s, m, h]``: the first slot of a run in mode m that begins after state h;
* ``warm[j, s, m, a, h]``: a later slot of a run begun in slot a, which its loss still overlaps;
* ``run[j, s, m]``: any other slot of a run in mode m.

With x the sum of the running states, credit_{j,s,.} the work that a state earns by the run-and-loss
rule, w_j the weight and W_j = work_j (1 - 1e-6) what is required:

.. math::

    \max \sum_j w_j z_j, \quad
    \sum_{j,m} u_m x_{jsm} \le C_{ks} \;\; \forall k, s, \quad
    \sum_{\text{states}} \text{credit}_{j,\cdot} \, \text{state}_{j,\cdot} \ge W_j z_j \;\; \forall j.

The path of job j carries the flow z_j on level 1 (so that sum_m x_jsm <= z_j: tight, and exact,
since the work of an unmet job can be dropped) and the flow 1 on the levels below, where unmet and
best-effort jobs run too. For a job without any loss the states that tell runs apart have no effect;
it has the states ``run`` only, with sum_m x_jsm <= z_j (or 1) in place of the path.

Constraints of the instance (:mod:`edgeflow_opt.problem.constraints.base`) are further rows over the
x and the z. That they only ever limit what is held is what lets level 1 leave out the work of jobs
that are not met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.linear_rows import add_linear_rows
from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.formulations.sparse import ModelBuilder
from edgeflow_opt.formulations.states import (
    NO_ORIGIN,
    NO_START,
    KeyIndex,
    add_path_rows,
    continued,
    joined,
    path_states,
    plain_states,
    state_keys,
)

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.formulations.states import IdleStates, RunningStates
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Relative slack under which a job that can just not be met alone still counts as reachable.
_REACH_SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class MalleableModel:
    """The model of one or more levels, and the way between its columns and plan matrices.

    Parameters
    ----------
    model
        Rows and columns.
    objectives
        The objective (N,) of every level that the model knows; larger is better.
    z
        (n,) column of z; -1 for best effort, and for jobs that cannot be met even alone and need
        not be.
    """

    model: SparseModel
    objectives: dict[Level, FloatArray]
    z: IntArray
    _arrays: ProblemArrays
    _running: RunningStates
    _idle: IdleStates | None
    _progress: IntArray
    _leftover: IntArray
    _met_only: bool

    @property
    def running(self) -> RunningStates:
        """The running states and their columns."""
        return self._running

    @property
    def idle(self) -> IdleStates | None:
        """The idle states and their columns; None where no job follows a path."""
        return self._idle

    @property
    def shares(self) -> dict[Level, IntArray]:
        """(n,) columns of the shares of work of unmet jobs, by level; -1 = the job has none."""
        return {"progress": self._progress, "leftover": self._leftover}

    def decode(self, x: FloatArray) -> IntArray:
        """Return the plan matrix of a solution."""
        arrays, running = self._arrays, self._running
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        on = x[running.column] > 0.5
        plan[arrays.mode_job[running.mode[on]], running.slot[on]] = running.mode[on]
        return plan

    def encode(self, plan: IntArray) -> FloatArray:
        """Return the columns that stand for a plan matrix that obeys the rules of the problem.

        Where the model holds met jobs only (level 1), the plans of the others are dropped; so are
        slots in modes that the model has left out (dominated ones).
        """
        arrays = self._arrays
        done = walk(arrays, plan)
        x = np.zeros(self.model.num_columns)
        has_z = self.z >= 0
        x[self.z[has_z]] = done.met[has_z]
        if self._met_only:
            plan = np.where(done.met[:, None], plan, -1)
        history = _History.of(arrays, plan)
        job, slot = np.nonzero(plan >= 0)
        mode = plan[job, slot]
        index = KeyIndex(self._running.keys(arrays))
        in_loss = index.places(
            state_keys(arrays, mode, slot, history.start[job, slot], history.origin[job, slot])
        )
        nothing = np.full(len(mode), NO_START)
        steady = index.places(state_keys(arrays, mode, slot, nothing, nothing * 0 + NO_ORIGIN))
        place = np.where(in_loss >= 0, in_loss, steady)
        x[self._running.column[place[place >= 0]]] = 1.0
        idle = self._idle
        if idle is not None:
            on = (plan[idle.job, idle.slot] < 0) & (
                history.last_site[idle.job, idle.slot] == idle.site
            )
            # A moldable job leaves the model after its run.
            has_run = np.logical_or.accumulate(plan >= 0, axis=1)
            on &= arrays.malleable[idle.job] | ~has_run[idle.job, idle.slot]
            if self._met_only:
                on &= done.met[idle.job]
            x[idle.column[on]] = 1.0
        for columns, credit in (
            (self._progress, done.credit_by_deadline),
            (self._leftover, done.credit_by_horizon),
        ):
            share = np.where(done.met, 0.0, np.minimum(1.0, credit / arrays.work))
            x[columns[columns >= 0]] = share[columns >= 0]
        return x

    def restricted(self, met: BoolArray, unmet: BoolArray) -> SparseModel:
        """Return the model in which the jobs `met` (n,) must, and `unmet` must not, be met."""
        lower, upper = self.model.col_lower.copy(), self.model.col_upper.copy()
        lower[self.z[met & (self.z >= 0)]] = 1.0
        upper[self.z[unmet & (self.z >= 0)]] = 0.0
        return replace(self.model, col_lower=lower, col_upper=upper)


@dataclass(frozen=True, slots=True, eq=False)
class _History:
    """For every (job, slot) of a plan: start slot and origin of its run, and its last site."""

    start: IntArray
    origin: IntArray
    last_site: IntArray

    @classmethod
    def of(cls, arrays: ProblemArrays, plan: IntArray) -> _History:
        num_jobs, num_slots = plan.shape
        slots, rows = np.arange(num_slots)[None, :], np.arange(num_jobs)[:, None]
        runs = plan >= 0
        idle = np.full((num_jobs, 1), -1, dtype=np.int64)
        before = np.concatenate([idle, plan[:, :-1]], axis=1)
        start = np.maximum.accumulate(np.where(runs & (plan != before), slots, -1), axis=1)
        initial = arrays.last_site[:, None]
        latest = np.maximum.accumulate(np.where(runs, slots, -1), axis=1)
        site = arrays.mode_site[plan[rows, np.maximum(latest, 0)]]
        last_site = np.where(latest >= 0, site, initial)
        site_before = np.concatenate([initial, last_site[:, :-1]], axis=1)
        origin = site_before[rows, np.maximum(start, 0)]
        goes_on = (start == 0) & (plan[:, :1] == arrays.running_mode[:, None])
        origin = np.where(goes_on & (plan[:, :1] >= 0), continued(arrays), origin)
        return cls(start, origin, last_site)


def build_malleable(arrays: ProblemArrays, levels: tuple[Level, ...] = ("met",)) -> MalleableModel:
    """Build the malleable model.

    Parameters
    ----------
    arrays
        The instance.
    levels
        The levels that the model must know, of :data:`~edgeflow_opt.formulations.objectives.LEVELS`.
        With ``("met",)`` alone the model holds the plans of met jobs only, and is tight.
    """
    met_only = levels == ("met",)
    builder = ModelBuilder()
    n, num_slots = arrays.num_jobs, arrays.num_slots
    useful = arrays.useful_lengths()
    # A job that must be met keeps its z: where it cannot be, the model has no solution.
    reachable = arrays.has_deadline & (reachable_jobs(arrays) | arrays.must_meet)
    z = np.full(n, -1, dtype=np.int64)
    z[reachable] = builder.add_columns(
        "z", int(reachable.sum()), lower=arrays.must_meet[reachable].astype(np.float64)
    )
    planned = reachable if met_only else np.ones(n, dtype=np.bool_)
    end_slot = arrays.end_slot if met_only else np.full(n, num_slots, dtype=np.int64)
    on_path = planned & (arrays.has_losses | ~arrays.malleable | ("reconfigurations" in levels))
    modes = np.nonzero(arrays.mode_kept & planned[arrays.mode_job])[0]
    mode_on_path = on_path[arrays.mode_job[modes]]
    flow = z if met_only else None
    plain = plain_states(builder, arrays, modes[~mode_on_path], end_slot)
    _add_link_rows(builder, arrays, plain, flow)
    running, idle = plain, None
    if on_path.any():
        path = path_states(builder, arrays, modes[mode_on_path], end_slot)
        idle = add_path_rows(builder, arrays, path, end_slot, np.nonzero(on_path)[0], flow)
        running = joined(plain, path)
    before_deadline, by_horizon = running.credits(arrays, useful)
    rows = builder.add_rows("capacity", arrays.num_sites * num_slots, upper=arrays.capacity.ravel())
    builder.add_entries(
        rows[arrays.mode_site[running.mode] * num_slots + running.slot],
        running.column,
        arrays.mode_units[running.mode],
    )
    _add_work_rows(builder, arrays, running, before_deadline, z)
    with_z = np.flatnonzero(z >= 0)
    add_linear_rows(
        builder, arrays, (running.column, running.mode, running.slot), (z[with_z], with_z)
    )
    # A job that must be met has no share of work left undone; one of weight 0 adds nothing.
    shared = (arrays.weight > 0) & ~arrays.must_meet
    nobody = np.zeros(n, dtype=np.bool_)
    progress = _add_shares(
        builder, arrays, running, before_deadline, z, "progress",
        shared & arrays.has_deadline if "progress" in levels else nobody,
    )  # fmt: skip
    leftover = _add_shares(
        builder, arrays, running, by_horizon, z, "leftover",
        shared if "leftover" in levels else nobody,
    )  # fmt: skip
    model = builder.build()
    objectives: dict[Level, FloatArray] = {}
    for level in levels:
        vector = np.zeros(model.num_columns)
        if level == "cost":
            held = arrays.mode_cost[running.mode] * arrays.lengths[running.slot]
            vector[running.column] = -held
        elif level == "reconfigurations":
            counts = running.is_begin & (running.origin >= 0)
            counts &= running.origin != continued(arrays)
            vector[running.column[counts]] = -1.0
        else:
            columns = {"met": z, "progress": progress, "leftover": leftover}[level]
            vector[columns[columns >= 0]] = arrays.weight[columns >= 0]
        objectives[level] = vector
    return MalleableModel(
        model=model,
        objectives=objectives,
        z=z,
        _arrays=arrays,
        _running=running,
        _idle=idle,
        _progress=progress,
        _leftover=leftover,
        _met_only=met_only,
    )


def reachable_jobs(arrays: ProblemArrays) -> BoolArray:
    """Return (n,) whether the best mode in every slot, without losses, does the work in time.

    sum_s max_m rate_m max(0, min(t_{s+1}, d) - t_s) >= work (1 - 1e-6), over the slots in which the
    job may run and the modes whose units the site has then. A job that fails this cannot be met by
    any schedule. True for best effort.
    """
    n, num_slots = arrays.num_jobs, arrays.num_slots
    best = np.zeros((n, num_slots))
    for site in range(arrays.num_sites):
        on_site = arrays.mode_usable & (arrays.mode_site == site)
        for units in np.unique(arrays.mode_units[on_site]):
            modes = np.nonzero(on_site & (arrays.mode_units == units))[0]
            rate = np.zeros(n)
            np.maximum.at(rate, arrays.mode_job[modes], arrays.mode_rate[modes])
            fits = arrays.capacity[site] >= units
            best = np.maximum(best, rate[:, None] * fits[None, :])
    arrived = np.arange(num_slots)[None, :] >= arrays.first_slot[:, None]
    most = (best * arrays.useful_lengths() * arrived).sum(axis=1)
    result: BoolArray = ~arrays.has_deadline | (most >= arrays.required * (1.0 - _REACH_SLACK))
    return result


def _add_link_rows(
    builder: ModelBuilder, arrays: ProblemArrays, states: RunningStates, flow: IntArray | None
) -> None:
    """Add sum_m x[j,s,m] <= flow of j, for jobs without a path."""
    pair = arrays.mode_job[states.mode] * arrays.num_slots + states.slot
    pairs, row = np.unique(pair, return_inverse=True)
    rows = builder.add_rows("link", len(pairs), upper=1.0 if flow is None else 0.0)
    builder.add_entries(rows[row], states.column, 1.0)
    if flow is not None:
        builder.add_entries(rows, flow[pairs // arrays.num_slots], -1.0)


def _add_work_rows(
    builder: ModelBuilder,
    arrays: ProblemArrays,
    running: RunningStates,
    credit: FloatArray,
    z: IntArray,
) -> None:
    """Add sum credit x >= W z, with credits cut at W: more is no better, and the row is tighter."""
    job = arrays.mode_job[running.mode]
    has = z >= 0
    rows = np.full(len(z), -1, dtype=np.int64)
    rows[has] = builder.add_rows("work", int(has.sum()), lower=0.0)
    use = has[job] & (credit > 0)
    cut = np.minimum(credit[use], arrays.required[job[use]])
    builder.add_entries(rows[job[use]], running.column[use], cut)
    builder.add_entries(rows[has], z[has], -arrays.required[has])


def _add_shares(
    builder: ModelBuilder,
    arrays: ProblemArrays,
    running: RunningStates,
    credit: FloatArray,
    z: IntArray,
    level: Level,
    has: BoolArray,
) -> IntArray:
    """Add the share p of its work that each unmet job of `has` does; return (n,) columns or -1.

    work_j p_j <= sum credit x, p_j <= 1 - z_j.
    """
    columns = np.full(arrays.num_jobs, -1, dtype=np.int64)
    columns[has] = builder.add_columns(level, int(has.sum()), integer=False)
    rows = np.full(arrays.num_jobs, -1, dtype=np.int64)
    rows[has] = builder.add_rows(f"{level}_work", int(has.sum()), lower=0.0)
    builder.add_entries(rows[has], columns[has], -arrays.work[has])
    job = arrays.mode_job[running.mode]
    use = has[job] & (credit > 0)
    cut = np.minimum(credit[use], arrays.work[job[use]])
    builder.add_entries(rows[job[use]], running.column[use], cut)
    both = has & (z >= 0)
    rows = builder.add_rows(f"{level}_unmet", int(both.sum()), upper=1.0)
    builder.add_entries(rows, columns[both], 1.0)
    builder.add_entries(rows, z[both], 1.0)
    return columns
