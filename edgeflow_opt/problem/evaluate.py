"""What a set of allocations is worth: outcomes of the jobs and levels of the objective."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from edgeflow_opt.errors import ScheduleError
from edgeflow_opt.problem.epoch import EpochProblem
from edgeflow_opt.problem.objective import ObjectiveValue
from edgeflow_opt.problem.runs import completion_of, credit_by, runs_of
from edgeflow_opt.problem.schedule import Allocation, Outcome
from edgeflow_opt.problem.types import expect, explained
from edgeflow_opt.problem.values import as_tuple

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Job
    from edgeflow_opt.problem.runs import Run

_START = operator.attrgetter("start")


def by_job(jobs: Sequence[Job], allocations: Iterable[Allocation]) -> dict[str, list[Allocation]]:
    """Return the allocations of each job, sorted by start; unknown ids are left out."""
    groups: dict[str, list[Allocation]] = {job.id: [] for job in jobs}
    for allocation in allocations:
        if allocation.job in groups:
            groups[allocation.job].append(allocation)
    for group in groups.values():
        group.sort(key=_START)
    return groups


def outcome_of(job: Job, runs: Sequence[Run]) -> Outcome:
    """Return what becomes of `job`: met iff its credit by the deadline reaches what is required."""
    completion = completion_of(runs, job.required)
    by_deadline = 0.0
    if completion is not None and job.deadline is not None:
        by_deadline = credit_by(runs, job.deadline)
    return judged(job, completion, by_deadline)


def judged(job: Job, completion: float | None, credit_by_deadline: float) -> Outcome:
    """Return what becomes of a job that completes at `completion` (None = never).

    It is met iff ``credit_by_deadline >= work (1 - 1e-6)``, which is what every model counts. The
    completion cannot decide it: it is a time on the clock, and one of 1.7e9 s has steps of 2.4e-7 s,
    in which a tiny job does all its work. It is put on that side of the deadline where the credit is.
    """
    deadline = job.deadline
    if deadline is None:
        return Outcome(job=job.id, met=None, completion=completion)
    met = completion is not None and credit_by_deadline >= job.required
    if completion is not None:
        after = math.nextafter(deadline, math.inf)
        completion = min(completion, deadline) if met else max(completion, after)
    return Outcome(job=job.id, met=met, completion=completion)


def evaluate(
    problem: EpochProblem, allocations: Iterable[Allocation]
) -> tuple[ObjectiveValue, tuple[Outcome, ...]]:
    """Return the levels of the objective and the outcomes of the jobs under `allocations`.

    Parameters
    ----------
    problem
        The instance.
    allocations
        Disjoint per job and in modes of the jobs; nothing else is checked here.

    Returns
    -------
    value
        See :class:`~edgeflow_opt.problem.ObjectiveValue`.
    outcomes
        One per job, in the order of the instance.

    Raises
    ------
    UsageError
        If `problem` is no instance.
    ScheduleError
        If what is in the allocations is of types with which nothing can be reckoned.
    """
    expect("argument problem", problem, EpochProblem, "read_problem(path) reads one from a file")
    allocations = as_tuple(allocations)
    with explained(ScheduleError, ("schedule", allocations, tuple[Allocation, ...])):
        return evaluate_groups(problem, by_job(problem.jobs, allocations))


def evaluate_groups(
    problem: EpochProblem, groups: Mapping[str, Sequence[Allocation]]
) -> tuple[ObjectiveValue, tuple[Outcome, ...]]:
    """Do the same for allocations that :func:`by_job` has sorted already."""
    price = {site.name: site.price for site in problem.sites}
    horizon = problem.grid.end
    met_weight = progress = leftover = cost = 0.0
    reconfigurations = 0
    outcomes = []
    for job in problem.jobs:
        runs = runs_of(job, groups[job.id], problem.now)
        outcome = outcome_of(job, runs)
        outcomes.append(outcome)
        if outcome.met:
            met_weight += job.weight
        else:
            if job.deadline is not None:
                progress += job.weight * min(1.0, credit_by(runs, job.deadline) / job.work)
            leftover += job.weight * min(1.0, credit_by(runs, horizon) / job.work)
        for run in runs:
            cost += run.gpus * (run.end - run.start) * price[run.site]
            reconfigurations += run.kind.reconfiguration
    value = ObjectiveValue(
        met_weight=met_weight,
        progress=progress,
        leftover=leftover,
        cost=cost,
        reconfigurations=reconfigurations,
    )
    weights = problem.objective.weights
    if weights is not None:
        value = dataclasses.replace(value, weighted=value.weighted_sum(weights))
    return value, tuple(outcomes)
