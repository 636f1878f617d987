"""Brute force: the exact optimum of a tiny instance, from the definitions alone.

For every job all mode sequences are enumerated and valued by :func:`edgeflow_opt.problem.evaluate`;
the jobs are then combined under the capacities, exactly. Nothing here uses a solver, a formulation,
a compiled kernel or the flat arrays.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Job,
    Mode,
    ObjectiveValue,
    Schedule,
    SolveStatus,
    evaluate,
)
from edgeflow_opt.problem.schedule import in_order

#: Sequences of one job that are enumerated at most; more would take minutes.
MAX_SEQUENCES = 200_000

Usage = tuple[int, ...]
Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best that can be reached.

    Parameters
    ----------
    value
        All levels, of a schedule that is best in the order of the instance's objective.
    schedule
        One such schedule, with status optimal and the bound that belongs to it.
    """

    value: ObjectiveValue
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class _Option:
    """What one job can do: its allocations, the units they take, and what they are worth."""

    usage: Usage
    value: tuple[Fraction, ...]
    allocations: tuple[Allocation, ...]


def optimum(problem: EpochProblem) -> Optimum | None:
    """Return the exact optimum of `problem`, or None if a job that must be met cannot be.

    Levels are compared as exact fractions: every level of a job is rounded to the nearest fraction
    with a denominator of at most a million, which recovers it exactly from short decimals.
    """
    boundaries = problem.grid.boundaries
    slots = list(itertools.pairwise(boundaries))
    capacity = tuple(site.least_capacity(*slot) for site in problem.sites for slot in slots)
    choices = [_options_of(problem, job, capacity) for job in problem.jobs]
    if not all(choices):
        return None
    # One common denominator per level turns the fractions into integers that add fast.
    width = 1 if problem.objective.weights is not None else 5
    scale = [
        math.lcm(*(option.value[level].denominator for options in choices for option in options), 1)
        for level in range(width)
    ]
    keyed = [
        _pareto(
            [(tuple(int(v * s) for v, s in zip(o.value, scale, strict=True)), o) for o in options]
        )
        for options in choices
    ]
    chosen = _combine(keyed, capacity, width)
    if chosen is None:
        return None
    allocations = in_order([a for option in chosen for a in option.allocations], problem.jobs)
    value, outcomes = evaluate(problem, allocations)
    schedule = Schedule(
        solver="oracle",
        status=SolveStatus.OPTIMAL,
        objective=value,
        bound=value.level_1,
        allocations=allocations,
        outcomes=outcomes,
    )
    return Optimum(value, schedule)


def _options_of(problem: EpochProblem, job: Job, capacity: Usage) -> list[_Option]:
    """Return the best option of `job` for each vector of units that it may take."""
    slots = list(itertools.pairwise(problem.grid.boundaries))
    alone = problem.replace(jobs=(job,))
    site_of = {site.name: (index, site) for index, site in enumerate(problem.sites)}
    per_slot: list[list[Mode | None]] = []
    for index, (start, _) in enumerate(slots):
        allowed: list[Mode | None] = [None]
        for mode in job.modes:
            place, site = site_of[mode.site]
            fits = site.units(mode) <= capacity[place * len(slots) + index]
            assert job.arrival is not None
            if fits and site.hosts(job) and start >= job.arrival:
                allowed.append(mode)
        per_slot.append(allowed)
    if math.prod(map(len, per_slot)) > MAX_SEQUENCES:
        raise ValueError(f"job {job.id!r} has more than {MAX_SEQUENCES} sequences")
    best: dict[Usage, _Option] = {}
    for sequence in itertools.product(*per_slot):
        if not job.malleable and not _is_one_run(problem, job, sequence):
            continue
        usage = [0] * len(capacity)
        allocations = []
        for index, mode in enumerate(sequence):
            if mode is None:
                continue
            place, site = site_of[mode.site]
            usage[place * len(slots) + index] += site.units(mode)
            start, end = slots[index]
            allocations.append(
                Allocation(job=job.id, start=start, end=end, site=mode.site, gpus=mode.gpus)
            )
        value, outcomes = evaluate(alone, allocations)
        if job.must_meet and not outcomes[0].met:
            continue
        if problem.objective.weights is not None:
            assert value.weighted is not None
            levels: tuple[float, ...] = (value.weighted,)
        else:
            levels = value.key()
        exact = tuple(Fraction(level) for level in levels)
        if problem.objective.weights is None:
            exact = tuple(level.limit_denominator(10**6) for level in exact)
        option = _Option(tuple(usage), exact, tuple(_joined(allocations)))
        if option.usage not in best or exact > best[option.usage].value:
            best[option.usage] = option
    return list(best.values())


def _is_one_run(problem: EpochProblem, job: Job, sequence: tuple[Mode | None, ...]) -> bool:
    """Whether a moldable job may follow `sequence`: one mode, no break, that which runs if any."""
    held = [index for index, mode in enumerate(sequence) if mode is not None]
    if not held:
        return True
    mode = sequence[held[0]]
    assert mode is not None
    if any(sequence[index] != mode for index in range(held[0], held[-1] + 1)):
        return False
    running = job.running
    return running is None or (
        held[0] == 0 and (mode.site, mode.gpus) == (running.site, running.gpus)
    )


def _joined(allocations: list[Allocation]) -> list[Allocation]:
    """Return `allocations` of one job with those joined that abut in the same mode."""
    result: list[Allocation] = []
    for a in allocations:
        last = result[-1] if result else None
        if last is not None and (last.end, last.site, last.gpus) == (a.start, a.site, a.gpus):
            result[-1] = Allocation(
                job=a.job, start=last.start, end=a.end, site=a.site, gpus=a.gpus
            )
        else:
            result.append(a)
    return result


def _pareto(options: list[tuple[Key, _Option]]) -> list[tuple[Key, _Option]]:
    """Return the options, best first, that no other beats with no more units."""
    kept: list[tuple[Key, _Option]] = []
    for key, option in sorted(
        options, key=lambda item: (item[0], -sum(item[1].usage)), reverse=True
    ):
        if not any(all(map(int.__le__, better.usage, option.usage)) for _, better in kept):
            kept.append((key, option))
    return kept


def _combine(
    choices: list[list[tuple[Key, _Option]]], capacity: Usage, width: int
) -> list[_Option] | None:
    """Return one option per job, best in sum within `capacity`, or None if nothing fits.

    Dynamic programming over the jobs with the units taken as state. The order of integer tuples is
    compatible with addition, so a state whose key plus the best of every later job does not exceed
    a known total can be dropped.
    """
    zero: Key = (0,) * width
    rest = [zero]
    for options in reversed(choices):
        rest.append(_plus(rest[-1], options[0][0]))
    rest.reverse()
    incumbent = _first_fit(choices, capacity, zero)
    states: dict[Usage, tuple[Key, tuple[_Option, ...]]] = {(0,) * len(capacity): (zero, ())}
    for index, options in enumerate(choices):
        last = index + 1 == len(choices)
        following: dict[Usage, tuple[Key, tuple[_Option, ...]]] = {}
        for used, (key, chosen) in states.items():
            for gain, option in options:
                total = _plus(key, gain)
                if incumbent is not None and _plus(total, rest[index + 1]) < incumbent:
                    break  # options are sorted: the later ones gain less
                taken = tuple(map(int.__add__, used, option.usage))
                if not all(map(int.__le__, taken, capacity)):
                    continue
                if taken not in following or total > following[taken][0]:
                    following[taken] = (total, (*chosen, option))
                if last:
                    break
        states = following
    if not states:
        return None
    return list(max(states.values(), key=lambda state: state[0])[1])


def _first_fit(choices: list[list[tuple[Key, _Option]]], capacity: Usage, zero: Key) -> Key | None:
    """Return the total of a simple choice: each job in turn takes its best option that fits."""
    used: Usage = (0,) * len(capacity)
    total = zero
    for options in choices:
        for gain, option in options:
            taken = tuple(map(int.__add__, used, option.usage))
            if all(map(int.__le__, taken, capacity)):
                used, total = taken, _plus(total, gain)
                break
        else:
            return None
    return total


def _plus(a: Key, b: Key) -> Key:
    return tuple(map(int.__add__, a, b))
