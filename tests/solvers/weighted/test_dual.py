"""The dual of the weighted sum: its bound holds at any prices, and is the tight one at good ones."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import EpochProblem, Objective, Weights
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.dual import minimise
from edgeflow_opt.solvers.price.exact_dual import ExactDual
from edgeflow_opt.solvers.weighted.dual import WeightedDual
from edgeflow_opt.solvers.weighted.most_met import with_most_met
from edgeflow_opt.solvers.weighted.worths import weighted_data
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def _dual_of(problem: EpochProblem, workers: int = 1) -> WeightedDual:
    assert problem.objective.weights is not None
    return WeightedDual(*weighted_data(arrays_of(problem), problem.objective.weights), workers)


@settings(max_examples=examples(120))
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True), seed=st.integers(0, 2**32 - 1))
def test_the_bound_holds_at_any_prices_and_multipliers(problem: EpochProblem, seed: int) -> None:
    """No prices, found or drawn, prove less than what brute force reaches."""
    best = optimum(problem)
    if best is None:
        return
    dual = _dual_of(problem)
    top = best.value.level_1 - 1e-9 * max(1.0, abs(best.value.level_1))
    found = minimise(dual, None, 20)
    assert found.bound >= top
    exact = ExactDual(dual, found, lambda: False)
    for _ in range(3):
        exact.step()
    assert exact.best.bound >= top
    random = np.random.default_rng(seed)
    drawn = random.exponential(2.0, found.prices.shape) * random.integers(0, 2, found.prices.shape)
    assert dual.evaluate_exactly(drawn, 50, lambda: False)[0].bound >= top
    multiplier = random.exponential(0.01, dual.multiplier.shape)
    assert dual.certify(drawn, multiplier)[0] >= top


@settings(max_examples=examples(80))
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True))
def test_fates_that_are_fixed_are_those_of_better_schedules(problem: EpochProblem) -> None:
    """With any lower value as incumbent, brute force's best schedule keeps to the fixed fates."""
    best = optimum(problem)
    if best is None:
        return
    dual = _dual_of(problem)
    exact = ExactDual(dual, minimise(dual, None, 30), lambda: False)
    exact.step()
    top = best.value.level_1
    fixed = dual.fixings(exact.best, top - 1e-6 * max(1.0, abs(top)))
    for index, outcome in enumerate(best.schedule.outcomes):
        assert not (fixed.met[index] and outcome.met is False)
        assert not (fixed.unmet[index] and outcome.met is True)


@settings(max_examples=examples(60))
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True), slack=st.sampled_from((0.0, 0.5)))
def test_a_bound_on_the_met_weight_keeps_the_bound_valid(
    problem: EpochProblem, slack: float
) -> None:
    """With the row of level 1 no toll proves less than brute force reaches, and the best no more."""
    best, first = optimum(problem), optimum(problem.replace(objective=Objective()))
    if best is None or first is None:
        return
    dual = _dual_of(problem)
    start = minimise(dual, None, 20)
    function, found = with_most_met(dual, start, first.value.met_weight + slack, lambda: False)
    top = best.value.level_1
    assert found.bound <= start.bound
    assert found.bound >= top - 1e-9 * max(1.0, abs(top))
    fixed = function.fixings(found, top - 1e-6 * max(1.0, abs(top)))
    for index, outcome in enumerate(best.schedule.outcomes):
        assert not (fixed.met[index] and outcome.met is False)
        assert not (fixed.unmet[index] and outcome.met is True)


def test_with_the_weight_of_met_jobs_alone_it_is_the_dual_of_level_1() -> None:
    """Without the other levels both hull bounds and both exact bounds are the same."""
    problem = generate_problem(40, 12, load=1.6, seed=3)
    arrays = arrays_of(problem)
    data, worths = weighted_data(arrays, Weights())
    dual = WeightedDual(data, worths)
    known = dual_bound(arrays, iterations=80)
    assert minimise(dual, None, 80).bound == pytest.approx(known.bound, rel=1e-3)
    at_same, _ = dual.evaluate_exactly(known.prices, 3200, lambda: False)
    exact = dual_bound(arrays, known.prices, 1, exact_iterations=1)
    assert at_same.bound == pytest.approx(min(exact.bound, at_same.bound), rel=1e-9)
    assert at_same.bound <= known.bound + 1e-9


def test_threads_do_not_change_the_bound() -> None:
    """One worker and two give the same prices and the same bound."""
    problem = generate_problem(200, 12, load=1.6, seed=1)
    weights = Weights(progress=0.2, leftover=0.1, cost=1e-6, reconfigurations=0.01)
    data, worths = weighted_data(arrays_of(problem), weights)
    one, two = (minimise(WeightedDual(data, worths, k), None, 15) for k in (1, 2))
    assert one.bound == two.bound
    assert np.array_equal(one.prices, two.prices)


def test_a_job_that_must_be_met_and_cannot_leaves_no_bound() -> None:
    """The bound is -inf where there is no schedule."""
    problem = generate_problem(3, 4, load=0.5, seed=0)
    jobs = [job for job in problem.jobs if job.deadline is not None]

    hopeless = dataclasses.replace(jobs[0], work=1e12, must_meet=True)
    changed = problem.replace(jobs=(hopeless,))
    dual = WeightedDual(*weighted_data(arrays_of(changed), Weights()))
    assert minimise(dual, None, 3).bound == -math.inf
