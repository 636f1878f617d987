"""The rules of schedules, one by one: where they may run, when, on what, and how many at a time.

Each function yields the violations of one rule, by the allocations and what becomes of the jobs under
them; what a schedule claims of itself is for :mod:`edgeflow_opt.problem.claims`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.runs import RunKind, runs_of
from edgeflow_opt.problem.violation import Violation

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Job, Site
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.schedule import Allocation, Outcome

#: Allocations from which on capacities are looked at by array first.
_MANY_ALLOCATIONS = 2000


def plain_rule(problem: EpochProblem) -> Callable[[Allocation], bool]:
    """Return a fast test that an allocation breaks none of :func:`allocation_violations`.

    Almost every allocation of almost every schedule passes it, so that the wordy test is for the
    few that do not.
    """
    boundaries = frozenset(problem.grid.boundaries)
    site_of = {site.name: site for site in problem.sites}
    modes_of = {
        job.id: frozenset((m.site, m.gpus) for m in job.modes if site_of[m.site].hosts(job))
        for job in problem.jobs
    }
    arrival_of = {job.id: -math.inf if job.arrival is None else job.arrival for job in problem.jobs}

    def is_plain(a: Allocation) -> bool:
        return (
            (a.site, a.gpus) in modes_of.get(a.job, ())
            and a.start in boundaries
            and a.end in boundaries
            and arrival_of[a.job] <= a.start < a.end
        )

    return is_plain


def plain_history_rule(
    jobs: Sequence[Job], site_of: Mapping[str, Site]
) -> Callable[[Allocation], bool]:
    """Return a fast test that an allocation breaks none of :func:`mode_violations`."""
    modes_of = {
        job.id: frozenset(
            (m.site, m.gpus) for m in job.modes if m.site in site_of and site_of[m.site].hosts(job)
        )
        for job in jobs
    }
    arrival_of = {job.id: -math.inf if job.arrival is None else job.arrival for job in jobs}

    def is_plain(a: Allocation) -> bool:
        return (
            (a.site, a.gpus) in modes_of.get(a.job, ())
            and arrival_of[a.job] <= a.start < a.end < math.inf
            and a.start > -math.inf
        )

    return is_plain


def allocation_violations(a: Allocation, problem: EpochProblem) -> Iterator[Violation]:
    """Yield what is wrong with one allocation of an instance."""
    job_of = {a.job: problem.jobs[problem.job_index[a.job]]} if a.job in problem.job_index else {}
    site_of = (
        {a.site: problem.sites[problem.site_index[a.site]]} if a.site in problem.site_index else {}
    )
    yield from mode_violations(a, job_of, site_of)
    grid = problem.grid
    outside = max(grid.start - a.start, a.end - grid.end)
    if outside > 0:
        yield Violation(
            kind="outside_horizon", job=a.job, site=a.site, time=a.start, amount=outside,
            message=f"allocation of job '{a.job}' from {a.start:g} to {a.end:g} leaves the grid "
            f"from {grid.start:g} to {grid.end:g}",
        )  # fmt: skip
    for time in (a.start, a.end):
        if not _is_boundary(grid.boundaries, time) and grid.start <= time <= grid.end:
            yield Violation(
                kind="off_grid", job=a.job, site=a.site, time=time,
                amount=min(abs(time - boundary) for boundary in grid.boundaries),
                message=f"allocation of job '{a.job}' changes at {time:g}, no boundary of a slot",
            )  # fmt: skip


def mode_violations(
    a: Allocation, job_of: dict[str, Job], site_of: dict[str, Site]
) -> Iterator[Violation]:
    """Yield what is wrong with one allocation, the grid apart."""
    if not (math.isfinite(a.start) and math.isfinite(a.end) and a.start < a.end):
        yield Violation(
            kind="bad_interval", job=a.job, site=a.site,
            message=f"allocation of job '{a.job}' runs from {a.start} to {a.end}: "
            "it must have a finite start before a finite end",
        )  # fmt: skip
    job, site = job_of.get(a.job), site_of.get(a.site)
    if site is None:
        yield Violation(
            kind="unknown_site", job=a.job, site=a.site, time=a.start,
            message=f"job '{a.job}' is on site '{a.site}', which the instance does not have",
        )  # fmt: skip
    if job is None:
        yield Violation(
            kind="unknown_job", job=a.job, site=a.site, time=a.start,
            message=f"job '{a.job}' is not in the instance",
        )  # fmt: skip
        return
    if site is not None and job.mode(a.site, a.gpus) is None:
        yield Violation(
            kind="unknown_mode", job=a.job, site=a.site, time=a.start, amount=float(a.gpus),
            message=f"job '{a.job}' has no mode with {a.gpus} GPUs on site '{a.site}'",
        )  # fmt: skip
    if job.arrival is not None and a.start < job.arrival:
        yield Violation(
            kind="before_arrival", job=a.job, site=a.site, time=a.start,
            amount=job.arrival - a.start,
            message=f"job '{a.job}' starts at {a.start:g}, before it arrives at {job.arrival:g}",
        )  # fmt: skip
    if site is not None and not site.hosts(job):
        yield Violation(
            kind="memory", job=a.job, site=a.site, time=a.start,
            amount=job.memory_gib - (site.memory_gib or 0.0),
            message=f"job '{a.job}' needs {job.memory_gib:g} GiB, a unit of site '{a.site}' "
            f"has {site.memory_gib:g}",
        )  # fmt: skip


def _is_boundary(boundaries: Sequence[float], time: float) -> bool:
    index = bisect.bisect_left(boundaries, time)
    return index < len(boundaries) and boundaries[index] == time


def overlaps(groups: Mapping[str, Sequence[Allocation]]) -> Iterator[Violation]:
    """Yield a violation wherever a job is in two modes at a time."""
    for group in groups.values():
        end = -math.inf
        for a in group:
            if a.start < end:
                yield Violation(
                    kind="overlap", job=a.job, site=a.site, time=a.start,
                    amount=min(end, a.end) - a.start,
                    message=f"job '{a.job}' is in two modes at once from {a.start:g}",
                )  # fmt: skip
            end = max(end, a.end)


def capacity_violations(
    sites: Sequence[Site], allocations: Iterable[Allocation]
) -> Iterator[Violation]:
    """Yield a violation for each interval in which a site is asked for more than it has.

    Between two neighbouring times at which an allocation starts or ends or the capacity steps,
    both sides are constant, so comparing them there compares them always.
    """
    changes: dict[str, list[tuple[float, int]]] = {site.name: [] for site in sites}
    site_of = {site.name: site for site in sites}
    allocations = list(allocations)
    if len(allocations) >= _MANY_ALLOCATIONS and all(
        fits(site, [a for a in allocations if a.site == site.name]) for site in sites
    ):
        return
    for a in allocations:
        units = a.gpus if site_of[a.site].kind == "cloud" else 1
        changes[a.site].append((a.start, units))
        changes[a.site].append((a.end, -units))
    for site in sites:
        if not changes[site.name]:
            continue
        # An end at t comes before a start at t: intervals are half-open.
        events = [(time, 1, units) for time, units in changes[site.name]]
        events += [(time, 0, units) for time, units in site.capacity]
        events.sort()
        used, available = 0, site.capacity[0][1]
        excess_since: float | None = None
        excess = 0
        for index, (time, is_use, units) in enumerate(events):
            if is_use:
                used += units
            else:
                available = units
            if index + 1 < len(events) and events[index + 1][0] == time:
                continue
            if used > available and excess_since is None:
                excess_since, excess = time, used - available
            elif used > available:
                excess = max(excess, used - available)
            elif excess_since is not None:
                yield _excess(site, excess_since, time, excess)
                excess_since = None


def fits(site: Site, allocations: Sequence[Allocation]) -> bool:
    """Whether `site` has the units for all `allocations`, which are all on it, at all times.

    The same rule as :func:`capacity_violations`, by array: usage and capacity are compared wherever
    one of them changes. Times are finite.
    """
    # Where there are many allocations numpy is loaded anyway; the package is loaded without it.
    import numpy as np

    units = [a.gpus if site.kind == "cloud" else 1 for a in allocations]
    times = np.array([a.start for a in allocations] + [a.end for a in allocations])
    order = np.argsort(times)
    times, changes = times[order], np.array([time for time, _ in site.capacity])
    held = np.zeros(len(times) + 1, dtype=np.int64)
    np.cumsum(np.array(units + [-used for used in units], dtype=np.int64)[order], out=held[1:])
    capacity = np.array([usable for _, usable in site.capacity])
    points = np.concatenate([times, changes])
    # The first capacity holds before its time as well.
    at = np.maximum(np.searchsorted(changes, points, side="right") - 1, 0)
    return bool(np.all(held[np.searchsorted(times, points, side="right")] <= capacity[at]))


def _excess(site: Site, start: float, end: float, units: int) -> Violation:
    return Violation(
        kind="capacity", site=site.name, time=start, amount=float(units),
        message=f"site '{site.name}' lacks up to {units} units from {start:g} to {end:g}",
    )  # fmt: skip


def one_run_violations(
    problem: EpochProblem, groups: Mapping[str, Sequence[Allocation]]
) -> Iterator[Violation]:
    """Yield violations of moldable jobs: one mode, one run, that which runs already if any."""
    for job in problem.jobs:
        if job.malleable or not groups[job.id]:
            continue
        runs = runs_of(job, groups[job.id], problem.now)
        if len(runs) > 1:
            yield Violation(
                kind="not_malleable", job=job.id, site=runs[1].site, time=runs[1].start,
                amount=float(len(runs) - 1),
                message=f"job '{job.id}' is not malleable, yet has {len(runs)} runs",
            )  # fmt: skip
        elif job.running is not None and runs[0].kind is not RunKind.CONTINUED:
            yield Violation(
                kind="not_malleable", job=job.id, site=runs[0].site, time=runs[0].start, amount=1.0,
                message=f"job '{job.id}' is not malleable and runs already: it may only go on in "
                "its mode from now",
            )  # fmt: skip


def stall_violations(job: str, stalls: Sequence[tuple[float, float]]) -> Iterator[Violation]:
    """Yield what is wrong with the stalls of one job."""
    last = -math.inf
    for time, seconds in stalls:
        if not (math.isfinite(time) and math.isfinite(seconds) and seconds >= 0 and time >= last):
            yield Violation(
                kind="bad_stall", job=job, time=time, amount=seconds,
                message=f"job '{job}' has a stall of {seconds} s at {time}: times must rise and "
                "seconds be at least 0",
            )  # fmt: skip
        last = time


def must_meet_violations(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    """Yield a violation for each job that must meet its deadline and does not."""
    for job, outcome in zip(jobs, outcomes, strict=True):
        if job.must_meet and not outcome.met:
            late = None
            if outcome.completion is not None and job.deadline is not None:
                late = outcome.completion - job.deadline
            yield Violation(
                kind="must_meet", job=job.id, time=job.deadline, amount=late,
                message=f"job '{job.id}' must meet its deadline {job.deadline:g} and does not",
            )  # fmt: skip


def constraint_violations(
    problem: EpochProblem, allocations: Sequence[Allocation], outcomes: Sequence[Outcome]
) -> Iterator[Violation]:
    """Yield what the constraints of the instance say against a schedule.

    Raises
    ------
    UsageError
        If one of them fails: then nothing can be said of the schedule.
    """
    for index, constraint in enumerate(problem.constraints):
        try:
            yield from constraint.violations(problem, allocations, outcomes)
        except Exception as fault:
            raise UsageError(
                f"constraints[{index}] ({constraint.type}): a schedule cannot be checked against "
                f"it ({type(fault).__name__}: {fault})"
            ) from fault
