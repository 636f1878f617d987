"""The weighted search: plans of one job are the most profitable, and moves never lose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import allocations_of, empty_plan, plan_of, usage
from edgeflow_opt.problem import EpochProblem, Objective, Weights, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.weighted.search import WeightedSearch
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def _search(problem: EpochProblem, plan: object = None) -> WeightedSearch:
    arrays, weights = arrays_of(problem), problem.objective.weights
    assert weights is not None
    prices = np.full(arrays.capacity.shape, 0.05)
    start = empty_plan(arrays) if plan is None else plan
    return WeightedSearch(arrays, weights, start, prices, 0)


def _value(problem: EpochProblem, search: WeightedSearch) -> float:
    arrays = arrays_of(problem)
    value, _ = evaluate(problem, allocations_of(problem, arrays, search.plan))
    assert value.weighted is not None
    return value.weighted


@settings(max_examples=examples(150))
@given(problem=problems(max_jobs=1, max_slots=4, must_meet=False, weighted=True))
def test_one_job_alone_gets_the_most_profitable_plan(problem: EpochProblem) -> None:
    """A sweep over one job, malleable or not, with losses or without, is brute force."""
    search = _search(problem)
    gain = search.sweep()
    best = optimum(problem)
    assert best is not None
    assert _value(problem, search) == pytest.approx(best.value.level_1, abs=1e-9, rel=1e-9)
    assert gain == pytest.approx(_value(problem, search), abs=1e-9)


@settings(max_examples=examples(60))
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True), seed=st.integers(0, 100))
def test_moves_keep_the_rules_and_never_lose(problem: EpochProblem, seed: int) -> None:
    """From the optimum nothing is lost; from anywhere the gain told is the gain made."""
    best = optimum(problem)
    if best is None:
        return
    arrays = arrays_of(problem)
    search = _search(problem, plan_of(problem, arrays, best.schedule))
    search.sweep()
    search.shake(20)
    assert _value(problem, search) == pytest.approx(best.value.level_1, abs=1e-9, rel=1e-9)
    assert (usage(arrays, search.plan) <= arrays.capacity).all()


def test_what_costs_more_than_it_is_worth_is_dropped() -> None:
    """With dear GPU-seconds the search ends with nothing done, with cheap ones near the best."""
    problem = generate_problem(30, 12, load=1.2, seed=2)
    arrays = arrays_of(problem)
    met = {}
    for cost in (1.0, 1e-9):
        weights = Weights(progress=0.1, cost=cost)
        weighted = problem.replace(objective=Objective(mode="weighted", weights=weights))
        search = _search(weighted)
        search.sweep()
        search.shake(300)
        met[cost] = evaluate(weighted, allocations_of(weighted, arrays, search.plan))[0].met_weight
        assert _value(weighted, search) >= 0.0
    assert met[1.0] == 0.0
    assert met[1e-9] >= 15.0
