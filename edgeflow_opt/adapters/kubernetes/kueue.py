"""An admission check of Kueue: workloads are admitted, held back and evicted as a session decides.

Kueue asks its checks about every workload for which it has reserved quota, and starts the pods when
all are ``Ready``. Here the check of a workload is

* ``Ready`` where the decision gives its job GPUs now; its pods are sent to the site by a node selector;
* ``Pending`` where it waits, with the reason as message;
* ``Retry`` where a running job has to stop, or to run elsewhere: Kueue evicts it and queues it anew;
* ``Rejected`` where its description is at fault or, if so wanted, where it cannot meet its deadline.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from edgeflow_opt.adapters.kubernetes.api import KueueApi, Workload
from edgeflow_opt.adapters.kubernetes.pods import described_job, told
from edgeflow_opt.errors import Fault, InstanceError
from edgeflow_opt.problem import Job, Running, Site
from edgeflow_opt.problem.validation import part_faults
from edgeflow_opt.service.decision import Change, ReasonCode, SessionDecision
from edgeflow_opt.service.events import (
    CapacityChanged,
    Event,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
)
from edgeflow_opt.service.state import ClusterView

_HOPELESS = (ReasonCode.HOPELESS, ReasonCode.PASSED)


class KueueCluster:
    """Workloads of Kueue that follow the decisions of a session.

    Parameters
    ----------
    client
        A ``kubernetes.client.ApiClient``.
    check
        Name of the AdmissionCheck object, whose ``controllerName`` is ``edgeflow-opt/session``.
    namespace
        Look at its workloads only; None = at all.
    elastic
        Whether a job may hold fewer GPUs than its pods ask for, since the scheduler extender holds
        back the others; else its modes are those with the number that they ask for.
    reject_hopeless
        Whether workloads that cannot meet their deadlines are rejected, by which Kueue deactivates
        them, rather than run when there is room.
    version
        Version of the API of Kueue.
    timeout_s
        Of each request, wall seconds.
    clock
        Returns seconds since 1970.

    Raises
    ------
    UsageError
        If the extra ``kubernetes`` is not installed.
    """

    def __init__(
        self,
        client: Any,
        check: str = "edgeflow",
        *,
        namespace: str | None = None,
        elastic: bool = False,
        reject_hopeless: bool = False,
        version: str = "v1beta2",
        timeout_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = KueueApi(client, check, namespace, version, timeout_s)
        self._elastic = elastic
        self._reject_hopeless = reject_hopeless
        self._clock = clock
        self._ours: dict[str, Workload] = {}

    def now(self) -> float:
        """Return seconds since 1970."""
        return self._clock()

    def activate(self) -> None:
        """Say that the check has a controller, without which Kueue admits nothing.

        Raises
        ------
        UsageError
            If the check names another controller.
        AdapterError
            If the API server does not do it.
        """
        self._api.activate(self.now())

    def wait(self, limit_s: float) -> None:
        """Wait until a workload changes, or the time is up: the `wait` of a follower."""
        self._api.wait(limit_s)

    def sites(self, kinds: Mapping[str, Literal["cloud", "edge"]]) -> tuple[Site, ...]:
        """Return the sites that the nodes with our label make up, with their capacities now.

        Parameters
        ----------
        kinds
            Kind of each site by name: on ``"cloud"`` GPUs are counted, on ``"edge"`` nodes.
        """
        units = self._api.units(kinds)
        return tuple(
            Site(name=name, kind=kind, capacity=((0.0, units[name]),))
            for name, kind in kinds.items()
        )

    def observe(self, view: ClusterView) -> list[Event]:
        """Return changes of capacity, ends, evictions and arrivals."""
        now, events = self.now(), list[Event]()
        units = self._api.units({site.name: site.kind for site in view.sites.values()})
        for site in view.sites.values():
            if site.capacity[-1][1] != units[site.name]:
                steps = ((now, units[site.name]),)
                events.append(CapacityChanged(time=now, site=site.name, capacity=steps))
        self._ours = {}
        ended: dict[str, bool] = {}
        for ours in self._api.workloads():
            if ours.active:
                self._ours[ours.job] = ours
            elif ours.finished:
                ended[ours.job] = ours.finished == "Succeeded"
        for job, held in view.jobs.items():
            found = self._ours.get(job)
            if found is None:
                kind = JobCompleted if ended.get(job) else JobCancelled
                events.append(kind(time=now, job=job))
            elif held.mode is not None and not found.holds:
                events.append(JobPlaced(time=now, job=job))
            elif held.mode is None and found.holds and held.job.mode(found.site or "", found.gpus):
                events.append(JobPlaced(time=now, job=job, site=found.site, gpus=found.gpus))
        for name, found in self._ours.items():
            if name not in view.jobs and (found.admissible or found.holds):
                try:
                    events.append(JobArrived(time=now, job=self._job(found, view)))
                except InstanceError as fault:
                    self._api.answer(found, "Rejected", str(fault), now)
        return events

    def carry_out(self, decision: SessionDecision) -> list[Event]:
        """Set the states of the checks; return the jobs that could not be placed as decided."""
        now, events = self.now(), list[Event]()
        changes = {change.job: change for change in decision.changes}
        for reason in decision.reasons:
            ours, change = self._ours.get(reason.job), changes.get(reason.job)
            if ours is None:
                continue
            mode = decision.allocation.get(reason.job)
            hopeless = self._reject_hopeless and reason.code in _HOPELESS
            if ours.holds:
                if change is None or change.kind == "start" or self._grows(change):
                    continue
                if not self._api.answer(ours, "Retry", told(reason), now):
                    # It runs on, as it did before.
                    where = change.before
                    assert where is not None
                    kept = JobPlaced(
                        time=now,
                        job=reason.job,
                        site=where.site,
                        gpus=where.gpus,
                        loss_left_s=0.0,
                    )
                    events.append(kept)
                    continue
                placed = False
            elif not ours.admissible:
                placed = False
            elif mode is None:
                self._api.answer(ours, "Rejected" if hopeless else "Pending", told(reason), now)
                placed = False
            else:
                placed = self._api.answer(ours, "Ready", told(reason), now, mode.site)
            if mode is not None and not placed:
                events.append(JobPlaced(time=now, job=reason.job))
        return events

    def _grows(self, change: Change) -> bool:
        """Whether a change only lets more pods of a running job through the extender."""
        before, after = change.before, change.after
        return (
            self._elastic
            and before is not None
            and after is not None
            and before.site == after.site
            and before.gpus < after.gpus
        )

    def _job(self, ours: Workload, view: ClusterView) -> Job:
        """Return the job that a workload describes, with the modes that it can be given.

        Raises
        ------
        InstanceError
            With what is wrong with the description.
        """
        template = ours.template
        job = described_job(ours.job, template)
        wanted = ours.gpus
        modes = tuple(
            mode
            for mode in job.modes
            if mode.gpus == wanted or (self._elastic and mode.gpus < wanted)
        )
        owner = f"job {ours.job}"
        if not modes:
            rule = f"one must have the {wanted} GPUs that its pods ask for"
            raise InstanceError((Fault(owner, "modes", rule),))
        job = dataclasses.replace(job, modes=modes)
        if ours.holds and job.mode(ours.site or "", wanted) is not None:
            job = dataclasses.replace(job, running=Running(site=ours.site or "", gpus=wanted))
        faults = tuple(part_faults(self.now(), (), (job,), tuple(view.sites), (job.id,)))
        if faults:
            raise InstanceError(faults)
        return job
