"""The service through a client: its answers, its limits, its faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    check,
    problem_to_dict,
    schedule_from_dict,
    schedule_to_dict,
)
from edgeflow_opt.problem.constraints.group_quota import GroupQuota
from edgeflow_opt.service import JobArrived, JobCompleted, events_to_dict
from edgeflow_opt.service.app import make_app
from edgeflow_opt.service.openapi import openapi_document
from edgeflow_opt.service.settings import ServiceSettings
from edgeflow_opt.service.store import SessionStore
from edgeflow_opt.solvers import solve
from tests.service.clusters import job, sites

TOKEN = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def client(plug_in_folder: Path) -> Iterator[TestClient]:
    """Return a client of a service with one process that knows the solvers of the plug-in."""
    settings = ServiceSettings(
        tokens=("other", "secret"),
        workers=1,
        waiting=7,
        max_bytes=200_000,
        max_jobs=50,
        max_time_limit_s=120.0,
        max_sessions=3,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plug_in_folder))
        with TestClient(make_app(settings), headers=TOKEN) as made:
            _wait(lambda: made.get("/ready").status_code == 200)
            yield made


def _wait(true: Any, limit_s: float = 120.0) -> None:
    until = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until, "did not come about in time"
        time.sleep(0.1)


def _problem(jobs: int = 3) -> EpochProblem:
    return EpochProblem(
        grid=Grid.uniform(0.0, 60.0, 8),
        sites=sites(),
        jobs=tuple(job(f"j{index}") for index in range(jobs)),
    )


def _request(**changes: Any) -> dict[str, Any]:
    return {"problem": problem_to_dict(_problem()), "time_limit_s": 20.0, **changes}


def _fits(document: Any, name: str) -> None:
    """Check a document against the schema of that name in the OpenAPI document."""
    whole = openapi_document()
    schema = {"$ref": f"#/components/schemas/{name}", "components": whole["components"]}
    jsonschema.Draft202012Validator(schema).validate(document)


def test_solve_gives_a_checked_schedule(client: TestClient) -> None:
    """The answer of /solve is a schedule document that the checker passes, proven optimal here."""
    answer = client.post("/solve", json=_request())
    assert answer.status_code == 200
    document = answer.json()
    _fits(document, "Answer")
    schedule = schedule_from_dict(document["schedule"])
    assert check(_problem(), schedule).valid
    assert (document["rung"], schedule.status, schedule.met) == ("auto", "optimal", 3)


def test_constraints_are_kept(client: TestClient) -> None:
    """They are no matter of the rung between, which does not know them, but of the solver asked for."""
    quota = GroupQuota(gpus=0, jobs=("j0", "j1", "j2"), site="cloud")
    body = _request(problem=problem_to_dict(_problem().replace(constraints=(quota,))))
    answer = client.post("/solve", json=body).json()
    assert (answer["rung"], answer["schedule"]["status"]) == ("auto", "optimal")
    assert {a["site"] for a in answer["schedule"]["allocations"]} <= {"edge"}


def test_check_bound_and_explain(client: TestClient) -> None:
    """The other stateless routes say what the library says."""
    problem = _problem(6)
    schedule = solve(problem, "greedy").schedule
    body = {"problem": problem_to_dict(problem), "schedule": schedule_to_dict(schedule)}
    checked = client.post("/check", json=body).json()
    _fits(checked, "CheckAnswer")
    assert (checked["valid"], checked["met"]) == (True, schedule.met)
    body["schedule"]["outcomes"][0]["met"] = not body["schedule"]["outcomes"][0]["met"]
    assert client.post("/check", json=body).json()["valid"] is False
    bound = client.post("/bound", json={"problem": body["problem"], "time_limit_s": 20}).json()
    _fits(bound, "BoundAnswer")
    assert schedule.met <= bound["value"] <= bound["bound"]
    explained = client.post("/explain", json={"problem": body["problem"], "time_limit_s": 20})
    assert explained.json()["format"] == "edgeflow-explanation/1"


def test_faults_are_told_together(client: TestClient) -> None:
    """A body at fault is 422, with object, field and rule of every fault."""
    body = _request()
    body["problem"]["jobs"][0]["work"] = -1
    body["problem"]["jobs"][1]["modes"] = []
    answer = client.post("/solve", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    _fits(answer.json(), "ProblemDetails")
    told = {(fault["object"], fault["field"]) for fault in answer.json()["faults"]}
    assert told == {("job 'j0'", "work"), ("job 'j1'", "modes")}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"problem": {}, "colour": 1}', "colour"),
        (b"{}", "add the key 'problem'"),
        (b'{"problem": {}, "time_limit_s": 1e5}', "at most 120 s"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_nonsense_is_refused(client: TestClient, body: bytes, words: str) -> None:
    """A body that is no request is 422, with the rule that it breaks."""
    answer = client.post("/solve", content=body)
    assert answer.status_code == 422
    assert any(word in answer.text for word in words.split("|")), answer.text


def test_unknown_solvers_and_paths_are_told(client: TestClient) -> None:
    """A wrong name of a solver, a path or a method gives a document, not a page."""
    answer = client.post("/solve", json=_request(solver="cpsta"))
    assert (answer.status_code, "did you mean 'cpsat'" in answer.text) == (422, True)
    assert client.get("/nowhere").json()["status"] == 404
    assert client.get("/solve").json()["status"] == 405


def test_limits_of_size(client: TestClient) -> None:
    """Too large a body is 413 whatever it says of its length; too many jobs are 422."""
    large = b" " * 200_001
    assert client.post("/solve", content=large).status_code == 413
    for count in (5, 50):
        pieces = (large[:50_000] for _ in range(count))
        assert client.post("/solve", content=pieces).status_code == 413
    assert client.post("/solve", content=3 * large).status_code == 413
    held_back = {"Expect": "100-continue"}
    assert client.post("/solve", content=large, headers=held_back).status_code == 413
    many = _request(problem=problem_to_dict(_problem(51)))
    answer = client.post("/solve", json=many)
    assert (answer.status_code, "takes at most 50" in answer.text) == (422, True)


def test_tokens(client: TestClient) -> None:
    """Without one of the tokens nothing is served but health, readiness and the document."""
    for header in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
        answer = client.post("/solve", json=_request(), headers=header)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get("/metrics", headers=header).status_code == 401
        assert client.get("/health", headers=header).status_code == 200
    other = {"Authorization": "Bearer other"}
    assert client.get("/sessions", headers=other).status_code == 200


def test_a_bad_solver_is_stood_in_for(client: TestClient) -> None:
    """Where the solver crashes, the answer is that of edgeflow-select, and says so."""
    _wait(lambda: client.get("/ready").status_code == 200)
    answer = client.post("/solve", json=_request(solver="crashing", time_limit_s=30)).json()
    assert answer["rung"] == "edgeflow-select"
    assert answer["message"]
    assert schedule_from_dict(answer["schedule"]).met == 3
    _wait(lambda: client.get("/ready").status_code == 200)


def test_cancel_and_back_pressure(client: TestClient) -> None:
    """Hanging solves hold up nothing but others, which end in time; they end by their ids."""
    _wait(lambda: client.get("/ready").status_code == 200)
    document = problem_to_dict(_problem(2))
    session = client.post("/sessions", json={"sites": document["sites"], "jobs": document["jobs"]})
    path = f"/sessions/{session.json()['id']}"
    answers: dict[str, Any] = {}

    def ask(name: str) -> None:
        answers[name] = client.post(
            "/solve",
            json=_request(solver="hanging", time_limit_s=100),
            headers={"X-Solve-Id": name},
        )

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcdefgh"]
    for thread in threads[:-1]:
        thread.start()
    _wait(lambda: "edgeflow_under_way 7.0" in client.get("/metrics").text)
    short = client.post("/solve", json=_request(solver="greedy", time_limit_s=1)).json()
    assert (short["rung"], short["message"][:5]) == ("edgeflow-select", "busy:")
    threads[-1].start()
    _wait(lambda: "edgeflow_under_way 8.0" in client.get("/metrics").text)
    refused = client.post("/check", json={})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    decision = client.post(f"{path}/decide", json={"time_limit_s": 0.5}).json()
    assert decision["value"] == 2.0
    assert client.delete(path).status_code == 204
    assert answers == {}
    for name in "abcdefgh":
        assert client.delete(f"/solves/{name}").status_code == 202
    for thread in threads:
        thread.join(30.0)
    # Each with the best it has, whether it had a process or waited for one.
    assert {answer.status_code for answer in answers.values()} == {200}
    assert {answer.json()["rung"] for answer in answers.values()} == {"edgeflow-select"}
    assert client.delete("/solves/a").status_code == 404
    _wait(lambda: client.get("/ready").status_code == 200)


def test_progress_as_a_stream(client: TestClient) -> None:
    """With Accept: text/event-stream progress comes first and the answer last."""
    headers = {"Accept": "text/event-stream"}
    with client.stream("POST", "/solve", json=_request(), headers=headers) as answer:
        text = "".join(answer.iter_text())
    kinds = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert kinds[-1] == "result"
    assert set(kinds[:-1]) == {"progress"}
    with client.stream("POST", "/solve", json={}, headers=headers) as answer:
        assert "event: fault" in "".join(answer.iter_text())


def test_a_session_through_its_life(client: TestClient) -> None:
    """Begin, tell, decide, look, repeat, begin again from the snapshot, end."""
    document = problem_to_dict(_problem(2))
    begun = client.post("/sessions", json={"sites": document["sites"], "jobs": document["jobs"]})
    assert begun.status_code == 201
    _fits(begun.json(), "SessionAnswer")
    name = begun.json()["id"]
    events = events_to_dict([JobArrived(time=5.0, job=job("late"))], batch="b1")
    for taken in (1, 0):
        answer = client.post(f"/sessions/{name}/events", json=events).json()
        assert answer == {"taken": taken, "sequence": 1}
    decision = client.post(f"/sessions/{name}/decide", json={"now": 10, "time_limit_s": 5}).json()
    _fits(decision, "DecisionAnswer")
    assert decision["value"] == 3.0
    bad = events_to_dict([JobCompleted(time=11.0, job="nobody")])
    assert client.post(f"/sessions/{name}/events", json=bad).status_code == 422
    snapshot = client.get(f"/sessions/{name}").json()
    _fits(snapshot, "WireSession")
    other = client.post("/sessions", json={"snapshot": snapshot}).json()
    assert (other["jobs"], other["sequence"], other["decisions"]) == (3, 1, 1)
    assert client.get(f"/sessions/{other['id']}").json() == snapshot
    third = client.post("/sessions", json={"sites": document["sites"]})
    assert third.status_code == 201
    assert client.post("/sessions", json={"sites": document["sites"]}).status_code == 429
    for each in client.get("/sessions").json():
        assert client.delete(f"/sessions/{each['id']}").status_code == 204
    assert client.get(f"/sessions/{name}").status_code == 404


def test_metrics_count_routes(client: TestClient) -> None:
    """Metrics know routes by their templates, so that ids do not become labels."""
    client.get("/sessions/some-id")
    text = client.get("/metrics").text
    assert 'route="/sessions/{id}",status="404"' in text
    assert "some-id" not in text


def test_a_full_store_changes_nothing(tmp_path: Path) -> None:
    """Where the file is full the request gets 507, and all is as before, also after a restart."""
    path = tmp_path / "sessions.db"
    settings = ServiceSettings(store=path, workers=1, max_store_mib=1, max_bytes=1 << 22)
    document = problem_to_dict(_problem(2))
    with TestClient(make_app(settings)) as client:
        begun = client.post("/sessions", json={"sites": document["sites"]})
        name = begun.json()["id"]
        codes, sequence = [], 0
        for index in range(40):
            jobs = [job(f"{index}-{k}" + "x" * 3000) for k in range(20)]
            events = events_to_dict([JobArrived(time=0.0, job=one) for one in jobs])
            answer = client.post(f"/sessions/{name}/events", json=events)
            codes.append(answer.status_code)
            if answer.status_code == 200:
                sequence = answer.json()["sequence"]
        assert set(codes) == {200, 507}
        assert "full" in answer.json()["detail"]
        before = client.get(f"/sessions/{name}").json()
        assert before["sequence"] == sequence
    with TestClient(make_app(settings)) as client:
        assert client.get(f"/sessions/{name}").json() == before
        assert client.delete(f"/sessions/{name}").status_code == 204
        assert client.post("/sessions", json={"sites": document["sites"]}).status_code == 201


def test_settings_that_make_no_sense() -> None:
    """An open address without a token, and numbers out of range, are refused with the way out."""
    with pytest.raises(UsageError, match="no token: set EDGEFLOW_TOKENS"):
        ServiceSettings(host="0.0.0.0")
    with pytest.raises(UsageError, match="option workers: must be a whole number >= 1, got 0"):
        ServiceSettings(workers=0)


def test_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    """A file that is no store is one clear error."""
    path = tmp_path / "text"
    path.write_text("no database " * 1000)
    with pytest.raises(UsageError, match="cannot be used"):
        SessionStore(path)
