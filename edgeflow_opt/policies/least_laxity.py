"""Least laxity first, on the GPUs that were asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, pack, seconds_left

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState


class LeastLaxityPolicy:
    """Least laxity first: the jobs that can wait least run on their requested GPUs.

    ``laxity = deadline - now - work left / rate(requested GPUs)``. Jobs whose laxity is below zero
    cannot be met on these GPUs; best-effort jobs come after all others, first come.

    Source: Mok, "Fundamental design problems of distributed systems for the hard real-time
    environment", MIT 1983 (least laxity, also called least slack).

    Parameters
    ----------
    hopeless
        Where jobs of negative laxity stand: ``"last"`` (chosen: they cannot be met) or ``"first"``
        (the rule to the letter: the most hopeless first).
    slice_s
        Seconds after which the order is looked at again while jobs wait, at least 0: running jobs
        keep their laxity, waiting ones lose it. 0 = at events only.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(self, *, hopeless: str = "last", slice_s: float = 0.0) -> None:
        if hopeless not in ("last", "first"):
            raise UsageError(f"option hopeless: must be one of last, first, got {hopeless!r}")
        if not 0.0 <= slice_s < math.inf:
            raise UsageError(f"option slice_s: must be a number of seconds >= 0, got {slice_s!r}")
        self._hopeless_last = hopeless == "last"
        self._slice_s = slice_s
        self._clouds = Clouds()

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs that run, each on its requested GPUs."""
        free = self._clouds.look(state)
        now = state.now

        def key(seen: JobState) -> tuple[int, float]:
            deadline = seen.job.deadline
            if deadline is None:
                return 2, 0.0
            laxity = deadline - now - seconds_left(seen, self._clouds.gangs(seen.job))
            # A job that runs at laxity zero must not fall back by rounding.
            late = self._hopeless_last and laxity < -1e-6 * max(1.0, abs(deadline - now))
            return int(late), laxity

        allocation = pack(sorted(state.jobs, key=key), self._clouds, free)
        # Nobody waits for a turn that no unit of the cluster could give.
        waits = self._slice_s > 0.0 and any(
            seen.job.id not in allocation and self._clouds.gangs(seen.job) for seen in state.jobs
        )
        return Decision(allocation=allocation, wake_up=now + self._slice_s if waits else None)
