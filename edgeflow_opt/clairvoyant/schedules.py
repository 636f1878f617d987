"""Schedules made with the whole trace known: lower bounds on what is possible at all.

The whole trace is one epoch problem on a grid of event times; where there are too many of them,
neighbouring ones are merged (slots then have the least capacity within, and jobs wait for the next
boundary). For long traces with short jobs that is too coarse: there an online policy that is shown
only the jobs that prices find worth their cost does better. Each schedule is carried out in continuous time, and passes the checker of histories.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from edgeflow_opt.clairvoyant.intervals import merged
from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.problem import EpochProblem, Grid
from edgeflow_opt.problem.check import check_history
from edgeflow_opt.problem.evaluate import by_job, outcome_of
from edgeflow_opt.problem.runs import runs_of
from edgeflow_opt.problem.schedule import Outcome, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from edgeflow_opt.problem import Allocation, Job, Limit, Site
    from edgeflow_opt.simulation import EventRecord

#: Cells of the plan (jobs times slots) beyond which event times are merged.
MOST_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchedule:
    """A schedule that was carried out and checked.

    Parameters
    ----------
    source
        How it was found.
    met_weight
        Weight of the jobs met.
    allocations
        What every job holds, when.
    outcomes
        One per job, in the order of the trace.
    limit
        The limit that stopped the search for it; None = none.
    """

    source: str
    met_weight: float
    allocations: tuple[Allocation, ...]
    outcomes: tuple[Outcome, ...]
    limit: Limit | None = None


def grid_slots(jobs: Sequence[Job]) -> int:
    """Return the most slots that the grid of a plan may have."""
    wanted = sum(job.deadline is not None and job.weight > 0 for job in jobs)
    return max(1, MOST_CELLS // max(1, wanted))


def halved(times: Sequence[float], most: int) -> list[float]:
    """Return `times` with the longest intervals halved, again and again, up to `most` intervals.

    In continuous time a job may change its mode within an interval; on a grid only at its times.
    """
    longest = [(left - right, left, right) for left, right in pairwise(times)]
    heapq.heapify(longest)
    found = list(times)
    while longest and len(found) <= most:
        _, left, right = heapq.heappop(longest)
        middle = left + (right - left) / 2.0
        if not left < middle < right:
            break
        found.append(middle)
        for a, b in ((left, middle), (middle, right)):
            heapq.heappush(longest, (a - b, a, b))
    return sorted(found)


def planned(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    times: Sequence[float],
    *,
    time_limit_s: float | None,
    seed: int,
    workers: int,
    deterministic: bool,
    chosen: Collection[str] | None = None,
) -> KnownSchedule:
    """Plan the whole trace on a grid of its event times, with the price engine.

    Parameters
    ----------
    jobs, sites
        The trace and the cluster.
    times
        Event times, at least two, rising.
    time_limit_s, seed, workers, deterministic
        As in :class:`~edgeflow_opt.solvers.SolveOptions`.
    chosen
        Ids of the only jobs that are planned; None = all.
    """
    from edgeflow_opt.solvers import solve

    wanted = [
        job
        for job in jobs
        if job.deadline is not None and job.weight > 0 and (chosen is None or job.id in chosen)
    ]
    boundaries = merged(times, grid_slots(jobs))
    problem = EpochProblem(
        grid=Grid(tuple(boundaries)),
        sites=tuple(sites),
        jobs=tuple(dataclasses.replace(job, must_meet=False, malleable=True) for job in wanted),
    )
    result = solve(
        problem, "price", time_limit_s=time_limit_s, seed=seed, workers=workers,
        deterministic=deterministic, levels=1,
    )  # fmt: skip
    met = {outcome.job for outcome in result.schedule.outcomes if outcome.met}
    allocations = (a for a in result.schedule.allocations if a.job in met)
    found = carried_out(f"price on {len(boundaries) - 1} slots", jobs, sites, allocations)
    return dataclasses.replace(found, limit=result.schedule.limit)


class _TimeUpError(Exception):
    """Raised out of a simulation whose time is up."""


def simulated(
    policy: str,
    jobs: Sequence[Job],
    sites: Sequence[Site],
    chosen: Collection[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> KnownSchedule | None:
    """Return the history of an online policy, which is a schedule like any other.

    Parameters
    ----------
    policy
        Name of the policy.
    jobs, sites
        The trace and the cluster.
    chosen
        Ids of the jobs that the policy gets to see; None = all.
    stopped
        Ends the simulation once true; there is then no schedule.
    """
    from edgeflow_opt.simulation import simulate

    def on_event(_: EventRecord) -> None:
        if stopped():
            raise _TimeUpError

    seen = jobs if chosen is None else [job for job in jobs if job.id in chosen]
    try:
        result = simulate(seen, sites, policy, check=False, on_event=on_event)
    except _TimeUpError:
        return None
    source = f"policy {policy}" + ("" if chosen is None else " on the jobs worth their price")
    return carried_out(source, jobs, sites, result.allocations)


def carried_out(
    source: str, jobs: Sequence[Job], sites: Sequence[Site], allocations: Iterable[Allocation]
) -> KnownSchedule:
    """Carry out `allocations` in continuous time, and check what comes of it.

    A job lets go of its units when it completes, or a microsecond later: the division that gives
    the time may be rounded down.

    Raises
    ------
    SolverFaultError
        If the checker of histories finds a violation.
    """
    groups = by_job(jobs, allocations)
    outcomes: list[Outcome] = []
    kept: list[Allocation] = []
    for job in jobs:
        outcome = outcome_of(job, runs_of(job, groups[job.id], None))
        outcomes.append(outcome)
        end = outcome.completion
        if end is not None:
            end += max(1e-6, 4.0 * math.ulp(end))
        for a in groups[job.id]:
            if end is None or a.end <= end:
                kept.append(a)
            elif a.start < end:
                kept.append(dataclasses.replace(a, end=end))
    ordered = in_order(kept, jobs)
    report = check_history(jobs, sites, ordered, outcomes)
    if not report.valid:
        raise SolverFaultError(
            f"the clairvoyant schedule of {source} fails the checker "
            f"({len(report.violations)} violations): {report.violations[0].message}"
        )
    return KnownSchedule(
        source=source,
        met_weight=report.met_weight,
        allocations=ordered,
        outcomes=tuple(outcomes),
    )
