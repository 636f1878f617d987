"""The rows of constraints in a formulation, and plans that are brought within them.

See :mod:`edgeflow_opt.problem.constraints.base` for what the rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import trim, usage, walk
from edgeflow_opt.formulations.states import counting

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import ModelBuilder
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays


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


def brought_within_rows(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return a plan matrix, none the better for any slot after completion, within the constraints.

    What breaks one is given back (:func:`within_rows`), and what is then left goes to other jobs
    (:func:`with_jobs_inserted`). A plan that breaks none comes back as it is, but for such slots.
    """
    if not arrays.rows.num_rows:
        return plan
    plan = trim(arrays, plan)
    within = within_rows(arrays, plan)
    return plan if within is plan else trim(arrays, with_jobs_inserted(arrays, within))


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


def with_jobs_inserted(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return a plan within the constraints with further jobs in the units that it leaves.

    Jobs that miss their deadlines, the heavier ones first and of equals those with the earlier
    deadline, are given the earliest slots of one mode that capacities and constraints leave, in the
    mode that holds the fewest GPU-seconds, where that meets the deadline.

    Parameters
    ----------
    arrays
        The instance.
    plan
        (n, T) a plan matrix that obeys capacities and constraints.
    """
    rows = arrays.rows
    done = walk(arrays, plan)
    missed = np.flatnonzero(arrays.has_deadline & ~done.met)
    if not rows.num_rows or not len(missed):
        return plan
    plan = plan.copy()
    free = arrays.capacity - usage(arrays, plan)
    spare = rows.limits - rows.reached(rows.held(arrays, plan), done.met)
    owner = arrays.mode_job[rows.mode]
    by_job = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[by_job], np.arange(arrays.num_jobs + 1))
    useful = arrays.useful_lengths()
    for job in missed[np.lexsort((arrays.deadline[missed], -arrays.weight[missed]))].tolist():
        entries = by_job[first[job] : first[job + 1]]
        about = rows.met_job == job
        of_met = np.zeros(rows.num_rows)
        np.add.at(of_met, rows.met_row[about], rows.met_value[about])
        before = plan[job].copy()
        units = np.zeros_like(free)
        held = before >= 0
        np.add.at(
            units, (arrays.mode_site[before[held]], np.flatnonzero(held)),
            arrays.mode_units[before[held]],
        )  # fmt: skip
        mine = entries[before[rows.slot[entries]] == rows.mode[entries]]
        given = np.bincount(rows.row[mine], rows.value[mine], minlength=rows.num_rows)
        # What it holds in vain would be given back.
        room, left = free + units, spare + given
        best = _cheapest(arrays, plan, job, entries, room, left, of_met, useful[job])
        plan[job] = before if best is None else best
        if best is not None:
            used = np.zeros_like(free)
            held = best >= 0
            np.add.at(
                used, (arrays.mode_site[best[held]], np.flatnonzero(held)),
                arrays.mode_units[best[held]],
            )  # fmt: skip
            mine = entries[best[rows.slot[entries]] == rows.mode[entries]]
            taken = np.bincount(rows.row[mine], rows.value[mine], minlength=rows.num_rows)
            free, spare = room - used, left - taken - of_met
    return plan


def _cheapest(
    arrays: ProblemArrays,
    plan: IntArray,
    job: int,
    entries: IntArray,
    room: IntArray,
    left: FloatArray,
    of_met: FloatArray,
    useful: FloatArray,
) -> IntArray | None:
    """Return the (T,) plan of fewest GPU-seconds in one mode that meets a job; None = none does."""
    rows, best, least = arrays.rows, None, np.inf
    slots = np.arange(arrays.num_slots)
    in_time = (slots >= arrays.first_slot[job]) & (slots < arrays.end_slot[job])
    for mode in range(int(arrays.mode_start[job]), int(arrays.mode_start[job + 1])):
        bound = arrays.running_mode[job] not in (-1, mode) and not arrays.malleable[job]
        if not arrays.mode_usable[mode] or bound:
            continue
        open_slots = in_time & (room[arrays.mode_site[mode]] >= arrays.mode_units[mode])
        mine = entries[rows.mode[entries] == mode]
        tight = rows.value[mine] > left[rows.row[mine]]
        open_slots[rows.slot[mine][tight]] = False
        chosen = np.flatnonzero(open_slots)
        enough = np.cumsum(useful[chosen]) * arrays.mode_rate[mode] >= arrays.required[job]
        if not enough.any():
            continue
        # As many as do the work without losses, and, where these cost too much, all.
        for count in (int(enough.argmax()) + 1, len(chosen)):
            row = np.full(arrays.num_slots, -1, dtype=np.int64)
            row[chosen[:count]] = mode
            plan[job] = row
            cost = float(arrays.mode_cost[mode] * arrays.lengths[chosen[:count]].sum())
            if cost >= least or not walk(arrays, plan).met[job]:
                continue
            row = trim(arrays, plan)[job]
            held = mine[row[rows.slot[mine]] == mode]
            sums = np.bincount(rows.row[held], rows.value[held], minlength=rows.num_rows)
            one_run = arrays.malleable[job] or _is_one_run(arrays, job, row)
            if one_run and (sums + of_met <= left).all():
                best, least = row, cost
                break
    return best


def _is_one_run(arrays: ProblemArrays, job: int, row: IntArray) -> bool:
    """Whether a moldable job may follow the plan `row`, which is in one mode."""
    held = np.flatnonzero(row >= 0)
    whole = int(held[-1] - held[0]) + 1 == len(held)
    return whole and (int(arrays.running_mode[job]) < 0 or int(held[0]) == 0)
