"""The making of a decision: ties, bounds of the hard and the loose problem, and until when it holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Mode,
    Objective,
    ObjectiveValue,
    Schedule,
    Site,
    SolveStatus,
    Weights,
)
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.service import EpochSession, SessionOptions, decide
from edgeflow_opt.service.decide import DecisionMaker, _better, _more_met
from edgeflow_opt.service.memory import SessionMemory
from edgeflow_opt.service.reasons import hopeless_jobs
from edgeflow_opt.service.state import ClusterView
from edgeflow_opt.solvers import Draft
from edgeflow_opt.solvers.base import FEATURES
from tests.service.clusters import job, sites
from tests.solvers.fakes import FakeSolver, plug_in

OPTIONS = SessionOptions(rungs=(), max_slots=8)


def _plan(met_weight: float, cost: float = 0.0) -> Schedule:
    value = ObjectiveValue(met_weight=met_weight, cost=cost)
    return Schedule(solver="any", status=SolveStatus.FEASIBLE, objective=value)


def test_the_plan_held_is_kept_unless_another_is_better() -> None:
    """Equal value, a rounding more or no plan at all changes nothing; less cost does in one rule."""
    held, cheaper = _plan(2.0, cost=9.0), _plan(2.0, cost=1.0)
    nothing = dataclasses.replace(held, objective=None)
    for other in (held, nothing, None, _plan(1.0), _plan(2.0 + 1e-10, cost=9.0)):
        assert _more_met(held, other) is held
        assert _better(held, other) is held
    assert _more_met(held, cheaper) is held
    assert _better(held, cheaper) is cheaper
    for more in (_plan(2.0 + 1e-8), _plan(3.0, cost=99.0)):
        assert _more_met(held, more) is more
        assert _better(held, more) is more
    assert _better(None, held) is held
    assert _better(nothing, held) is held
    assert _more_met(_plan(-2.0), _plan(-2.0 + 1e-10)).objective == _plan(-2.0).objective


@pytest.mark.parametrize("unit", [1.0, 2.0**-10])
@pytest.mark.parametrize(
    ("floor", "usual", "chosen", "followed"),
    [
        # The lightest job that counts weighs 2, half of which is the margin.
        (0.0, 9.1, 10.0, "usual"),
        (9.1, 9.1, 10.0, "usual"),
        (9.1 * (1.0 + 1e-10), 9.1, 10.0, "usual"),
        (9.2, 9.1, 10.0, "chosen"),
        (0.0, 9.0, 10.0, "chosen"),
        (0.0, None, 10.0 * (1.0 - 1e-10), "chosen"),
        (9.2, 9.1, 9.9, "best"),
        (0.0, None, None, "best"),
    ],
)
def test_a_set_of_jobs_has_to_be_worth_the_margin_and_no_plan_falls_below_the_floor(
    monkeypatch: pytest.MonkeyPatch,
    floor: float,
    usual: float | None,
    chosen: float | None,
    followed: str,
    unit: float,
) -> None:
    """A solver that reaches 10 is followed only where the heuristic's own plan is worth less by more.

    In a weighted sum a job met is worth its weight times that of level 1.
    """
    jobs = (
        job("light", weight=2.0), job("heavy", weight=8.0), job("worthless", weight=0.0),
        job("best effort", None, weight=0.1),
    )  # fmt: skip
    problem = EpochProblem(grid=Grid.uniform(0.0, 60.0, 10), sites=sites(), jobs=jobs)
    if unit != 1.0:
        weighted = Objective(mode="weighted", weights=Weights(met=unit))
        problem = problem.replace(objective=weighted)
    arrays = arrays_of(problem)
    best = _plan(10.0 * unit)
    plans = {
        "usual": None if usual is None else _plan(usual * unit),
        "chosen": None if chosen is None else _plan(chosen * unit),
        "best": best,
    }

    def planned(*arguments: Any) -> Schedule | None:
        assert arguments in ((problem, arrays, decide.FLOOR), (problem, arrays, "any", best))
        return plans["chosen" if arguments[-1] is best else "usual"]

    monkeypatch.setattr(decide, "until_the_next_event", planned)
    memory = SessionMemory(view=ClusterView.of(problem))
    maker = DecisionMaker(memory, OPTIONS, None, 0.0, 0.0, 1.0, True, None)
    assert maker._realised(problem, arrays, best, _plan(floor * unit)) is plans[followed]


def test_bounds_of_the_hard_problem_are_not_those_of_the_loose_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a hard deadline is given up, what a solver has proven with it bounds nothing."""

    def barren(*_: Any) -> Draft:
        return Draft(status=SolveStatus.NO_SOLUTION, bound=0.5)

    plug_in(monkeypatch, barren=FakeSolver(barren, features=frozenset(FEATURES)))
    jobs = [job("hard", 50.0, 5000.0, must_meet=True), *(job(n, 60.0, 60.0) for n in "abcdef")]
    options = dataclasses.replace(OPTIONS, rungs=("barren",))
    with EpochSession(sites(4, 0), jobs=jobs, options=options, isolated=False) as session:
        decision = session.decide(0.0)
    assert decision.relaxed == ("hard",)
    assert [report.rung for report in decision.rungs if report.outcome != "skipped"][-1] == "barren"
    assert decision.value == 4.0
    # All but the hopeless one, each of which could be met alone.
    assert decision.bound == 6.0
    assert decision.schedule.status is SolveStatus.FEASIBLE


def test_a_decision_holds_until_anything_begins_or_ends() -> None:
    """A job that starts later ends it as well as one that completes sooner than another."""
    cloud = Site(name="cloud", kind="cloud", capacity=((0.0, 4),))
    edge = Site(name="edge", kind="edge", capacity=((0.0, 0), (120.0, 1)))
    waits = dataclasses.replace(
        job("waits", 600.0, 60.0), modes=(Mode(site="edge", gpus=1, rate=1.0),)
    )
    runs = dataclasses.replace(
        job("runs", 900.0, 400.0), modes=(Mode(site="cloud", gpus=1, rate=1.0),)
    )
    for jobs, until in (((runs,), 480.0), ((runs, waits), 120.0), ((waits,), 120.0)):
        with EpochSession([cloud, edge], jobs=jobs, options=OPTIONS, isolated=False) as session:
            decision = session.decide(0.0)
        times = [t for a in decision.schedule.allocations for t in (a.start, a.end) if t > 0.0]
        assert decision.until == min(times) == until


def test_a_bound_is_carried_from_boundary_to_boundary_only() -> None:
    """Between two of them another plan may begin that the grid of the old bound had not."""
    jobs = [job(name, 480.0, 450.0) for name in "abcdef"]
    options = dataclasses.replace(OPTIONS, rungs=("price",))
    for now, carried in ((30.0, False), (60.0, True)):
        with EpochSession(sites(4, 0), jobs=jobs, options=options, isolated=False) as session:
            first = session.decide(0.0, 5.0)
            assert first.bound == 4.0
            after = session.decide(now, 5.0)
        # Each of the six could still be met alone.
        assert after.bound == (4.0 if carried else 6.0)


def test_a_bound_on_a_sum_in_which_more_counts_is_not_carried() -> None:
    """What has been carried out was paid for: the rest of a plan may be worth more than all of it."""
    options = dataclasses.replace(OPTIONS, rungs=("highs",), leftovers=False)
    for cost in (0.0, 0.01):
        objective = Objective(mode="weighted", weights=Weights(met=10.0, cost=cost))
        with EpochSession(
            sites(4, 0), jobs=[job("a", 480.0, 400.0)], options=options, objective=objective,
            isolated=False,
        ) as session:  # fmt: skip
            first = session.decide(0.0, 5.0)
            after = session.decide(60.0, 5.0)
        assert first.bound == pytest.approx(10.0 - 420.0 * cost, rel=1e-5)
        assert after.value == pytest.approx(10.0 - 300.0 * cost)
        assert after.bound == (None if cost else pytest.approx(10.0, rel=1e-5))


def test_a_job_that_needs_every_second_is_not_hopeless() -> None:
    """Work that the fastest mode just does by the deadline can be done; a little more cannot."""
    for share, out in ((1.0, False), (1.0 + 3e-6, True)):
        problem = EpochProblem(
            grid=Grid.uniform(0.0, 50.0, 2),
            sites=sites(2, 0),
            jobs=(job("a", 100.0, 175.0 * share),),
        )
        assert hopeless_jobs(arrays_of(problem)).tolist() == [out]
