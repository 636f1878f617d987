"""Tiresias: least attained service, or the Gittins index, on the GPUs that were asked for."""

from __future__ import annotations

import bisect
import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Mode
    from edgeflow_opt.problem.arrays import FloatArray

#: GPU-seconds by which rounding may keep a job below a limit that it has reached.
_ROUNDING = 1e-6


class TiresiasPolicy:
    """Tiresias, discretised two-dimensional least attained service (2D-LAS).

    Attained service = GPUs x seconds held. Jobs stand in queues by it: a new one in the first, and
    one queue further down with each limit that it reaches; the queues are scanned in order, the
    jobs that fit on their requested GPUs run, the others are preempted. Knows no deadlines and no
    edge; asks to be woken when a running job reaches a limit.

    Source: Gu et al., "Tiresias: A GPU cluster manager for distributed deep learning", NSDI 2019;
    number and limits of the queues as in pkusys/ElasticFlow.

    Parameters
    ----------
    first_limit, second_limit
        GPU-seconds at which a job leaves the first and the second queue, rising, above 0; the
        third one has no limit.
    order
        Order within a queue: ``"running"`` = those that run stay before those that wait, then by
        arrival (as in the published code: no preemption inside a queue); ``"arrival"``.
    promote
        Starvation knob (PROMOTEKNOB of the paper): a job that has waited this many times its
        attained service per GPU goes back to the first queue. 0 = never (as published).

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(
        self,
        *,
        first_limit: float = 3250.0,
        second_limit: float = 7200.0,
        order: str = "running",
        promote: float = 0.0,
    ) -> None:
        if not 0.0 < first_limit < second_limit < math.inf:
            raise UsageError(
                "options first_limit, second_limit: must be GPU-seconds with 0 < first < second, "
                f"got {first_limit!r} and {second_limit!r}"
            )
        if order not in ("running", "arrival"):
            raise UsageError(f"option order: must be one of running, arrival, got {order!r}")
        if not 0.0 <= promote < math.inf:
            raise UsageError(f"option promote: must be a number >= 0, got {promote!r}")
        self._limits = (first_limit, second_limit)
        self._running_first = order == "running"
        self._promote = promote
        self._clouds = Clouds()
        self._forgiven: dict[str, float] = {}
        """Service that no longer counts, of jobs that were promoted."""
        self._waits_since: dict[str, float] = {}

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs that run, and when the next of them changes its queue."""
        free = self._clouds.look(state)
        if self._promote:
            self._promote_starved(state)
        queues = [self._queue(seen) for seen in state.jobs]
        ranks = self._ranks(state, queues)
        place = sorted(
            range(len(queues)),
            key=lambda i: (
                queues[i],
                ranks[i],
                self._running_first and state.jobs[i].mode is None,
            ),
        )
        allocation = pack((state.jobs[i] for i in place), self._clouds, free)
        return Decision(allocation=allocation, wake_up=self._next_change(state, allocation, queues))

    def _service(self, seen: JobState) -> float:
        if not self._forgiven:
            return seen.attained_gpu_s
        return seen.attained_gpu_s - self._forgiven.get(seen.job.id, 0.0)

    def _queue(self, seen: JobState) -> int:
        return bisect.bisect_right(self._limits, self._service(seen) + _ROUNDING)

    def _ranks(self, state: ClusterState, queues: Sequence[int]) -> Sequence[float]:
        """Return the ranks of the jobs within their queues, the least first."""
        return [0.0] * len(queues)

    def _next_change(
        self, state: ClusterState, allocation: dict[str, Mode], queues: Sequence[int]
    ) -> float | None:
        """Return when the first of the running jobs reaches a limit, while jobs wait."""
        if len(allocation) == len(state.jobs):
            return None
        wait = math.inf
        for seen, queue in zip(state.jobs, queues, strict=True):
            mode = allocation.get(seen.job.id)
            if mode is not None and queue < len(self._limits):
                wait = min(wait, (self._limits[queue] - self._service(seen)) / mode.gpus)
        soon = state.now + wait
        # Rounding must not make it now.
        return max(soon, math.nextafter(state.now, math.inf)) if wait < math.inf else None

    def _promote_starved(self, state: ClusterState) -> None:
        """Put the jobs that have waited too long back into the first queue."""
        since = self._waits_since
        present = {seen.job.id for seen in state.jobs}
        for gone in since.keys() - present:
            del since[gone]
        for seen in state.jobs:
            name = seen.job.id
            if seen.mode is not None or seen.attained_gpu_s == 0.0:
                since.pop(name, None)
                continue
            begun = since.setdefault(name, state.now)
            gpus = max((mode.gpus for mode in self._clouds.gangs(seen.job)), default=1)
            if state.now - begun >= self._promote * self._service(seen) / gpus:
                self._forgiven[name] = seen.attained_gpu_s
                since[name] = state.now


class TiresiasGittinsPolicy(TiresiasPolicy):
    """Tiresias with the Gittins index (2D-Gittins): within a queue the job likely to end soonest.

    The index of a job of attained service a is ``P(S <= a + d | S > a) / E[min(S - a, d) | S > a]``
    with the service quantum d, over the distribution of the total service S (GPU-seconds) of jobs.
    The greatest index comes first. Until enough jobs have been seen the rule is that of
    ``tiresias``.

    Source: as there. The paper takes the distribution from the history of the cluster; so does
    this policy, from the jobs that have completed so far in the simulation (chosen: no knowledge
    of the future).

    Parameters
    ----------
    quantum
        d, GPU-seconds, above 0 (3250 in pkusys/ElasticFlow).
    least_samples
        Completed jobs before the index is used, at least 1.
    first_limit, second_limit
        As in ``tiresias``: GPU-seconds at which a job leaves the first and the second queue.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(
        self,
        *,
        quantum: float = 3250.0,
        least_samples: int = 20,
        first_limit: float = 3250.0,
        second_limit: float = 7200.0,
    ) -> None:
        super().__init__(first_limit=first_limit, second_limit=second_limit)
        if not 0.0 < quantum < math.inf:
            raise UsageError(f"option quantum: must be GPU-seconds above 0, got {quantum!r}")
        if least_samples < 1:
            raise UsageError(f"option least_samples: must be at least 1, got {least_samples!r}")
        self._quantum = quantum
        self._least_samples = least_samples
        self._seen: dict[str, tuple[float, int]] = {}
        self._last_time = 0.0
        self._samples: list[float] = []
        self._sorted: FloatArray = np.zeros(0)

    def decide(self, state: ClusterState) -> Decision:
        """Learn from the jobs that have gone, then decide as ``tiresias`` does."""
        present = {seen.job.id for seen in state.jobs}
        elapsed = state.now - self._last_time
        gone = [
            service + gpus * elapsed
            for name, (service, gpus) in self._seen.items()
            if name not in present and gpus > 0
        ]
        if gone:
            self._samples += gone
            self._sorted = np.sort(self._samples)
        decision = super().decide(state)
        held = decision.allocation
        self._seen = {
            seen.job.id: (
                seen.attained_gpu_s,
                held[seen.job.id].gpus if seen.job.id in held else 0,
            )
            for seen in state.jobs
        }
        self._last_time = state.now
        return decision

    def _ranks(self, state: ClusterState, queues: Sequence[int]) -> Sequence[float]:
        if len(self._samples) < self._least_samples:
            return super()._ranks(state, queues)
        service = np.array([seen.attained_gpu_s for seen in state.jobs])
        ranks: list[float] = (-gittins_index(self._sorted, service, self._quantum)).tolist()
        return ranks


def gittins_index(samples: FloatArray, service: FloatArray, quantum: float) -> FloatArray:
    """Return the Gittins index of jobs of attained `service`.

    Parameters
    ----------
    samples
        Total services of past jobs, rising.
    service
        (n,) attained services.
    quantum
        Service within which a job is hoped to end, above 0.

    Returns
    -------
    index
        (n,) per unit of service; 0 for a job that has outlived all samples.
    """
    sums = np.concatenate([[0.0], np.cumsum(samples)])
    outlived = np.searchsorted(samples, service, side="right")
    ends = np.searchsorted(samples, service + quantum, side="right")
    alive = len(samples) - outlived
    ended = ends - outlived
    expected = sums[ends] - sums[outlived] - ended * service + (alive - ended) * quantum
    index: FloatArray = np.where(alive > 0, ended / np.maximum(expected, 1e-12), 0.0)
    return index
