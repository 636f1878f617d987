"""What would save a job: found around the jobs that are met, improved by re-solving, verified.

Around: the met jobs keep their plans, and the job is fitted into what is left with the change.
That is quick and gives a remedy that is enough. Re-solving then looks for less, while there is time,
and proves where less does not do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.analysis.explain.data import Remedy, with_deadline, with_more
from edgeflow_opt.analysis.explain.room import as_schedule
from edgeflow_opt.formulations.plans import plan_of, usage
from edgeflow_opt.problem import check

if TYPE_CHECKING:
    from edgeflow_opt.analysis.explain.room import Room
    from edgeflow_opt.problem import Allocation, Schedule
    from edgeflow_opt.problem.arrays import IntArray

#: Jobs whose dropping alone is tried at most, and remedies of that kind that are told.
_DROPS_TRIED, _DROPS_TOLD = 40, 3

#: Most seconds of one re-solving.
_SOLVE_S = 3.0


def quick_remedies(room: Room, job: int, *, alone_met: bool) -> tuple[list[Remedy], bool]:
    """Return what saves a missed job beside the met ones, best first, and whether all was tried.

    Parameters
    ----------
    alone_met
        Whether the job would be met alone: otherwise dropping others cannot save it.
    """
    row = room.fit(job, room.free, float(room.arrays.deadline[job]))
    schedule = None if row is None else room.witness(room.problem, job, row)
    if schedule is not None:
        return [_replan(room, job, schedule)], True
    found: list[Remedy] = []
    kinds: list[Callable[[Room, int], Iterator[Remedy]]] = [_capacity, _deadline]
    if alone_met:
        kinds.append(_drop)
    for kind in kinds:
        if room.clock.up:
            return found, False
        found += kind(room, job)
    return found, not room.clock.up


def improved_remedies(
    room: Room, job: int, found: list[Remedy], *, alone_met: bool
) -> tuple[list[Remedy], bool]:
    """Return remedies that change less than those `found`, all jobs re-planned, and whether all was
    tried.

    Another schedule of the same instance, if there is one; else fewer units, an earlier deadline.
    """  # noqa: D205
    if any(remedy.kind == "replan" for remedy in found):
        return found, True
    if alone_met and not _is_settled(room, job):
        if room.clock.up:
            return found, False
        seconds = min(_SOLVE_S, 0.3 * room.clock.left_s)
        schedule, _ = room.replanned(room.problem, job, seconds)
        if schedule is not None:
            return [_replan(room, job, schedule)], True
    better: list[Remedy] = []
    units_tried = False
    for remedy in found:
        if remedy.kind == "capacity" and not units_tried:
            units_tried = True
            better.append(_fewer_units(room, job, remedy))
        elif remedy.kind == "deadline":
            better.append(_earlier_deadline(room, job, remedy))
        else:
            better.append(remedy)
    return better, not room.clock.up


def _replan(room: Room, job: int, schedule: Schedule) -> Remedy:
    name = room.problem.jobs[job].id
    return Remedy(kind="replan", job=name, schedule=schedule, proven_least=True)


def _is_settled(room: Room, job: int) -> bool:
    """Whether the bound of the schedule proves that the job and no less cannot be met."""
    bound = room.schedule.bound
    if bound is None or room.problem.objective.weights is not None:
        return False
    return bound < room.others_weight(job) + float(room.arrays.weight[job]) - 1e-6


def _capacity(room: Room, job: int) -> Iterator[Remedy]:
    """Yield for each site the fewest units more, and the shortest span, that save the job."""
    found = []
    for site in range(room.arrays.num_sites):
        if room.clock.up:
            break
        remedy = _more_units(room, job, site)
        if remedy is not None:
            found.append(remedy)
    found.sort(key=_unit_seconds)
    yield from found


def _unit_seconds(remedy: Remedy) -> float:
    assert remedy.units is not None
    assert remedy.end is not None
    assert remedy.start is not None
    return remedy.units * (remedy.end - remedy.start)


def _more_units(room: Room, job: int, site: int) -> Remedy | None:
    arrays = room.arrays
    modes = np.arange(arrays.mode_start[job], arrays.mode_start[job + 1])
    units = arrays.mode_units[modes[arrays.mode_site[modes] == site]]
    first, end = int(arrays.first_slot[job]), int(arrays.end_slot[job])
    if not len(units) or first >= end:
        return None
    deadline = float(arrays.deadline[job])

    def fitted(count: int, a: int, b: int) -> IntArray | None:
        free = room.free.copy()
        free[site, a:b] += count
        return room.fit(job, free, deadline)

    most = int(units.max())
    if fitted(most, first, end) is None:
        return None
    count = _least(lambda u: fitted(u, first, end) is not None, 1, most)
    # The latest begin, then the earliest end, of a span that is enough.
    begin = -_least(lambda a: fitted(count, -a, end) is not None, 1 - end, -first)
    stop = _least(lambda b: fitted(count, begin, b) is not None, begin + 1, end)
    row = fitted(count, begin, stop)
    if row is None:
        return None
    start_s, end_s = float(arrays.boundaries[begin]), float(arrays.boundaries[stop])
    name = room.problem.sites[site].name
    schedule = room.witness(with_more(room.problem, name, start_s, end_s, count), job, row)
    if schedule is None:
        return None
    return Remedy(
        kind="capacity", job=room.problem.jobs[job].id, site=name, start=start_s, end=end_s,
        units=count, schedule=schedule,
    )  # fmt: skip


def _fewer_units(room: Room, job: int, remedy: Remedy) -> Remedy:
    """Look for fewer units, at any time, all other jobs re-planned."""
    assert remedy.units is not None
    assert remedy.site is not None
    grid = room.problem.grid
    best, low, proven_to = remedy, 0, 0
    while best.units is not None and best.units - low > 1 and not room.clock.up:
        middle = (low + best.units) // 2
        changed = with_more(room.problem, remedy.site, grid.start, grid.end, middle)
        schedule, impossible = room.replanned(changed, job, _SOLVE_S)
        fewer = None if schedule is None else _as_needed(room, remedy, schedule)
        if fewer is None:
            low = middle
            if impossible:
                proven_to = middle
        else:
            best = fewer
    assert best.units is not None
    # That no schedule does with no unit more is for the bound of the schedule to prove.
    least = proven_to == best.units - 1 and (proven_to > 0 or _is_settled(room, job))
    return _replace(best, proven_least=least)


def _as_needed(room: Room, remedy: Remedy, schedule: Schedule) -> Remedy | None:
    """Return the units and the span by which `schedule` exceeds the capacity of the site."""
    arrays = room.arrays
    site = room.problem.site_index[remedy.site or ""]
    plan = plan_of(room.problem, arrays, schedule)
    over = usage(arrays, plan)[site] - arrays.capacity[site]
    slots = np.nonzero(over > 0)[0]
    if not len(slots):
        return None
    start, end = float(arrays.boundaries[slots[0]]), float(arrays.boundaries[slots[-1] + 1])
    units = int(over.max())
    changed = with_more(room.problem, room.problem.sites[site].name, start, end, units)
    narrowed = as_schedule(changed, schedule.allocations, schedule.solver)
    if not check(changed, narrowed).valid:
        return None
    return Remedy(
        kind="capacity", job=remedy.job, site=remedy.site, start=start, end=end, units=units,
        schedule=narrowed,
    )  # fmt: skip


def _deadline(room: Room, job: int) -> Iterator[Remedy]:
    """Yield the earliest deadline by which the job completes beside the others."""
    found = room.earliest(job, room.free)
    if found is None:
        return
    completion, row = found
    deadline = _just_after(completion)
    changed = with_deadline(room.problem, room.problem.jobs[job].id, deadline)
    schedule = room.witness(changed, job, row)
    if schedule is not None:
        remedy = _later(room, job, deadline, schedule.allocations)
        if remedy is not None:
            yield remedy


def _earlier_deadline(room: Room, job: int, remedy: Remedy) -> Remedy:
    """Look for an earlier deadline, on the boundaries of the grid, all other jobs re-planned."""
    arrays, old = room.arrays, float(room.arrays.deadline[job])
    assert remedy.deadline is not None
    best = remedy
    # The last boundary that is no later than the deadline.
    low = int(np.searchsorted(arrays.boundaries, old, side="right")) - 1
    high = int(np.searchsorted(arrays.boundaries, remedy.deadline, side="left"))
    proven_to = low if _is_settled(room, job) else -1
    while high - low > 1 and not room.clock.up:
        middle = (low + high) // 2
        boundary = float(arrays.boundaries[middle])
        changed = with_deadline(room.problem, remedy.job, boundary)
        schedule, impossible = room.replanned(changed, job, _SOLVE_S)
        if schedule is None:
            low = middle
            if impossible:
                proven_to = max(proven_to, middle)
            continue
        done = schedule.outcomes[job].completion
        assert done is not None
        later = _later(room, job, _just_after(done), schedule.allocations)
        if later is None:
            break
        high, best = middle, later
    return _replace(best, proven_least=proven_to >= high - 1)


def _just_after(time: float) -> float:
    """Return `time` rounded up to a thousandth, so that rounding does not make it miss itself."""
    return math.ceil(time * 1000.0 + 1e-6) / 1000.0


def _later(
    room: Room, job: int, deadline: float, allocations: tuple[Allocation, ...]
) -> Remedy | None:
    name = room.problem.jobs[job].id
    changed = with_deadline(room.problem, name, deadline)
    schedule = as_schedule(changed, allocations, room.schedule.solver)
    if not check(changed, schedule).valid or not schedule.outcomes[job].met:
        return None
    return Remedy(
        kind="deadline", job=name, deadline=deadline,
        extension_s=deadline - float(room.arrays.deadline[job]), schedule=schedule,
    )  # fmt: skip


def _drop(room: Room, job: int) -> Iterator[Remedy]:
    """Yield single jobs whose dropping is enough, lightest first; else a set without a spare."""
    arrays, deadline = room.arrays, float(room.arrays.deadline[job])
    span = slice(int(arrays.first_slot[job]), int(arrays.end_slot[job]))
    held = {}
    for other in np.nonzero(room.met & ~arrays.must_meet)[0].tolist():
        units = room.used_by(other)
        if other != job and units[:, span].any():
            held[other] = units
    seconds = {k: float((u[:, span] * arrays.lengths[span]).sum()) for k, u in held.items()}
    order = sorted(held, key=lambda k: (arrays.weight[k], -seconds[k], k))
    told = 0
    for other in order[:_DROPS_TRIED]:
        if room.clock.up or told >= _DROPS_TOLD:
            break
        remedy = _without(room, job, [other], held, deadline)
        if remedy is not None:
            told += 1
            yield _replace(remedy, proven_least=_is_settled(room, job))
    if told or room.clock.up:
        return
    chosen: list[int] = []
    for other in sorted(held, key=lambda k: -seconds[k] / max(float(arrays.weight[k]), 1e-9)):
        chosen.append(other)
        if room.clock.up:
            return
        if _without(room, job, chosen, held, deadline) is not None:
            break
    else:
        return
    for other in list(chosen[:-1]):
        rest = [k for k in chosen if k != other]
        if room.clock.up:
            break
        if _without(room, job, rest, held, deadline) is not None:
            chosen = rest
    remedy = _without(room, job, chosen, held, deadline)
    if remedy is not None:
        yield remedy


def _without(
    room: Room, job: int, others: list[int], held: dict[int, IntArray], deadline: float
) -> Remedy | None:
    free = room.free + sum(held[other] for other in others)
    row = room.fit(job, free, deadline)
    if row is None:
        return None
    names = tuple(room.problem.jobs[other].id for other in others)
    jobs = tuple(j for j in room.problem.jobs if j.id not in names)
    schedule = room.witness(room.problem.replace(jobs=jobs), job, row, names)
    if schedule is None:
        return None
    return Remedy(
        kind="drop", job=room.problem.jobs[job].id, dropped=names, schedule=schedule
    )  # fmt: skip


def _replace(remedy: Remedy, *, proven_least: bool) -> Remedy:
    return dataclasses.replace(remedy, proven_least=proven_least)


def _least(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least number of ``low .. high`` that is enough; `high` is known to be."""
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return high
