"""A small API server of Kubernetes over HTTP, with the little of Kueue that a check is asked by."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


class MockApi:
    """Objects by kind and name; every write has a new version, as in Kubernetes."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.version = 1
        self.requests: list[tuple[str, str]] = []
        #: Answer every request with this status.
        self.broken: int | None = None
        #: Called before a patch is looked at.
        self.before_patch: Any = None
        name = "{name}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                Starlette(
                    routes=[
                        Route("/api/v1/nodes", self.nodes),
                        Route(f"{KUEUE}/workloads", self.workloads),
                        Route(
                            f"{KUEUE}/namespaces/{{namespace}}/workloads/{name}/status",
                            self.patch_workload,
                            methods=["PATCH"],
                        ),
                        Route(f"{KUEUE}/admissionchecks/{name}", self.check),
                        Route(
                            f"{KUEUE}/admissionchecks/{name}/status",
                            self.patch_check,
                            methods=["PATCH"],
                        ),
                    ]
                ),
                port=0,
                log_level="error",
                lifespan="off",
            )
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> MockApi:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10.0)

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def put(self, plural: str, name: str, item: dict[str, Any]) -> None:
        """Create or change an object."""
        self.version += 1
        item["metadata"] |= {"name": name, "resourceVersion": str(self.version)}
        self.objects[plural, name] = item

    def items(self, plural: str) -> list[dict[str, Any]]:
        return [item for (kind, _), item in self.objects.items() if kind == plural]

    def workload(self, name: str) -> dict[str, Any]:
        return self.objects["workloads", name]

    def check_of(self, name: str) -> dict[str, Any]:
        """Return what is known of the first check of a workload."""
        found: dict[str, Any] = self.workload(name)["status"]["admissionChecks"][0]
        return found

    def has(self, name: str, condition: str) -> bool:
        conditions = self.workload(name)["status"]["conditions"]
        return any(c["type"] == condition and c["status"] == "True" for c in conditions)

    def set_condition(self, name: str, kind: str, holds: bool, reason: str = "ByKueue") -> None:
        item = self.workload(name)
        conditions = [c for c in item["status"]["conditions"] if c["type"] != kind]
        conditions.append({"type": kind, "status": str(holds), "reason": reason})
        item["status"]["conditions"] = conditions
        self.put("workloads", name, item)

    def step_kueue(self) -> None:
        """Do what Kueue does about the states of checks: admit, evict and queue anew, deactivate."""
        for item in self.items("workloads"):
            name, check = item["metadata"]["name"], item["status"]["admissionChecks"][0]
            if check["state"] == "Ready" and self.has(name, "QuotaReserved"):
                self.set_condition(name, "Admitted", True)
            elif self.has(name, "Evicted"):
                self.set_condition(name, "Evicted", False)
                self.set_condition(name, "QuotaReserved", True)
            elif check["state"] in ("Retry", "Rejected"):
                rejected = check["state"] == "Rejected"
                item["spec"]["active"] = not rejected
                self.set_condition(name, "Admitted", False)
                self.set_condition(name, "QuotaReserved", False)
                self.set_condition(name, "Evicted", True)
                if not rejected:
                    check |= {"state": "Pending", "message": "Reset to Pending after eviction"}
                    check.pop("podSetUpdates", None)

    async def nodes(self, request: Request) -> Response:
        label = request.query_params["labelSelector"]
        items = [n for n in self.items("nodes") if label in n["metadata"]["labels"]]
        return self._answer(request, {"kind": "NodeList", "apiVersion": "v1", "items": items})

    async def workloads(self, request: Request) -> Response:
        if request.query_params.get("watch") != "true":
            metadata = {"resourceVersion": str(self.version)}
            return self._answer(request, {"metadata": metadata, "items": self.items("workloads")})
        since = int(request.query_params["resourceVersion"])
        until = time.monotonic() + float(request.query_params["timeoutSeconds"])

        async def changes() -> AsyncIterator[str]:
            sent = since
            while time.monotonic() < until:
                for item in self.items("workloads"):
                    version = int(item["metadata"]["resourceVersion"])
                    if version > sent:
                        sent = version
                        yield json.dumps({"type": "MODIFIED", "object": item}) + "\n"
                await asyncio.sleep(0.02)

        self.requests.append(("WATCH", request.url.path))
        return StreamingResponse(changes(), media_type="application/json")

    async def check(self, request: Request) -> Response:
        found = self.objects.get(("admissionchecks", request.path_params["name"]))
        if found is None:
            return self._refuse(404, "NotFound")
        return self._answer(request, found)

    async def patch_check(self, request: Request) -> Response:
        item = self.objects["admissionchecks", request.path_params["name"]]
        body = await self._applied(request)
        item["status"] = body["status"]
        return self._answer(request, item)

    async def patch_workload(self, request: Request) -> Response:
        """Apply fields of the status; the list of checks is a map by name."""
        if self.before_patch is not None:
            self.before_patch()
        name = request.path_params["name"]
        item = copy.deepcopy(self.workload(name))
        body = await self._applied(request)
        if body["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            return self._refuse(409, "Conflict")
        checks = {check["name"]: check for check in item["status"]["admissionChecks"]}
        for check in body["status"]["admissionChecks"]:
            assert set(check) <= {"name", "state", "message", "lastTransitionTime", "podSetUpdates"}
            checks[check["name"]] = check
        item["status"]["admissionChecks"] = list(checks.values())
        self.put("workloads", name, item)
        return self._answer(request, item)

    async def _applied(self, request: Request) -> dict[str, Any]:
        assert request.headers["content-type"] == "application/apply-patch+yaml"
        assert request.query_params["fieldManager"] == "edgeflow-opt"
        body: dict[str, Any] = await request.json()
        assert body["kind"]
        assert body["apiVersion"] == "kueue.x-k8s.io/v1beta2"
        return body

    def _answer(self, request: Request, document: dict[str, Any]) -> Response:
        self.requests.append((request.method, request.url.path))
        if self.broken is not None:
            return self._refuse(self.broken, "InternalError")
        return JSONResponse(document)

    def _refuse(self, status: int, reason: str) -> Response:
        document = {"kind": "Status", "status": "Failure", "reason": reason, "code": status}
        return JSONResponse(document, status)


def node(site: str, gpus: int, ready: bool = True) -> dict[str, Any]:
    """Return a node of a site."""
    return {
        "metadata": {"labels": {"edgeflow-opt/site": site}},
        "spec": {},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "8"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def workload(name: str, gpus: int, description: dict[str, Any] | str) -> dict[str, Any]:
    """Return a workload with quota, of one pod for each GPU, that our check is asked about."""
    text = description if isinstance(description, str) else json.dumps(description)
    container = {"name": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    template = {
        "metadata": {
            "labels": {"edgeflow-opt/job": name},
            "annotations": {"edgeflow-opt/description": text},
        },
        "spec": {"containers": [container]},
    }
    check = {"name": "edgeflow", "state": "Pending", "message": "", "lastTransitionTime": ""}
    other = {"name": "other", "state": "Ready", "message": "", "lastTransitionTime": ""}
    return {
        "metadata": {"namespace": "default"},
        "spec": {
            "active": True,
            "podSets": [{"name": "main", "count": gpus, "template": template}],
        },
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}],
            "admissionChecks": [check, other],
        },
    }
