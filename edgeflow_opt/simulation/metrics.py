"""What a whole simulation amounts to, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.problem.evaluate import by_job

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from edgeflow_opt.problem import Allocation, Job, Outcome, Site
    from edgeflow_opt.problem.data import SiteKind


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTimes:
    """Wall time of the decisions of a policy, seconds; all 0 where there was none.

    Parameters
    ----------
    mean, p50, p99, max, total
        Mean, median, 99th percentile, longest, and sum.
    """

    mean: float
    p50: float
    p99: float
    max: float
    total: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> DecisionTimes:
        """Return the summary of the times of single decisions."""
        if not seconds:
            return cls(mean=0.0, p50=0.0, p99=0.0, max=0.0, total=0.0)
        values = np.array(seconds)
        p50, p99 = np.percentile(values, [50, 99])
        return cls(
            mean=float(values.mean()),
            p50=float(p50),
            p99=float(p99),
            max=float(values.max()),
            total=float(values.sum()),
        )

    def to_dict(self) -> dict[str, float]:
        """Return the object ``decision_s`` of a results row."""
        return {
            "mean": self.mean,
            "p50": self.p50,
            "p99": self.p99,
            "max": self.max,
            "total": self.total,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The numbers of one simulation.

    Parameters
    ----------
    jobs
        Jobs with a deadline; ``met + late + refused + unfinished = jobs``.
    best_effort
        Jobs without one.
    met
        Completed by the deadline.
    late
        Completed after it.
    refused
        Refused by the policy.
    unfinished
        Neither completed nor refused when nothing was left to happen.
    best_effort_completed
        Jobs without a deadline that completed.
    met_weight
        Sum of the weights of the met jobs.
    dsr
        Deadline satisfaction ratio, ``met / jobs``; None without jobs with a deadline.
    cloud_utilisation, edge_utilisation
        Unit-seconds held on the sites of the kind over unit-seconds usable there, both from the
        first arrival to the last deadline or completion, whichever is later. A unit is a GPU in
        the cloud and a server on the edge; it counts as held from decision to decision, losses
        included. None where no unit is usable.
    reconfigurations_per_job
        Runs that begin after the job has run before, over all jobs of the trace, refused and
        best-effort ones included; None without jobs.
    migrations_per_job
        Those of them that begin on another site than the last run.
    events
        Times at which the policy was asked, its own wake-ups included.
    decision_s
        Wall time of the decisions.
    makespan
        Last completion minus first arrival, seconds; None if no job completes.
    mean_tardiness
        Mean of ``max(0, completion - deadline)`` over the jobs with a deadline that complete,
        seconds; None if there is none.
    interruptions
        Times that an outage hit a running job.
    """

    jobs: int
    best_effort: int
    met: int
    late: int
    refused: int
    unfinished: int
    best_effort_completed: int
    met_weight: float
    dsr: float | None
    cloud_utilisation: float | None
    edge_utilisation: float | None
    reconfigurations_per_job: float | None
    migrations_per_job: float | None
    events: int
    decision_s: DecisionTimes
    makespan: float | None
    mean_tardiness: float | None
    interruptions: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of a results row (``edgeflow-simulation/1``), the policy apart."""
        return {
            "jobs": self.jobs,
            "met": self.met,
            "late": self.late,
            "refused": self.refused,
            "unfinished": self.unfinished,
            "dsr": self.dsr,
            "cloud_utilisation": self.cloud_utilisation,
            "edge_utilisation": self.edge_utilisation,
            "reconfigurations_per_job": self.reconfigurations_per_job,
            "migrations_per_job": self.migrations_per_job,
            "events": self.events,
            "decision_s": self.decision_s.to_dict(),
            "best_effort": self.best_effort,
            "best_effort_completed": self.best_effort_completed,
            "met_weight": self.met_weight,
            "makespan": self.makespan,
            "mean_tardiness": self.mean_tardiness,
            "interruptions": self.interruptions,
        }


def metrics_of(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    allocations: Sequence[Allocation],
    outcomes: Sequence[Outcome],
    *,
    refused: Collection[str] = (),
    decision_s: Sequence[float] = (),
    interruptions: int = 0,
) -> Metrics:
    """Return the metrics of a history.

    Parameters
    ----------
    jobs, sites
        The trace and the cluster.
    allocations
        What every job held, when.
    outcomes
        One per job, in the order of `jobs`.
    refused
        Ids of the refused jobs.
    decision_s
        Wall seconds of every decision.
    interruptions
        Times that an outage hit a running job.
    """
    met = late = turned_away = unfinished = best_effort = best_effort_completed = 0
    met_weight = 0.0
    tardiness: list[float] = []
    for job, outcome in zip(jobs, outcomes, strict=True):
        completion = outcome.completion
        if job.deadline is None:
            best_effort += 1
            best_effort_completed += completion is not None
            continue
        if completion is not None:
            tardiness.append(max(0.0, completion - job.deadline))
        if outcome.met:
            met += 1
            met_weight += job.weight
        elif completion is not None:
            late += 1
        elif job.id in refused:
            turned_away += 1
        else:
            unfinished += 1
    completions = [o.completion for o in outcomes if o.completion is not None]
    deadlines = [job.deadline for job in jobs if job.deadline is not None]
    start = min((job.arrival for job in jobs if job.arrival is not None), default=0.0)
    end = max([start, *deadlines, *completions])
    reconfigurations, migrations = _changes(jobs, allocations)
    num_deadline, num_jobs = len(jobs) - best_effort, len(jobs)
    return Metrics(
        jobs=num_deadline,
        best_effort=best_effort,
        met=met,
        late=late,
        refused=turned_away,
        unfinished=unfinished,
        best_effort_completed=best_effort_completed,
        met_weight=met_weight,
        dsr=met / num_deadline if num_deadline else None,
        cloud_utilisation=_utilisation("cloud", sites, allocations, start, end),
        edge_utilisation=_utilisation("edge", sites, allocations, start, end),
        reconfigurations_per_job=reconfigurations / num_jobs if num_jobs else None,
        migrations_per_job=migrations / num_jobs if num_jobs else None,
        events=len(decision_s),
        decision_s=DecisionTimes.of(decision_s),
        makespan=max(completions) - start if completions else None,
        mean_tardiness=math.fsum(tardiness) / len(tardiness) if tardiness else None,
        interruptions=interruptions,
    )


def _changes(jobs: Sequence[Job], allocations: Sequence[Allocation]) -> tuple[int, int]:
    """Return the number of reconfigurations, and of migrations among them."""
    reconfigurations = migrations = 0
    for group in by_job(jobs, allocations).values():
        for last, a in pairwise(group):
            if (last.end, last.site, last.gpus) == (a.start, a.site, a.gpus):
                continue
            reconfigurations += 1
            migrations += last.site != a.site
    return reconfigurations, migrations


def _utilisation(
    kind: SiteKind,
    sites: Sequence[Site],
    allocations: Sequence[Allocation],
    start: float,
    end: float,
) -> float | None:
    """Return unit-seconds held over unit-seconds usable on the sites of a kind."""
    names = {site.name for site in sites if site.kind == kind}
    usable = math.fsum(_integral(site.capacity, start, end) for site in sites if site.kind == kind)
    if not usable:
        return None
    held = math.fsum(
        (a.gpus if kind == "cloud" else 1) * max(0.0, min(a.end, end) - a.start)
        for a in allocations
        if a.site in names
    )
    return held / usable


def _integral(steps: Sequence[tuple[float, int]], start: float, end: float) -> float:
    """Return the integral of a step function over ``[start, end)``."""
    total = 0.0
    for index, (time, units) in enumerate(steps):
        until = steps[index + 1][0] if index + 1 < len(steps) else end
        total += units * max(0.0, min(until, end) - max(time, start))
    return total
