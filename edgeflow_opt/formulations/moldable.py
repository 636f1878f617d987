r"""The moldable model: one mode, one start, no interruption, starts enumerated.

An option o of job j is a mode m and a start slot a; the run begun there, with its loss L, is held
from t_a through the slot in which the job completes, and that is by its deadline:

.. math::

    \max \sum_o w_{j(o)} y_o, \quad
    \sum_{o \text{ of } j} y_o \le 1 \;\; \forall j \;\; (= 1 \text{ where it must be met}), \quad
    \sum_{o \text{ holds } (k, s)} u_{m(o)} y_o \le C_{ks} \;\; \forall k, s.

It speaks of level 1 alone. The levels below, where a moldable job may also run in vain or end
early, are left to the malleable model, which knows jobs of one run. (Optional intervals under a
cumulative capacity are no alternative: their bound is useless beyond some 30 jobs.)

A malleable job with one slot from its arrival to its deadline has one run too, so that every
problem of one slot is of this form: there it is a multiple-choice multidimensional knapsack (MMKP).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.linear_rows import add_linear_rows
from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.formulations.sparse import ModelBuilder
from edgeflow_opt.formulations.states import counting

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The runs that meet a deadline, none longer than it must be; grouped by job, in their order.

    Parameters
    ----------
    mode, start, stop
        (N,) mode, first slot, and slot after the last one.
    job
        (N,) job, ascending.
    """

    mode: IntArray
    start: IntArray
    stop: IntArray
    job: IntArray


def one_run_only(arrays: ProblemArrays) -> bool:
    """Whether no job can have more than one run by its deadline, so that options say it all.

    True for jobs that are not malleable, and for those with at most one slot for their work.
    """
    apart = arrays.malleable & arrays.has_deadline & (arrays.end_slot - arrays.first_slot > 1)
    return not bool(apart.any())


def options_of(arrays: ProblemArrays) -> Options:
    """Enumerate the options of all jobs that have a deadline."""
    mode, start = _starts(arrays)
    stop = _stops(arrays, mode, start)
    job = arrays.mode_job[mode]
    ends = arrays.boundaries[np.minimum(stop, arrays.num_slots)]
    in_time = stop <= arrays.end_slot[job]
    in_time &= arrays.mode_rate[mode] * np.maximum(
        0.0, np.minimum(ends, arrays.deadline[job]) - arrays.boundaries[start]
        - _losses(arrays, mode, start)
    ) >= arrays.required[job]  # fmt: skip
    mode, start, stop = mode[in_time], start[in_time], stop[in_time]
    site, units = arrays.mode_site[mode], arrays.mode_units[mode]
    # The first slot at or after each one that has too few units ends where the run would have to.
    holds = np.zeros(len(mode), dtype=np.bool_)
    for k in range(arrays.num_sites):
        for u in np.unique(units[site == k]):
            lacking = np.concatenate([[0], np.cumsum(arrays.capacity[k] < u)])
            mine = (site == k) & (units == u)
            holds[mine] = lacking[stop[mine]] == lacking[start[mine]]
    mode, start, stop = mode[holds], start[holds], stop[holds]
    return Options(mode=mode, start=start, stop=stop, job=arrays.mode_job[mode])


@dataclass(frozen=True, slots=True, eq=False)
class MoldableModel:
    """The model of level 1, and the way between its columns and plan matrices.

    Parameters
    ----------
    model
        Rows and columns: one column per option.
    objectives
        The objective of level 1.
    options
        What the columns are.
    """

    model: SparseModel
    objectives: dict[Level, FloatArray]
    options: Options
    _arrays: ProblemArrays

    def decode(self, x: FloatArray) -> IntArray:
        """Return the plan matrix of a solution."""
        return plan_of_options(self._arrays, self.options, np.nonzero(x > 0.5)[0])

    def encode(self, plan: IntArray) -> FloatArray:
        """Return the options of the jobs that a plan matrix meets."""
        options = self.options
        met = walk(self._arrays, plan).met
        first = np.argmax(plan >= 0, axis=1)
        mode = plan[np.arange(len(plan)), first]
        job = options.job
        chosen = met[job] & (mode[job] == options.mode) & (first[job] == options.start)
        return chosen.astype(np.float64)

    def restricted(
        self, met: BoolArray, unmet: BoolArray, kept: BoolArray | None = None
    ) -> SparseModel:
        """Return the model in which the jobs `met` (n,) must, and `unmet` must not, be met.

        Parameters
        ----------
        kept
            (N,) the options that stay; None = all.
        """
        upper, row_lower = self.model.col_upper.copy(), self.model.row_lower.copy()
        upper[unmet[self.options.job]] = 0.0
        if kept is not None:
            upper[~kept] = 0.0
        # The first rows are those of the jobs, in their order.
        row_lower[np.nonzero(met)[0]] = 1.0
        return replace(self.model, col_upper=upper, row_lower=row_lower)


def plan_of_options(arrays: ProblemArrays, options: Options, chosen: IntArray) -> IntArray:
    """Return the plan matrix of the options `chosen`, at most one of each job."""
    plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
    for option in chosen:
        run = slice(options.start[option], options.stop[option])
        plan[options.job[option], run] = options.mode[option]
    return plan


def build_moldable(arrays: ProblemArrays) -> MoldableModel:
    """Build the moldable model of level 1; see :func:`one_run_only` for the problems that it fits."""
    assert one_run_only(arrays)
    options = options_of(arrays)
    mode, job = options.mode, options.job
    option, offset = counting(options.stop - options.start)
    slot = options.start[option] + offset
    site, units = arrays.mode_site[mode], arrays.mode_units[mode]
    builder = ModelBuilder()
    column = builder.add_columns("option", len(mode))
    rows = builder.add_rows(
        "one_run", arrays.num_jobs, lower=np.where(arrays.must_meet, 1.0, -np.inf), upper=1.0
    )
    builder.add_entries(rows[job], column, 1.0)
    rows = builder.add_rows(
        "capacity", arrays.num_sites * arrays.num_slots, upper=arrays.capacity.ravel()
    )
    builder.add_entries(rows[site[option] * arrays.num_slots + slot], column[option], units[option])
    add_linear_rows(builder, arrays, (column[option], mode[option], slot), (column, job))
    return MoldableModel(
        model=builder.build(),
        objectives={"met": arrays.weight[job]},
        options=options,
        _arrays=arrays,
    )


def _starts(arrays: ProblemArrays) -> tuple[IntArray, IntArray]:
    """Return mode and slot of every start; a moldable job that runs may only go on from now."""
    modes = np.nonzero(arrays.mode_kept & arrays.has_deadline[arrays.mode_job])[0]
    bound = (arrays.running_mode >= 0) & ~arrays.malleable
    job = arrays.mode_job[modes]
    modes = modes[~bound[job] | (arrays.running_mode[job] == modes)]
    job = arrays.mode_job[modes]
    first = arrays.first_slot[job]
    end = np.where(bound[job], np.minimum(1, arrays.end_slot[job]), arrays.end_slot[job])
    group, offset = counting(np.maximum(0, end - first))
    return modes[group], first[group] + offset


def _losses(arrays: ProblemArrays, mode: IntArray, start: IntArray) -> FloatArray:
    """Return the loss of the run of each option, by where the job ran before."""
    job = arrays.mode_job[mode]
    last_site = arrays.last_site[job]
    loss = np.where(
        last_site == arrays.mode_site[mode], arrays.restart_s[job], arrays.migration_s[job]
    )
    loss = np.where(last_site < 0, 0.0, loss)
    goes_on = (arrays.running_mode[job] == mode) & (start == 0)
    return np.where(goes_on, arrays.loss_left_s[job], loss)


def _stops(arrays: ProblemArrays, mode: IntArray, start: IntArray) -> IntArray:
    """Return the slot after that in which the job completes; T + 1 if it does not by the horizon.

    The smallest e with rate * max(0, t_e - t_a - loss) >= W, by the very operations of the
    run-and-loss rule; the division only says where to look.
    """
    required = arrays.required[arrays.mode_job[mode]]
    rate, loss = arrays.mode_rate[mode], _losses(arrays, mode, start)
    begin, last = arrays.boundaries[start], arrays.num_slots
    stop = np.searchsorted(arrays.boundaries, begin + loss + required / rate, side="left")
    stop = np.maximum(start + 1, stop - 1)
    for _ in range(2):
        credit = rate * np.maximum(
            0.0, arrays.boundaries[np.minimum(stop, last)] - begin - loss
        )  # fmt: skip
        stop = np.where((credit < required) & (stop <= last), stop + 1, stop)
    return stop
