"""A trace: jobs as they were or will be submitted, before they meet a cluster."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflow_opt.errors import Fault, TraceError, UsageError
from edgeflow_opt.problem.data import Job
from edgeflow_opt.problem.types import type_faults
from edgeflow_opt.problem.values import MAX_MAGNITUDE, as_tuple, is_whole, make_plain, shown
from edgeflow_opt.workloads.rates import DEFAULT_CATALOG, RateCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """One submitted job.

    Parameters
    ----------
    id
        Name, unique within the trace.
    submission
        Time of submission, seconds.
    deadline
        Absolute, seconds, at or after submission; None = best effort.
    model, batch
        What is trained, with which global batch.
    gpus
        GPUs that its user asked for, at least 1.
    iterations
        Work, positive.
    duration
        Seconds that it takes on `gpus` GPUs, positive.
    """

    id: str
    submission: float
    deadline: float | None
    model: str
    batch: int
    gpus: int
    iterations: float
    duration: float

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)

    @property
    def deadline_factor(self) -> float | None:
        """Time from submission to deadline over the duration; None for best effort."""
        return None if self.deadline is None else (self.deadline - self.submission) / self.duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs in the order of their submission.

    Parameters
    ----------
    entries
        The jobs; sorted by submission on construction, equal times keep their order.
    name
        For people: the file, or how it was generated.
    skipped
        Rows of the file that were dropped as bad.

    Raises
    ------
    TraceError
        If an id stands twice, a job breaks a rule of :class:`TraceJob`, or anything is of another
        type; all faults are named.
    """

    entries: tuple[TraceJob, ...]
    name: str = ""
    skipped: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", as_tuple(self.entries))
        make_plain(self, ("name", "skipped"))
        if not isinstance(self.name, str):
            raise TraceError((Fault("trace", "name", "must be a text", shown(self.name)),))
        faults = list(_faults_of(self.entries))
        if not (is_whole(self.skipped) and 0 <= self.skipped <= MAX_MAGNITUDE):
            rule = "must be a whole number from 0 to 1e15"
            faults.append(Fault("trace", "skipped", rule, shown(self.skipped)))
        if faults:
            raise TraceError(tuple(faults), self.name)
        ordered = tuple(sorted(self.entries, key=lambda job: job.submission))
        object.__setattr__(self, "entries", ordered)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[TraceJob]:
        return iter(self.entries)

    @property
    def start(self) -> float:
        """Time of the first submission, seconds; 0 for a trace without jobs."""
        return self.entries[0].submission if self.entries else 0.0

    @property
    def end(self) -> float:
        """The last deadline, seconds; a best-effort job counts with submission + duration."""
        return max(
            (
                job.submission + job.duration if job.deadline is None else job.deadline
                for job in self.entries
            ),
            default=0.0,
        )

    def replace(self, **changes: Any) -> Trace:
        """Return a copy with `changes` to its fields."""
        return dataclasses.replace(self, **changes)

    def head(self, count: int) -> Trace:
        """Return the first `count` jobs."""
        if count < 0:
            raise UsageError(f"trace: a head of {count} jobs makes no sense; give at least 0")
        return self.replace(entries=self.entries[:count])

    def subset(self, ids: Iterable[str]) -> Trace:
        """Return the jobs with these ids, in the order of the trace.

        Raises
        ------
        UsageError
            If an id is not in the trace.
        """
        wanted = set(ids)
        unknown = wanted - {job.id for job in self.entries}
        if unknown:
            raise UsageError(f"trace {self.name!r}: no job has the id {shown(min(unknown))}")
        return self.replace(entries=tuple(job for job in self.entries if job.id in wanted))

    def with_deadlines(self, low: float, high: float, seed: int = 0) -> Trace:
        """Return a copy with deadlines at submission + U[low, high] * duration.

        Parameters
        ----------
        low, high
            Range of the factor, ``0 <= low <= high``. At a factor below 1 a job cannot be met on
            the GPUs that it asked for.
        seed
            Of the draws, one for each job in the order of the trace. Best-effort jobs stay so.

        Raises
        ------
        UsageError
            If the range makes no sense.
        """
        if not (math.isfinite(low) and math.isfinite(high) and 0 <= low <= high):
            raise UsageError(
                f"deadlines: the range of the factor must be 0 <= low <= high, got {low}, {high}"
            )
        draws = low + (high - low) * np.random.default_rng(seed).random(len(self.entries))
        return self.replace(
            entries=tuple(
                job
                if job.deadline is None
                else dataclasses.replace(
                    job, deadline=job.submission + float(factor) * job.duration
                )
                for job, factor in zip(self.entries, draws, strict=True)
            )
        )

    def scale_arrivals(self, factor: float) -> Trace:
        """Return a copy whose inter-arrival times are multiplied by `factor`, a positive number.

        The first job stays where it is, and every deadline keeps its distance to the submission.

        Raises
        ------
        UsageError
            If the factor is not a positive number.
        """
        if not (math.isfinite(factor) and factor > 0):
            raise UsageError(f"arrivals: the multiplier must be a number above 0, got {factor}")
        start = self.start

        def moved(job: TraceJob) -> TraceJob:
            submission = start + (job.submission - start) * factor
            deadline = job.deadline
            if deadline is not None:
                deadline = submission + (deadline - job.submission)
            return dataclasses.replace(job, submission=submission, deadline=deadline)

        return self.replace(entries=tuple(moved(job) for job in self.entries))

    def one_gpu_seconds(self, catalog: RateCatalog = DEFAULT_CATALOG) -> float:
        """Return the GPU-seconds that all jobs take on one cloud GPU each.

        Sum over the jobs of ``iterations / rate(model, batch, 1 GPU)``.
        """
        return math.fsum(
            job.iterations / catalog.profile(job.model, job.batch).rates[0][1]
            for job in self.entries
        )

    def offered_load(self, cloud_gpus: int, catalog: RateCatalog = DEFAULT_CATALOG) -> float:
        """Return the offered load: the one-GPU work over what the cloud cluster could do.

        ``load = sum_j (iterations_j / rate_j(1)) / (G (last deadline - first submission))`` with G
        = `cloud_gpus`. One GPU is where rates per GPU are best as a rule, so the work at larger
        counts is more; edge servers add capacity that the figure leaves out; and arrivals bunch. So
        a cluster can be overloaded at times well below a load of 1.

        Returns
        -------
        float
            At least 0; 0 for a trace without jobs, inf where the capacity is none.
        """
        if not self.entries:
            return 0.0
        capacity = cloud_gpus * (self.end - self.start)
        return self.one_gpu_seconds(catalog) / capacity if capacity > 0 else math.inf

    def arrival_load(self, cloud_gpus: int, catalog: RateCatalog = DEFAULT_CATALOG) -> float:
        """Return the load while jobs arrive: one-GPU work that comes in over what G GPUs can do.

        ``load = sum_j (iterations_j / rate_j(1)) / (G n/(n-1) (last - first submission))`` with n
        jobs: the mean one-GPU work of a job times the rate of arrivals over G = `cloud_gpus`. Other
        than :meth:`offered_load` it leaves out the time in which the last jobs drain, which for a
        short trace with long jobs is most of it.

        Returns
        -------
        float
            At least 0; 0 for a trace without jobs, inf where all arrive at once or G is 0.
        """
        if not self.entries:
            return 0.0
        count = len(self.entries)
        span = self.entries[-1].submission - self.start
        capacity = cloud_gpus * span * count / (count - 1) if count > 1 else 0.0
        return self.one_gpu_seconds(catalog) / capacity if capacity > 0 else math.inf

    def jobs(
        self,
        catalog: RateCatalog = DEFAULT_CATALOG,
        cloud_site: str = "cloud",
        edge_site: str | None = "edge",
        *,
        max_gpus: int | None = None,
        beyond_knee: bool = False,
        restart_s: float = 0.0,
        migration_s: float = 0.0,
        malleable: bool = True,
    ) -> tuple[Job, ...]:
        """Return the jobs of the problem: arrival, deadline, work and modes.

        Parameters
        ----------
        catalog
            Rates, edge ratios and memories of the models.
        cloud_site, edge_site
            Names of the sites; `edge_site` None = no edge modes.
        max_gpus, beyond_knee
            Which GPU counts become modes, see :meth:`RateCatalog.modes`.
        restart_s, migration_s
            Losses of every job, seconds.
        malleable
            False = every job keeps one mode in one run.

        Returns
        -------
        tuple of Job
            In the order of the trace. Of a job's modes, that of the GPUs which it asked for always
            stays, beyond the knee too, unless it is larger than `max_gpus`.

        Raises
        ------
        TraceError
            If the catalog lacks the model or batch of a job; all such jobs are named.
        """
        faults = [
            Fault(f"job {shown(job.id)}", "model, batch", catalog.unknown(job.model, job.batch))
            for job in self.entries
            if not catalog.has(job.model, job.batch)
        ]
        if faults:
            raise TraceError(tuple(faults), self.name)
        modes = {
            key: catalog.modes(
                key[0], key[1], cloud_site, edge_site, max_gpus,
                beyond_knee=beyond_knee, requested=key[2],
            )
            for key in {(job.model, job.batch, job.gpus) for job in self.entries}
        }  # fmt: skip
        return tuple(
            Job(
                id=job.id,
                arrival=job.submission,
                deadline=job.deadline,
                work=job.iterations,
                modes=modes[job.model, job.batch, job.gpus],
                memory_gib=catalog.memory(job.model),
                restart_s=restart_s,
                migration_s=migration_s,
                malleable=malleable,
                requested_gpus=job.gpus,
            )
            for job in self.entries
        )

    def __str__(self) -> str:
        best_effort = sum(job.deadline is None for job in self.entries)
        text = (
            f"Trace {self.name!r}: {len(self)} jobs in {(self.end - self.start) / 3600:.1f} h, "
            f"{best_effort} best effort"
        )
        return text + (f", {self.skipped} bad rows skipped" if self.skipped else "")


_fields = operator.attrgetter(*(part.name for part in dataclasses.fields(TraceJob)))

#: The types of these fields as they nearly always are, with a deadline and without.
_USUAL_TYPES = {
    (str, float, deadline, str, int, int, float, float) for deadline in (float, type(None))
}


def _faults_of(entries: Any) -> Iterator[Fault]:
    """Yield the faults of what should be the jobs of a trace."""
    if not isinstance(entries, tuple):
        yield Fault("trace", "entries", "must be a tuple of TraceJob", shown(entries))
        return
    seen: set[str] = set()
    for index, job in enumerate(entries):
        if not isinstance(job, TraceJob):
            yield from type_faults(job, TraceJob, "trace", f"entries[{index}]")
            continue
        owner = f"job {shown(job.id)}"
        # To look at each field with care takes a hundred times as long.
        if tuple(map(type, _fields(job))) not in _USUAL_TYPES:
            wrong = list(type_faults(job, TraceJob, owner, finite=False))
            yield from wrong
            if wrong:
                continue
        if job.id in seen:
            yield Fault(owner, "id", "must be unique, is used more than once", remedy="rename it")
        seen.add(job.id)
        times = [("submission", job.submission)]
        if job.deadline is not None:
            times.append(("deadline", job.deadline))
        positive = [("gpus", job.gpus), ("iterations", job.iterations), ("duration", job.duration)]
        bad = [
            Fault(owner, field, "must be a finite number of magnitude at most 1e15", shown(value))
            for field, value in itertools.chain(times, positive)
            if not abs(value) <= MAX_MAGNITUDE
        ]
        yield from bad
        if bad:
            continue
        for field, value in positive:
            if value <= 0:
                yield Fault(owner, field, "must be above 0", shown(value))
        if job.deadline is not None and job.deadline < job.submission:
            yield Fault(
                owner, "deadline", f"must not be before the submission {job.submission!r}",
                shown(job.deadline), "times are absolute, on the clock of the submission",
            )  # fmt: skip
