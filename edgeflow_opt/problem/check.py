"""The independent checker: it imports no solver, works in continuous time, and trusts nothing.

It recomputes every claim of a schedule from its allocations by the run-and-loss rule
(:mod:`edgeflow_opt.problem.runs`) and returns all violations with their amounts.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import ScheduleError, UsageError
from edgeflow_opt.problem.data import EpochProblem, Schedule, SolveStatus
from edgeflow_opt.problem.evaluate import by_job, evaluate_groups, outcome_of
from edgeflow_opt.problem.runs import LossRule, RunKind, instance_loss, runs_of, with_stalls
from edgeflow_opt.problem.types import expect, explained

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Allocation, Job, ObjectiveValue, Outcome, Site

#: Relative tolerance for reported numbers (levels, the bound).
REPORT_TOLERANCE = 1e-6

#: Completion times may be rounded to hundredths of a second. The tolerance does not grow with the
#: clock, which may count from 1970; only what a double can hold of such a time is granted.
COMPLETION_TOLERANCE_S = 0.005 + 1e-9

#: Allocations from which on capacities are looked at by array first.
_MANY_ALLOCATIONS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that a schedule breaks.

    Parameters
    ----------
    kind
        Name of the rule, one of ``unknown_job, unknown_site, unknown_mode, bad_interval,
        outside_horizon, off_grid, overlap, before_arrival, capacity, memory, not_malleable,
        must_meet, outcomes, met, completion, objective, bound, status, bad_stall``, or the type of a
        constraint.
    job, site
        Whom it concerns; None where it concerns none in particular.
    time
        When it begins, seconds; None where it has no time.
    amount
        By how much: units of capacity, seconds, GiB, or the difference of two numbers.
    message
        In words.
    """

    kind: str
    message: str
    job: str | None = None
    site: str | None = None
    time: float | None = None
    amount: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the checker found.

    Parameters
    ----------
    valid
        Whether there is no violation.
    met_weight
        Sum of the weights of the jobs that meet their deadlines under the allocations, recomputed.
    met
        Number of those jobs.
    violations
        All violations.
    """

    valid: bool
    met_weight: float
    met: int
    violations: tuple[Violation, ...]

    def kinds(self) -> set[str]:
        """Return the kinds of the violations found."""
        return {violation.kind for violation in self.violations}

    def document(self) -> dict[str, Any]:
        """Return the report in format ``edgeflow-check/1``."""
        return {
            "format": "edgeflow-check/1",
            "valid": self.valid,
            "met_weight": self.met_weight,
            "met": self.met,
            "violations": [
                {
                    "kind": v.kind, "job": v.job, "site": v.site, "time": v.time,
                    "amount": v.amount, "message": v.message,
                }
                for v in self.violations
            ],
        }  # fmt: skip


def check(problem: EpochProblem, schedule: Schedule) -> CheckReport:
    """Check every claim of `schedule` against `problem`.

    Parameters
    ----------
    problem
        The instance.
    schedule
        A schedule of any origin.

    Returns
    -------
    report
        All violations; ``report.valid`` where there are none.

    Raises
    ------
    UsageError
        If `problem` is no instance or `schedule` no schedule.
    ScheduleError
        If what is in the schedule is of types with which nothing can be reckoned.
    """
    expect("argument problem", problem, EpochProblem, "read_problem(path) reads one from a file")
    expect(
        "argument schedule", schedule, Schedule,
        "of a result give result.schedule; read_schedule(path) reads one from a file",
    )  # fmt: skip
    with explained(ScheduleError, ("schedule", schedule, Schedule)):
        return _checked(problem, schedule)


def _checked(problem: EpochProblem, schedule: Schedule) -> CheckReport:
    violations: list[Violation] = []
    usable: list[Allocation] = []
    is_plain = _plain_rule(problem)
    for allocation in schedule.allocations:
        if is_plain(allocation):
            usable.append(allocation)
            continue
        found = list(_allocation_violations(allocation, problem))
        violations += found
        if not any(v.kind.startswith("unknown") or v.kind == "bad_interval" for v in found):
            usable.append(allocation)
    groups = by_job(problem.jobs, usable)
    overlapping = list(_overlaps(groups))
    violations += overlapping
    violations += capacity_violations(problem.sites, usable)
    if overlapping:
        # A job in two modes at once has no credit that could be computed.
        violations += _shape_violations(problem, schedule)
        return CheckReport(valid=False, met_weight=0.0, met=0, violations=tuple(violations))
    value, outcomes = evaluate_groups(problem, groups)
    violations += _one_run_violations(problem, groups)
    shape = list(_shape_violations(problem, schedule))
    violations += shape
    if schedule.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE):
        violations += _must_meet_violations(problem.jobs, outcomes)
        violations += _constraint_violations(problem, usable, outcomes)
        if not shape:
            violations += outcome_violations(outcomes, schedule.outcomes)
            violations += _claim_violations(problem, schedule, value)
    return CheckReport(
        valid=not violations,
        met_weight=value.met_weight,
        met=sum(outcome.met is True for outcome in outcomes),
        violations=tuple(violations),
    )


def check_history(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    allocations: Sequence[Allocation],
    outcomes: Sequence[Outcome],
    loss_rule: LossRule = instance_loss,
    stalls: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> CheckReport:
    """Check what a simulation carried out, by the same rules without the grid.

    Parameters
    ----------
    jobs
        All jobs of the trace, none running, none with a last site.
    sites
        The sites with their capacity over the whole time.
    allocations
        What every job held, when.
    outcomes
        One per job, in order: what the simulation claims.
    loss_rule
        Loss of a run by how it begins (see :func:`~edgeflow_opt.problem.runs.runs_of`).
    stalls
        By job, sorted (time, seconds): further losses while it runs (see
        :func:`~edgeflow_opt.problem.runs.with_stalls`). None = there are none.

    Returns
    -------
    report
        As for :func:`check`; a stall that is negative, not finite or out of order is a violation
        ``bad_stall``.
    """
    site_of = {site.name: site for site in sites}
    job_of = {job.id: job for job in jobs}
    violations: list[Violation] = []
    usable: list[Allocation] = []
    is_plain = _plain_history_rule(jobs, site_of)
    for allocation in allocations:
        if is_plain(allocation):
            usable.append(allocation)
            continue
        found = list(_mode_violations(allocation, job_of, site_of))
        violations += found
        if not any(v.kind.startswith("unknown") or v.kind == "bad_interval" for v in found):
            usable.append(allocation)
    groups = by_job(jobs, usable)
    overlapping = list(_overlaps(groups))
    violations += overlapping
    violations += capacity_violations(sites, usable)
    ids = [outcome.job for outcome in outcomes]
    if ids != [job.id for job in jobs]:
        violations.append(
            Violation(
                kind="outcomes",
                message="outcomes must name every job once, in the order of the jobs",
            )
        )
        outcomes = ()
    stalls = stalls or {}
    for name, sequence in stalls.items():
        violations += _stall_violations(name, sequence)
    met_weight, met = 0.0, 0
    if not overlapping:
        recomputed = []
        for job in jobs:
            runs = runs_of(job, groups[job.id], None, loss_rule)
            recomputed.append(outcome_of(job, with_stalls(runs, stalls.get(job.id, ()))))
        if outcomes:
            violations += outcome_violations(recomputed, outcomes)
        met = sum(outcome.met is True for outcome in recomputed)
        met_weight = float(
            sum(job.weight for job, o in zip(jobs, recomputed, strict=True) if o.met)
        )
    return CheckReport(
        valid=not violations, met_weight=met_weight, met=met, violations=tuple(violations)
    )


def _stall_violations(job: str, stalls: Sequence[tuple[float, float]]) -> Iterator[Violation]:
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


def _mode_violations(
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


def _plain_rule(problem: EpochProblem) -> Callable[[Allocation], bool]:
    """Return a fast test that an allocation breaks none of :func:`_allocation_violations`.

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


def _plain_history_rule(
    jobs: Sequence[Job], site_of: Mapping[str, Site]
) -> Callable[[Allocation], bool]:
    """Return a fast test that an allocation breaks none of :func:`_mode_violations`."""
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


def _allocation_violations(a: Allocation, problem: EpochProblem) -> Iterator[Violation]:
    """Yield what is wrong with one allocation of an instance."""
    job_of = {a.job: problem.jobs[problem.job_index[a.job]]} if a.job in problem.job_index else {}
    site_of = (
        {a.site: problem.sites[problem.site_index[a.site]]} if a.site in problem.site_index else {}
    )
    yield from _mode_violations(a, job_of, site_of)
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


def _is_boundary(boundaries: Sequence[float], time: float) -> bool:
    index = bisect.bisect_left(boundaries, time)
    return index < len(boundaries) and boundaries[index] == time


def _overlaps(groups: Mapping[str, Sequence[Allocation]]) -> Iterator[Violation]:
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
        # After the last event nothing is used any more.


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


def _one_run_violations(
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


def _shape_violations(problem: EpochProblem, schedule: Schedule) -> Iterator[Violation]:
    """Yield what does not fit together in the document as such."""
    has_plan = schedule.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
    if not has_plan:
        if schedule.allocations or schedule.outcomes or schedule.objective is not None:
            yield Violation(
                kind="status",
                message=f"status '{schedule.status}' goes with no allocations, no outcomes and a "
                "null objective",
            )
        return
    if schedule.objective is None:
        yield Violation(kind="status", message=f"status '{schedule.status}' needs an objective")
    ids = [outcome.job for outcome in schedule.outcomes]
    expected = [job.id for job in problem.jobs]
    if ids != expected:
        missing = sorted(set(expected) - set(ids))
        surplus = (Counter(ids) - Counter(expected)).total()
        yield Violation(
            kind="outcomes", job=missing[0] if missing else None,
            amount=float(len(missing) + surplus),
            message="outcomes must name every job once, in the order of the instance"
            + (f"; {len(missing)} are missing, '{missing[0]}' first" if missing else ""),
        )  # fmt: skip


def outcome_violations(
    recomputed: Sequence[Outcome], claimed: Sequence[Outcome]
) -> Iterator[Violation]:
    """Yield a violation wherever a claimed outcome differs from the recomputed one."""
    for true, said in zip(recomputed, claimed, strict=True):
        if true.met != said.met or (true.met is None) != (said.met is None):
            yield Violation(
                kind="met", job=true.job, time=true.completion,
                message=f"job '{true.job}' is said to be met = {said.met}, but it is {true.met}",
            )  # fmt: skip
        if (true.completion is None) is not (said.completion is None):
            yield Violation(
                kind="completion", job=true.job, time=true.completion,
                message=f"job '{true.job}' is said to complete at {said.completion}, but it does "
                f"at {true.completion}",
            )  # fmt: skip
        elif true.completion is not None and said.completion is not None:
            difference = abs(true.completion - said.completion)
            tolerance = COMPLETION_TOLERANCE_S + 4 * math.ulp(true.completion)
            # Written so that a claim of NaN is refused.
            if not difference <= tolerance:
                yield Violation(
                    kind="completion", job=true.job, time=true.completion, amount=difference,
                    message=f"job '{true.job}' is said to complete at {said.completion}, but it "
                    f"does at {true.completion}",
                )  # fmt: skip


def _must_meet_violations(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> Iterator[Violation]:
    for job, outcome in zip(jobs, outcomes, strict=True):
        if job.must_meet and not outcome.met:
            late = None
            if outcome.completion is not None and job.deadline is not None:
                late = outcome.completion - job.deadline
            yield Violation(
                kind="must_meet", job=job.id, time=job.deadline, amount=late,
                message=f"job '{job.id}' must meet its deadline {job.deadline:g} and does not",
            )  # fmt: skip


def _constraint_violations(
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


def claim_tolerance(problem: EpochProblem, value: float) -> float:
    """Return by how much a level or a bound may differ from `value` and count as equal to it.

    The tolerance is 1e-6 max(|value|, u), where u is 1, or the unit of the weights where that is
    smaller: the largest weight of a job, times the weight of level 1 in a weighted sum.
    """
    unit = min(1.0, max((job.weight for job in problem.jobs if job.weight > 0.0), default=1.0))
    weights = problem.objective.weights
    if weights is not None and weights.met > 0.0:
        unit *= min(1.0, weights.met)
    return REPORT_TOLERANCE * max(unit, abs(value))


def _claim_violations(
    problem: EpochProblem, schedule: Schedule, value: ObjectiveValue
) -> Iterator[Violation]:
    """Yield violations of the reported levels, the bound and the status."""
    said = schedule.objective
    assert said is not None
    for level in ("met_weight", "progress", "leftover", "cost", "reconfigurations", "weighted"):
        true_level, said_level = getattr(value, level), getattr(said, level)
        if said_level is None:
            continue
        if true_level is None:
            yield Violation(
                kind="objective",
                message=f"{level} is said to be {said_level:g}, but the objective of the instance "
                "is lexicographic and has none",
            )
            continue
        difference = abs(true_level - said_level)
        if not difference <= claim_tolerance(problem, true_level):
            yield Violation(
                kind="objective", amount=difference,
                message=f"{level} is said to be {said_level:g}, but it is {true_level:g}",
            )  # fmt: skip
    reached = value.level_1
    tolerance = claim_tolerance(problem, reached)
    if schedule.bound is not None and not math.isfinite(schedule.bound):
        yield Violation(
            kind="bound",
            message=f"bound must be a finite number, or null where there is none, not {schedule.bound}",
        )
    elif schedule.bound is not None and schedule.bound < reached - tolerance:
        yield Violation(
            kind="bound", amount=reached - schedule.bound,
            message=f"bound {schedule.bound:g} is below the value {reached:g} reached",
        )  # fmt: skip
    # A plain text is equal to it.
    if schedule.status == SolveStatus.OPTIMAL and (
        schedule.bound is None or schedule.bound > reached + tolerance
    ):
        yield Violation(
            kind="status",
            message=f"status 'optimal' needs a bound equal to the value {reached:g}, "
            f"not {schedule.bound}",
        )
