"""The cluster as a session knows it: jobs, what they hold and how far they are, and sites.

Progress is reckoned, not stepped: what is known of a job is true of one instant, from which its
rate tells any later one. So time costs nothing, and an event costs what it changes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from edgeflow_opt.errors import EventError, Fault, InputError
from edgeflow_opt.problem import (
    MAX_MAGNITUDE,
    WORK_TOLERANCE,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    Running,
    Site,
)
from edgeflow_opt.problem.types import type_faults
from edgeflow_opt.problem.values import is_number, shown
from edgeflow_opt.service.events import (
    MAX_CLOCK,
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

#: A job that ought to be done by its rate, but was not said to be, still has this share of its work
#: left: rates are estimates, and it holds its units until it is done.
LEAST_SHARE_LEFT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJob:
    """An unfinished job.

    Parameters
    ----------
    job
        The job as it came, with the rates and the deadline known now; its own `running` and
        `last_site` are None.
    left
        Credit needed to complete, iterations, as of `since`.
    since
        Seconds.
    mode
        What it has held from `since` on; None = nothing.
    loss_until
        Before this time the run earns nothing, seconds.
    last_site
        Where it last ran; None = it never ran.
    """

    job: Job
    left: float
    since: float
    mode: Mode | None = None
    loss_until: float = 0.0
    last_site: str | None = None

    @classmethod
    def of(cls, job: Job, now: float) -> HeldJob:
        """Return a job that becomes known at `now`."""
        running = job.running
        arrival = now if job.arrival is None else job.arrival
        if job.deadline is not None:
            arrival = min(arrival, job.deadline)
        return cls(
            job=dataclasses.replace(job, running=None, last_site=None, arrival=arrival),
            left=job.required,
            since=now,
            mode=None if running is None else job.mode(running.site, running.gpus),
            loss_until=now if running is None else now + running.loss_left_s,
            last_site=job.last_site if running is None else running.site,
        )

    def left_at(self, now: float) -> float:
        """Return the credit still needed at `now` by the rate of the mode, above 0."""
        if self.mode is None:
            return self.left
        earned = self.mode.rate * max(0.0, now - max(self.since, self.loss_until))
        return max(self.left - earned, min(self.left, LEAST_SHARE_LEFT * self.job.work))

    def placed(self, mode: Mode | None, now: float, loss_s: float | None = None) -> HeldJob:
        """Return the job from `now` on in `mode`; `loss_s` None = the rule for a begun run."""
        if mode == self.mode and loss_s is None:
            return self
        if loss_s is None:
            if mode is None or self.last_site is None:
                loss_s = 0.0
            elif mode.site == self.last_site:
                loss_s = self.job.restart_s
            else:
                loss_s = self.job.migration_s
        return dataclasses.replace(
            self,
            left=self.left_at(now),
            since=now,
            mode=mode,
            loss_until=now + loss_s,
            last_site=self.last_site if mode is None else mode.site,
        )

    def at(self, now: float) -> Job:
        """Return the job as an epoch problem at `now` sees it."""
        mode = self.mode
        # Rounding, and snapshots of others, may exceed what an instance takes.
        work = min(self.left_at(now) / (1.0 - WORK_TOLERANCE), MAX_MAGNITUDE)
        loss_s = min(max(0.0, self.loss_until - now), MAX_MAGNITUDE)
        return dataclasses.replace(
            self.job,
            work=work,
            running=None
            if mode is None
            else Running(site=mode.site, gpus=mode.gpus, loss_left_s=loss_s),
            last_site=self.last_site,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All that a session knows of the cluster; never changed in place.

    Parameters
    ----------
    clock
        The latest time known, seconds.
    sites
        By name, in their order.
    jobs
        The unfinished jobs by id, in order of arrival.
    objective
        What is wanted.
    """

    clock: float
    sites: Mapping[str, Site]
    jobs: Mapping[str, HeldJob] = field(default_factory=dict)
    objective: Objective = field(default_factory=Objective)

    @classmethod
    def of(cls, problem: EpochProblem) -> ClusterView:
        """Return the cluster that an epoch problem describes."""
        return cls(
            clock=problem.now,
            sites={site.name: site for site in problem.sites},
            jobs={job.id: HeldJob.of(job, problem.now) for job in problem.jobs},
            objective=problem.objective,
        )

    def after(self, events: Iterable[Event]) -> ClusterView:
        """Return the view after `events`, all or none of which are taken.

        Raises
        ------
        EventError
            With every event that makes no sense.
        """
        draft = _Draft(self)
        for index, event in enumerate(events):
            draft.take(event, f"event {index}")
        if draft.faults:
            raise EventError(tuple(draft.faults))
        return dataclasses.replace(self, clock=draft.clock, sites=draft.sites, jobs=draft.jobs)

    def changed(self, changes: Mapping[str, Mode | None], now: float) -> ClusterView:
        """Return the view when the modes of some jobs change at `now`; None = idle.

        The others hold what they held: what became known of them while a decision was made is as
        true after it. Jobs that are not there any more are passed over.
        """
        now = max(self.clock, now)
        jobs = dict(self.jobs)
        for name, mode in changes.items():
            held = self.jobs.get(name)
            if held is None:
                continue
            # Its rate may have been corrected since the decision.
            known = None if mode is None else held.job.mode(mode.site, mode.gpus)
            jobs[name] = held.placed(known, now)
        return dataclasses.replace(self, clock=now, jobs=jobs)

    def problem(self, grid: Grid, must_meet: bool = True) -> EpochProblem:
        """Return the epoch problem on `grid`; without `must_meet` no deadline is a hard one."""
        jobs = [held.at(grid.start) for held in self.jobs.values()]
        if not must_meet:
            jobs = [
                dataclasses.replace(job, must_meet=False) if job.must_meet else job for job in jobs
            ]
        return EpochProblem(
            grid=grid, sites=tuple(self.sites.values()), jobs=tuple(jobs), objective=self.objective
        )


class _Draft:
    """A copy of a view that takes events one by one and notes their faults."""

    def __init__(self, view: ClusterView) -> None:
        self.clock = view.clock
        self.sites = dict(view.sites)
        self.jobs = dict(view.jobs)
        self.faults: list[Fault] = []

    def take(self, event: Event, owner: str) -> None:
        """Take one event, or note what is wrong with it."""
        if not isinstance(event, Event):
            self.faults.append(Fault(owner, "", "must be an event of this package", shown(event)))
            return
        time = event.time
        if not is_number(time) or not -MAX_CLOCK <= time <= MAX_CLOCK:
            rule = "must be a finite number of magnitude at most 1e14"
            self.faults.append(Fault(owner, "time", rule, shown(time), "give seconds"))
            return
        if not isinstance(event, JobArrived):
            wrong = list(type_faults(event, type(event), owner, finite=False))
            if wrong:
                self.faults += wrong
                return
        now = max(self.clock, float(time))
        if isinstance(event, JobArrived):
            faults = self._arrive(event, owner, now)
        elif isinstance(event, CapacityChanged):
            faults = self._change_capacity(event, owner, now)
        else:
            name = getattr(event, "job", None)
            held = self.jobs.get(name) if isinstance(name, str) else None
            if held is None:
                close = "the job may have completed; take it out of what you send"
                faults = [Fault(owner, "job", "must be an unfinished job", shown(name), close)]
            else:
                faults = self._change_job(event, held, owner, now)
        self.faults += faults
        self.clock = now

    def _arrive(self, event: JobArrived, owner: str, now: float) -> list[Fault]:
        job = event.job
        if isinstance(job, Job) and isinstance(job.id, str) and job.id in self.jobs:
            rule = "must not be the id of an unfinished job"
            return [Fault(owner, "job.id", rule, shown(job.id), "give it another id")]
        faults = self._faults_at(now, owner, jobs=(job,))
        if not faults:
            self.jobs[job.id] = HeldJob.of(job, now)
        return faults

    def _change_capacity(self, event: CapacityChanged, owner: str, now: float) -> list[Fault]:
        site = self.sites.get(event.site)
        if site is None:
            known = f"sites are {shown(list(self.sites))}"
            return [Fault(owner, "site", "must be a site", shown(event.site), known)]
        changed = dataclasses.replace(site, capacity=event.capacity)
        faults = self._faults_at(now, owner, sites=(changed,))
        if not faults:
            self.sites[site.name] = changed
        return faults

    def _change_job(self, event: Event, held: HeldJob, owner: str, now: float) -> list[Fault]:
        """Change what is known of an unfinished job."""
        job = held.job
        faults: list[Fault] = []
        if isinstance(event, (JobCompleted, JobCancelled)):
            del self.jobs[job.id]
            return []
        if isinstance(event, JobProgressed):
            if not (is_number(event.work_left) and 0 < event.work_left <= 1e15):
                rule = "must be above 0 and at most 1e15"
                way = "a job without work left is told by job_completed"
                return [Fault(owner, "work_left", rule, shown(event.work_left), way)]
            left = event.work_left * (1.0 - WORK_TOLERANCE)
            self.jobs[job.id] = dataclasses.replace(held, left=left, since=now)
            return []
        if isinstance(event, JobPlaced):
            mode = None
            if event.site is not None or event.gpus is not None:
                mode = job.mode(event.site or "", event.gpus or 0)
                if mode is None:
                    return [_no_mode(owner, event.site, event.gpus)]
            loss_s = event.loss_left_s
            if loss_s is not None and not (is_number(loss_s) and 0 <= loss_s <= 1e15):
                return [Fault(owner, "loss_left_s", "must be at least 0", shown(loss_s))]
            if job.arrival is not None and now < job.arrival and mode is not None:
                return [Fault(owner, "time", f"must not be before its arrival {job.arrival!r}")]
            self.jobs[job.id] = held.placed(mode, now, loss_s)
            return []
        if isinstance(event, RateCorrected):
            measured = job.mode(event.site, event.gpus)
            if measured is None:
                return [_no_mode(owner, event.site, event.gpus)]
            if not (is_number(event.rate) and 0 < event.rate <= 1e15):
                return [Fault(owner, "rate", "must be above 0 and at most 1e15", shown(event.rate))]
            changed = _with_rate(job, measured, event)
        elif isinstance(event, JobRevised):
            weight = job.weight if event.weight is None else event.weight
            deadline = event.deadline
            arrival = job.arrival
            last = deadline if isinstance(deadline, (int, float)) else math.inf
            if arrival is not None and last < arrival:
                if arrival > now:
                    rule = f"must not be before its arrival {arrival!r}, which is still to come"
                    way = "give a later one, or cancel the job"
                    faults = [Fault(owner, "deadline", rule, shown(deadline), way)]
                # Arrivals that have passed bind nothing any more, and no job may arrive after its
                # deadline.
                arrival = last
            changed = dataclasses.replace(
                job,
                arrival=arrival,
                deadline=deadline,
                weight=weight,
                must_meet=job.must_meet and deadline is not None,
            )
        else:
            return [Fault(owner, "", "must be an event of this package", type(event).__name__)]
        # Credit so far was earned at the rate known so far.
        mode = held.mode
        updated = dataclasses.replace(
            held,
            job=changed,
            left=held.left_at(now),
            since=now,
            mode=None if mode is None else changed.mode(mode.site, mode.gpus),
        )
        faults += self._faults_at(now, owner, jobs=(updated.at(now),))
        if not faults:
            self.jobs[job.id] = updated
        return faults

    def _faults_at(
        self, now: float, owner: str, jobs: tuple[Job, ...] = (), sites: tuple[Site, ...] = ()
    ) -> list[Fault]:
        """Return what the rules of an instance say against parts of it."""
        grid = Grid((now, now + max(1.0, abs(now) * 1e-9)))
        try:
            EpochProblem(grid=grid, sites=sites or tuple(self.sites.values()), jobs=jobs)
        except InputError as error:
            return [dataclasses.replace(f, object=f"{owner}, {f.object}") for f in error.faults]
        return []


def later_than(now: float) -> float:
    """Return a time after `now`, for a grid that only has to be one."""
    return now + max(1.0, 4.0 * math.ulp(now))


def _no_mode(owner: str, site: str | None, gpus: int | None) -> Fault:
    rule = "site and gpus must be one of the job's modes"
    return Fault(
        owner, "", rule, f"({site}, {shown(gpus)})", "name a mode, or neither for an idle job"
    )


def _with_rate(job: Job, measured: Mode, event: RateCorrected) -> Job:
    """Return `job` with the rate of one mode, or in its ratio of all, corrected."""
    ratio = event.rate / measured.rate
    modes = []
    for mode in job.modes:
        if mode == measured:
            modes.append(dataclasses.replace(mode, rate=event.rate))
        elif event.scale_others:
            modes.append(dataclasses.replace(mode, rate=mode.rate * ratio))
        else:
            modes.append(mode)
    return dataclasses.replace(job, modes=tuple(modes))
