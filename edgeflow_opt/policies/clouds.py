"""What rules for cloud GPUs share: the units that are free, and the modes that may be chosen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Job, Mode, Site

#: Jobs whose modes may be kept beyond four times the unfinished ones.
_KEPT_JOBS = 1000


class Clouds:
    """The cloud sites of a cluster, as rules see them at an event.

    Modes are looked up once for each job and kept; they are looked up anew when the job's modes or
    the capacities of the cloud change.

    Parameters
    ----------
    knee_cap
        Whether levels that do not raise the rate are left out of :meth:`levels`.
    """

    def __init__(self, *, knee_cap: bool = True) -> None:
        self._knee_cap = knee_cap
        self._sites: tuple[Site, ...] = ()
        self._key: tuple[tuple[str, float | None, int], ...] = ()
        self._gangs: dict[str, tuple[Job, tuple[Mode, ...]]] = {}
        self._levels: dict[str, tuple[tuple[Mode, ...], tuple[Mode, ...]]] = {}
        self.capacity: dict[str, int] = {}
        """Usable GPUs now, by name of the cloud site."""

    @property
    def gpus(self) -> int:
        """Usable cloud GPUs now."""
        return sum(self.capacity.values())

    def look(self, state: ClusterState) -> dict[str, int]:
        """Take notice of the cluster; return the usable GPUs by site, to be counted down."""
        clouds = [site for site in state.sites if site.kind == "cloud"]
        key = tuple((s.name, s.memory_gib, s.capacity_at(state.now)) for s in clouds)
        if key != self._key or len(self._gangs) > 4 * len(state.jobs) + _KEPT_JOBS:
            self._gangs, self._levels = {}, {}
            self._key = key
            self._sites = tuple(clouds)
            self.capacity = {name: units for name, _, units in key}
        return dict(self.capacity)

    def gangs(self, job: Job) -> tuple[Mode, ...]:
        """Return the modes in which `job` holds the GPUs that its user asked for.

        At most one for each cloud site, in their order: that of the requested count; where the job
        has no such mode, or the site has fewer GPUs, that of the next smaller count, else of the
        next larger one that the site can hold. Without a request it is the least count.
        """
        known = self._gangs.get(job.id)
        if known is None or known[0].modes is not job.modes:
            known = self._gangs[job.id] = (job, tuple(self._find_gangs(job)))
        return known[1]

    def _find_gangs(self, job: Job) -> Iterable[Mode]:
        wanted = job.requested_gpus or 1
        for site in self._sites:
            if not site.hosts(job):
                continue
            units = self.capacity[site.name]
            fitting = [m for m in job.modes if m.site == site.name and m.gpus <= units]
            smaller = [m for m in fitting if m.gpus <= wanted]
            if smaller:
                yield max(smaller, key=lambda mode: mode.gpus)
            elif fitting:
                yield min(fitting, key=lambda mode: mode.gpus)

    def levels(self, job: Job) -> tuple[Mode, ...]:
        """Return the cloud modes of `job` that it may hold, by rising GPUs; none beyond the sites.

        With the knee cap each raises the rate of the one before. Of several cloud sites the first
        one that can host the job counts.
        """
        known = self._levels.get(job.id)
        if known is None or known[0] is not job.modes:
            known = self._levels[job.id] = (job.modes, self._find_levels(job))
        return known[1]

    def _find_levels(self, job: Job) -> tuple[Mode, ...]:
        for site in self._sites:
            units = self.capacity[site.name]
            modes = [m for m in job.modes if m.site == site.name and m.gpus <= units]
            if not modes or not site.hosts(job):
                continue
            modes.sort(key=lambda mode: mode.gpus)
            if not self._knee_cap:
                return tuple(modes)
            rising = modes[:1]
            for mode in modes[1:]:
                if mode.rate > rising[-1].rate:
                    rising.append(mode)
            return tuple(rising)
        return ()


def fitting(modes: Sequence[Mode], free: dict[str, int], held: Mode | None) -> Mode | None:
    """Return which of `modes` fits the `free` GPUs: the one that is held, else the first; or None."""
    if held is not None and held in modes and held.gpus <= free[held.site]:
        return held
    for mode in modes:
        if mode.gpus <= free[mode.site]:
            return mode
    return None


def pack(
    ordered: Iterable[JobState], clouds: Clouds, free: dict[str, int], *, backfill: bool = True
) -> dict[str, Mode]:
    """Return the modes of the jobs that run: in their order each gets its requested GPUs, or none.

    Parameters
    ----------
    ordered
        The jobs, the most urgent first.
    clouds
        Has looked at the cluster.
    free
        GPUs by site; counted down.
    backfill
        Whether those behind a job that does not fit may still run; else the first one that does
        not fit holds up all behind it.
    """
    allocation: dict[str, Mode] = {}
    left = sum(free.values())
    for seen in ordered:
        if left <= 0:
            break
        mode = fitting(clouds.gangs(seen.job), free, seen.mode)
        if mode is not None:
            free[mode.site] -= mode.gpus
            left -= mode.gpus
            allocation[seen.job.id] = mode
        elif not backfill:
            break
    return allocation


def seconds_left(seen: JobState, modes: Sequence[Mode]) -> float:
    """Return the seconds that the job still takes in the fastest of `modes`; +inf without any."""
    rate = max((mode.rate for mode in modes), default=0.0)
    return seen.required_left / rate if rate > 0.0 else float("inf")


class Turns:
    """Which jobs have had nothing of their turn yet, where jobs run by turns.

    A run that begins anew earns nothing for the seconds of its loss. Where these are longer than a
    turn, a job that gives its GPUs back at the end of it pays in vain: by turns all of them would
    do so for ever. Hence such a job keeps its GPUs for another turn, until it has earned something.
    """

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        """Work left of each job when the present turn began, or when it came."""

    def look(self, jobs: Sequence[JobState], over: bool) -> set[str]:
        """Return the ids of the running jobs that earned nothing in a turn that is over.

        Parameters
        ----------
        jobs
            All unfinished jobs.
        over
            Whether the turn is over, and another one begins; else nobody is returned.
        """
        vain = {
            seen.job.id
            for seen in jobs
            if over
            and seen.mode is not None
            and seen.required_left >= self._left.get(seen.job.id, math.inf)
        }
        self._left = {
            seen.job.id: seen.required_left
            if over
            else self._left.get(seen.job.id, seen.required_left)
            for seen in jobs
        }
        return vain
