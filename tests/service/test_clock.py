"""The clock of a session: no time is taken from which nothing can be planned any more."""

from __future__ import annotations

import pytest

from edgeflow_opt.errors import EventError, UsageError
from edgeflow_opt.problem import check
from edgeflow_opt.service import (
    EpochSession,
    JobCancelled,
    JobProgressed,
    SessionOptions,
    events_from_dict,
)
from tests.service.clusters import job, sites


def _session(now: float = 0.0, slot_s: float = 60.0) -> EpochSession:
    options = SessionOptions(rungs=("price",), slot_s=slot_s)
    jobs = [job("a"), job("far", 1e15), job("best effort", None)]
    return EpochSession(sites(), now=now, jobs=jobs, options=options, isolated=False)


def test_a_time_without_a_plan_is_refused() -> None:
    """Events, decisions and beginnings beyond 1e14 s are refused, and leave the session as it was."""
    session = _session()
    with pytest.raises(EventError, match="magnitude at most 1e14"):
        session.update([JobCancelled(time=1e15, job="a")])
    with pytest.raises(UsageError, match=r"option now: must be .* at most 1e14"):
        session.decide(1e15)
    assert session.decide(0.0, 60.0).value >= 2.0
    with pytest.raises(UsageError, match=r"option now: must be .* at most 1e14"):
        _session(now=2e14)
    snapshot = session.snapshot()
    snapshot["cluster"]["now"], snapshot["cluster"]["grid"] = 2e14, [2e14, 3e14]
    with pytest.raises(EventError, match="at most 1e14"):
        EpochSession.from_snapshot(snapshot, isolated=False)
    late = {"type": "job_cancelled", "time": 2e14, "job": "a"}
    with pytest.raises(EventError, match="time: must be a number <= 1e14"):
        events_from_dict({"format": "edgeflow-events/1", "events": [late]})


@pytest.mark.parametrize(("time", "slot_s"), [(1e14, 60.0), (1e14, 9.9e14), (1e14, 1e-3)])
def test_every_time_that_is_taken_has_a_plan(time: float, slot_s: float) -> None:
    """At the end of the clock, with deadlines at the last time there is, decisions are made."""
    session = _session(slot_s=slot_s)
    session.update([JobProgressed(time=time, job="far", work_left=20.0)])
    decision = session.decide(None, 60.0)
    assert decision.now == time
    assert check(decision.problem, decision.schedule).valid
    assert EpochSession.from_snapshot(session.snapshot(), isolated=False).decide(None, 60.0)


@pytest.mark.parametrize(("key", "value"), [("left", 1e15), ("loss_until", 2e15)])
def test_a_snapshot_that_is_taken_decides(key: str, value: float) -> None:
    """Whatever numbers of a snapshot are let in, decisions are made from there on."""
    session = _session()
    held = session.decide(0.0, 60.0).allocation
    snapshot = session.snapshot()
    position = [one["id"] for one in snapshot["cluster"]["jobs"]].index(next(iter(held)))
    snapshot["held"][position][key] = value
    again = EpochSession.from_snapshot(snapshot, isolated=False)
    decision = again.decide(None, 60.0, fresh=True)
    assert check(decision.problem, decision.schedule).valid
