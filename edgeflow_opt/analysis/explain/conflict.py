"""Hard deadlines that contradict each other: a minimal set, by deletion.

A job is taken out of the set and the rest is solved: where the rest still has no schedule, the job
is not needed for the contradiction. What is left is minimal (Chinneck, "Feasibility and
Infeasibility in Optimization", 2008, section 6.3: the deletion filter). Then spans of capacity are
lifted likewise: those that cannot be lifted without making the set possible are named.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.analysis.explain.data import Conflict
from edgeflow_opt.analysis.explain.room import ask
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.problem.arrays import arrays_of

if TYPE_CHECKING:
    from edgeflow_opt.analysis.explain.room import Clock
    from edgeflow_opt.problem import EpochProblem, Job

#: Most seconds of one of the questions.
_SOLVE_S = 3.0


def conflict_of(problem: EpochProblem, clock: Clock) -> Conflict | None:
    """Return a minimal set of hard deadlines that cannot be met together; None = none was found.

    Parameters
    ----------
    problem
        An instance without a schedule.
    clock
        Once it is up, what is left is returned as it is, not minimal.
    """
    jobs = [job for job in problem.jobs if job.must_meet]
    for job in jobs:
        if clock.up:
            break
        if _impossible(problem, [job], clock) is True:
            return Conflict(jobs=(job.id,), capacities=(), minimal=True)
    return _minimal(problem, jobs, clock)


def conflict_around(
    problem: EpochProblem, job: str, others: list[str], clock: Clock
) -> Conflict | None:
    """Return a minimal set of jobs, `job` among them, that cannot all be met; None = none was found.

    Parameters
    ----------
    others
        Ids of the jobs that may be in it; those last are kept first.
    """
    hard = {
        name: dataclasses.replace(problem.jobs[problem.job_index[name]], must_meet=True)
        for name in (*others, job)
    }
    soft = [other for other in problem.jobs if other.must_meet and other.id not in hard]
    return _minimal(problem, [*soft, *hard.values()], clock, kept=job)


def _minimal(
    problem: EpochProblem, jobs: list[Job], clock: Clock, kept: str | None = None
) -> Conflict | None:
    """Return a minimal set of hard `jobs` without a schedule, by deletion; `kept` stays in it."""
    if _impossible(problem, jobs, clock) is not True:
        return None
    minimal = True
    for job in list(jobs):
        if job.id == kept:
            continue
        rest = [other for other in jobs if other is not job]
        verdict = None if clock.up else _impossible(problem, rest, clock)
        if verdict is True:
            jobs = rest
        elif verdict is None:
            minimal = False
    spans = _capacities(problem, jobs, clock)
    return Conflict(jobs=tuple(job.id for job in jobs), capacities=spans, minimal=minimal)


def _impossible(problem: EpochProblem, jobs: list[Job], clock: Clock) -> bool | None:
    """Whether `jobs` have no schedule in which all are met; None = not known."""
    if not jobs:
        return False
    part = problem.replace(jobs=tuple(jobs))
    result = ask(part, clock, _SOLVE_S)
    if result.status is SolveStatus.INFEASIBLE:
        return True
    return None if result.objective is None else False


def _capacities(
    problem: EpochProblem, jobs: list[Job], clock: Clock
) -> tuple[tuple[str, float, float], ...]:
    """Return the spans of capacity that cannot be lifted without making `jobs` possible.

    Halves of halves are lifted as long as the contradiction stays.
    """
    arrays = arrays_of(problem.replace(jobs=tuple(jobs)))
    most = int(arrays.mode_units.sum())
    lifted = np.zeros(arrays.capacity.shape, dtype=np.bool_)
    last = int(arrays.end_slot.max())
    lifted[:, last:] = True
    spans = [(site, 0, last) for site in range(arrays.num_sites)]
    while spans and not clock.up:
        site, a, b = spans.pop()
        tried = lifted.copy()
        tried[site, a:b] = True
        if _impossible(_lifted(problem, tried, arrays.capacity, most), jobs, clock) is True:
            lifted = tried
        elif b - a > 1:
            middle = (a + b) // 2
            spans += [(site, a, middle), (site, middle, b)]
    found = []
    for k, site_data in enumerate(problem.sites):
        slots = np.nonzero(~lifted[k])[0]
        for group in np.split(slots, np.nonzero(np.diff(slots) > 1)[0] + 1):
            if len(group):
                begin, end = arrays.boundaries[group[0]], arrays.boundaries[group[-1] + 1]
                found.append((site_data.name, float(begin), float(end)))
    return tuple(found)


def _lifted(problem: EpochProblem, lifted: object, capacity: object, most: int) -> EpochProblem:
    """Return `problem` with `most` units wherever the capacity is lifted."""
    units = np.where(np.asarray(lifted), most, np.asarray(capacity))
    times = problem.grid.boundaries[:-1]
    sites = tuple(
        dataclasses.replace(
            site, capacity=tuple((t, int(u)) for t, u in zip(times, units[k], strict=True))
        )
        for k, site in enumerate(problem.sites)
    )
    return problem.replace(sites=sites)
