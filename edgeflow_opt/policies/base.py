"""What an online policy sees and says: the state of the cluster, and an allocation for now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job, Mode, Site


@dataclass(slots=True, kw_only=True)
class JobState:
    """An unfinished job as a policy sees it.

    Parameters
    ----------
    job
        The job with its whole work, modes, deadline and losses.
    required_left
        Credit still needed to complete, iterations, above 0.
    mode
        The mode it is in; None = idle.
    run_start
        Start of the present run, seconds; meaningless while idle.
    loss_left_s
        Seconds from now for which the present run, if continued, still earns nothing.
    last_site
        Site where it last ran; None = it never ran.
    attained_gpu_s
        GPU-seconds held so far.
    """

    job: Job
    required_left: float
    mode: Mode | None = None
    run_start: float = 0.0
    loss_left_s: float = 0.0
    last_site: str | None = None
    attained_gpu_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The cluster at an event.

    Parameters
    ----------
    now
        Seconds.
    jobs
        All unfinished jobs that have arrived and were not refused, in order of arrival. Void once
        the policy has decided. Simulations offer them as columns too, which is faster for policies
        that compute on arrays (:mod:`edgeflow_opt.policies.columns`).
    sites
        The sites. Their capacity is what the policy may know: the present one, and of the future
        what the simulation reveals (by default nothing: the present lasts).
    arrived
        Ids of jobs that arrived at this very event.
    capacity_changed
        Whether the capacity of some site changed at this event.
    """

    now: float
    jobs: Sequence[JobState]
    sites: Sequence[Site]
    arrived: frozenset[str] = frozenset()
    capacity_changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy wants from now on.

    Parameters
    ----------
    allocation
        Mode of every job that shall run; jobs left out are idle.
    wake_up
        Absolute time at which to be asked again if no event comes before; None = only at events.
    refused
        Ids of jobs refused for good (admission control); they never run again.
    """

    allocation: Mapping[str, Mode]
    wake_up: float | None = None
    refused: frozenset[str] = field(default_factory=frozenset)


class Policy(Protocol):
    """An online rule: state -> decision.

    A policy may keep state of its own between calls (plans, queues); a new one is made for every
    simulation, so that runs do not touch each other.
    """

    def decide(self, state: ClusterState) -> Decision:
        """Return the allocation from now until the next event."""
        ...
