"""The admission check of Kueue, by the real client library, against a small API server."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("kubernetes", reason="needs the extra kubernetes")

import kubernetes.client

from edgeflow_opt.adapters import AdapterError, Cluster, advance, follow
from edgeflow_opt.adapters.kubernetes import KueueCluster
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Mode
from edgeflow_opt.service import EpochSession, SessionOptions
from tests.adapters.kube_api import MockApi, node, workload

KINDS: Any = {"cloud": "cloud", "edge": "edge"}
START = 1_790_000_000.0


def description(gpus: int, work: float, deadline: float | None, **more: Any) -> dict[str, Any]:
    """Return what the annotation of a job says; the deadline counts from the start."""
    modes = [{"site": "cloud", "gpus": gpus, "rate": float(gpus)}]
    if gpus == 1:
        modes.append({"site": "edge", "gpus": 1, "rate": 0.5})
    when = None if deadline is None else START + deadline
    return {"deadline": when, "work": work, "modes": modes, **more}


class World:
    """An API server, a cluster on it and its session."""

    def __init__(self, api: MockApi, **options: Any) -> None:
        self.api = api
        self.clock = START
        configuration = kubernetes.client.Configuration(host=api.url)
        self.client = kubernetes.client.ApiClient(configuration)
        self.cluster = KueueCluster(self.client, clock=lambda: self.clock, **options)
        self.session = EpochSession(
            self.cluster.sites(KINDS),
            now=START,
            options=SessionOptions(rungs=()),
            isolated=False,
        )

    def turn(self, seconds: float = 0.0) -> dict[str, Mode]:
        """Let time pass and Kueue and the session take a turn each; return who holds what."""
        self.clock += seconds
        self.api.step_kueue()
        return dict(advance(self.cluster, self.session).allocation)


@pytest.fixture
def api() -> Iterator[MockApi]:
    """Return a server with 2 GPUs in the cloud and an edge server."""
    with MockApi() as made:
        made.put("nodes", "c1", node("cloud", 2))
        made.put("nodes", "e1", node("edge", 4))
        made.put("nodes", "down", node("cloud", 8, ready=False))
        made.put(
            "admissionchecks",
            "edgeflow",
            {"metadata": {"generation": 3}, "spec": {"controllerName": "edgeflow-opt/session"}},
        )
        yield made


def test_workloads_are_admitted_held_back_evicted_and_ended(api: MockApi) -> None:
    """A tight job that comes later takes the GPUs of one with time, which comes back and ends."""
    world = World(api)
    assert isinstance(world.cluster, Cluster)
    assert {s.name: s.capacity[0][1] for s in world.session.view.sites.values()} == {
        "cloud": 2,
        "edge": 1,
    }
    world.cluster.activate()
    active = api.objects["admissionchecks", "edgeflow"]["status"]["conditions"][0]
    assert (active["type"], active["status"], active["observedGeneration"]) == ("Active", "True", 3)

    api.put("workloads", "loose", workload("loose", 2, description(2, 400.0, 4000.0)))
    world.turn()
    check = api.check_of("loose")
    assert check["state"] == "Ready"
    assert check["lastTransitionTime"] == "2026-09-21T14:13:20Z"
    assert check["podSetUpdates"] == [
        {"name": "main", "nodeSelector": {"edgeflow-opt/site": "cloud"}}
    ]
    # What others said of the workload is as before.
    assert api.workload("loose")["status"]["admissionChecks"][1]["state"] == "Ready"

    api.put("workloads", "tight", workload("tight", 2, description(2, 300.0, 165.0)))
    api.put("workloads", "small", workload("small", 1, description(1, 100.0, None)))
    world.turn(10.0)
    assert api.has("loose", "Admitted")
    assert api.check_of("loose")["state"] == "Retry"
    assert api.check_of("tight")["state"] == "Ready"
    assert api.check_of("small")["state"] == "Ready"
    edge = api.check_of("small")["podSetUpdates"][0]["nodeSelector"]
    assert edge == {"edgeflow-opt/site": "edge"}

    # Until Kueue has evicted it, the answer stands.
    advance(world.cluster, world.session)
    assert api.check_of("loose")["state"] == "Retry"
    world.turn(10.0)  # evicted
    assert not api.has("loose", "Admitted")
    assert world.session.view.jobs["default/loose"].mode is None
    world.turn(10.0)  # queued anew, and waits
    assert api.check_of("loose")["state"] == "Pending"
    assert api.check_of("loose")["message"].startswith("reserved, starts at 2026-09-21T")

    api.set_condition("tight", "Finished", True, "Succeeded")
    world.turn(100.0)
    assert "default/tight" not in world.session.view.jobs
    assert api.check_of("loose")["state"] == "Ready"
    del api.objects["workloads", "small"]
    world.turn(10.0)
    assert list(world.session.view.jobs) == ["default/loose"]
    assert api.has("loose", "Admitted")

    writes = len([method for method, _ in api.requests if method == "PATCH"])
    world.turn(1.0)
    assert len([method for method, _ in api.requests if method == "PATCH"]) == writes


def test_capacity_follows_the_nodes_and_a_new_controller_finds_what_runs(api: MockApi) -> None:
    """A node that comes back counts, and after a restart running workloads stay where they are."""
    world = World(api)
    api.put("workloads", "a", workload("a", 2, description(2, 4000.0, None)))
    world.turn()
    api.put("nodes", "down", node("cloud", 8))
    again = World(api)
    assert again.session.view.sites["cloud"].capacity[0][1] == 10
    decision = advance(again.cluster, again.session)
    assert decision.allocation["default/a"] == Mode(site="cloud", gpus=2, rate=2.0)
    assert decision.changes == ()
    world.turn(5.0)
    assert world.session.view.sites["cloud"].capacity == ((START + 5.0, 10),)


def test_what_cannot_be_is_rejected_with_the_reason(api: MockApi) -> None:
    """Faults of descriptions are told in the message; hopeless jobs are rejected where wanted."""
    world = World(api, reject_hopeless=True)
    api.put("workloads", "bad", workload("bad", 2, '{"work": -1, "modes": [], "deadlin": 5}'))
    api.put("workloads", "text", workload("text", 2, "[1"))
    api.put("workloads", "three", workload("three", 3, description(2, 10.0, None)))
    api.put("workloads", "where", workload("where", 1, description(1, 10.0, None)))
    late = description(2, 1e6, 100.0)
    late["modes"][0]["site"] = "moon"
    api.put("workloads", "moon", workload("moon", 2, late))
    api.put("workloads", "hopeless", workload("hopeless", 2, description(2, 1e6, 100.0)))
    api.put("workloads", "busy", workload("busy", 2, description(2, 190.0, 100.0)))
    world.turn()
    messages = {name: api.check_of(name) for name in ("bad", "text", "three", "moon")}
    assert {check["state"] for check in messages.values()} == {"Rejected"}
    for part in ("work", "modes", "deadlin"):
        assert part in messages["bad"]["message"]
    assert "one must have the 3 GPUs that its pods ask for" in messages["three"]["message"]
    assert "moon" in messages["moon"]["message"]
    assert api.check_of("where")["state"] == "Ready"
    assert api.check_of("busy")["state"] == "Ready"
    assert api.check_of("hopeless")["state"] == "Rejected"
    assert api.check_of("hopeless")["message"].startswith("hopeless")
    world.turn(1.0)
    assert "default/hopeless" not in world.session.view.jobs


def test_elastic_jobs_grow_in_place_and_shrink_by_eviction(api: MockApi) -> None:
    """More pods are let through by the extender; fewer need the workload to be begun anew."""
    world = World(api, elastic=True)
    both = description(1, 4000.0, None)
    both["modes"] = [{"site": "cloud", "gpus": g, "rate": float(g)} for g in (1, 2)]
    one = {**both, "work": 50.0, "modes": both["modes"][:1]}
    api.put("workloads", "a", workload("a", 1, one))
    api.put("workloads", "b", workload("b", 2, both))
    held = world.turn()
    assert held["default/b"].gpus == 1
    api.set_condition("a", "Finished", True, "Succeeded")
    held = world.turn(50.0)
    assert held["default/b"].gpus == 2
    assert api.check_of("b")["state"] == "Ready"
    tight = {**one, "deadline": world.clock + 51.0}
    api.put("workloads", "c", workload("c", 1, tight))
    held = world.turn(1.0)
    assert {job: mode.gpus for job, mode in held.items()} == {"default/b": 1, "default/c": 1}
    assert api.check_of("b")["state"] == "Retry"
    world.turn(1.0)
    world.turn(1.0)
    assert api.check_of("b")["state"] == "Ready"
    assert world.session.view.jobs["default/b"].mode == Mode(site="cloud", gpus=1, rate=1.0)


def test_an_answer_to_an_old_question_is_not_given(api: MockApi) -> None:
    """Where Kueue has changed the workload meanwhile nothing is written, and the session knows."""
    world = World(api)
    api.put("workloads", "a", workload("a", 2, description(2, 100.0, 1000.0)))
    api.before_patch = lambda: api.set_condition("a", "QuotaReserved", False)
    assert "default/a" in world.turn()
    assert api.check_of("a")["state"] == "Pending"
    assert world.session.view.jobs["default/a"].mode is None
    api.before_patch = None
    world.turn(1.0)
    assert api.check_of("a")["state"] == "Pending"
    api.set_condition("a", "QuotaReserved", True)
    world.turn(1.0)
    assert api.check_of("a")["state"] == "Ready"
    # A running one that could not be stopped is known to run on.
    api.put("workloads", "b", workload("b", 2, description(2, 190.0, 110.0)))
    api.before_patch = lambda: api.set_condition("a", "Other", True)
    world.turn(1.0)
    assert api.check_of("a")["state"] == "Ready"
    held = world.session.view.jobs["default/a"].mode
    assert held == Mode(site="cloud", gpus=2, rate=2.0)


def test_a_follower_is_woken_by_a_change(api: MockApi) -> None:
    """The loop waits for the API server, not for its interval, and goes on where that fails."""
    world = World(api)
    world.cluster = KueueCluster(world.client)
    stop, faults = threading.Event(), list[AdapterError]()
    api.broken = 500
    begin = time.monotonic()

    def heal(fault: AdapterError) -> None:
        faults.append(fault)
        api.broken = None

    def decided(decision: Any) -> None:
        if decision.allocation:
            stop.set()
        elif ("WATCH", "/apis/kueue.x-k8s.io/v1beta2/workloads") not in api.requests:
            threading.Timer(
                0.3,
                api.put,
                ("workloads", "a", workload("a", 1, description(1, 10.0, None))),
            ).start()

    follow(
        world.cluster,
        world.session,
        interval_s=0.01,
        stop=stop,
        on_decision=decided,
        on_error=heal,
        wait=lambda seconds: world.cluster.wait(30.0),
    )
    assert time.monotonic() - begin < 25.0
    assert api.check_of("a")["state"] == "Ready"
    assert len(faults) == 1
    assert str(faults[0]) == "Kubernetes, list_node: 500 Internal Server Error"


def test_a_foreign_check_or_server_is_refused(
    api: MockApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of another controller, one that is not there, no server and no library are told."""
    api.objects["admissionchecks", "edgeflow"]["spec"]["controllerName"] = "else"
    client = kubernetes.client.ApiClient(kubernetes.client.Configuration(host=api.url))
    with pytest.raises(
        UsageError, match="controllerName must be 'edgeflow-opt/session', got 'else'"
    ):
        KueueCluster(client).activate()
    with pytest.raises(AdapterError, match="get_cluster_custom_object: 404"):
        KueueCluster(client, "none").activate()
    nowhere = kubernetes.client.Configuration(host="http://127.0.0.1:9")
    nowhere.retries = 0
    with pytest.raises(AdapterError, match=r"Kubernetes, list_node: .*refused"):
        KueueCluster(kubernetes.client.ApiClient(nowhere)).sites(KINDS)
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(UsageError, match=r"edgeflow-opt\[kubernetes\]"):
        KueueCluster(client)
