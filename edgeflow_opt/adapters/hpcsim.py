"""hpcsim, an independent simulator of GPU clusters: its jobs follow the decisions of a session.

hpcsim (extra ``hpcsim``) has a model of its own of GPUs, links and training jobs, and drives a
scheduler by ``schedule(pending, running, now)``. Here that scheduler is a session. A site is all
nodes of one GPU type, named after it; only ``TrainingJob`` is understood, whose work is its
iterations. hpcsim takes no time for checkpoints, so neither do the jobs told to the session.

Results are read from what hpcsim calls back while it runs, not from its own metrics: these count
jobs still running at the end as completed, and waits from the last preemption.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from edgeflow_opt.adapters.base import advance
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Job, Mode, Site
from edgeflow_opt.service.decision import SessionDecision
from edgeflow_opt.service.events import (
    Event,
    JobArrived,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    RateCorrected,
)
from edgeflow_opt.service.session import EpochSession
from edgeflow_opt.service.state import ClusterView

_PURPOSE = "the adapter of hpcsim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job on GPUs for a while.

    Parameters
    ----------
    job
        Its id.
    start, end
        Seconds of simulated time; `end` None = it ran still when the simulation ended.
    gpus
        Ids of the GPUs.
    """

    job: str
    start: float
    end: float | None
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedHistory:
    """What happened in a simulation.

    Parameters
    ----------
    scheduler
        Name of the scheduler.
    runs
        In the order of their ends, those without an end last.
    arrivals, deadlines
        By job, seconds; deadline None = best effort.
    completions
        By job, seconds; jobs left out did not complete.
    """

    scheduler: str
    runs: tuple[Run, ...]
    arrivals: dict[str, float]
    deadlines: dict[str, float | None]
    completions: dict[str, float]

    @property
    def met(self) -> tuple[str, ...]:
        """Ids of the jobs that completed by their deadlines."""
        return tuple(
            job
            for job, end in self.completions.items()
            if (deadline := self.deadlines[job]) is not None and end <= deadline
        )


class _Recorder:
    """Stands where hpcsim wants its collector of metrics, and notes what it is told."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.open: dict[str, Run] = {}
        self.runs: list[Run] = []
        self.completions: dict[str, float] = {}

    def record_job_start(self, job: Any, now: float) -> None:
        run = Run(job=job.job_id, start=now, end=None, gpus=tuple(job.allocated_gpus))
        self.open[job.job_id] = run

    def record_job_complete(self, job: Any, now: float) -> None:
        self._end(job.job_id, now)
        self.completions[job.job_id] = now

    def record_preemption(self, job: Any) -> None:
        self._end(job.job_id, self._clock())

    def record_cluster_snapshot(self, *_: Any) -> None:
        """Power and use, of which nothing is kept."""

    def finalise(self, *_: Any) -> None:
        """Jobs still running are handed over as completed, which they are not."""

    def _end(self, job: str, now: float) -> None:
        self.runs.append(dataclasses.replace(self.open.pop(job), end=now))


def sites_of(cluster: Any, edge: Collection[str] = ()) -> tuple[Site, ...]:
    """Return a site for each GPU type of a cluster.

    Parameters
    ----------
    cluster
        A ``hpcsim.Cluster``.
    edge
        GPU types, such as ``"rtx3090"``, whose nodes are edge servers, each for one job at a time;
        the others are cloud sites, whose GPUs are shared out one by one.

    Raises
    ------
    UsageError
        If a type of `edge` is not in the cluster.
    """
    units: dict[str, int] = {}
    for node in cluster.nodes.values():
        if node.gpus:
            name = str(node.gpu_type.value)
            units[name] = units.get(name, 0) + (1 if name in edge else len(node.gpus))
    for name in edge:
        if name not in units:
            rule = f"must be GPU types of the cluster ({', '.join(units)})"
            raise UsageError(f"option edge: {rule}, got {name!r}")
    return tuple(
        Site(name=name, kind="edge" if name in edge else "cloud", capacity=((0.0, count),))
        for name, count in units.items()
    )


def job_of(job: Any, cluster: Any, sites: Iterable[Site]) -> Job:
    """Return a training job of hpcsim as the session is told of it, with the rates of hpcsim.

    A job of mode ``ELASTIC`` has modes from ``min_gpus`` to ``max_gpus``, another the one that it
    asks for; more GPUs than a node has run over the slower links between nodes.

    Raises
    ------
    UsageError
        If it is no ``TrainingJob``, or fits nowhere.
    """
    workload = load("hpcsim.workload.job", "hpcsim", _PURPOSE)
    if type(job) is not workload.TrainingJob:
        kind = type(job).__name__
        raise UsageError(f"job '{job.job_id}': must be a hpcsim TrainingJob, got {kind}")
    elastic = job.scheduling_mode == workload.SchedulingMode.ELASTIC
    least, most = (job.min_gpus, job.max_gpus) if elastic else (job.num_gpus_requested,) * 2
    modes = []
    for site in sites:
        nodes = [n for n in cluster.nodes.values() if n.gpus and n.gpu_type.value == site.name]
        if job.memory_per_gpu_gb > nodes[0].gpus[0].spec.memory_gb:
            continue
        sizes = [len(node.gpus) for node in nodes]
        best = 0.0
        for gpus in range(least, min(most, min(sizes) if site.kind == "edge" else sum(sizes)) + 1):
            within = next((n.gpus for n in nodes if len(n.gpus) >= gpus), None)
            ids = [gpu.gpu_id for gpu in within or (g for n in nodes for g in n.gpus)]
            rate = _rate(job, cluster, ids[:gpus])
            if rate > best:
                modes.append(Mode(site=site.name, gpus=gpus, rate=rate))
                best = rate
    if not modes:
        rule = f"{least} to {most} GPUs of {job.memory_per_gpu_gb} GB"
        raise UsageError(f"job '{job.job_id}': no site has {rule}; ask for less")
    return Job(
        id=job.job_id,
        deadline=job.deadline,
        work=_work_left(job),
        modes=tuple(modes),
    )


def _work_left(job: Any) -> float:
    """Return the iterations left, and one more: hpcsim drops the one begun when it stops a job."""
    return float(job.remaining_iterations() + 1)


def _rate(job: Any, cluster: Any, gpu_ids: Sequence[str]) -> float:
    """Return the iterations per second that hpcsim will let a job do on these GPUs alone."""
    workload = load("hpcsim.workload.job", "hpcsim", _PURPOSE)
    gpu_type = cluster.gpus[gpu_ids[0]].gpu_type
    bandwidth = cluster.effective_bandwidth_gbps(list(gpu_ids))
    rate = workload.multi_gpu_throughput(
        job.arch, gpu_type, job.batch_size, len(gpu_ids), bandwidth
    )
    return max(float(rate), 1e-9)


class EdgeflowScheduler:
    """A scheduler for hpcsim that follows a session; for the session it is the cluster.

    Parameters
    ----------
    cluster
        The ``hpcsim.Cluster``.
    session
        A session over :func:`sites_of` that cluster.
    time_limit_s
        Of each decision, wall seconds.

    Attributes
    ----------
    wake_at
        When it wants to be asked again if nothing happens before, seconds; hpcsim has no place for
        it, :func:`simulate` does it.
    """

    name = "edgeflow"

    def __init__(self, cluster: Any, session: EpochSession, time_limit_s: float = 1.0) -> None:
        self.cluster = cluster
        self.wake_at = float("inf")
        self._session = session
        self._time_limit_s = time_limit_s
        self._now = 0.0
        self._pending: dict[str, Any] = {}
        self._running: dict[str, Any] = {}
        self._orders: Any = None

    def schedule(self, pending: Any, running: Iterable[Any], current_time: float) -> Any:
        """Return the ``SchedulingDecision`` that carries out what the session decides."""
        schedulers = load("hpcsim.scheduler.schedulers", "hpcsim", _PURPOSE)
        waiting = pending.values() if hasattr(pending, "iter_fifo") else pending
        self._pending = {job.job_id: job for job in waiting}
        self._running = {job.job_id: job for job in running}
        self._now = current_time
        self._orders = schedulers.SchedulingDecision()
        decision = advance(self, self._session, time_limit_s=self._time_limit_s)
        self.wake_at = decision.until
        return self._orders

    def now(self) -> float:
        """Return the simulated time."""
        return self._now

    def observe(self, view: ClusterView) -> list[Event]:
        """Return completions and arrivals, and how far the jobs that wait are."""
        now, events = self._now, list[Event]()
        for name, held in view.jobs.items():
            job = self._pending.get(name)
            if job is not None:
                if held.mode is not None:
                    events.append(JobPlaced(time=now, job=name))
                left = _work_left(job)
                if abs(held.left_at(now) - left) > max(1e-3, 1e-6 * held.job.work):
                    events.append(JobProgressed(time=now, job=name, work_left=left))
            elif name not in self._running:
                events.append(JobCompleted(time=now, job=name))
        for name, job in self._pending.items():
            if name not in view.jobs:
                found = job_of(job, self.cluster, view.sites.values())
                events.append(JobArrived(time=now, job=found))
        return events

    def carry_out(self, decision: SessionDecision) -> list[Event]:
        """Preempt and place jobs; what runs over slower links than planned has its rate corrected."""
        free = {gpu.gpu_id for gpu in self.cluster.gpus.values() if gpu.is_free()}
        for change in decision.changes:
            if change.before is not None:
                self._orders.preempt(change.job)
                free |= set(self._running[change.job].allocated_gpus)
        events: list[Event] = []
        sites = {site.name: site for site in decision.problem.sites}
        for change in decision.changes:
            mode = change.after
            if mode is None:
                continue
            job = self._pending.get(change.job) or self._running[change.job]
            ids = self._place(sites[mode.site], mode.gpus, free)
            if ids is None:
                events.append(JobPlaced(time=decision.now, job=change.job))
                continue
            self._orders.add(job, ids)
            rate = _rate(job, self.cluster, ids)
            if abs(rate - mode.rate) > 1e-9 * mode.rate:
                events.append(
                    RateCorrected(
                        time=decision.now,
                        job=change.job,
                        site=mode.site,
                        gpus=mode.gpus,
                        rate=rate,
                    )
                )
        return events

    def _place(self, site: Site, count: int, free: set[str]) -> list[str] | None:
        """Return GPUs, taken out of `free`: of the fullest node with room, else of the emptiest."""
        rooms = []
        for node in self.cluster.nodes.values():
            room = [gpu.gpu_id for gpu in node.gpus if gpu.gpu_id in free]
            whole = site.kind == "cloud" or len(room) == len(node.gpus)
            if room and whole and node.gpu_type.value == site.name:
                rooms.append(room)
        rooms.sort(key=lambda room: (len(room) < count, abs(len(room) - count)))
        if site.kind == "edge":
            rooms = [room for room in rooms[:1] if len(room) >= count]
        ids = [gpu for room in rooms for gpu in room][:count]
        if len(ids) < count:
            return None
        free.difference_update(ids if site.kind == "cloud" else rooms[0])
        return ids


def simulate(
    cluster: Any, jobs: Sequence[Any], scheduler: Any, *, until_s: float | None = None
) -> SimulatedHistory:
    """Run jobs on a cluster of hpcsim under a scheduler of ours or its own.

    Parameters
    ----------
    cluster
        A fresh ``hpcsim.Cluster``; it is used up.
    jobs
        ``TrainingJob`` objects, of which copies are run: hpcsim changes its jobs.
    scheduler
        An :class:`EdgeflowScheduler` of this cluster, a scheduler of hpcsim, or the name of one,
        such as ``"fifo"``.
    until_s
        When to end, seconds; None = when all jobs are done, or nothing happens any more.

    Raises
    ------
    UsageError
        If the extra is missing, a job is no ``TrainingJob``, or hpcsim knows no such scheduler.
    """
    load("hpcsim.simulator.engine", "hpcsim", _PURPOSE)
    from hpcsim.scheduler.pending_queue import PendingJobQueue
    from hpcsim.scheduler.schedulers import create_scheduler
    from hpcsim.simulator.engine import EventType, SimulationEngine

    sites = sites_of(cluster)
    known = {job.job_id: job_of(job, cluster, sites) for job in jobs}
    if isinstance(scheduler, str):
        try:
            scheduler = create_scheduler(scheduler, cluster)
        except ValueError as fault:
            raise UsageError(f"option scheduler: {fault}") from fault

    slowest = (j.work / min(m.rate for m in j.modes) for j in known.values())
    # Each job alone, one after the other, at half its speed: longer takes nobody who does anything.
    horizon = max((job.submit_time for job in jobs), default=0.0) + 2.0 * sum(slowest) + 1.0

    class Always(PendingJobQueue):
        """Says that somebody waits: else the scheduler is not asked, and nobody running grows."""

        def __bool__(self) -> bool:
            return True

    class Engine(SimulationEngine):
        """The engine, which asks the scheduler again when its plan changes something."""

        def _do_schedule(self, current_time: float) -> None:
            super()._do_schedule(current_time)
            wake_at = self.scheduler.wake_at
            if current_time < wake_at < float("inf") and (len(self._pending) or self._running):
                self._push(wake_at, EventType.SCHEDULE)

        def _on_metric_sample(self, event: Any) -> None:
            """Take no samples: each orders the next, so that there would be no end."""

    ours = isinstance(scheduler, EdgeflowScheduler)
    recorder = _Recorder(lambda: float(simulation._current_time))  # noqa: SLF001
    simulation = (Engine if ours else SimulationEngine)(
        cluster,
        scheduler,
        copy.deepcopy(list(jobs)),
        metrics=recorder,
        max_sim_time=horizon if until_s is None else until_s,
    )
    if ours:
        simulation._pending = Always()  # noqa: SLF001
    simulation.run()
    return SimulatedHistory(
        scheduler=str(scheduler.name),
        runs=(*recorder.runs, *recorder.open.values()),
        arrivals={job.job_id: float(job.submit_time) for job in jobs},
        deadlines={job.job_id: job.deadline for job in jobs},
        completions=recorder.completions,
    )
