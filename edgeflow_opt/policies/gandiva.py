"""Gandiva: groups of jobs of one size, and time slices within them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, Turns, fitting

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Mode

#: Seconds by which a slice may end early, against rounding.
_ROUNDING = 1e-6


class GandivaPolicy:
    """Gandiva: jobs grouped by their GPU count share the cluster in round-robin time slices.

    Every job keeps its requested GPUs. Where all fit, all run. Where not, the GPUs are split
    between the groups in proportion to what their jobs ask for, and within a group as many jobs
    run as its share holds; after each slice they go to the back of their group. GPUs of a share
    that are too few for one more job of the group are lent to others, and owed to it: once they
    suffice for a job, it is served first, so that no group starves. A job that has earned nothing in
    its slice, since the loss of its restart took all of it, keeps its GPUs for another. Knows no
    deadlines and no edge.

    Source: Xiao et al., "Gandiva: Introspective cluster scheduling for deep learning", OSDI 2018,
    as a baseline of ElasticFlow and EdgeFlow (groups by size, slices, free nodes re-split by
    demand). Packing of several jobs on one GPU is left out, as there.

    Parameters
    ----------
    slice_s
        Length of a time slice, seconds, above 0.
    node_gpus
        Where above 0, nodes of this many GPUs belong to one group at a time, as in the published
        code: the share of a group is rounded down to whole nodes, those left over go to the groups
        with most jobs waiting. 0 = shares are counted in GPUs (EdgeFlow's cluster repacks freely).

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(self, *, slice_s: float = 60.0, node_gpus: int = 0) -> None:
        if not 0.0 < slice_s < math.inf:
            raise UsageError(
                f"option slice_s: must be a number of seconds above 0, got {slice_s!r}"
            )
        if node_gpus < 0:
            raise UsageError(f"option node_gpus: must be at least 0, got {node_gpus!r}")
        self._slice_s = slice_s
        self._node_gpus = node_gpus
        self._clouds = Clouds()
        self._turns = Turns()
        self._turn: dict[str, int] = {}
        """Slices that each job has run to their ends: the fewest are served first."""
        self._owed: dict[int, float] = {}
        """GPU-slices of its share that each group was not given."""
        self._slice_end = -math.inf

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs whose turn it is."""
        free = self._clouds.look(state)
        groups = self._groups(state)
        demand = sum(gpus * len(group) for gpus, group in groups.items())
        total = self._clouds.gpus
        over = state.now >= self._slice_end - _ROUNDING
        if over:
            self._slice_end = state.now + self._slice_s
        shares = {gpus: total * gpus * len(g) / demand for gpus, g in groups.items()}
        order = sorted(groups, key=lambda gpus: (-self._owed.get(gpus, 0.0), gpus))
        allocation: dict[str, Mode] = {}
        given = dict.fromkeys(groups, 0)
        vain = self._turns.look(state.jobs, over)
        waiting = {gpus: self._in_turn(group, over, vain) for gpus, group in groups.items()}
        for seen in state.jobs:
            if seen.job.id in vain and (gangs := self._clouds.gangs(seen.job)):
                mode = fitting(gangs, free, seen.mode)
                if mode is not None:
                    free[mode.site] -= mode.gpus
                    given[gangs[0].gpus] += mode.gpus
                    allocation[seen.job.id] = mode
        for lend in (False, True):
            for gpus in order:
                limit = math.inf
                if not lend and demand > total:
                    limit = self._whole(shares[gpus] + self._owed.get(gpus, 0.0))
                rest = []
                for seen in waiting[gpus]:
                    if seen.job.id in allocation:
                        continue
                    mode = None
                    if given[gpus] + gpus <= limit:
                        mode = fitting(self._clouds.gangs(seen.job), free, seen.mode)
                    if mode is None:
                        rest.append(seen)
                        continue
                    free[mode.site] -= mode.gpus
                    given[gpus] += mode.gpus
                    allocation[seen.job.id] = mode
                waiting[gpus] = rest
        if over:
            self._owed = {
                gpus: max(-total, min(total, self._owed.get(gpus, 0.0) + share - given[gpus]))
                for gpus, share in shares.items()
                if demand > total
            }
        waits = len(allocation) < sum(map(len, groups.values()))
        if not waits:
            self._slice_end = -math.inf
        return Decision(allocation=allocation, wake_up=self._slice_end if waits else None)

    def _groups(self, state: ClusterState) -> dict[int, list[JobState]]:
        """Return the jobs by requested GPUs, in order of arrival; forget those that are gone."""
        groups: dict[int, list[JobState]] = {}
        turn: dict[str, int] = {}
        newest = min(
            (self._turn[s.job.id] for s in state.jobs if s.job.id in self._turn), default=0
        )
        for seen in state.jobs:
            gangs = self._clouds.gangs(seen.job)
            if gangs:
                groups.setdefault(gangs[0].gpus, []).append(seen)
                turn[seen.job.id] = self._turn.get(seen.job.id, newest)
        self._turn = turn
        return groups

    def _in_turn(self, group: list[JobState], over: bool, vain: set[str]) -> list[JobState]:
        """Return the jobs of a group, first whose turn it is; after a slice its runners go back."""
        if over:
            for seen in group:
                self._turn[seen.job.id] += seen.mode is not None and seen.job.id not in vain
        # Within a slice those that run go on.
        return sorted(group, key=lambda s: (not over and s.mode is None, self._turn[s.job.id]))

    def _whole(self, share: float) -> float:
        """Return the GPUs of a share that can be given out: whole nodes, if nodes are counted."""
        if self._node_gpus:
            return self._node_gpus * math.floor(share / self._node_gpus + 1e-9)
        return share + 1e-9
