"""What reconfiguration costs: models of the time that jobs lose.

A model says how long a run earns nothing when it begins, how long every running job stalls at
each event, and what a policy gets to see of that. The simulator charges it, the checker is given
the same numbers.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.runs import RunKind, instance_loss
from edgeflow_opt.problem.values import MAX_MAGNITUDE, is_number, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.problem import Job, Site


class Overhead(Protocol):
    """A model of overhead."""

    def run_loss(self, job: Job, kind: RunKind, gpus: int) -> float:
        """Return the seconds without credit of a run of `job` that begins on `gpus` GPUs."""
        ...

    def event_loss(self, cluster_gpus: int) -> float:
        """Return the seconds that every running job stalls at each event.

        Parameters
        ----------
        cluster_gpus
            Cloud GPUs of the cluster at their most.
        """
        ...

    def as_seen(self, job: Job, gpus: int, cluster_gpus: int) -> Job:
        """Return `job` with the losses that a policy sees while it holds `gpus` GPUs (0 = idle)."""
        ...


@dataclass(frozen=True, slots=True)
class JobLosses:
    """Every job has the losses that it states itself (`restart_s`, `migration_s`)."""

    def run_loss(self, job: Job, kind: RunKind, gpus: int) -> float:
        """Return the job's own loss."""
        return instance_loss(job, kind, gpus)

    def event_loss(self, cluster_gpus: int) -> float:
        """Return 0: events as such cost nothing."""
        return 0.0

    def as_seen(self, job: Job, gpus: int, cluster_gpus: int) -> Job:
        """Return `job` itself."""
        return job


@dataclass(frozen=True, slots=True)
class FixedLosses:
    """Every job has the same losses, whatever it states itself.

    Parameters
    ----------
    restart_s
        Seconds without credit when a run begins on the site of the last one, at least 0.
    migration_s
        The same when it begins on another site, at least 0.

    Raises
    ------
    UsageError
        If one of them is no such number.
    """

    restart_s: float = 0.0
    migration_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("restart_s", "migration_s"):
            value = getattr(self, name)
            if not (is_number(value) and 0.0 <= value <= MAX_MAGNITUDE):
                raise UsageError(
                    f"FixedLosses, {name}: must be a number of seconds >= 0, got {shown(value)}"
                )

    def run_loss(self, job: Job, kind: RunKind, gpus: int) -> float:
        """Return the fixed loss; a first run has none."""
        if kind is RunKind.RESTARTED:
            return self.restart_s
        return self.migration_s if kind is RunKind.MIGRATED else 0.0

    def event_loss(self, cluster_gpus: int) -> float:
        """Return 0: events as such cost nothing."""
        return 0.0

    def as_seen(self, job: Job, gpus: int, cluster_gpus: int) -> Job:
        """Return `job` with the fixed losses."""
        if (job.restart_s, job.migration_s) == (self.restart_s, self.migration_s):
            return job
        return dataclasses.replace(job, restart_s=self.restart_s, migration_s=self.migration_s)


#: No overhead at all.
NO_OVERHEAD = FixedLosses()


@dataclass(frozen=True, slots=True)
class ElasticFlowLosses:
    """The overhead of ElasticFlow's evaluation (Gu et al., ASPLOS 2023).

    At every event each running job stalls for `event_s` seconds, `large_event_s` in a cluster of
    `large_gpus` cloud GPUs or more; a job whose placement is new (its first included) loses
    2 (log2 g + 1) seconds more, g being its new number of GPUs. The stall is real time: what a job
    has not yet paid when the next event comes adds up, so events should be merged
    (`merge_s` of :func:`~edgeflow_opt.simulation.simulate`; ElasticFlow's slot is 60 s).

    A policy sees, in place of `restart_s` and `migration_s`, the whole of it at the job's present
    number of GPUs (1 while it is idle); the stall of the event is in `loss_left_s` already.
    """

    event_s: float = 2.0
    large_event_s: float = 7.0
    large_gpus: int = 256

    def run_loss(self, job: Job, kind: RunKind, gpus: int) -> float:
        """Return 2 (log2 g + 1) unless the run only goes on."""
        return 0.0 if kind is RunKind.CONTINUED else 2.0 * (math.log2(gpus) + 1.0)

    def event_loss(self, cluster_gpus: int) -> float:
        """Return the stall of each running job."""
        return self.large_event_s if cluster_gpus >= self.large_gpus else self.event_s

    def as_seen(self, job: Job, gpus: int, cluster_gpus: int) -> Job:
        """Return `job` with both losses at the value for `gpus`."""
        loss = self.event_loss(cluster_gpus) + 2.0 * (math.log2(max(1, gpus)) + 1.0)
        return dataclasses.replace(job, restart_s=loss, migration_s=loss)


def parse_overhead(text: str) -> Overhead:
    """Return the model that `text` names.

    Parameters
    ----------
    text
        ``none``, ``jobs`` (each job's own losses), ``elasticflow``, or ``RESTART_S,MIGRATION_S``.

    Raises
    ------
    UsageError
        If `text` is none of these.
    """
    if text == "none":
        return NO_OVERHEAD
    if text == "jobs":
        return JobLosses()
    if text == "elasticflow":
        return ElasticFlowLosses()
    try:
        restart_s, migration_s = (float(part) for part in text.split(","))
    except ValueError:
        restart_s = migration_s = -1.0
    if not (0.0 <= restart_s < math.inf and 0.0 <= migration_s < math.inf):
        raise UsageError(
            "option overhead: must be none, jobs, elasticflow or RESTART_S,MIGRATION_S with "
            f"seconds >= 0, got {text!r}; for example 30,180"
        )
    return FixedLosses(restart_s, migration_s)


def cluster_gpus(sites: Sequence[Site]) -> int:
    """Return the cloud GPUs of `sites` at their most."""
    return sum(max(units for _, units in s.capacity) for s in sites if s.kind == "cloud")
