"""A Slurm cluster that follows the decisions of a session: held jobs are placed, stopped and resized."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from edgeflow_opt.adapters.slurm.description import describe_comment
from edgeflow_opt.adapters.slurm.nodes import (
    SlurmNode,
    ever_fits,
    read_nodes,
)
from edgeflow_opt.adapters.slurm.orders import Orders
from edgeflow_opt.adapters.slurm.programs import SlurmPrograms
from edgeflow_opt.adapters.slurm.queue import SlurmJob, read_queue
from edgeflow_opt.errors import InputError, InstanceError, UsageError
from edgeflow_opt.problem import Job, Mode, Running, Site
from edgeflow_opt.problem.data import SiteKind
from edgeflow_opt.problem.validation import part_faults
from edgeflow_opt.service.decision import SessionDecision
from edgeflow_opt.service.events import (
    CapacityChanged,
    Event,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    JobRevised,
    RateCorrected,
)
from edgeflow_opt.service.state import LEAST_SHARE_LEFT, ClusterView, HeldJob

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ours:
    """A job of Slurm that the session decides about."""

    slurm: SlurmJob
    job: Job

    @property
    def mode(self) -> Mode | None:
        """The mode in which it holds nodes now; None = none, or one that it does not describe."""
        if not self.slurm.running:
            return None
        return self.job.mode(self.slurm.partitions[0], self.slurm.gpus)


class SlurmCluster:
    """Partitions of Slurm as sites, driven by ``squeue`` and ``scontrol``.

    Users submit jobs that are held (``sbatch --hold``) and that describe themselves
    (:mod:`edgeflow_opt.adapters.slurm.description`); the session says when, where and on how many
    GPUs each runs. A start is ``scontrol update`` with the nodes, then ``release``; a stop is
    ``requeuehold``: the job gets SIGTERM, writes its checkpoint, and waits again; a resize or a move
    is a stop and a start. Jobs without our mark are never touched; what they hold is taken off
    the capacities. It has to run as a user whom Slurm lets do so: root, SlurmUser or an operator.

    Parameters
    ----------
    partitions
        Kind of the site for each partition: ``"cloud"`` counts GPUs, ``"edge"`` counts nodes, each
        given to one job at a time.
    programs
        How Slurm is called; None = the programs on the search path.
    describe
        The job that a job of Slurm stands for, whose id must be Slurm's number of it; None = it is
        none of ours. It may raise an InputError for one that is at fault.
    patience_s
        Longest wait in one turn for jobs to stop, and again for jobs to start, wall seconds. Slurm
        itself kills a job that does not stop after its KillWait.
    poll_s
        Between two looks while waiting, wall seconds.
    margin_s
        Deadlines are told to the session so much earlier, seconds, at least 0: for the time that
        Slurm needs to start and stop jobs, and for rates that are estimates.
    dry_run
        Only look, never tell Slurm anything.
    on_trouble
        Called with a message for each job that is refused or could not be placed; None = a warning
        is logged.

    Raises
    ------
    UsageError
        If there is no partition, or a wait is no time.
    """

    def __init__(
        self,
        partitions: Mapping[str, SiteKind],
        *,
        programs: SlurmPrograms | None = None,
        describe: Callable[[SlurmJob], Job | None] = describe_comment,
        patience_s: float = 60.0,
        poll_s: float = 0.3,
        margin_s: float = 0.0,
        dry_run: bool = False,
        on_trouble: Callable[[str], None] | None = None,
    ) -> None:
        if not partitions:
            raise UsageError("option partitions: at least one partition is needed")
        for name, value in (("patience_s", patience_s), ("poll_s", poll_s)):
            if not value > 0.0:
                rule = "must be a number of seconds above 0"
                raise UsageError(f"option {name}: {rule}, got {value!r}")
        if not margin_s >= 0.0:
            rule = "must be a number of seconds, at least 0"
            raise UsageError(f"option margin_s: {rule}, got {margin_s!r}")
        self._kinds = dict(partitions)
        self._programs = programs or SlurmPrograms()
        self._describe = describe
        self._margin_s = margin_s
        self._dry_run = dry_run
        self._on_trouble = on_trouble or _log.warning
        self._orders = Orders(self._programs, self._kinds, patience_s, poll_s, self._on_trouble)
        #: Names of nodes by the list in which Slurm writes them.
        self._hosts: dict[str, tuple[str, ...]] = {}
        #: What each job last said of itself, to see what its owner changes.
        self._described: dict[str, Job] = {}
        self._refused: dict[int, str] = {}

    @property
    def refused(self) -> Mapping[int, str]:
        """Why jobs with our mark were not taken at the last look, by Slurm's numbers of them."""
        return dict(self._refused)

    def now(self) -> float:
        """Return seconds since 1970, the clock of Slurm's deadlines."""
        return time.time()

    def sites(self) -> tuple[Site, ...]:
        """Return the partitions as sites with what is usable now: how a session begins.

        Raises
        ------
        AdapterError
            If Slurm cannot be asked.
        UsageError
            If a partition has no node with GPUs, or two of them share nodes.
        """
        jobs, nodes = self._look()
        units = self._units(nodes, self._ours(jobs, nodes))
        for node in nodes:
            shared = [name for name in node.partitions if name in self._kinds]
            if len(shared) > 1:
                names = " and ".join(f"'{name}'" for name in shared)
                raise UsageError(
                    f"partitions {names} share node '{node.name}', whose GPUs would count twice; "
                    "name partitions without common nodes"
                )
        now = self.now()
        sites = []
        for name, kind in self._kinds.items():
            own = [node for node in nodes if name in node.partitions and node.gpus]
            if not own:
                known = sorted({p for node in nodes if node.gpus for p in node.partitions})
                raise UsageError(
                    f"partition '{name}': has no node with GPUs; those that have are "
                    f"{', '.join(known) or 'none'}"
                )
            types = {node.gpu_type for node in own}
            sites.append(
                Site(
                    name=name,
                    kind=kind,
                    capacity=((now, units[name]),),
                    gpu_type=types.pop() if len(types) == 1 else "",
                    gpus_per_node=max(node.gpus for node in own),
                )
            )
        return tuple(sites)

    def observe(self, view: ClusterView) -> list[Event]:
        """Return what happened since: ends, capacities, arrivals, changes, and who holds what.

        Raises
        ------
        AdapterError
            If Slurm cannot be asked.
        """
        jobs, nodes = self._look()
        now = self.now()
        ours = self._ours(jobs, nodes)
        events: list[Event] = []
        for name in view.jobs:
            if name.isdecimal() and name not in ours:
                end = jobs.get(int(name))
                if end is not None and end.clearing:
                    continue  # on its way out; the next look says where to
                self._described.pop(name, None)
                gone = JobCompleted if end is not None and end.completed else JobCancelled
                events.append(gone(time=now, job=name))
        events += self._changed_capacities(view, self._units(nodes, ours), now)
        for name, our in ours.items():
            held = view.jobs.get(name)
            if held is not None:
                events += self._news_of(our, held, now)
            elif not our.slurm.clearing:
                events.append(JobArrived(time=now, job=_as_it_arrives(our, now, self._kinds)))
            self._described[name] = our.job
        return events

    def carry_out(self, decision: SessionDecision) -> list[Event]:
        """Stop, then start; return what came out otherwise.

        Raises
        ------
        AdapterError
            If Slurm cannot be asked. What fails for one job is told by
            :class:`~edgeflow_opt.service.events.JobPlaced` and `on_trouble`.
        """
        if self._dry_run:
            return []
        jobs, nodes = self._look()
        ours = self._ours(jobs, nodes)
        stopping: set[int] = set()
        starts: dict[int, Mode] = {}
        failed: dict[int, Mode | None] = {}
        for job in decision.problem.jobs:
            our = ours.get(job.id)
            if our is None:
                continue  # ended or withdrawn by now; the next look tells
            number, mode, target = our.slurm.id, our.mode, decision.allocation.get(job.id)
            if our.slurm.clearing:
                stopping.add(number)
            elif mode is not None:
                if _same(mode, target) or self._orders.shrink(our.slurm, mode, target):
                    self._orders.lift_limit(our.slurm)
                    continue
                if not self._orders.stop(number):
                    failed[number] = mode
                    continue
                stopping.add(number)
            elif not our.slurm.held and not self._orders.hold(number):
                failed[number] = None
                continue
            if target is not None:
                starts[number] = target
        failed |= dict.fromkeys(self._orders.wait_for_stops(stopping))
        # What did not stop may not be started, and its GPUs are not free.
        starts = {number: mode for number, mode in starts.items() if number not in failed}
        if starts:
            submitted = {our.slurm.id: our.slurm for our in ours.values()}
            failed |= dict.fromkeys(self._orders.start(starts, submitted))
        now = self.now()
        return [
            JobPlaced(
                time=now,
                job=str(number),
                site=None if mode is None else mode.site,
                gpus=None if mode is None else mode.gpus,
            )
            for number, mode in failed.items()
        ]

    def _look(self) -> tuple[dict[int, SlurmJob], list[SlurmNode]]:
        return read_queue(self._programs, self._kinds), read_nodes(self._programs)

    def _ours(self, jobs: Mapping[int, SlurmJob], nodes: Iterable[SlurmNode]) -> dict[str, _Ours]:
        """Return the unfinished jobs that we decide about; note those that are refused."""
        nodes = list(nodes)
        ours: dict[str, _Ours] = {}
        refused: dict[int, str] = {}
        for number, slurm in jobs.items():
            if slurm.ended:
                continue
            try:
                job = self._describe(slurm)
                if job is None:
                    continue
                job = self._taken(slurm, job, nodes)
            except InputError as problem:
                refused[number] = str(problem)
                continue
            if job is not None:
                ours[str(number)] = _Ours(slurm, job)
        for number, why in refused.items():
            if self._refused.get(number) != why:
                self._on_trouble(f"not taken: {why}")
        self._refused = refused
        return ours

    def _taken(self, slurm: SlurmJob, job: Job, nodes: list[SlurmNode]) -> Job | None:
        """Return `job` with the modes that this cluster has; None where it is not to be decided now.

        Raises
        ------
        InstanceError
            If the job breaks a rule of the instance format.
            Or Slurm would not let it be placed.
        """
        if slurm.dependency and slurm.pending:
            return None
        if slurm.is_part:
            raise _refusal(slurm, "parts of an array or heterogeneous job cannot be placed")
        if slurm.asks_total_gpus:
            rule = (
                "a total number of GPUs (--gpus) cannot be changed; ask with --gres, or not at all"
            )
            raise _refusal(slurm, rule)
        known = [mode for mode in job.modes if mode.site in self._kinds]
        faults = list(
            part_faults(
                None,
                (),
                (dataclasses.replace(job, modes=tuple(known)),),
                list(self._kinds),
                [job.id],
            )
        )
        if faults:
            raise InstanceError(tuple(faults))
        modes = tuple(
            mode
            for mode in known
            if ever_fits(
                self._kinds[mode.site],
                mode.gpus,
                (node for node in nodes if mode.site in node.partitions),
            )
        )
        if not modes:
            raise _refusal(slurm, "none of its modes fits on the nodes of its partitions")
        deadline = None if job.deadline is None else job.deadline - self._margin_s
        job = dataclasses.replace(job, modes=modes, deadline=deadline)
        if slurm.pending and slurm.deadline is not None and slurm.deadline <= self.now():
            raise _refusal(slurm, "its --deadline has passed, and Slurm starts no such job")
        if slurm.running and _Ours(slurm, job).mode is None:
            where = f"{slurm.gpus} GPUs of '{slurm.partitions[0]}'"
            raise _refusal(slurm, f"it runs on {where}, which is none of its modes")
        if not (slurm.running or slurm.pending or slurm.clearing):
            raise _refusal(slurm, f"it is {'+'.join(sorted(slurm.states))}")
        return job

    def _units(self, nodes: Iterable[SlurmNode], ours: Mapping[str, _Ours]) -> dict[str, int]:
        """Return the usable units of each site: what is up, without what others hold."""
        own: dict[str, float] = {}
        for our in ours.values():
            hosts = self._hosts_of(our.slurm.nodes)
            for host in hosts:
                own[host] = own.get(host, 0.0) + our.slurm.gpus / len(hosts)
        units = dict.fromkeys(self._kinds, 0)
        for node in nodes:
            others = max(0, node.used - round(own.get(node.name, 0.0)))
            for name in node.partitions:
                if name in units and node.usable and node.gpus:
                    cloud = self._kinds[name] == "cloud"
                    units[name] += max(0, node.gpus - others) if cloud else int(others == 0)
        return units

    def _hosts_of(self, nodes: str) -> tuple[str, ...]:
        if nodes and nodes not in self._hosts:
            if "[" in nodes or "," in nodes:
                names = self._programs.run("scontrol", "show", "hostnames", nodes).split()
                self._hosts[nodes] = tuple(names)
            else:
                self._hosts[nodes] = (nodes,)
        return self._hosts.get(nodes, ())

    def _changed_capacities(
        self, view: ClusterView, units: Mapping[str, int], now: float
    ) -> Iterator[CapacityChanged]:
        for name, site in view.sites.items():
            if name in units and site.capacity_at(now) != units[name]:
                # A forecast stays: what is known of later times is not known worse now.
                later = tuple(step for step in site.capacity if step[0] > now)
                steps = ((now, units[name]), *later)
                yield CapacityChanged(time=now, site=name, capacity=steps)

    def _news_of(self, our: _Ours, held: HeldJob, now: float) -> Iterator[Event]:
        """Yield what is new of a job that the session knows."""
        job = our.job
        before = self._described.get(job.id)
        if before is None or _shape(before) != _shape(job):
            # The session remembers more than we do: only what cannot be old news counts.
            left = held.left_at(now)
            before = dataclasses.replace(
                job,
                deadline=held.job.deadline,
                weight=held.job.weight,
                work=left if job.work < left else job.work,
            )
        if _shape(held.job) != _shape(job):
            yield JobCancelled(time=now, job=job.id)
            work = job.work if job.work != before.work else held.at(now).work
            last_site = held.last_site if held.last_site in self._kinds else None
            arriving = dataclasses.replace(
                job, work=work, last_site=last_site, running=_running(our.mode)
            )
            yield JobArrived(time=now, job=arriving)
            return
        if (before.deadline, before.weight) != (job.deadline, job.weight):
            yield JobRevised(time=now, job=job.id, deadline=job.deadline, weight=job.weight)
        for old, new in zip(before.modes, job.modes, strict=True):
            if old != new:
                yield RateCorrected(
                    time=now, job=job.id, site=new.site, gpus=new.gpus, rate=new.rate
                )
        if before.work != job.work:
            yield JobProgressed(time=now, job=job.id, work_left=job.work)
        mode = our.mode
        if not our.slurm.clearing and not _same(mode, held.mode):
            yield JobPlaced(
                time=now,
                job=job.id,
                site=None if mode is None else mode.site,
                gpus=None if mode is None else mode.gpus,
            )


def _refusal(slurm: SlurmJob, rule: str) -> InstanceError:
    from edgeflow_opt.errors import Fault

    return InstanceError((Fault(f"job {slurm.id}", "", rule),))


def _same(one: Mode | None, other: Mode | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.site, one.gpus) == (other.site, other.gpus)


def _shape(job: Job) -> tuple[object, ...]:
    """Return what cannot change of a job without its being another one for a session."""
    modes = tuple((mode.site, mode.gpus) for mode in job.modes)
    return (
        modes,
        job.memory_gib,
        job.restart_s,
        job.migration_s,
        job.must_meet,
        job.malleable,
    )


def _running(mode: Mode | None) -> Running | None:
    return None if mode is None else Running(site=mode.site, gpus=mode.gpus)


def _as_it_arrives(our: _Ours, now: float, sites: Iterable[str]) -> Job:
    """Return a job that the session sees for the first time, perhaps in the midst of its run."""
    job, slurm, mode = our.job, our.slurm, our.mode
    if mode is None:
        # Where it last ran it was sent by us, and its partition is still that.
        ran = slurm.restarts > 0 and slurm.partitions[0] in set(sites)
        return dataclasses.replace(job, last_site=slurm.partitions[0] if ran else None)
    earned = 0.0
    if slurm.start is not None:
        loss_s = job.restart_s if slurm.restarts else 0.0
        earned = mode.rate * max(0.0, now - slurm.start - loss_s)
    left = max(job.work - earned, LEAST_SHARE_LEFT * job.work)
    return dataclasses.replace(job, work=left, running=_running(mode))
