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
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from edgeflow_opt.adapters.base import AdapterError
from edgeflow_opt.adapters.kubernetes.pods import (
    GPU,
    SITE_LABEL,
    described_job,
    gpus_of,
    job_id_of,
    time_text,
    told,
)
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import Fault, InstanceError, UsageError
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

#: What the check names as its controller.
CONTROLLER = "edgeflow-opt/session"

_GROUP = "kueue.x-k8s.io"
_PURPOSE = "the adapter of Kubernetes"
_APPLY = "application/apply-patch+yaml"

_HOPELESS = (ReasonCode.HOPELESS, ReasonCode.PASSED)

#: Longest message that Kueue takes.
_LONGEST = 32768

_log = logging.getLogger(__name__)

State = Literal["Pending", "Ready", "Retry", "Rejected"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Ours:
    """A workload that waits for our check or has passed it."""

    workload: dict[str, Any]
    job: str
    state: State
    message: str
    site: str | None

    @property
    def holds(self) -> bool:
        """Whether its pods run, or will as soon as Kueue comes to it."""
        return self.state == "Ready" and not _condition(self.workload, "Evicted")

    @property
    def admissible(self) -> bool:
        """Whether Kueue has reserved quota, and looks at our answer."""
        reserved = _condition(self.workload, "QuotaReserved")
        return bool(reserved) and not _condition(self.workload, "Evicted")

    @property
    def gpus(self) -> int:
        """GPUs of all its pods."""
        return sum(
            int(pods.get("count", 1)) * gpus_of(pods["template"].get("spec") or {})
            for pods in self.workload["spec"]["podSets"]
        )


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
        library = load("kubernetes.client", "kubernetes", _PURPOSE)
        self._custom = library.CustomObjectsApi(client)
        self._core = library.CoreV1Api(client)
        self._check = check
        self._namespace = namespace
        self._elastic = elastic
        self._reject_hopeless = reject_hopeless
        self._version = version
        self._timeout_s = timeout_s
        self._clock = clock
        self._ours: dict[str, _Ours] = {}
        self._seen = ""

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
        where = (_GROUP, self._version, "admissionchecks", self._check)
        found = self._ask(self._custom.get_cluster_custom_object, *where)
        controller = found["spec"].get("controllerName")
        if controller != CONTROLLER:
            rule = f"spec.controllerName must be {CONTROLLER!r}"
            raise UsageError(f"admission check '{self._check}': {rule}, got {controller!r}")
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "a session decides",
            "observedGeneration": found["metadata"].get("generation", 1),
            "lastTransitionTime": time_text(self.now()),
        }
        self._apply(
            self._custom.patch_cluster_custom_object_status,
            where,
            "AdmissionCheck",
            {"name": self._check},
            {"conditions": [condition]},
        )

    def sites(self, kinds: Mapping[str, Literal["cloud", "edge"]]) -> tuple[Site, ...]:
        """Return the sites that the nodes with our label make up, with their capacities now.

        Parameters
        ----------
        kinds
            Kind of each site by name: on ``"cloud"`` GPUs are counted, on ``"edge"`` nodes.
        """
        units = self._units(kinds)
        return tuple(
            Site(name=name, kind=kind, capacity=((0.0, units[name]),))
            for name, kind in kinds.items()
        )

    def observe(self, view: ClusterView) -> list[Event]:
        """Return changes of capacity, ends, evictions and arrivals."""
        now, events = self.now(), list[Event]()
        units = self._units({site.name: site.kind for site in view.sites.values()})
        for site in view.sites.values():
            if site.capacity[-1][1] != units[site.name]:
                steps = ((now, units[site.name]),)
                events.append(CapacityChanged(time=now, site=site.name, capacity=steps))
        self._ours = {}
        ended: dict[str, bool] = {}
        for workload in self._workloads():
            ours = self._read(workload)
            if ours is None:
                continue
            if _condition(workload, "Finished"):
                ended.setdefault(
                    ours.job, _condition(workload, "Finished").get("reason") == "Succeeded"
                )
            elif workload["spec"].get("active", True):
                self._ours[ours.job] = ours
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
                    self._answer(found, "Rejected", str(fault))
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
                if not self._answer(ours, "Retry", told(reason)):
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
                self._answer(ours, "Rejected" if hopeless else "Pending", told(reason))
                placed = False
            else:
                placed = self._answer(ours, "Ready", told(reason), mode.site)
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

    def wait(self, limit_s: float) -> None:
        """Wait until a workload changes, or the time is up: the `wait` of a follower."""
        if limit_s < 1.0 or not self._seen:
            time.sleep(limit_s)
            return
        watch = load("kubernetes.watch", "kubernetes", _PURPOSE).Watch()
        method, where = self._listing()
        limits = {
            "resource_version": self._seen,
            "timeout_seconds": int(limit_s),
            "_request_timeout": (self._timeout_s, limit_s + self._timeout_s),
        }
        try:
            for _ in watch.stream(method, *where, **limits):
                watch.stop()
                return
        except Exception:
            # The next look tells what is wrong, if it lasts.
            _log.info("cannot watch the workloads", exc_info=True)
        # Neither a fault nor a watch that ends at once may make a follower run without a pause.
        time.sleep(1.0)

    def _listing(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        if self._namespace is None:
            return self._custom.list_custom_object_for_all_namespaces, (
                _GROUP, self._version, "workloads",
            )  # fmt: skip
        where = (_GROUP, self._version, self._namespace, "workloads")
        return self._custom.list_namespaced_custom_object, where

    def _workloads(self) -> list[dict[str, Any]]:
        method, where = self._listing()
        found = self._ask(method, *where)
        self._seen = str((found.get("metadata") or {}).get("resourceVersion", ""))
        workloads: list[dict[str, Any]] = found["items"]
        return workloads

    def _read(self, workload: dict[str, Any]) -> _Ours | None:
        """Return a workload of ours that Kueue asks our check about; None = it is none."""
        metadata, status = workload["metadata"], workload.get("status") or {}
        template = workload["spec"]["podSets"][0]["template"].get("metadata") or {}
        job = job_id_of(template, metadata["namespace"])
        checks = status.get("admissionChecks") or ()
        check = next((check for check in checks if check["name"] == self._check), None)
        if job is None or check is None:
            return None
        updates = check.get("podSetUpdates") or ()
        sites = [(update.get("nodeSelector") or {}).get(SITE_LABEL) for update in updates]
        return _Ours(
            workload=workload,
            job=job,
            state=check["state"],
            message=check.get("message", ""),
            site=sites[0] if sites else None,
        )

    def _job(self, ours: _Ours, view: ClusterView) -> Job:
        """Return the job that a workload describes, with the modes that it can be given.

        Raises
        ------
        InstanceError
            With what is wrong with the description.
        """
        template = ours.workload["spec"]["podSets"][0]["template"]["metadata"]
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

    def _units(self, kinds: Mapping[str, str]) -> dict[str, int]:
        """Return the units of each site that can be used now."""
        units = dict.fromkeys(kinds, 0)
        for node in self._ask(self._core.list_node, label_selector=SITE_LABEL).items:
            site = node.metadata.labels[SITE_LABEL]
            conditions = node.status.conditions or ()
            ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
            if site in units and ready and not node.spec.unschedulable:
                gpus = int((node.status.allocatable or {}).get(GPU, "0"))
                units[site] += gpus if kinds[site] == "cloud" else min(gpus, 1)
        return units

    def _answer(self, ours: _Ours, state: State, message: str, site: str | None = None) -> bool:
        """Set the state of our check; False = the workload has changed meanwhile."""
        if (state, message) == (ours.state, ours.message) or ours.state == state == "Ready":
            return True
        metadata = ours.workload["metadata"]
        check: dict[str, Any] = {
            "name": self._check,
            "state": state,
            "message": message[:_LONGEST],
            "lastTransitionTime": time_text(self.now()),
        }
        if site is not None:
            pod_sets = ours.workload["spec"]["podSets"]
            check["podSetUpdates"] = [
                {"name": pods.get("name", "main"), "nodeSelector": {SITE_LABEL: site}}
                for pods in pod_sets
            ]
        where = (_GROUP, self._version, metadata["namespace"], "workloads", metadata["name"])
        # By the version nothing is answered that Kueue has asked anew meanwhile.
        named = {key: metadata[key] for key in ("name", "namespace", "resourceVersion")}
        patch = self._custom.patch_namespaced_custom_object_status
        return self._apply(patch, where, "Workload", named, {"admissionChecks": [check]})

    def _apply(
        self,
        patch: Callable[..., Any],
        where: tuple[str, ...],
        kind: str,
        metadata: dict[str, Any],
        status: dict[str, Any],
    ) -> bool:
        """Own some fields of a status, and leave those of others; False = there is a conflict."""
        body = {
            "apiVersion": f"{_GROUP}/{self._version}",
            "kind": kind,
            "metadata": metadata,
            "status": status,
        }
        owner = {"field_manager": "edgeflow-opt", "force": True}
        try:
            self._ask(patch, *where, body, _content_type=_APPLY, **owner)
        except _ConflictError:
            return False
        return True

    def _ask(self, method: Callable[..., Any], *where: Any, **options: Any) -> Any:
        """Call the API server.

        Raises
        ------
        AdapterError
            If it does not answer, or not as wanted.
        """
        try:
            return method(*where, **options, _request_timeout=self._timeout_s)
        except Exception as fault:
            status = getattr(fault, "status", None)
            name = method.__name__
            if status == 409:
                raise _ConflictError(f"Kubernetes, {name}: somebody else was quicker") from fault
            said = f"{status} {getattr(fault, 'reason', '')}" if status else f"{fault}"
            raise AdapterError(f"Kubernetes, {name}: {said.strip()[:500]}") from fault


class _ConflictError(AdapterError):
    """An object is not any more what it was when it was read."""


def _condition(workload: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return a condition of a workload; empty where it does not hold."""
    for condition in (workload.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == "True":
            found: Mapping[str, Any] = condition
            return found
    return {}
