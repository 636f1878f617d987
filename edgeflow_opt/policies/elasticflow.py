"""ElasticFlow: minimum shares, elastic scaling and admission control on cloud GPUs."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.edgeflow import EdgeFlowPolicy, own_signature, same_sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.policies.base import ClusterState
    from edgeflow_opt.problem import Site
    from edgeflow_opt.solvers.greedy.heuristic import Planned


class ElasticFlowPolicy(EdgeFlowPolicy):
    """ElasticFlow: the least share that meets each deadline, left-overs to whom they save most.

    Jobs are planned in deadline order with the least number of cloud GPUs that meets the deadline;
    the GPUs left over now go, one level at a time, to the job whose GPU-time they save most per
    GPU. New jobs are refused when they cannot all be met together with the accepted ones. It is
    ``edgeflow`` (same kernels, same options) without edge servers and with admission control.

    Source: Gu et al., "ElasticFlow: An elastic serverless training platform for distributed deep
    learning", ASPLOS 2023, Algorithms 1 and 2; and its code pkusys/ElasticFlow.

    Parameters
    ----------
    admission
        ``"elasticflow"`` = as in the published code all jobs that arrive at one event are refused
        if any job, old or new, would then miss; ``"per_job"`` = one by one, a new job is refused
        if more jobs would miss with it than without it; ``"none"`` = nobody is refused (the
        published ``ef``).
    slot_s
        Where above 0, plans are carried out at their own changes too, by asking to be woken at the
        next one, so many seconds from now at the earliest (60 in the published code); shares are
        then two-level unless `share` says otherwise. 0 = plans are made anew at events only, with
        constant shares: under overheads a plan that is just in time seldom survives its own
        changes.
    share, late, knee_cap, charge_losses, slack_s, elastic, fill
        As in ``edgeflow``: see :class:`~edgeflow_opt.solvers.greedy.GreedyOptions`.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(
        self,
        *,
        admission: str = "elasticflow",
        slot_s: float = 0.0,
        share: str = "auto",
        late: str = "first",
        knee_cap: bool = True,
        charge_losses: bool = True,
        slack_s: float = 0.0,
        elastic: bool = True,
        fill: bool = True,
    ) -> None:
        if not 0.0 <= slot_s < math.inf:
            raise UsageError(f"option slot_s: must be a number of seconds >= 0, got {slot_s!r}")
        super().__init__(
            admission=admission,
            share="two_level" if slot_s and share == "auto" else share,
            late=late,
            knee_cap=knee_cap,
            charge_losses=charge_losses,
            slack_s=slack_s,
            elastic=elastic,
            fill=fill,
        )
        self._slot_s = slot_s
        self._seen_sites: Sequence[Site] = ()
        self._cloud_sites: tuple[Site, ...] = ()
        # The next change of a plan is later than now.
        self._now_only = not slot_s

    __signature__ = own_signature(__init__)

    def decide(self, state: ClusterState) -> Decision:
        """Return the modes that the plans hold now on the cloud, and the jobs refused."""
        # The same sites at each event, so that what depends on them is kept.
        if not same_sites(state.sites, self._seen_sites):
            self._seen_sites = state.sites
            self._cloud_sites = without_edge(state.sites)
        return super().decide(dataclasses.replace(state, sites=self._cloud_sites))

    def _wake_up(self, state: ClusterState, planned: Planned) -> float | None:
        """Return when the first plan changes other than by a completion; None = not followed."""
        if not self._slot_s:
            return None
        plans = planned.plans
        table, pool = plans.table, plans.pool
        some = table["segments"] > 0
        first = table["first"][some]
        starts, ends = pool["start"][first], pool["end"][first]
        # Plans count seconds from now.
        later = starts > 0.0
        changes = np.where(later, starts, np.where(table["segments"][some] > 1, ends, np.inf))
        changes = changes[(changes > 0.0) & (changes < np.inf)]
        if not len(changes):
            return None
        seconds = max(float(changes.min()), self._slot_s)
        wake_up = state.now + seconds
        # Rounded down, not up: what begins just in time would miss. See `RESOLUTION_ULPS`.
        if wake_up - state.now > seconds:
            wake_up = math.nextafter(wake_up, state.now)
        return max(wake_up, math.nextafter(state.now, math.inf))


def without_edge(sites: Sequence[Site]) -> tuple[Site, ...]:
    """Return `sites` as they would be if no edge server were ever usable."""
    return tuple(
        site
        if site.kind == "cloud"
        else dataclasses.replace(site, capacity=((site.capacity[0][0], 0),))
        for site in sites
    )
