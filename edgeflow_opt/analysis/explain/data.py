"""What an explanation says: data, and the document ``edgeflow-explanation/1``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from edgeflow_opt.problem import EpochProblem, Schedule, Site

#: Name of the format of the document.
EXPLANATION_FORMAT = "edgeflow-explanation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """How a job would do if it had all sites to itself.

    Parameters
    ----------
    met
        Whether it would meet its deadline; None = not known for want of time.
    completion
        The earliest time at which it would complete; None = not by the horizon.
    late_by_s
        By how much that is after its deadline; None where it is met, or not done by the horizon.
    site, gpus
        Its fastest mode on a site that has the memory and, at some time, the units for it; None =
        no site does.
    """

    met: bool | None
    completion: float | None
    late_by_s: float | None
    site: str | None
    gpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What another job holds of a site where and when a job would need it.

    Parameters
    ----------
    job
        Id of the holder.
    unit_seconds
        Units times seconds held within the span.
    """

    job: str
    unit_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """A span of slots in which a site has too few free units for the best mode of a job there.

    Parameters
    ----------
    site
        Name of the site.
    start, end
        The span, seconds.
    needed
        Units of the job's fastest mode on the site.
    free
        Least number of free units within the span.
    capacity
        Least capacity within the span.
    holders
        Who holds the rest, most first.
    """

    site: str
    start: float
    end: float
    needed: int
    free: int
    capacity: int
    holders: tuple[Hold, ...]


RemedyKind = Literal["replan", "capacity", "deadline", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change of the instance by which a job is met and the others stay met as much in weight.

    Verified: `schedule` is a schedule of the changed instance that the checker has passed.

    Parameters
    ----------
    kind
        ``replan``: no change, another schedule suffices; ``capacity``: `units` more on `site` in
        ``[start, end)``; ``deadline``: the job's deadline is `deadline`; ``drop``: the jobs
        `dropped` are given up.
    job
        Id of the job that is saved.
    site, start, end, units
        Of ``capacity``; else None.
    deadline, extension_s
        Of ``deadline``: the new deadline, and by how much it is later; else None.
    dropped
        Of ``drop``: ids.
    proven_least
        Whether it is proven that less of this kind does not do: fewer units on the site, whenever;
        a deadline on an earlier boundary of the grid; fewer jobs. False = nothing less was found.
    schedule
        A schedule of the changed instance that proves it.
    """

    kind: RemedyKind
    job: str
    site: str | None = None
    start: float | None = None
    end: float | None = None
    units: int | None = None
    deadline: float | None = None
    extension_s: float | None = None
    dropped: tuple[str, ...] = ()
    proven_least: bool = False
    schedule: Schedule

    def apply(self, problem: EpochProblem) -> EpochProblem:
        """Return `problem` with the change."""
        if self.kind == "capacity":
            assert self.site is not None
            assert self.start is not None
            assert self.end is not None
            assert self.units is not None
            return with_more(problem, self.site, self.start, self.end, self.units)
        if self.kind == "deadline":
            assert self.deadline is not None
            return with_deadline(problem, self.job, self.deadline)
        if self.kind == "drop":
            jobs = tuple(job for job in problem.jobs if job.id not in self.dropped)
            return problem.replace(jobs=jobs)
        return problem

    @property
    def text(self) -> str:
        """The remedy in words."""
        if self.kind == "capacity":
            s = "" if self.units == 1 else "s"
            return f"{self.units} more unit{s} of '{self.site}' in [{self.start:g}, {self.end:g})"
        if self.kind == "deadline":
            return f"deadline {self.deadline:g} ({self.extension_s:g} s later)"
        if self.kind == "drop":
            return "without " + ", ".join(f"'{job}'" for job in self.dropped)
        return "none needed: another schedule of the same instance meets it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A set of deadlines that cannot be met together.

    Parameters
    ----------
    jobs
        Ids of the jobs.
    capacities
        The capacities that stand in the way: (site, start, end) spans; with more units in any one
        of them, as far as was proven, the set can be met. Empty where a job fails alone.
    minimal
        Whether it is proven that every job less makes the rest possible.
    """

    jobs: tuple[str, ...]
    capacities: tuple[tuple[str, float, float], ...]
    minimal: bool

    @property
    def text(self) -> str:
        """The conflict in words."""
        names = ", ".join(f"'{job}'" for job in self.jobs)
        if len(self.jobs) == 1:
            return f"job {names} cannot meet its deadline, whatever the others do"
        spans = ", ".join(f"'{site}' in [{a:g}, {b:g})" for site, a, b in self.capacities)
        where = f" with the capacity of {spans}" if spans else ""
        return f"jobs {names} cannot all meet their deadlines{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobExplanation:
    """Why a job misses its deadline, and what would save it.

    Parameters
    ----------
    job
        Id.
    deadline, weight
        As in the instance.
    met, completion
        Under the schedule; completion None = not by the horizon.
    alone
        How it would do alone.
    contention
        Where and when units are lacking, most lacking first; empty for a job that is met.
    remedies
        Best first: what changes least. Empty for a job that is met, or where none was found.
    conflict
        A minimal set of jobs, this one among them, that cannot all be met; looked for where one job
        is asked for. None = none was found, or not looked for.
    complete
        Whether all kinds of remedies were looked for; False = time ran out.
    """

    job: str
    deadline: float
    weight: float
    met: bool
    completion: float | None
    alone: Alone
    contention: tuple[Contention, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    conflict: Conflict | None = None
    complete: bool = True

    @property
    def reason(self) -> str:
        """The main reason in words."""
        if self.met:
            return "it is met"
        alone = self.alone
        if alone.site is None:
            return "no site ever has the memory and the units for any of its modes"
        if alone.met is False:
            if alone.completion is None:
                return "even alone it cannot complete by the horizon"
            return (
                f"even alone it completes at {alone.completion:g} at the earliest, "
                f"{alone.late_by_s:g} s late"
            )
        if self.contention:
            worst = self.contention[0]
            return (
                f"it needs {worst.needed} units of '{worst.site}', which has {worst.free} free "
                f"in [{worst.start:g}, {worst.end:g})"
            )
        return "alone it is met; the schedule gives it too little"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """What one more unit of a site over a span would be worth, in met weight.

    Parameters
    ----------
    site, start, end
        Where and when.
    price
        Its worth by the capacity prices of the dual, summed over the span: the rate at the margin
        of the relaxation. An estimate for a whole unit, which may bring less, or steps of it.
    gain_at_least, gain_at_most
        The gain as re-solved: between the best values and bounds with and without it; equal where
        it is known. None = not
        re-solved for want of time.
    """

    site: str
    start: float
    end: float
    price: float
    gain_at_least: float | None = None
    gain_at_most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why deadlines are missed, what would save them, what capacity is worth.

    Parameters
    ----------
    schedule
        The schedule explained; without a plan where there is none.
    jobs
        The jobs asked for, or all that miss their deadline, heaviest first.
    conflict
        Where the instance has no schedule: hard deadlines that contradict each other.
    marginals
        Worth of more capacity, most first.
    complete
        Whether everything was looked for; False = time ran out, or it was interrupted.
    interrupted
        Whether Ctrl-C ended the work.
    seconds
        Wall time taken.
    """

    schedule: Schedule
    jobs: tuple[JobExplanation, ...]
    conflict: Conflict | None
    marginals: tuple[Marginal, ...]
    complete: bool
    interrupted: bool
    seconds: float

    def document(self) -> dict[str, Any]:
        """Return the explanation as the document ``edgeflow-explanation/1``.

        Schedules that prove remedies are documents ``edgeflow-schedule/1`` of the changed instance.
        """
        from edgeflow_opt.problem import schedule_to_dict

        jobs = []
        for job in self.jobs:
            remedies = []
            for remedy in job.remedies:
                entry = {
                    f.name: getattr(remedy, f.name)
                    for f in dataclasses.fields(remedy)
                    if f.name not in ("schedule", "job")
                }
                entry["dropped"] = list(remedy.dropped)
                entry["text"] = remedy.text
                entry["schedule"] = schedule_to_dict(remedy.schedule)
                remedies.append(entry)
            jobs.append(
                {
                    "job": job.job,
                    "deadline": job.deadline,
                    "weight": job.weight,
                    "met": job.met,
                    "completion": job.completion,
                    "reason": job.reason,
                    "alone": dataclasses.asdict(job.alone),
                    "contention": [dataclasses.asdict(span) for span in job.contention],
                    "remedies": remedies,
                    "conflict": _conflict_document(job.conflict),
                    "complete": job.complete,
                }
            )
        value = self.schedule.objective
        return {
            "format": EXPLANATION_FORMAT,
            "status": str(self.schedule.status),
            "met_weight": None if value is None else value.met_weight,
            "bound": self.schedule.bound,
            "jobs": jobs,
            "conflict": _conflict_document(self.conflict),
            "marginals": [dataclasses.asdict(marginal) for marginal in self.marginals],
            "complete": self.complete,
            "interrupted": self.interrupted,
            "seconds": self.seconds,
        }


def _conflict_document(conflict: Conflict | None) -> dict[str, Any] | None:
    if conflict is None:
        return None
    spans = [{"site": s, "start": a, "end": b} for s, a, b in conflict.capacities]
    return {
        "jobs": list(conflict.jobs),
        "capacities": spans,
        "minimal": conflict.minimal,
        "text": conflict.text,
    }


def with_more(
    problem: EpochProblem, site: str, start: float, end: float, units: int
) -> EpochProblem:
    """Return `problem` with `units` more on `site` in ``[start, end)``."""
    sites = tuple(_raised(s, start, end, units) if s.name == site else s for s in problem.sites)
    return problem.replace(sites=sites)


def _raised(site: Site, start: float, end: float, units: int) -> Site:
    times = sorted({time for time, _ in site.capacity} | {start, end})
    first = site.capacity[0][0]
    steps = tuple(
        (time, site.capacity_at(time) + (units if start <= time < end else 0))
        for time in times
        if time >= first
    )
    return dataclasses.replace(site, capacity=steps)


def with_deadline(problem: EpochProblem, job: str, deadline: float) -> EpochProblem:
    """Return `problem` with another deadline of one job."""
    jobs = tuple(
        dataclasses.replace(j, deadline=deadline) if j.id == job else j for j in problem.jobs
    )
    return problem.replace(jobs=jobs)
