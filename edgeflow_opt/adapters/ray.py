"""Ray: jobs get placement groups, and trials of Tune their resources, as a session decides.

A site is a custom resource of the nodes of Ray (extra ``ray``): a node of a cloud site has as many of
it as it has GPUs, an edge server has one. So a mode on a cloud site is a bundle of one GPU and one of
the resource for each of its GPUs, a mode on an edge site one bundle with all its GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeflow_opt.adapters.base import AdapterError
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Job, Mode, Site
from edgeflow_opt.service.decision import SessionDecision
from edgeflow_opt.service.events import (
    CapacityChanged,
    Event,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
    JobProgressed,
)
from edgeflow_opt.service.session import EpochSession
from edgeflow_opt.service.state import ClusterView

_PURPOSE = "the adapter of Ray"

#: Begins a job, or goes on with it from its checkpoint, in a placement group of so many bundles;
#: returns the reference that is ready when it is done.
Launcher = Callable[[Any, Mode], Any]


def sites_of(kinds: Mapping[str, Literal["cloud", "edge"]]) -> tuple[Site, ...]:
    """Return the sites of the cluster that Ray is connected to, with their capacities now.

    Parameters
    ----------
    kinds
        Kind of each site by name, which is that of its custom resource.
    """
    return tuple(
        Site(name=name, kind=kind, capacity=((0.0, _units(name)),)) for name, kind in kinds.items()
    )


def bundles_of(mode: Mode, site: Site, cpus_per_gpu: float = 1.0) -> list[dict[str, float]]:
    """Return the bundles of a placement group for a mode on its site.

    Parameters
    ----------
    cpus_per_gpu
        Of the workers, which without CPUs could begin no task.
    """
    count, gpus = (mode.gpus, 1) if site.kind == "cloud" else (1, mode.gpus)
    bundle = {"CPU": cpus_per_gpu * gpus, "GPU": float(gpus), site.name: 1.0}
    return [{key: value for key, value in bundle.items() if value} for _ in range(count)]


@dataclass(slots=True)
class _Submitted:
    """A job that was handed in."""

    job: Job
    launch: Launcher
    work_left: Callable[[], float] | None
    group: Any = None
    result: Any = None
    cancelled: bool = False


class RayCluster:
    """Jobs on Ray that follow the decisions of a session.

    A job that starts gets a placement group; one that stops loses it, with which Ray ends all its
    tasks and actors at once, so that it has to write checkpoints as it goes; a resize or a move is a
    stop and a start.

    Parameters
    ----------
    cpus_per_gpu
        As in :func:`bundles_of`.
    ready_s
        Seconds within which a placement group has to be there; a job without one waits.
    clock
        Returns seconds.

    Attributes
    ----------
    failures
        What jobs failed by, by id; for the session they are cancelled.

    Raises
    ------
    UsageError
        If the extra ``ray`` is not installed, or Ray is not connected to a cluster.
    """

    def __init__(
        self,
        *,
        cpus_per_gpu: float = 1.0,
        ready_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ray: Any = load("ray", "ray", _PURPOSE)
        if not self._ray.is_initialized():
            raise UsageError("the adapter of Ray needs a cluster: call ray.init first")
        self._groups: Any = load("ray.util.placement_group", "ray", _PURPOSE)
        self._cpus_per_gpu = cpus_per_gpu
        self._ready_s = ready_s
        self._clock = clock
        self._jobs: dict[str, _Submitted] = {}
        self.failures: dict[str, BaseException] = {}

    def submit(
        self, job: Job, launch: Launcher, *, work_left: Callable[[], float] | None = None
    ) -> None:
        """Hand in a job.

        Parameters
        ----------
        job
            What the session has to know of it.
        launch
            Called with the placement group and the mode each time that it starts; returns the
            reference of a task that is ready when the job is done.
        work_left
            Returns the iterations left by the last checkpoint, asked when the job was stopped; None
            = what the rates say.

        Raises
        ------
        UsageError
            If a job of that id is not done yet.
        """
        if job.id in self._jobs:
            raise UsageError(f"job '{job.id}': is there already; give it another id")
        self._jobs[job.id] = _Submitted(job, launch, work_left)

    def cancel(self, job_id: str) -> None:
        """Withdraw a job, which may be done already."""
        if job_id in self._jobs:
            self._jobs[job_id].cancelled = True

    def now(self) -> float:
        """Return the time, seconds."""
        return self._clock()

    def observe(self, view: ClusterView) -> list[Event]:
        """Return changes of capacity, ends and arrivals."""
        now, events = self.now(), list[Event]()
        for site in view.sites.values():
            units = _units(site.name)
            if site.capacity[-1][1] != units:
                steps = ((now, units),)
                events.append(CapacityChanged(time=now, site=site.name, capacity=steps))
        for name, held in list(self._jobs.items()):
            known = name in view.jobs
            if held.cancelled:
                self._stop(held)
                del self._jobs[name]
                if known:
                    events.append(JobCancelled(time=now, job=name))
            elif not known:
                events.append(JobArrived(time=now, job=held.job))
            elif held.result is not None:
                ended = self._end(name, held, now)
                events += [] if ended is None else [ended]
        return events

    def carry_out(self, decision: SessionDecision) -> list[Event]:
        """Take away and make placement groups; return the jobs that got none in time."""
        now, events = self.now(), list[Event]()
        sites = {site.name: site for site in decision.problem.sites}
        for change in decision.changes:
            held = self._jobs.get(change.job)
            if held is not None and change.before is not None:
                self._stop(held)
                left = 0.0 if held.work_left is None else held.work_left()
                if left > 0.0:
                    events.append(JobProgressed(time=now, job=change.job, work_left=left))
        starts = {c.job: c.after for c in decision.changes if c.after and c.job in self._jobs}
        for name, mode in starts.items():
            bundles = bundles_of(mode, sites[mode.site], self._cpus_per_gpu)
            group = self._groups.placement_group(bundles, strategy="PACK", name=name)
            self._jobs[name].group = group
        until = time.monotonic() + self._ready_s
        for name, mode in starts.items():
            held = self._jobs[name]
            if not held.group.wait(max(0.1, until - time.monotonic())):
                self._stop(held)
                events.append(JobPlaced(time=now, job=name))
                continue
            try:
                held.result = held.launch(held.group, mode)
            except Exception as failure:
                self.failures[name] = failure
                self._stop(held)
                del self._jobs[name]
                events.append(JobCancelled(time=now, job=name))
        return events

    def close(self) -> None:
        """Take all placement groups away."""
        for held in self._jobs.values():
            self._stop(held)

    def _stop(self, held: _Submitted) -> None:
        if held.group is not None:
            self._groups.remove_placement_group(held.group)
        held.group = held.result = None

    def _end(self, name: str, held: _Submitted, now: float) -> Event | None:
        """Return what became of a job that runs; None = it runs on."""
        done, _ = self._ray.wait([held.result], timeout=0)
        if not done:
            return None
        try:
            self._ray.get(held.result)
        except Exception as failure:
            self.failures[name] = failure
        self._stop(held)
        del self._jobs[name]
        kind = JobCancelled if name in self.failures else JobCompleted
        return kind(time=now, job=name)


def _units(site: str) -> int:
    """Return how many of a custom resource the nodes have that are there."""
    ray: Any = load("ray", "ray", _PURPOSE)
    try:
        nodes = ray.nodes()
    except Exception as failure:
        raise AdapterError(f"Ray does not say which nodes it has: {failure}") from failure
    return int(sum(node["Resources"].get(site, 0) for node in nodes if node["Alive"]))


class SessionResources:
    """What trials of Tune hold, as a session decides: for elastic training.

    The `resources_allocation_function` of Tune's ``ResourceChangingScheduler``, asked after each
    result of a trial; where the plan wants another mode, Tune has the trial write its checkpoint and
    go on from it with other resources. Tune knows no trial without resources: one that the plan
    stops keeps what it has, and the session is told.

    Parameters
    ----------
    session
        A session over :func:`sites_of` of the cluster.
    describe
        Returns the job of a trial, its work being what is left after this result; its id is to be
        the id of the trial.
    time_limit_s
        Of each decision, wall seconds: Tune waits for it.
    bundles
        Returns the bundles of a mode on its site, the first of which holds the trainable; None = a
        single one with all.
    clock
        Returns seconds.
    """

    def __init__(
        self,
        session: EpochSession,
        describe: Callable[[Any, dict[str, Any]], Job],
        *,
        time_limit_s: float = 0.2,
        bundles: Callable[[Mode, Site], list[dict[str, float]]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        tune: Any = load("ray.tune", "ray", _PURPOSE)
        self._factory = tune.PlacementGroupFactory
        self._session = session
        self._describe = describe
        self._time_limit_s = time_limit_s
        self._bundles = bundles or _one_bundle
        self._clock = clock

    def __getstate__(self) -> dict[str, Any]:
        """Return what Tune keeps of it with its experiments: the session as a snapshot."""
        return {**self.__dict__, "_session": self._session.snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {**state, "_session": EpochSession.from_snapshot(state["_session"])}

    def __call__(
        self, tune_controller: Any, trial: Any, result: dict[str, Any], scheduler: Any
    ) -> Any:
        """Return the ``PlacementGroupFactory`` that a trial shall have; None = as it is."""
        session, now = self._session, self._clock()
        live = {t.trial_id for t in tune_controller.get_trials() if not t.is_finished()}
        events: list[Event] = [
            JobCompleted(time=now, job=name) for name in session.view.jobs if name not in live
        ]
        job = self._describe(trial, result)
        if job.id != trial.trial_id:
            raise UsageError(f"job '{job.id}': must have the id of its trial, '{trial.trial_id}'")
        held = _mode_held(trial, job, session.view)
        if job.id in session.view.jobs:
            events.append(JobProgressed(time=now, job=job.id, work_left=job.work))
        else:
            events.append(JobArrived(time=now, job=job))
        if held is not None:
            events.append(JobPlaced(time=now, job=job.id, site=held.site, gpus=held.gpus))
        session.update(events)
        decision = session.decide(now, self._time_limit_s)
        stopped = [c for c in decision.changes if c.after is None and c.before is not None]
        session.update(
            JobPlaced(time=now, job=c.job, site=c.before.site, gpus=c.before.gpus, loss_left_s=0.0)
            for c in stopped
            if c.before is not None
        )
        wanted = decision.allocation.get(job.id)
        if wanted is None or wanted == held:
            return None
        return self._factory(self._bundles(wanted, session.view.sites[wanted.site]))


def _one_bundle(mode: Mode, site: Site) -> list[dict[str, float]]:
    """Return a single bundle: the trainable uses all GPUs of the mode by itself."""
    units = float(mode.gpus) if site.kind == "cloud" else 1.0
    return [{"CPU": 1.0, "GPU": float(mode.gpus), site.name: units}]


def _mode_held(trial: Any, job: Job, view: ClusterView) -> Mode | None:
    """Return the mode that the resources of a trial are; None = none of the job's modes."""
    total = trial.placement_group_factory.required_resources
    site = next((name for name in view.sites if total.get(name)), "")
    return job.mode(site, int(total.get("GPU", 0)))
