"""A scheduler extender: kube-scheduler asks it which nodes a pod of ours may go to.

The contract is that of ``k8s.io/kube-scheduler/extender/v1``, whose keys begin with capitals. The
answers come from the last decision of a session: a pod of a job may go to the nodes of the site that
its job holds, and only as many pods as the job has GPUs. Pods of others pass.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from edgeflow_opt.adapters.kubernetes.pods import SITE_LABEL, gpus_of, index_of, job_id_of, told
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError
from edgeflow_opt.service.lanes import Lane
from edgeflow_opt.service.refusals import TooManyError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from edgeflow_opt.service.decision import SessionDecision

logger = logging.getLogger(__name__)

#: Highest score of the contract (``MaxExtenderPriority``).
_BEST_SCORE = 10

#: Answers that are worked out at a time, and that are so or wait; kube-scheduler asks for one pod
#: after the other.
_THREADS, _PLACES = 2, 32


class _Metadata(msgspec.Struct):
    namespace: str = "default"
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Container(msgspec.Struct):
    resources: dict[str, Any] | None = None


class _PodSpec(msgspec.Struct):
    containers: list[_Container] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _PodSpec | None = None


class _NodeMetadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _Node(msgspec.Struct):
    metadata: _NodeMetadata


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


class _ExtenderArgs(msgspec.Struct, rename="pascal"):
    """What is looked at of the arguments; the rest passes through."""

    pod: _Pod
    nodes: _NodeList | None = None
    node_names: list[str] | None = None


class PodGate:
    """Which pods may go where, by the last decision.

    Parameters
    ----------
    node_sites
        Site of each node by name, for a scheduler with ``nodeCacheCapable: true``, which sends names
        only; None = by the label ``edgeflow-opt/site`` of the nodes that it sends.
    """

    def __init__(self, node_sites: Mapping[str, str] | None = None) -> None:
        self._node_sites = node_sites
        self._decision: SessionDecision | None = None

    def take(self, decision: SessionDecision) -> None:
        """Answer by this decision from now on: the `on_decision` of a follower."""
        self._decision = decision

    def filter(self, args: Any) -> dict[str, Any]:
        """Return the ``ExtenderFilterResult`` for ``ExtenderArgs``, both as parsed JSON.

        Raises
        ------
        UsageError
            If the arguments are not of that form.
        """
        known, sites = self._read(args)
        refusals = {}
        refusal, site = self._verdict(known.pod)
        for node, where in sites.items():
            if refusal:
                refusals[node] = refusal
            elif site is not None and where != site:
                refusals[node] = f"edgeflow: the job holds GPUs of site {site}"
        nodes, names = args.get("Nodes"), known.node_names
        if nodes is not None:
            items = nodes.get("items") or ()
            kept = [item for item in items if item["metadata"]["name"] not in refusals]
            nodes = {**nodes, "items": kept}
        if names is not None:
            names = [name for name in names if name not in refusals]
        return {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": {},
            # No other pod need be preempted for it: that would not help.
            "FailedAndUnresolvableNodes": refusals,
            "Error": "",
        }

    def prioritize(self, args: Any) -> list[dict[str, Any]]:
        """Return the ``HostPriorityList`` for ``ExtenderArgs``: 10 on the site of the job, else 0.

        Raises
        ------
        UsageError
            If the arguments are not of that form.
        """
        known, sites = self._read(args)
        refusal, site = self._verdict(known.pod)
        good = None if refusal else site
        return [
            {"Host": node, "Score": _BEST_SCORE if good is not None and where == good else 0}
            for node, where in sites.items()
        ]

    def _read(self, args: Any) -> tuple[_ExtenderArgs, dict[str, str | None]]:
        """Return the arguments, and the site of each node."""
        try:
            known = msgspec.convert(args, _ExtenderArgs)
        except msgspec.ValidationError as fault:
            raise UsageError(f"must be ExtenderArgs of kube-scheduler: {fault}") from fault
        sites: dict[str, str | None] = {}
        for node in (known.nodes and known.nodes.items) or ():
            sites[node.metadata.name] = (node.metadata.labels or {}).get(SITE_LABEL)
        if self._node_sites is not None:
            sites |= {
                name: self._node_sites.get(name) for name in (*sites, *(known.node_names or ()))
            }
        elif known.node_names:
            raise UsageError(
                "NodeNames came without Nodes, whose labels say their sites: set nodeCacheCapable to "
                "false, or give node_sites"
            )
        return known, sites

    def _verdict(self, pod: _Pod) -> tuple[str, str | None]:
        """Return why a pod may go nowhere, else empty, and its site; neither for pods of others."""
        metadata = msgspec.to_builtins(pod.metadata)
        job = job_id_of(metadata, pod.metadata.namespace)
        if job is None:
            return "", None
        decision = self._decision
        if decision is None:
            return "edgeflow: nothing is decided yet", None
        mode = decision.allocation.get(job)
        if mode is None:
            for reason in decision.reasons:
                if reason.job == job:
                    return f"edgeflow: {told(reason)}", None
            return f"edgeflow: the session knows no job {job}", None
        each = gpus_of(msgspec.to_builtins(pod.spec)) if pod.spec is not None else 0
        wanted = (index_of(metadata) + 1) * each
        if wanted > mode.gpus:
            return f"edgeflow: GPUs of the job: {mode.gpus}; with this pod: {wanted}", None
        return "", mode.site


def make_extender(
    gate: PodGate,
    *,
    token: str | None = None,
    max_bytes: int = 64 << 20,
    body_timeout_s: float = 5.0,
) -> Starlette:
    """Return an ASGI application with ``POST /filter``, ``POST /prioritize`` and ``GET /health``.

    Parameters
    ----------
    gate
        Who answers.
    token
        Lets requests in (``Authorization: Bearer``); None = all. kube-scheduler sends none: it shows a
        client certificate to a server of TLS.
    max_bytes
        Largest body: a list of nodes with all that Kubernetes knows of them, some 10 kB each.
    body_timeout_s
        Seconds within which the body has to be there.

    Raises
    ------
    UsageError
        If the extra ``kubernetes`` is not installed.
    """
    applications = load("starlette.applications", "kubernetes", "the scheduler extender")
    requests = load("starlette.requests", "kubernetes", "the scheduler extender")
    responses = load("starlette.responses", "kubernetes", "the scheduler extender")
    routing = load("starlette.routing", "kubernetes", "the scheduler extender")

    # Not the threads that the loop keeps for everybody: others may have filled them.
    lane = Lane("extender", _THREADS, _PLACES)

    def refuse(status: int, text: str) -> Response:
        # The rest of a body that is too large or too slow is not read.
        headers = {"connection": "close"} if status in (408, 413) else None
        response: Response = responses.PlainTextResponse(text + "\n", status, headers)
        return response

    def route(answer: Callable[[Any], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            given = request.headers.get("authorization", "")
            if token is not None and not hmac.compare_digest(
                given.encode(), f"Bearer {token}".encode()
            ):
                return refuse(401, "give 'Authorization: Bearer TOKEN'")
            body = bytearray()
            try:
                async with asyncio.timeout(body_timeout_s):
                    async for piece in request.stream():
                        body += piece
                        if len(body) > max_bytes:
                            return refuse(413, f"the body is larger than {max_bytes} bytes")
            except TimeoutError:
                return refuse(408, f"no body within {body_timeout_s:g} s")
            except requests.ClientDisconnect:
                return refuse(400, "the body ends too early")
            try:
                args = msgspec.json.decode(bytes(body))
                found = msgspec.json.encode(await lane.run(partial(answer, args)))
            except UsageError as fault:
                return refuse(400, str(fault))
            except TooManyError as fault:
                return refuse(503, str(fault))
            except (ValueError, RecursionError) as fault:
                return refuse(400, f"the body must be JSON: {fault}")
            response: Response = responses.Response(found, media_type="application/json")
            return response

        return endpoint

    async def health(request: Request) -> Response:
        return refuse(200, "alive")

    app: Starlette = applications.Starlette(
        routes=[
            routing.Route("/filter", route(gate.filter), methods=["POST"]),
            routing.Route("/prioritize", route(gate.prioritize), methods=["POST"]),
            routing.Route("/health", health, methods=["GET"]),
        ]
    )
    return app
