"""Tests of the solver `price` through the front door, which checks every schedule."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.plans import usage, walk
from edgeflow_opt.problem import EpochProblem, Grid, Job, Limit, Mode, Site, SolveStatus, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.price import SOLVER, DualResult, dual_bound, fixings
from edgeflow_opt.solvers.price.exact_dual import MOVES
from edgeflow_opt.solvers.progress import Progress
from edgeflow_opt.workloads.generate import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems

FEW = {"moves": 200, "exact_iterations": 10}


@given(problem=problems())
@settings(max_examples=examples(100))
def test_value_and_bound_enclose_the_optimum(problem: EpochProblem) -> None:
    """Value <= optimum <= bound on every kind of instance; infeasible only where it is true."""
    best = optimum(problem)
    result = solve(problem, "price", time_limit_s=20, params=FEW)
    if best is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION)
        return
    assert result.status is not SolveStatus.INFEASIBLE
    assert result.bound is not None
    assert result.bound >= best.value.met_weight - 1e-6
    if result.value is not None:
        assert result.value <= best.value.met_weight + 1e-6
    if result.status is SolveStatus.OPTIMAL:
        assert result.value == pytest.approx(best.value.met_weight, abs=1e-6)


@given(problem=problems(must_meet=False))
@settings(max_examples=examples(40))
def test_never_worse_than_greedy(problem: EpochProblem) -> None:
    """Without jobs that must be met there is always a schedule, as good as the greedy's."""
    greedy = solve(problem, "greedy", time_limit_s=20)
    result = solve(problem, "price", time_limit_s=20, params=FEW)
    assert result.value is not None
    assert greedy.value is not None
    assert result.value >= greedy.value - 1e-9


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"weights": (1, 5)},
        {"restart_s": 30.0, "migration_s": 180.0, "running_share": 0.3, "suspended_share": 0.2},
        {"moldable_share": 0.5, "running_share": 0.3},
        {"best_effort_share": 0.3, "must_meet_share": 0.1, "arrival_spread": 0.5},
        {"restart_s": 700.0, "migration_s": 400.0, "suspended_share": 0.6},
    ],
    ids=["plain", "weights", "losses", "moldable", "kinds", "long losses"],
)
def test_plans_pass_the_checker_at_middle_size(features: dict[str, float]) -> None:
    """At 120 jobs x 24 slots every kind of instance gives a checked schedule near its bound."""
    problem = generate_problem(120, 24, 7, **features)  # type: ignore[arg-type]
    result = solve(problem, "price", time_limit_s=30, params=FEW)
    assert result.status in (SolveStatus.FEASIBLE, SolveStatus.OPTIMAL)
    assert check(problem, result.schedule).valid
    assert result.value is not None
    assert result.bound is not None
    assert result.value <= result.bound
    assert result.value >= 0.85 * result.bound


def test_deterministic_solves_repeat() -> None:
    """The same seed gives the same schedule, whatever the number of workers asked for."""
    problem = generate_problem(80, 24, 2, weights=(1, 4), restart_s=20.0)
    options = {"deterministic": True, "time_limit_s": None, "params": {"moves": 300}}
    first = solve(problem, "price", workers=1, **options)
    second = solve(problem, "price", workers=2, **options)
    assert first.schedule.allocations == second.schedule.allocations
    assert first.bound == second.bound


def test_warm_start_is_kept() -> None:
    """A warm start is never lost, and is improved from."""
    problem = generate_problem(60, 24, 4)
    good = solve(problem, "price", time_limit_s=20, params={"moves": 2000})
    again = solve(problem, "price", warm_start=good.schedule, time_limit_s=20, params={"moves": 1})
    assert good.value is not None
    assert again.value is not None
    assert again.value >= good.value


def test_left_over_capacity_goes_to_late_jobs() -> None:
    """Level 2 raises the progress of unmet and best-effort jobs and leaves the met ones alone."""
    problem = generate_problem(60, 24, 4, best_effort_share=0.2)
    params = {"moves": 100}
    one = solve(problem, "price", deterministic=True, levels=1, time_limit_s=None, params=params)
    two = solve(problem, "price", deterministic=True, levels=2, time_limit_s=None, params=params)
    assert one.objective is not None
    assert two.objective is not None
    assert two.objective.met_weight >= one.objective.met_weight
    assert two.objective.leftover is not None
    assert one.objective.leftover is not None
    assert two.objective.leftover > one.objective.leftover


def test_impossible_must_meet_is_infeasible() -> None:
    """A job that must be met and cannot be is proven infeasible."""
    problem = generate_problem(10, 8, 1)
    hard = dataclasses.replace(problem.jobs[0], work=problem.jobs[0].work * 1e6, must_meet=True)
    result = solve(problem.replace(jobs=(hard, *problem.jobs[1:])), "price")
    assert result.status is SolveStatus.INFEASIBLE
    assert result.schedule.allocations == ()


@given(problem=problems(must_meet=False, moldable=False))
@settings(max_examples=examples(80))
def test_fixings_hold_in_better_schedules(problem: EpochProblem) -> None:
    """A schedule that beats the incumbent meets the jobs fixed as met, and none fixed as unmet."""
    best = optimum(problem)
    assert best is not None
    arrays = arrays_of(problem)
    dual = dual_bound(arrays, iterations=60, exact_iterations=5)
    incumbent = best.value.met_weight - 0.25
    fixed = fixings(arrays, dual, incumbent)
    for outcome, met, unmet in zip(best.schedule.outcomes, fixed.met, fixed.unmet, strict=True):
        if met:
            assert outcome.met is True
        if unmet:
            assert outcome.met is not True


def test_nothing_is_fixed_that_falls_short_by_rounding_alone() -> None:
    """At a price of .6 either of two jobs may be the one that is met, by a spare of exactly .4.

    The prices prove .6 + .4 + .4 = 1.4, and a schedule that beats nothing is worth 1. A lower bound
    from elsewhere is not proven by these prices, and fixes nothing.
    """
    modes = (Mode(site="cloud", gpus=1, rate=1.0),)
    problem = EpochProblem(
        grid=Grid((0.0, 10.0)),
        sites=(Site(name="cloud", kind="cloud", capacity=((0.0, 1),)),),
        jobs=tuple(Job(id=name, deadline=10.0, work=10.0, modes=modes) for name in "ab"),
    )
    dual = DualResult(
        prices=np.array([[0.6]]), bound=1.2, job_costs=np.array([0.6, 0.6]),
        multipliers=np.zeros(2), evaluations=1,
    )  # fmt: skip
    fixed = fixings(arrays_of(problem), dual, 0.0)
    assert not fixed.met.any()
    assert not fixed.unmet.any()
    # To beat a schedule worth 1 takes 2, which these prices refute: all is fixed that earns.
    assert fixings(arrays_of(problem), dual, 1.0).met.all()


def test_interrupt_returns_the_incumbent_and_its_bound() -> None:
    """Cancelled after the first schedule, the solver returns a checked schedule and a bound."""
    problem = generate_problem(150, 24, 6)
    arrays = arrays_of(problem)
    control = SolveControl(None, lambda p: control.cancel() if p.value is not None else None)
    draft = SOLVER.solve(problem, arrays, SolveOptions(time_limit_s=None), control)
    assert draft.limit is Limit.INTERRUPTED
    assert draft.plan is not None
    assert draft.bound is not None
    assert (usage(arrays, draft.plan) <= arrays.capacity).all()
    assert 0 < arrays.weight[walk(arrays, draft.plan).met].sum() <= draft.bound


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_what_there_is(workers: int) -> None:
    """A KeyboardInterrupt in the midst of the search loses neither plan nor bound."""
    problem = generate_problem(150, 24, 6)
    arrays = arrays_of(problem)
    calls = 0

    def interrupt(progress: Progress) -> None:
        nonlocal calls
        calls += progress.value is not None
        if calls == 2 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    control = SolveControl(None, interrupt)
    options = SolveOptions(time_limit_s=None, workers=workers, params={"moves": 3000})
    draft = SOLVER.solve(problem, arrays, options, control)
    assert draft.plan is not None
    assert 0 < arrays.weight[walk(arrays, draft.plan).met].sum() <= (draft.bound or 0.0)


def test_two_workers_prove_and_search() -> None:
    """Two threads give a checked schedule with a bound that is no worse than one's hull bound."""
    problem = generate_problem(100, 24, 9)
    result = solve(problem, "price", workers=2, time_limit_s=3)
    assert result.value is not None
    assert result.bound is not None
    assert result.value <= result.bound <= result.statistics["hull_bound"]
    assert result.bound - result.value <= 3


def test_time_limit_stops_the_search() -> None:
    """Where the optimum is not proven, the solver ends with the limit that stopped it."""
    problem = generate_problem(400, 48, 3)
    result = solve(problem, "price", time_limit_s=0.5)
    assert result.limit is Limit.TIME or result.status is SolveStatus.OPTIMAL
    assert result.value is not None


@pytest.mark.parametrize("workers", [1, 2])
def test_it_ends_with_the_bound_on_request(workers: int) -> None:
    """It ends long before the limit, with all evaluations of the exact dual done."""
    problem = generate_problem(300, 96, 0, load=2.5)
    result = solve(
        problem, "price", time_limit_s=300, workers=workers, params={"ends_with_bound": True}
    )
    assert result.statistics["exact_evaluations"] == MOVES
    assert result.status is SolveStatus.FEASIBLE
