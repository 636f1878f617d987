"""The placement of a whole simulation: which GPUs every job holds, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import UsageError
from edgeflow_opt.simulation.placement.check import PlacedRun
from edgeflow_opt.simulation.placement.place import place_in
from edgeflow_opt.simulation.placement.topology import Topology
from edgeflow_opt.simulation.placement.tree import GpuTree
from edgeflow_opt.workloads.outages import range_of

if TYPE_CHECKING:
    from edgeflow_opt.problem import Mode, Site
    from edgeflow_opt.simulation.ledger import JobLedger
    from edgeflow_opt.workloads.outages import Outage

#: What placement may do, by name.
PLACEMENT_MODES: Mapping[str, str] = {
    "free": "running jobs are moved to make room, at no cost",
    "repack": "running jobs are moved to make room, and pay a restart",
    "fixed": "nobody is moved: a job that fits nowhere shrinks to a count that does, or waits",
    "wait": "nobody is moved: a job that fits nowhere keeps what it holds, or waits",
    "spread": "nobody is moved: a job that fits nowhere lies on more nodes, at no cost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementMetrics:
    """What placement amounts to in one simulation.

    Parameters
    ----------
    mode
        One of :data:`PLACEMENT_MODES`.
    repacks
        Times that a job that goes on was moved to other GPUs to make room. They are no
        reconfigurations and no migrations: the run goes on in its mode, and in ``free`` loses
        nothing. Jobs that an outage drives off are interruptions and do not count.
    repacks_per_job
        The same over all jobs of the trace; None without jobs.
    fragmentation
        Mean of 1 - (largest power of two that fits on the fewest nodes, nobody moved) / (largest
        power of two of the free GPUs), over the time in which a job runs and a GPU is free; None
        where there is no such time. It is measured before the next decision mends it.
    delayed_jobs
        Jobs that at least once were idle only because no place was left (``fixed``, ``wait``).
    shrunk_jobs
        Jobs that at least once got fewer GPUs than the policy gave them (``fixed``), or could not
        grow (``fixed``, ``wait``).
    spread_runs
        Times that a job was placed on more nodes than its number needs.
    """

    mode: str
    repacks: int
    repacks_per_job: float | None
    fragmentation: float | None
    delayed_jobs: int
    shrunk_jobs: int
    spread_runs: int

    def to_dict(self) -> dict[str, Any]:
        """Return the object ``placement`` of a results row."""
        return {
            "mode": self.mode,
            "repacks": self.repacks,
            "repacks_per_job": self.repacks_per_job,
            "fragmentation": self.fragmentation,
            "delayed_jobs": self.delayed_jobs,
            "shrunk_jobs": self.shrunk_jobs,
            "spread_runs": self.spread_runs,
        }


class Placer:
    """The GPUs of all cloud sites, followed from event to event.

    Parameters
    ----------
    mode
        One of :data:`PLACEMENT_MODES`.
    sites
        The sites with their own capacity, before outages. Edge servers are not placed: each is a
        node of its own.
    outages
        GPUs that go away for a time.

    Raises
    ------
    UsageError
        If the mode is not known, or a cloud site does not tell its `gpus_per_node`.
    """

    def __init__(self, mode: str, sites: Sequence[Site], outages: Sequence[Outage] = ()) -> None:
        if mode not in PLACEMENT_MODES:
            raise UsageError(
                f"option placement: must be one of {', '.join(PLACEMENT_MODES)}, got {mode!r}"
            )
        self.mode = mode
        self.placements: list[PlacedRun] = []
        self._may_move = mode in ("free", "repack")
        self._clouds = {
            site.name: _Cloud(site, [o for o in outages if o.site == site.name])
            for site in sites
            if site.kind == "cloud"
        }
        self._at: dict[str, str] = {}
        """Site by job that holds GPUs."""
        self._since: dict[str, tuple[float, bool]] = {}
        """Start of the present piece, and whether it is spread, by job."""
        self._repacks = 0
        self._spread = 0
        self._delayed: set[str] = set()
        self._shrunk: set[str] = set()
        self._last = math.inf
        self._fragmented = self._weight = 0.0

    def holders_of(self, site: str, gone: Iterable[tuple[int, int]]) -> set[str]:
        """Return the jobs that hold a unit of `site` in one of the ranges."""
        if site not in self._clouds:
            return set()
        ranges = tuple(gone)
        return {
            job
            for job, gpus in self._clouds[site].tree.held.items()
            if any(first <= gpu < end for gpu in gpus for first, end in ranges)
        }

    def places(self, site: str) -> bool:
        """Whether the units of `site` are placed."""
        return site in self._clouds

    def update(
        self, now: float, active: Mapping[str, JobLedger], wanted: Mapping[str, Mode]
    ) -> tuple[Mapping[str, Mode], set[str]]:
        """Place what a policy wants.

        Parameters
        ----------
        now
            Seconds.
        active
            The unfinished jobs, in the modes that they hold until now.
        wanted
            The modes that they shall hold.

        Returns
        -------
        allocation
            The modes that they do hold: `wanted`, but for jobs that shrink or wait.
        moved
            Jobs that go on in their mode on other GPUs although theirs are still usable.
        """
        self._measure(now)
        allocation = dict(wanted)
        moved: set[str] = set()
        before = {name: dict(cloud.tree.held) for name, cloud in self._clouds.items()}
        for name, cloud in self._clouds.items():
            still_up = cloud.bring_to(now)
            demands = {job: mode.gpus for job, mode in wanted.items() if mode.site == name}
            for job in still_up:
                if wanted.get(job) != active[job].mode:
                    cloud.tree.release(job)
            if self.mode in ("fixed", "wait"):
                self._place_or_shrink(cloud, active, demands, before[name], allocation)
            else:
                cloud.tree = place_in(cloud.tree, demands, may_move=self._may_move, may_spread=True)
            # The same number of GPUs on the same site is the same mode: the run goes on.
            moved |= {
                job
                for job in still_up
                if job in demands
                and demands[job] == len(before[name][job])
                and cloud.tree.held.get(job) != before[name][job]
            }
        self._repacks += len(moved)
        self._record(now, before)
        return allocation, moved

    def release(self, job: str, now: float) -> None:
        """Take the GPUs of a job that has ended."""
        site = self._at.pop(job, None)
        if site is None:
            return
        self._measure(now)
        self._close(job, site, now, self._clouds[site].tree.release(job))

    def metrics(self, num_jobs: int) -> PlacementMetrics:
        """Return what it amounted to; `num_jobs` of the trace."""
        return PlacementMetrics(
            mode=self.mode,
            repacks=self._repacks,
            repacks_per_job=self._repacks / num_jobs if num_jobs else None,
            fragmentation=self._fragmented / self._weight if self._weight else None,
            delayed_jobs=len(self._delayed),
            shrunk_jobs=len(self._shrunk),
            spread_runs=self._spread,
        )

    def _place_or_shrink(
        self,
        cloud: _Cloud,
        active: Mapping[str, JobLedger],
        demands: Mapping[str, int],
        before: Mapping[str, tuple[int, ...]],
        allocation: dict[str, Mode],
    ) -> None:
        """Place the largest jobs first; one that fits nowhere keeps what it has, shrinks or waits.

        A job that may shrink takes the largest of its smaller counts that fits. A waiting job is
        considered again with the next decision.
        """
        tree = cloud.tree
        for job in sorted((j for j in demands if j not in tree.held), key=lambda j: -demands[j]):
            ledger = active[job]
            gpus = tree.best_fit(demands[job])
            if gpus is not None:
                tree.take(job, gpus)
                continue
            own = before.get(job, ())
            if ledger.mode is not None and 0 < len(own) < demands[job] and tree.is_free(own):
                tree.take(job, own)
                allocation[job] = ledger.mode
                self._shrunk.add(job)
                continue
            smaller = [
                m
                for m in ledger.job.modes
                if self.mode == "fixed" and m.site == cloud.name and m.gpus < demands[job]
            ]
            for mode in sorted(smaller, key=lambda m: -m.gpus):
                gpus = tree.best_fit(mode.gpus)
                if gpus is not None:
                    tree.take(job, gpus)
                    allocation[job] = mode
                    self._shrunk.add(job)
                    break
            else:
                del allocation[job]
                self._delayed.add(job)

    def _record(self, now: float, before: Mapping[str, Mapping[str, tuple[int, ...]]]) -> None:
        """Close the pieces of the jobs whose GPUs have changed, then open the new ones."""
        for name, held in before.items():
            after = self._clouds[name].tree.held
            for job, gpus in held.items():
                if after.get(job) != gpus:
                    del self._at[job]
                    self._close(job, name, now, gpus)
        for name, cloud in self._clouds.items():
            for job, gpus in cloud.tree.held.items():
                if job not in self._at:
                    spread = not cloud.tree.topology.consolidated(gpus)
                    self._spread += spread
                    self._at[job] = name
                    self._since[job] = (now, spread)

    def _close(self, job: str, site: str, now: float, gpus: tuple[int, ...]) -> None:
        start, spread = self._since.pop(job)
        self.placements.append(
            PlacedRun(job=job, site=site, start=start, end=now, gpus=gpus, spread=spread)
        )

    def _measure(self, now: float) -> None:
        """Add up the fragmentation since the last change."""
        seconds = now - self._last
        self._last = now
        if not seconds > 0.0:
            return
        for cloud in self._clouds.values():
            if cloud.tree.held and cloud.tree.num_free:
                self._fragmented += seconds * cloud.tree.fragmentation()
                self._weight += seconds


class _Cloud:
    """One cloud site on its way."""

    def __init__(self, site: Site, outages: Sequence[Outage]) -> None:
        if site.gpus_per_node is None:
            raise UsageError(
                f"option placement: site '{site.name}' does not tell its gpus_per_node; name it, "
                "or count GPUs without placing them"
            )
        self.name = site.name
        self._site = site
        self._outages = outages
        self._topology = Topology(
            num_gpus=max((units for _, units in site.capacity), default=0),
            gpus_per_node=site.gpus_per_node,
        )
        self._down: frozenset[int] = frozenset()
        self.tree = GpuTree(self._topology)

    def bring_to(self, now: float) -> set[str]:
        """Make the tree one of the GPUs usable now; return the jobs whose GPUs all are."""
        down = set(range(self._site.capacity_at(now), self._topology.num_gpus))
        for outage in self._outages:
            if outage.start <= now < outage.end:
                down.update(range(*range_of(outage)))
        gone = frozenset(gpu for gpu in down if gpu < self._topology.num_gpus)
        if gone != self._down:
            self._down = gone
            held = self.tree.held
            self.tree = GpuTree(self._topology, gone)
            for job, gpus in held.items():
                if self.tree.is_free(gpus):
                    self.tree.take(job, gpus)
        return set(self.tree.held)
