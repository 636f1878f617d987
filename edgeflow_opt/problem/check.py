"""The independent checker: it imports no solver, works in continuous time, and trusts nothing.

It recomputes every claim of a schedule from its allocations by the run-and-loss rule
(:mod:`edgeflow_opt.problem.runs`) and returns all violations with their amounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.errors import ScheduleError
from edgeflow_opt.problem.claims import claim_violations, outcome_violations, shape_violations
from edgeflow_opt.problem.epoch import EpochProblem
from edgeflow_opt.problem.evaluate import by_job, evaluate_groups, outcome_of
from edgeflow_opt.problem.rules import (
    allocation_violations,
    capacity_violations,
    constraint_violations,
    mode_violations,
    must_meet_violations,
    one_run_violations,
    overlaps,
    plain_history_rule,
    plain_rule,
    stall_violations,
)
from edgeflow_opt.problem.runs import LossRule, instance_loss, runs_of, with_stalls
from edgeflow_opt.problem.schedule import Schedule, SolveStatus
from edgeflow_opt.problem.types import expect, explained
from edgeflow_opt.problem.violation import CheckReport, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgeflow_opt.problem.data import Job, Site
    from edgeflow_opt.problem.schedule import Allocation, Outcome


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
    is_plain = plain_rule(problem)
    for allocation in schedule.allocations:
        if is_plain(allocation):
            usable.append(allocation)
            continue
        found = list(allocation_violations(allocation, problem))
        violations += found
        if not any(v.kind.startswith("unknown") or v.kind == "bad_interval" for v in found):
            usable.append(allocation)
    groups = by_job(problem.jobs, usable)
    overlapping = list(overlaps(groups))
    violations += overlapping
    violations += capacity_violations(problem.sites, usable)
    if overlapping:
        # A job in two modes at once has no credit that could be computed.
        violations += shape_violations(problem, schedule)
        return CheckReport(valid=False, met_weight=0.0, met=0, violations=tuple(violations))
    value, outcomes = evaluate_groups(problem, groups)
    violations += one_run_violations(problem, groups)
    shape = list(shape_violations(problem, schedule))
    violations += shape
    if schedule.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE):
        violations += must_meet_violations(problem.jobs, outcomes)
        violations += constraint_violations(problem, usable, outcomes)
        if not shape:
            violations += outcome_violations(outcomes, schedule.outcomes)
            violations += claim_violations(problem, schedule, value)
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
    is_plain = plain_history_rule(jobs, site_of)
    for allocation in allocations:
        if is_plain(allocation):
            usable.append(allocation)
            continue
        found = list(mode_violations(allocation, job_of, site_of))
        violations += found
        if not any(v.kind.startswith("unknown") or v.kind == "bad_interval" for v in found):
            usable.append(allocation)
    groups = by_job(jobs, usable)
    overlapping = list(overlaps(groups))
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
        violations += stall_violations(name, sequence)
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

    # After the last event nothing is used any more.
