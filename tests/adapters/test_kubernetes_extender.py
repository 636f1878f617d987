"""The scheduler extender, asked over HTTP as kube-scheduler asks it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs the extra kubernetes")

import uvicorn

from edgeflow_opt.adapters.kubernetes import PodGate, make_extender
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Job, Mode, Site
from edgeflow_opt.service import EpochSession, SessionDecision, SessionOptions

TOKEN = "secret"


def decided() -> SessionDecision:
    """Return a decision: 'two' holds 2 of 3 GPUs, 'small' the edge, 'late' is hopeless."""
    sites = (
        Site(name="cloud", kind="cloud", capacity=((0.0, 3),)),
        Site(name="edge", kind="edge", capacity=((0.0, 1),)),
    )
    two = (Mode(site="cloud", gpus=2, rate=2.0),)
    four = (Mode(site="cloud", gpus=3, rate=1.0),)
    small = (Mode(site="edge", gpus=1, rate=1.0),)
    jobs = (
        Job(id="ml/two", deadline=100.0, work=100.0, modes=two),
        Job(id="ml/small", deadline=100.0, work=50.0, modes=small),
        Job(id="ml/late", deadline=100.0, work=1e6, modes=four),
    )
    options = SessionOptions(rungs=())
    with EpochSession(sites, jobs=jobs, options=options, isolated=False) as session:
        return session.decide()


class Server:
    """The extender behind uvicorn."""

    def __init__(self, gate: PodGate) -> None:
        app = make_extender(gate, token=TOKEN, max_bytes=100_000, body_timeout_s=0.3)
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def post(self, path: str, body: Any, token: str = TOKEN) -> tuple[int, Any]:
        """Return status and answer: parsed where it is JSON."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10.0)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        line.request("POST", path, data, {"Authorization": f"Bearer {token}"})
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        return answer.status, json.loads(text) if answer.status == 200 else text

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(10.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return an extender that answers from a decision."""
    gate = PodGate()
    gate.take(decided())
    made = Server(gate)
    yield made
    made.stop()


def pod(job: str | None, index: int | None = None, gpus: int = 1) -> dict[str, Any]:
    """Return a pod as kube-scheduler sends it, much shortened."""
    labels = {} if job is None else {"edgeflow-opt/job": job}
    if index is not None:
        labels["batch.kubernetes.io/job-completion-index"] = str(index)
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "metadata": {"name": f"{job}-x", "namespace": "ml", "labels": labels, "uid": "1"},
        "spec": {"containers": [container]},
        "status": {"phase": "Pending"},
    }


def nodes(*sites: str | None) -> dict[str, Any]:
    """Return a list of nodes n0, n1, ... of these sites."""
    items = []
    for index, site in enumerate(sites):
        labels = {} if site is None else {"edgeflow-opt/site": site}
        items.append({"metadata": {"name": f"n{index}", "labels": labels}, "status": {"x": [1]}})
    return {"metadata": {"resourceVersion": "7"}, "items": items}


def test_pods_go_to_the_site_of_their_job_only(server: Server) -> None:
    """The result has all keys of the contract, whole nodes, and a reason for each refused one."""
    offered = nodes("cloud", "edge", None)
    args = {"Pod": pod("two", 1), "Nodes": offered, "NodeNames": None}
    status, found = server.post("/filter", args)
    assert status == 200
    reason = "edgeflow: the job holds GPUs of site cloud"
    assert found == {
        "Nodes": {"metadata": {"resourceVersion": "7"}, "items": offered["items"][:1]},
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"n1": reason, "n2": reason},
        "Error": "",
    }
    assert server.post("/prioritize", args) == (
        200,
        [{"Host": "n0", "Score": 10}, {"Host": "n1", "Score": 0}, {"Host": "n2", "Score": 0}],
    )


def test_only_as_many_pods_as_the_job_holds_gpus(server: Server) -> None:
    """The third pod of a job of two GPUs waits, as do pods of jobs that hold none."""
    offered = nodes("cloud", "edge")

    def refusals(which: dict[str, Any]) -> dict[str, str]:
        status, found = server.post("/filter", {"Pod": which, "Nodes": offered})
        assert status == 200
        refused: dict[str, str] = found["FailedAndUnresolvableNodes"]
        assert [n["metadata"]["name"] for n in found["Nodes"]["items"]] == [
            name for name in ("n0", "n1") if name not in refused
        ]
        return refused

    assert set(refusals(pod("two", 0))) == {"n1"}
    assert set(refusals(pod("two", gpus=2))) == {"n1"}
    text = "edgeflow: GPUs of the job: 2; with this pod: 3"
    assert refusals(pod("two", 2)) == {"n0": text, "n1": text}
    assert set(refusals(pod("small"))) == {"n0"}
    assert refusals(pod("late"))["n0"].startswith("edgeflow: hopeless")
    assert refusals(pod("who"))["n0"] == "edgeflow: the session knows no job ml/who"
    assert refusals(pod(None)) == {}
    scores = server.post("/prioritize", {"Pod": pod(None), "Nodes": offered})[1]
    assert [score["Score"] for score in scores] == [0, 0]


def test_names_alone_need_their_sites() -> None:
    """With nodeCacheCapable the sites come from the caller; nothing goes before a decision."""
    args = {"Pod": pod("two"), "Nodes": None, "NodeNames": ["a", "b"]}
    gate = PodGate({"a": "cloud", "b": "edge"})
    before = gate.filter(args)
    assert before["NodeNames"] == []
    assert before["FailedAndUnresolvableNodes"]["a"] == "edgeflow: nothing is decided yet"
    gate.take(decided())
    found = gate.filter(args)
    assert (found["Nodes"], found["NodeNames"]) == (None, ["a"])
    assert gate.prioritize(args) == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]
    with pytest.raises(UsageError, match=r"NodeNames came without Nodes.*nodeCacheCapable"):
        PodGate().filter(args)


def test_it_answers_where_others_hold_the_threads_of_the_loop() -> None:
    """A program that it is mounted in may fill the default executor: it has threads of its own."""
    gate = PodGate()
    gate.take(decided())
    app = make_extender(gate)
    body = json.dumps({"Pod": pod("two"), "Nodes": nodes("cloud")}).encode()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def asked(until: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        held = loop.run_in_executor(None, until.wait)
        scope = {
            "type": "http", "method": "POST", "path": "/filter", "headers": [],
            "query_string": b"", "root_path": "",
        }  # fmt: skip
        try:
            await asyncio.wait_for(app(scope, receive, send), 10.0)
        finally:
            until.set()
            await held

    asyncio.run(asked(threading.Event()))
    assert sent[0]["status"] == 200
    assert [item["metadata"]["name"] for item in json.loads(sent[1]["body"])["Nodes"]["items"]] == [
        "n0"
    ]


def test_what_is_wrong_with_a_request_is_told(server: Server) -> None:
    """Junk is answered by 400, and slow, large and foreign requests by their own codes."""
    for junk in (b"", b"[1", b"\xff", b"NaN", b'{"Pod": {"metadata": {"labels": {"a": NaN}}}}'):
        status, text = server.post("/filter", junk)
        assert status == 400
        assert "the body must be JSON" in text
    for wrong in ([], {}, {"Pod": None}, {"Pod": pod("two"), "Nodes": {"items": [{}]}}):
        status, text = server.post("/prioritize", wrong)
        assert status == 400
        assert "must be ExtenderArgs of kube-scheduler" in text
    assert server.post("/filter", {"Pod": pod("two"), "NodeNames": ["a"]})[0] == 400
    assert server.post("/filter", b"[" * 90_000)[0] == 400
    assert server.post("/filter", b" " * 100_001)[0] == 413
    assert server.post("/filter", {}, token="other")[0] == 401
    assert server.post("/bind", {})[0] == 404
    with socket.create_connection(("127.0.0.1", server.port), timeout=10.0) as line:
        head = f"POST /filter HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        line.sendall((head + "Content-Length: 10\r\n\r\n{").encode())
        assert line.recv(100).startswith(b"HTTP/1.1 408 ")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "items", "name", "labels", "containers", "resources", "limits"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
#: Documents that are not at fault at the first key, so that some are answered.
_NAMED = st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"name": st.text(max_size=3)})})
_NODES = st.none() | st.fixed_dictionaries({"items": st.lists(_NAMED, max_size=3)}) | _JSON
_NAMES = st.none() | st.lists(st.text(max_size=3), max_size=3) | _JSON
_PODS = st.none() | st.fixed_dictionaries({"metadata": st.just({})}) | _JSON


@settings(max_examples=30, deadline=None)
@given(pod_json=_PODS, nodes_json=_NODES, names=_NAMES)
def test_no_document_is_a_fault_of_ours(pod_json: Any, nodes_json: Any, names: Any) -> None:
    """Whatever JSON comes is answered in the shape of the contract, or refused by a clear error."""
    gate = PodGate({})
    gate.take(DECISION)
    metadata = {"namespace": "ml", "labels": {"edgeflow-opt/job": "two"}}
    for which in (pod_json, {"metadata": metadata, "spec": pod_json}):
        args = {"Pod": which, "Nodes": nodes_json, "NodeNames": names}
        refusal = ""
        try:
            filtered, scores = gate.filter(args), gate.prioritize(args)
        except UsageError as fault:
            refusal = str(fault)
        if refusal:
            assert refusal.startswith("must be ExtenderArgs of kube-scheduler: ")
            continue
        assert json.loads(json.dumps([filtered, scores])) == [filtered, scores]
        refused = filtered["FailedAndUnresolvableNodes"]
        asked = {item["metadata"]["name"] for item in (nodes_json or {}).get("items") or ()}
        asked |= set(names or ())
        # A gate that knows the sites of no nodes lets no pod of a job onto any.
        assert set(refused) == (asked if which is not pod_json else set())
        assert (filtered["FailedNodes"], filtered["Error"]) == ({}, "")
        assert filtered["NodeNames"] == (names and [name for name in names if name not in refused])
        assert {score["Host"] for score in scores} == asked
        assert {score["Score"] for score in scores} <= {0}


DECISION = decided()
