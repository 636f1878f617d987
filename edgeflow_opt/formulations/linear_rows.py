"""The rows of constraints in a formulation, and plans that are brought within them.

See :mod:`edgeflow_opt.problem.constraints.base` for what the rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.formulations.states import counting

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import ModelBuilder
    from edgeflow_opt.problem.arrays import BoolArray, IntArray, ProblemArrays


def add_linear_rows(
    builder: ModelBuilder,
    arrays: ProblemArrays,
    held: tuple[IntArray, IntArray, IntArray],
    met: tuple[IntArray, IntArray],
) -> None:
    """Add the rows of the constraints of an instance to a model.

    Parameters
    ----------
    builder
        The model.
    arrays
        The instance.
    held
        (column, mode, slot) of everything that a column may stand for: it is 1 where the mode is
        held in the slot. A column may stand for several slots, and a pair have several columns.
    met
        (column, job): the columns whose sum is 1 where the job is met.
    """
    rows = arrays.rows
    if not rows.num_rows:
        return
    number = np.concatenate(
        [
            builder.add_rows(name, stop - first, upper=rows.upper[first:stop])
            for name, first, stop in rows.blocks
        ]
    )
    column, mode, slot = held
    in_held = _matches(rows.mode * arrays.num_slots + rows.slot, mode * arrays.num_slots + slot)
    met_column, job = met
    in_met = _matches(rows.met_job, job)
    row = np.concatenate([rows.row[in_held[0]], rows.met_row[in_met[0]]])
    columns = np.concatenate([column[in_held[1]], met_column[in_met[1]]])
    value = np.concatenate([rows.value[in_held[0]], rows.met_value[in_met[0]]])
    # A column that stands for a whole run comes once for each of its slots.
    width = int(columns.max(initial=0)) + 1
    place, inverse = np.unique(row * width + columns, return_inverse=True)
    sums = np.bincount(inverse, value, minlength=len(place))
    kept = sums != 0.0
    builder.add_entries(number[place[kept] // width], place[kept] % width, sums[kept])


def _matches(wanted: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs (index into `wanted`, index into `keys`) of equal numbers."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    low = np.searchsorted(ordered, wanted, side="left")
    high = np.searchsorted(ordered, wanted, side="right")
    group, offset = counting(high - low)
    return group, order[low[group] + offset]


def obeys_rows(arrays: ProblemArrays, plan: IntArray) -> bool:
    """Whether a plan matrix obeys the constraints of the instance."""
    rows = arrays.rows
    if not rows.num_rows:
        return True
    reached = rows.reached(rows.held(arrays, plan), walk(arrays, plan).met)
    return bool((reached <= rows.limits).all())


def within_rows(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return what is left of a plan matrix when units are given back until the constraints hold.

    Row by row jobs give back what they hold in it: those first that miss their deadlines, then the
    lighter ones; of these the one that counts most in the row. A job that would miss its deadline
    by that, or may have one run only, gives back all it has. Rows about jobs met cannot be mended
    that way, see :func:`obeys_rows`.
    """
    rows = arrays.rows
    if not rows.num_rows:
        return plan
    held, done = rows.held(arrays, plan), walk(arrays, plan)
    broken = np.flatnonzero(rows.reached(held, done.met) > rows.limits)
    if not len(broken):
        return plan
    plan, limits = plan.copy(), rows.limits
    owner = arrays.mode_job[rows.mode]
    starts = np.searchsorted(rows.row, np.arange(rows.num_rows + 1))
    for row in broken.tolist():
        entries = np.arange(starts[row], starts[row + 1])
        entries = entries[rows.value[entries] > 0.0]
        while True:
            met = walk(arrays, plan).met
            mine = entries[plan[owner[entries], rows.slot[entries]] == rows.mode[entries]]
            theirs = rows.met_row == row
            reached = rows.value[mine].sum() + float(
                rows.met_value[theirs] @ met[rows.met_job[theirs]]
            )
            if reached <= limits[row] or not len(mine):
                break
            _give_back(arrays, plan, owner[mine], rows.slot[mine], rows.value[mine], met)
    return plan


def _give_back(
    arrays: ProblemArrays,
    plan: IntArray,
    owner: IntArray,
    slot: IntArray,
    value: IntArray,
    met: BoolArray,
) -> None:
    """Let one of the jobs that hold something in a row give it back; `plan` is changed."""
    jobs, place = np.unique(owner, return_inverse=True)
    counts = np.bincount(place, value)
    order = np.lexsort(
        (-counts, np.where(met, arrays.weight, 0.0)[jobs], met[jobs], arrays.must_meet[jobs])
    )
    job = int(jobs[order[0]])
    before = plan[job].copy()
    if arrays.malleable[job]:
        plan[job, slot[owner == job]] = -1
        if not met[job] or walk(arrays, plan).met[job]:
            return
    plan[job] = before
    plan[job] = -1
