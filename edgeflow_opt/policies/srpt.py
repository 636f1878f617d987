"""Shortest remaining processing time first, on the GPUs that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, pack, seconds_left

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState

_MEASURES = ("time", "service")


class SrptPolicy:
    """Shortest remaining processing time: the jobs that are done soonest run, others are preempted.

    Jobs keep their requested GPUs; those that do not fit are passed over. Knows no deadlines and no
    edge. On one machine the rule minimises the mean flow time (Schrage, Operations Research 16(3),
    1968); on parallel machines it is a heuristic.

    Parameters
    ----------
    by
        ``"time"`` = remaining seconds on the requested GPUs; ``"service"`` = remaining GPU-seconds
        (Tiresias calls the rule shortest remaining service first).

    Raises
    ------
    UsageError
        If `by` is neither.
    """

    def __init__(self, *, by: str = "time") -> None:
        if by not in _MEASURES:
            raise UsageError(f"option by: must be one of {', '.join(_MEASURES)}, got {by!r}")
        self._by_service = by == "service"
        self._clouds = Clouds()

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs that run, each on its requested GPUs."""
        free = self._clouds.look(state)
        ordered = sorted(state.jobs, key=self._remaining)
        return Decision(allocation=pack(ordered, self._clouds, free))

    def _remaining(self, seen: JobState) -> float:
        modes = self._clouds.gangs(seen.job)
        seconds = seconds_left(seen, modes)
        return seconds * modes[0].gpus if modes and self._by_service else seconds
