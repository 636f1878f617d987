"""Tiny policies and instances for the tests of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgeflow_opt.policies import ClusterState, Decision
from edgeflow_opt.problem import Job, Mode, Site

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4),))
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 1),))

ONE = Mode(site="cloud", gpus=1, rate=1.0)
TWO = Mode(site="cloud", gpus=2, rate=1.5)
ON_EDGE = Mode(site="edge", gpus=1, rate=0.5)


def job(name: str, arrival: float, deadline: float | None, work: float, **fields: object) -> Job:
    """Return a job of `work` seconds on one GPU, with the modes of this module."""
    # The tolerance of completion is taken back, so that times come out as round numbers.
    defaults: dict[str, object] = {"modes": (ONE, TWO, ON_EDGE)}
    return Job(
        id=name, arrival=arrival, deadline=deadline, work=work / (1 - 1e-6), **(defaults | fields)
    )


class Fifo:
    """The first jobs in order of arrival (then id) get their first mode that fits."""

    def decide(self, state: ClusterState) -> Decision:
        """Return the allocation."""
        free = {site.name: site.capacity_at(state.now) for site in state.sites}
        site_of = {site.name: site for site in state.sites}
        allocation = {}
        for seen in sorted(state.jobs, key=lambda seen: (seen.job.arrival, seen.job.id)):
            for mode in seen.job.modes:
                units = site_of[mode.site].units(mode)
                if units <= free[mode.site] and site_of[mode.site].hosts(seen.job):
                    free[mode.site] -= units
                    allocation[seen.job.id] = mode
                    break
        return Decision(allocation=allocation)


class Scripted:
    """A policy that is given as a function."""

    def __init__(self, rule: Callable[[ClusterState], Decision]) -> None:
        self.rule = rule

    def decide(self, state: ClusterState) -> Decision:
        """Return what the function says."""
        return self.rule(state)


def by_time(plan: Mapping[float, Mapping[str, Mode]]) -> Scripted:
    """Return a policy that wakes up at the times of `plan` and allocates what stands there.

    Jobs of an entry that are not there (any more) are passed over.
    """
    times = sorted(plan)

    def rule(state: ClusterState) -> Decision:
        present = {seen.job.id for seen in state.jobs}
        entry = plan[max(t for t in times if t <= state.now)]
        return Decision(
            allocation={name: mode for name, mode in entry.items() if name in present},
            wake_up=min((t for t in times if t > state.now), default=None),
        )

    return Scripted(rule)
