"""Weighted sums through the front door: bounds, values, and what must hold of both."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings

from edgeflow_opt.problem import EpochProblem, Objective, SolveStatus, Weights, evaluate
from edgeflow_opt.solvers import solve
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def _weighted(cost: float, **sizes: float) -> EpochProblem:
    problem = generate_problem(60, 12, load=1.6, seed=1, **sizes)  # type: ignore[arg-type]
    weights = Weights(progress=0.1, leftover=0.05, cost=cost, reconfigurations=1e-4)
    return problem.replace(objective=Objective(mode="weighted", weights=weights))


@settings(max_examples=examples(40))
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True))
def test_prices_enclose_brute_force(problem: EpochProblem) -> None:
    """The solver `price` reaches a valid value, and its bound is not below the optimum."""
    best = optimum(problem)
    found = solve(problem, "price", time_limit_s=0.5)
    if best is None:
        assert found.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION)
        return
    top = best.value.level_1
    assert found.bound is not None
    assert found.bound >= top - 1e-6 * max(1.0, abs(top))
    if found.value is not None:
        assert found.value <= top + 1e-6 * max(1.0, abs(top))
        if found.status is SolveStatus.OPTIMAL:
            assert found.value == pytest.approx(top, rel=2e-6, abs=2e-6)


@pytest.mark.parametrize("cost", [1e-7, 3e-5])
@pytest.mark.parametrize("solver", ["price", "auto", "cpsat"])
def test_the_gap_is_small_and_the_greedy_is_never_better(solver: str, cost: float) -> None:
    """Cheap or dear work: a few per cent between value and bound, and no less than the greedy."""
    problem = _weighted(cost)
    found, greedy = solve(problem, solver, time_limit_s=1.0), solve(problem, "greedy")
    assert found.value is not None
    assert greedy.value is not None
    assert found.bound is not None
    assert found.value >= greedy.value
    assert found.value <= found.bound
    assert found.gap is not None
    assert found.gap <= 0.06
    assert [level.level for level in found.levels] == ["weighted"]
    value, _ = evaluate(problem, found.schedule.allocations)
    assert value.weighted == pytest.approx(found.value)


def test_deterministic_solves_are_the_same() -> None:
    """Counted moves and one worker give the same schedule twice."""
    problem = _weighted(1e-6, restart_s=30.0, migration_s=60.0)
    one, two = (
        solve(problem, "price", deterministic=True, time_limit_s=60.0, seed=3) for _ in range(2)
    )
    assert one.schedule.allocations == two.schedule.allocations
    assert one.bound == two.bound


def test_prices_of_a_weighted_sum_serve_the_next_solve() -> None:
    """Prices come back in the unit of the caller: the bound begins near where it ended."""
    problem = _weighted(1e-6)
    heavy = problem.replace(
        jobs=tuple(dataclasses.replace(job, weight=3e6 * job.weight) for job in problem.jobs),
        objective=Objective(
            mode="weighted",
            weights=Weights(progress=0.1, leftover=0.05, cost=3.0, reconfigurations=300.0),
        ),
    )
    first, scaled = (solve(p, "price", time_limit_s=0.5) for p in (problem, heavy))
    assert first.bound is not None
    assert scaled.bound == pytest.approx(3e6 * first.bound, rel=0.01)
    assert scaled.prices is not None
    once = {"iterations": 1, "exact_iterations": 1, "moves": 1}
    warm = solve(heavy, "price", prices=scaled.prices, params=once)
    cold = solve(heavy, "price", params=once)
    assert warm.bound is not None
    assert cold.bound is not None
    assert warm.bound == pytest.approx(scaled.bound, rel=0.01)
    assert cold.bound > 1.05 * warm.bound
