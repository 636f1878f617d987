"""ElasticFlow with free edge servers for whoever comes first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.edgeflow import own_signature
from edgeflow_opt.policies.elasticflow import ElasticFlowPolicy

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Mode, Site


class ElasticFlowEdgePolicy(ElasticFlowPolicy):
    """ElasticFlow plus edge: free edge servers go to jobs in order of arrival, memory permitting.

    A job on an edge server stays until it is done, while servers last; those that came last go
    back to the cloud when servers are withdrawn. A free server takes the first job in order of
    arrival that holds no cloud GPU and fits its memory. The others are scheduled, and admitted, by
    ``elasticflow`` on the cloud.

    Source: the ablation "ElasticFlow + Edge" of Gu, Jin, Liu, Journal of Software 36(12), 2025,
    which says "first come"; who is asked is not stated there (chosen: jobs that hold nothing, since
    a move costs).

    Parameters
    ----------
    only_if_met
        Whether a job goes to the edge only where that completes it by its deadline (default: no,
        as in the ablation).
    **options
        As in ``elasticflow``.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(self, *, only_if_met: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._only_if_met = only_if_met

    __signature__ = own_signature(__init__, ElasticFlowPolicy)

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs on the edge, and ElasticFlow's decision for the others."""
        edges = [site for site in state.sites if site.kind == "edge"]
        free = {site.name: site.capacity_at(state.now) for site in edges}
        on_edge: dict[str, Mode] = {}
        for seen in state.jobs:
            mode = seen.mode
            if mode is not None and free.get(mode.site, 0) > 0:
                free[mode.site] -= 1
                on_edge[seen.job.id] = mode
        if any(free.values()):
            for seen in state.jobs:
                if seen.mode is None:
                    mode = self._edge_mode(seen, edges, free, state.now)
                    if mode is not None:
                        free[mode.site] -= 1
                        on_edge[seen.job.id] = mode
        if not on_edge:
            return super().decide(state)
        rest = dataclasses.replace(
            state, jobs=tuple(seen for seen in state.jobs if seen.job.id not in on_edge)
        )
        decision = super().decide(rest)
        return dataclasses.replace(decision, allocation={**decision.allocation, **on_edge})

    def _edge_mode(
        self, seen: JobState, edges: list[Site], free: dict[str, int], now: float
    ) -> Mode | None:
        """Return the fastest mode of a job on an edge site with a free server; None = there is none."""
        best: Mode | None = None
        for site in edges:
            if free[site.name] <= 0 or not site.hosts(seen.job):
                continue
            for mode in seen.job.modes:
                if mode.site == site.name and (best is None or mode.rate > best.rate):
                    best = mode
        if best is None or not self._only_if_met or seen.job.deadline is None:
            return best
        loss = 0.0
        if seen.last_site is not None:
            same = seen.last_site == best.site
            loss = seen.job.restart_s if same else seen.job.migration_s
        return best if now + loss + seen.required_left / best.rate <= seen.job.deadline else None
