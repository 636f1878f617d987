"""First in, first out, on the GPUs that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, pack

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState


class FifoPolicy:
    """First in, first out: jobs start in order of arrival on their requested GPUs, and run on.

    Knows no deadlines, no elasticity and no edge. A running job keeps its GPUs until it is done,
    unless capacity falls: then the latest to arrive give way.

    Source: the default of cluster managers such as YARN and Slurm; a baseline everywhere.

    Parameters
    ----------
    backfill
        Whether a job may start before one that came earlier and does not fit (default: no, the
        head of the queue holds up all others).
    """

    def __init__(self, *, backfill: bool = False) -> None:
        self._backfill = backfill
        self._clouds = Clouds()

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs that run, each on its requested GPUs."""
        free = self._clouds.look(state)
        ordered = [s for s in state.jobs if s.mode is not None]
        allocation = pack(ordered, self._clouds, free)
        waiting = [s for s in state.jobs if s.mode is None]
        allocation |= pack(waiting, self._clouds, free, backfill=self._backfill)
        return Decision(allocation=allocation)
