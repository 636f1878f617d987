"""The API server of Kubernetes with Kueue: what is read from it, and what is written to it."""

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
    gpus_of,
    job_id_of,
    time_text,
)
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError

#: What the check names as its controller.
CONTROLLER = "edgeflow-opt/session"

_GROUP = "kueue.x-k8s.io"
_PURPOSE = "the adapter of Kubernetes"
_APPLY = "application/apply-patch+yaml"

#: Longest message that Kueue takes.
_LONGEST = 32768

_log = logging.getLogger(__name__)

State = Literal["Pending", "Ready", "Retry", "Rejected"]


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """A workload that Kueue asks our check about.

    Parameters
    ----------
    document
        As Kubernetes has it.
    job
        Id of its job for the session.
    state, message
        Of our check.
    site
        The site that its pods are sent to; None = not said yet.
    """

    document: dict[str, Any]
    job: str
    state: State
    message: str
    site: str | None

    @property
    def holds(self) -> bool:
        """Whether its pods run, or will as soon as Kueue comes to it."""
        return self.state == "Ready" and not _condition(self.document, "Evicted")

    @property
    def admissible(self) -> bool:
        """Whether Kueue has reserved quota, and looks at our answer."""
        if self.state != "Pending":
            # Kueue has yet to evict it, or to deactivate it, by what was answered before.
            return False
        reserved = _condition(self.document, "QuotaReserved")
        return bool(reserved) and not _condition(self.document, "Evicted")

    @property
    def active(self) -> bool:
        """Whether it is neither done nor deactivated."""
        return bool(self.document["spec"].get("active", True)) and not self.finished

    @property
    def finished(self) -> str:
        """Why it is done, ``Succeeded`` for one; empty = it is not."""
        return str(_condition(self.document, "Finished").get("reason", ""))

    @property
    def template(self) -> dict[str, Any]:
        """The metadata of its pods."""
        found = self.document["spec"]["podSets"][0]["template"].get("metadata")
        return found or {}

    @property
    def gpus(self) -> int:
        """GPUs of all its pods."""
        return sum(
            int(pods.get("count", 1)) * gpus_of(pods["template"].get("spec") or {})
            for pods in self.document["spec"]["podSets"]
        )


class KueueApi:
    """An API server.

    Parameters
    ----------
    client
        A ``kubernetes.client.ApiClient``.
    check, namespace, version, timeout_s
        As for :class:`~edgeflow_opt.adapters.kubernetes.kueue.KueueCluster`.

    Raises
    ------
    UsageError
        If the extra ``kubernetes`` is not installed.
    """

    def __init__(
        self, client: Any, check: str, namespace: str | None, version: str, timeout_s: float
    ) -> None:
        library = load("kubernetes.client", "kubernetes", _PURPOSE)
        self._custom = library.CustomObjectsApi(client)
        self._core = library.CoreV1Api(client)
        self._check = check
        self._namespace = namespace
        self._version = version
        self._timeout_s = timeout_s
        self._seen = ""

    def activate(self, now: float) -> None:
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
            "lastTransitionTime": time_text(now),
        }
        self._apply(
            self._custom.patch_cluster_custom_object_status,
            where,
            "AdmissionCheck",
            {"name": self._check},
            {"conditions": [condition]},
        )

    def units(self, kinds: Mapping[str, str]) -> dict[str, int]:
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

    def workloads(self) -> list[Workload]:
        """Return the workloads of ours that Kueue asks our check about."""
        method, where = self._listing()
        found = self._ask(method, *where)
        self._seen = str((found.get("metadata") or {}).get("resourceVersion", ""))
        read = (self._read(workload) for workload in found["items"])
        return [workload for workload in read if workload is not None]

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

    def answer(
        self, ours: Workload, state: State, message: str, now: float, site: str | None = None
    ) -> bool:
        """Set the state of our check; False = the workload has changed meanwhile."""
        if (state, message) == (ours.state, ours.message) or ours.state == state == "Ready":
            return True
        metadata = ours.document["metadata"]
        check: dict[str, Any] = {
            "name": self._check,
            "state": state,
            "message": message[:_LONGEST],
            "lastTransitionTime": time_text(now),
        }
        if site is not None:
            pod_sets = ours.document["spec"]["podSets"]
            check["podSetUpdates"] = [
                {"name": pods.get("name", "main"), "nodeSelector": {SITE_LABEL: site}}
                for pods in pod_sets
            ]
        where = (_GROUP, self._version, metadata["namespace"], "workloads", metadata["name"])
        # By the version nothing is answered that Kueue has asked anew meanwhile.
        named = {key: metadata[key] for key in ("name", "namespace", "resourceVersion")}
        patch = self._custom.patch_namespaced_custom_object_status
        return self._apply(patch, where, "Workload", named, {"admissionChecks": [check]})

    def _listing(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        if self._namespace is None:
            return self._custom.list_custom_object_for_all_namespaces, (
                _GROUP, self._version, "workloads",
            )  # fmt: skip
        where = (_GROUP, self._version, self._namespace, "workloads")
        return self._custom.list_namespaced_custom_object, where

    def _read(self, workload: dict[str, Any]) -> Workload | None:
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
        return Workload(
            document=workload,
            job=job,
            state=check["state"],
            message=check.get("message", ""),
            site=sites[0] if sites else None,
        )

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
