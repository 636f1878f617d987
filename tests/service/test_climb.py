"""The climb of the upper rungs: what each is given, by solvers that only write that down."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from edgeflow_opt import Schedule, SolveResult, UsageError, solve
from edgeflow_opt.problem import Limit
from edgeflow_opt.service import EpochSession, SessionOptions, decide, ladder
from edgeflow_opt.service.ladder import RungNews, climb
from edgeflow_opt.workloads import demo_problem
from tests.service.clusters import job, sites

PROBLEM = demo_problem()

Climb = Callable[..., tuple[list[dict[str, Any]], list[RungNews]]]


@pytest.fixture(scope="module")
def worse() -> SolveResult:
    """Return a plan without prices."""
    return solve(PROBLEM, "greedy")


@pytest.fixture(scope="module")
def better() -> SolveResult:
    """Return one that meets more jobs, with prices."""
    return solve(PROBLEM, "price", levels=1)


@pytest.fixture
def climbed(monkeypatch: pytest.MonkeyPatch) -> Climb:
    """Return a function that climbs rungs with given results, each of which takes `seconds`."""

    def run(
        results: Mapping[str, SolveResult | Exception],
        seconds: float = 0.0,
        start: Schedule | None = None,
    ) -> tuple[list[dict[str, Any]], list[RungNews]]:
        clock = [100.0]
        calls: list[dict[str, Any]] = []
        news: list[RungNews] = []

        def scripted(problem: Any, rung: str, **options: Any) -> SolveResult:
            calls.append({"rung": rung, **options})
            clock[0] += seconds
            result = results[rung]
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(ladder, "solve", scripted)
        monkeypatch.setattr(ladder, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
        climb(PROBLEM, tuple(results), 10.0, 7, start, None, news.append)
        return calls, news

    return run


def _given(calls: Sequence[Mapping[str, Any]], option: str) -> list[Any]:
    return [call[option] for call in calls]


def test_the_last_rung_has_all_the_time_left(climbed: Climb, worse: SolveResult) -> None:
    """A rung with others above it may take 0.3 of what is left, the last one all of it."""
    calls, news = climbed({"a": worse, "b": worse, "c": worse}, seconds=2.0)
    assert _given(calls, "time_limit_s") == pytest.approx([3.0, 0.3 * 8.0, 6.0])
    assert _given(calls, "seed") == [7, 7, 7]
    assert [(said.rung, said.seconds) for said in news] == [("a", 2.0), ("b", 2.0), ("c", 2.0)]


def test_no_rung_begins_when_the_time_is_up(climbed: Climb, worse: SolveResult) -> None:
    """Solvers that overrun their limits cost the rungs above them."""
    calls, _ = climbed({"a": worse, "b": worse, "c": worse}, seconds=5.0)
    assert _given(calls, "rung") == ["a", "b"]


def test_each_rung_begins_from_the_best_so_far(
    climbed: Climb, worse: SolveResult, better: SolveResult
) -> None:
    """A better plan is the next start, a worse one is not; prices are kept until there are others."""
    assert better.prices is not None
    assert worse.value is not None
    assert better.value is not None
    assert better.value > worse.value
    calls, news = climbed({"a": worse, "b": better, "c": worse, "d": worse})
    starts = [None, worse.schedule, better.schedule, better.schedule]
    assert _given(calls, "warm_start") == starts
    assert _given(calls, "prices") == [None, None, better.prices, better.prices]
    assert [said.schedule for said in news] == [
        worse.schedule, better.schedule, worse.schedule, worse.schedule
    ]  # fmt: skip
    calls, _ = climbed({"a": worse, "b": worse}, start=better.schedule)
    assert _given(calls, "warm_start") == [better.schedule, better.schedule]


def test_a_rung_that_fails_leaves_the_others(climbed: Climb, worse: SolveResult) -> None:
    """What a solver raises is told, and the next rung begins from what was known before."""
    calls, news = climbed({"a": worse, "b": UsageError("not today"), "c": worse}, seconds=1.0)
    assert _given(calls, "warm_start") == [None, worse.schedule, worse.schedule]
    assert (news[1].rung, news[1].schedule, news[1].seconds) == ("b", None, 1.0)
    assert news[1].message == "UsageError: not today"


def test_an_interrupted_rung_is_the_last(climbed: Climb, worse: SolveResult) -> None:
    """After Ctrl-C what was found is told, and nothing begins any more."""
    stopped = SolveResult(schedule=dataclasses.replace(worse.schedule, limit=Limit.INTERRUPTED))
    calls, news = climbed({"a": stopped, "b": worse})
    assert _given(calls, "rung") == ["a"]
    assert news[0].schedule == stopped.schedule


def test_solvers_are_told_less_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What solvers overrun, and the end of the decision, have their share of its limit."""
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(decide, "climb", lambda **given: told.append(given))
    options = SessionOptions(rungs=("price", "auto"), max_slots=6)
    session = EpochSession(sites(), jobs=[job("a")], options=options, isolated=False)
    decision = session.decide(0.0, 100.0)
    assert [given["rungs"] for given in told] == [("price", "auto")]
    assert 0.0 < told[0]["time_limit_s"] <= 0.85 * 100.0
    assert told[0]["start"].met == decision.schedule.met == 1
    assert {r.rung: r.outcome for r in decision.rungs}["price"] == "skipped"
