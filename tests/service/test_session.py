"""Sessions: what single events, options and calls do."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import jsonschema
import pytest

import edgeflow_opt
from edgeflow_opt.errors import EventError, UsageError
from edgeflow_opt.problem import Job, Mode, Running, Site, check
from edgeflow_opt.service import (
    CapacityChanged,
    EpochSession,
    JobArrived,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    JobRevised,
    RateCorrected,
    ReasonCode,
    SessionOptions,
    events_from_dict,
    events_to_dict,
)
from edgeflow_opt.service.decide import DecisionMaker
from edgeflow_opt.service.schemas import service_schema
from tests.service.clusters import job, sites

OPTIONS = SessionOptions(rungs=(), max_slots=8)


def _session(*jobs: Any, **changes: Any) -> EpochSession:
    return EpochSession(sites(), jobs=jobs, isolated=False, **{"options": OPTIONS, **changes})


def test_it_is_a_public_name() -> None:
    """The package itself gives EpochSession, lazily."""
    assert edgeflow_opt.EpochSession is EpochSession


def test_every_reason_has_its_case() -> None:
    """Each job is told why it gets what it gets, by a stable code and in words with the times."""
    jobs = [
        job("met", 300.0, 200.0, weight=9.0),
        job("hopeless", 50.0, 5000.0),
        job("passed", -10.0, 5000.0),
        job("later", 600.0, 100.0, arrival=200.0),
        *(job(f"more{k}", 300.0, 500.0) for k in range(6)),
        *(job(f"free{k}", None, 500.0) for k in range(4)),
    ]
    decision = _session(*jobs).decide(0.0)
    assert check(decision.problem, decision.schedule).valid
    reasons = {reason.job: reason for reason in decision.reasons}
    assert reasons["met"].code is ReasonCode.MET
    assert "meets its deadline at 300 s" in reasons["met"].message
    assert reasons["later"].code is ReasonCode.NOT_ARRIVED
    assert reasons["later"].met
    assert reasons["hopeless"].code in (ReasonCode.HOPELESS, ReasonCode.LEFT_OVER)
    assert "even" in reasons["hopeless"].message
    assert reasons["passed"].code in (ReasonCode.PASSED, ReasonCode.LEFT_OVER)
    assert "its deadline at -10 s has passed" in reasons["passed"].message
    codes = {reason.code for reason in decision.reasons}
    assert {ReasonCode.OVERLOAD, ReasonCode.WAITS, ReasonCode.PASSED} <= codes
    jsonschema.validate(
        json.loads(json.dumps(decision.document())), service_schema("edgeflow-decision/1")
    )


def test_a_job_waits_for_what_is_reserved() -> None:
    """A job that the plan lets wait for an urgent one is told when its units are reserved."""
    slow = {"malleable": False}
    urgent = [job(f"urgent{k}", 120.0, 110.0, weight=5.0, **slow) for k in range(4)]
    session = EpochSession(
        sites(gpus=4, servers=0),
        jobs=[*urgent, job("patient", 900.0, 100.0, **slow)],
        options=OPTIONS,
        isolated=False,
    )
    decision = session.decide(0.0)
    reason = decision.reasons[-1]
    assert reason.code is ReasonCode.RESERVED
    assert reason.start == decision.until
    assert "1 GPU on 'cloud' is reserved from 120 s on" in reason.message


def test_progress_is_reckoned_by_the_rate_and_the_losses() -> None:
    """Between events work goes on at the rate of the mode, after the loss of a run begun."""
    session = _session(job("a", 10_000.0, 1000.0))
    place = JobPlaced(time=0.0, job="a", site="cloud", gpus=2)
    session.update([place])
    held = session.view.jobs["a"]
    assert held.left_at(100.0) == pytest.approx(1000.0 * (1 - 1e-6) - 175.0)
    session.update([JobPlaced(time=100.0, job="a", site="edge", gpus=1)])
    # A migration costs 10 s.
    assert session.view.jobs["a"].left_at(110.0) == session.view.jobs["a"].left
    session.update([JobProgressed(time=120.0, job="a", work_left=500.0)])
    assert session.view.jobs["a"].left_at(130.0) == pytest.approx(495.0, abs=0.01)
    session.update([RateCorrected(time=130.0, job="a", site="edge", gpus=1, rate=1.0)])
    assert session.view.jobs["a"].left_at(140.0) == pytest.approx(485.0, abs=0.01)
    # A job that ought to be done, but was not said to be, has a little left.
    assert session.view.jobs["a"].left_at(1e6) == pytest.approx(1.0)


def test_capacity_that_goes_takes_jobs_along() -> None:
    """After a drop of capacity the next decision fits into what is left."""
    session = _session(*(job(f"j{k}") for k in range(4)))
    first = session.decide(0.0)
    assert len(first.allocation) >= 3
    session.update([CapacityChanged(time=10.0, site="cloud", capacity=((10.0, 1),))])
    second = session.decide(10.0)
    held = [mode.gpus for mode in second.allocation.values() if mode.site == "cloud"]
    assert sum(held) <= 1
    assert any(change.kind in ("stop", "resize", "move") for change in second.changes)


def test_nothing_new_is_not_solved_anew() -> None:
    """Without events the plan is followed, without a solver; `fresh` asks one again."""
    session = _session(job("a"), job("b"), options=SessionOptions(rungs=("price",), max_slots=8))
    first = session.decide(0.0, 10.0)
    assert {report.rung for report in first.rungs} >= {"price"}
    second = session.decide(first.problem.grid.boundaries[1], 10.0)
    assert "price" not in {report.rung for report in second.rungs}
    assert second.bound == first.bound
    third = session.decide(None, 10.0, fresh=True)
    assert "price" in {report.rung for report in third.rungs}
    session.update([JobCompleted(time=third.now, job="a")])
    assert "price" in {report.rung for report in session.decide(None, 10.0).rungs}


def test_deadlines_that_must_but_cannot_be_met() -> None:
    """Where hard deadlines cannot all be met there is a decision all the same, and they are named."""
    session = _session(job("hard", 10.0, 1e6, must_meet=True), job("soft"))
    decision = session.decide(0.0)
    assert decision.relaxed == ("hard",)
    assert decision.value == 1.0
    assert check(decision.problem, decision.schedule).valid


def test_an_empty_session_decides() -> None:
    """Without jobs nobody gets anything."""
    decision = _session().decide(5.0)
    assert (decision.allocation, decision.value, decision.bound) == ({}, 0.0, 0.0)
    assert decision.now == 5.0


def test_a_batch_counts_once() -> None:
    """A batch of a name that was taken is not taken again."""
    session = _session()
    events = [JobArrived(time=0.0, job=job("a"))]
    assert [session.update(events, batch="x"), session.update(events, batch="x")] == [1, 0]
    assert session.sequence == 1


def test_a_commit_that_fails_changes_nothing() -> None:
    """Where what makes events or decisions last fails, the session is as before."""
    session = _session(job("a"))
    before = session.snapshot()

    def fail(*_: Any) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        session.update([JobCompleted(time=0.0, job="a")], commit=fail)
    with pytest.raises(OSError, match="no room"):
        session.decide(0.0, commit=fail)
    assert session.snapshot() == before


def test_threads_may_share_a_session() -> None:
    """Events and decisions of several threads all count, and every decision is valid."""
    session = _session()
    faults: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for k in range(10):
                session.update([JobArrived(time=0.0, job=job(f"{number}-{k}"))])
                decision = session.decide(None)
                assert check(decision.problem, decision.schedule).valid
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert (session.sequence, session.decisions, len(session.view.jobs)) == (30, 30, 30)


def test_an_event_during_a_decision_marks_it_overtaken() -> None:
    """A decision that does not know of an event says so, and the job stays known."""
    session = _session(job("a"))

    # Between the state being read and the decision taking effect.
    original = DecisionMaker.make

    def make(self: Any) -> Any:
        found = original(self)
        session.update([JobArrived(time=0.0, job=job("b"))])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecisionMaker, "make", make)
        decision = session.decide(0.0)
    assert decision.overtaken
    assert set(session.view.jobs) == {"a", "b"}


def test_what_is_told_during_a_decision_is_true_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes told meanwhile stay, so that the next decision asks for what is to be changed."""
    session = _session(job("a"), job("b"))
    first = session.decide(0.0)
    assert {"a", "b"} <= set(first.allocation)
    held = first.allocation["b"]
    news = [
        JobPlaced(time=1.0, job="a"),
        JobArrived(
            time=1.0, job=job("c", running=Running(site=held.site, gpus=held.gpus), deadline=None)
        ),
    ]
    make = DecisionMaker.make

    def overtaken(self: DecisionMaker) -> Any:
        made = make(self)
        session.update(news)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(DecisionMaker, "make", overtaken)
        assert session.decide(1.0, fresh=True).overtaken
    assert session.view.jobs["a"].mode is None
    running = session.view.jobs["c"].mode
    assert running is not None
    assert (running.site, running.gpus) == (held.site, held.gpus)
    after = session.decide(1.0)
    kinds = {change.job: change.kind for change in after.changes}
    assert kinds["a"] == "start"
    assert ("c" in kinds) == (after.allocation.get("c") != running)


@pytest.mark.parametrize("seed", [9, 35, 44, 211, 218, 376])
def test_nothing_is_stopped_for_nothing(seed: int) -> None:
    """A job that ought to be done, but is not, keeps its units where nobody else needs them."""
    draws = random.Random(seed)
    gpus = draws.choice([2, 4, 8])
    jobs = []
    for index in range(draws.randint(1, 4)):
        rate = draws.uniform(0.7, 1.4)
        deadline = draws.choice([None, None, draws.uniform(100, 900)])
        modes = tuple(
            Mode(site="cloud", gpus=g, rate=rate * g**0.85) for g in (1, 2, 4) if g <= gpus
        )
        jobs.append(
            Job(
                id=f"j{index}", deadline=deadline, work=draws.uniform(100, 2000), restart_s=10.0,
                modes=modes,
            )
        )  # fmt: skip
    cloud = Site(name="cloud", kind="cloud", capacity=((0.0, gpus),))
    options = SessionOptions(rungs=())
    session = EpochSession((cloud,), jobs=jobs, options=options, isolated=False)
    until = 0.0
    for _ in range(13):
        decision = session.decide(until)
        idle = gpus - sum(mode.gpus for mode in decision.allocation.values())
        stopped = [
            change
            for change in decision.changes
            if change.kind == "stop" and change.before is not None and change.before.gpus <= idle
        ]
        assert stopped == []
        until = decision.until


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "edgeflow-events/2"}, "format: must be 'edgeflow-events/1'"),
        ({"events": [{"type": "job_vanished"}]}, "event 0, type: must be one of job_arrived"),
        ({"events": [{"type": "job_completed", "time": 1}]}, "event 0, job: is missing"),
        ({"events": [{"type": "job_completed", "time": 1, "job": "a", "x": 1}]}, "not a known key"),
        ({"events": ["a"]}, "event 0, type"),
        ({"batch": ""}, "batch"),
    ],
)
def test_documents_at_fault(change: dict[str, Any], words: str) -> None:
    """A document of events that breaks the format is refused with place and rule."""
    document = {"format": "edgeflow-events/1", "events": [], **change}
    with pytest.raises(EventError, match=words):
        events_from_dict(document)


def test_all_faults_of_events_are_told_together() -> None:
    """Events that make no sense are told with their numbers, all of them, and none is taken."""
    session = _session(job("a"))
    with pytest.raises(EventError, match="3 faults") as caught:
        session.update(
            [
                JobArrived(time=0.0, job=job("a")),
                JobArrived(time=0.0, job=job("b")),
                JobPlaced(time=0.0, job="b", site="cloud", gpus=64),
                CapacityChanged(time=0.0, site="moon", capacity=((0.0, 1),)),
            ]
        )
    told = [(fault.object, fault.field) for fault in caught.value.faults]
    assert told == [("event 0", "job.id"), ("event 2", ""), ("event 3", "site")]
    assert list(session.view.jobs) == ["a"]


def test_an_earlier_deadline_leaves_an_arrival_to_come() -> None:
    """A job never starts before it arrives, however its deadline is revised to and fro."""
    session = _session(job("later", deadline=600.0, arrival=300.0))
    with pytest.raises(
        EventError, match=r"2 faults(?s:.*)deadline: must not be before its arrival"
    ):
        session.update([JobRevised(time=0.0, job="later", deadline=200.0, weight=-1.0)])
    session.update([JobRevised(time=0.0, job="later", deadline=300.0)])
    session.update([JobRevised(time=0.0, job="later", deadline=500.0)])
    assert session.view.jobs["later"].job.arrival == 300.0
    # Once it has arrived, any deadline can be: the job is late then.
    session.update([JobRevised(time=310.0, job="later", deadline=200.0)])
    session.update([JobRevised(time=310.0, job="later", deadline=900.0)])
    allocation = session.decide(now=310.0).allocation["later"]
    assert allocation is not None


def test_documents_obey_their_schemas() -> None:
    """Events and snapshots that are written obey the schemas that are published, others do not."""
    session = _session(job("a"))
    session.decide(0.0)
    events = [JobArrived(time=0.0, job=job("b")), JobPlaced(time=0.0, job="a")]
    for name, written, needed in (
        ("edgeflow-events/1", events_to_dict(events, "b1"), "events"),
        ("edgeflow-session/1", session.snapshot(), "cluster"),
    ):
        document = json.loads(json.dumps(written))
        assert document["format"] == name
        schema = service_schema(name)
        jsonschema.validate(document, schema)
        del document[needed]
        with pytest.raises(jsonschema.ValidationError, match=f"'{needed}' is a required property"):
            jsonschema.validate(document, schema)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("held",), [], "must be as many as cluster.jobs"),
        (("held", 0, "gpus"), 77, "one of the job's modes"),
        (("held", 0, "last_site"), "moon", "last_site must be a site"),
        (("options", "rungs"), ["cpsta"], "did you mean 'cpsat'"),
        (("plan", "boundaries"), [5.0, 1.0], "must rise"),
        (("cluster", "jobs", 0, "work"), -1.0, "work"),
        (("prices",), "{}", "prices"),
    ],
)
def test_snapshots_at_fault(path: tuple[Any, ...], value: Any, words: str) -> None:
    """A snapshot that contradicts itself is refused with place and rule."""
    session = _session(job("a"))
    session.decide(0.0)
    document: Any = session.snapshot()
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(EventError, match=words):
        EpochSession.from_snapshot(document, isolated=False)


def test_options_that_make_no_sense() -> None:
    """A wrong option is one error with name, rule and value."""
    with pytest.raises(UsageError, match="did you mean 'price'"):
        SessionOptions(rungs=("prize",))
    with pytest.raises(UsageError, match=r"option slot_s: must be .* above 0, got 0"):
        SessionOptions(slot_s=0)
    with pytest.raises(UsageError, match="option max_slots"):
        SessionOptions(max_slots=0)
    with pytest.raises(UsageError, match="option time_limit_s"):
        _session().decide(0.0, 0.0)
    with pytest.raises(UsageError, match="option now"):
        _session().decide(float("nan"))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("prices", "nonsense", "session, options or prices: prices: must be a JSON document"),
        ("constraints", [{"type": "group_quota", "gpus": 1}], "sessions know none; leave them out"),
    ],
)
def test_a_snapshot_of_what_a_session_cannot_hold(place: str, value: Any, message: str) -> None:
    """Prices that are none, and constraints, are one error of the document."""
    document = _session(job("a")).snapshot()
    owner = document if place == "prices" else document["cluster"]
    owner[place] = value
    with pytest.raises(EventError, match=message):
        EpochSession.from_snapshot(document, isolated=False)
