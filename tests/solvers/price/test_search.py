"""Putting in a job that does not fit: what comes out is a plan, or the one that was there before."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import usage, walk
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch
from edgeflow_opt.workloads import generate_problem
from tests.strategies import problems


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    problem=problems(),
    seed=st.integers(0, 1000),
    calls=st.integers(0, 2),
    promising=st.booleans(),
)
def test_an_attempt_leaves_a_schedule(
    problem: EpochProblem, seed: int, calls: int, promising: bool
) -> None:
    """Whether an attempt succeeds, fails or is stopped, the plan obeys all rules and loses nothing.

    Losses, weights, jobs that must be met and moldable ones among the instances.
    """
    arrays = arrays_of(problem)
    dual = dual_bound(arrays, exact_iterations=2)
    if dual.bound < 0.0:
        return
    search = PriceSearch(pricing_data(arrays), dual, seed)
    search.construct()
    before, plan = search.value, search.plan.copy()
    left = [calls]

    def stopped() -> bool:
        left[0] -= 1
        return left[0] < 0

    gained = search.put_in_promising(stopped) if promising else search.put_in_more(stopped)
    assert search.value == before + gained
    if gained == 0.0:
        assert np.array_equal(search.plan, plan)
    found = search.filled_plan(arrays, left_over=False)
    assert (usage(arrays, found) <= arrays.capacity).all()
    assert (search.available == arrays.capacity - usage(arrays, found)).all()
    assert walk(arrays, found).met[search.met].all()
    # What the next move is judged by is consistent, too.
    costs = search._plan_cost.copy()
    search._price_plan()
    assert np.allclose(costs, search._plan_cost)


def test_attempts_find_a_job_more() -> None:
    """After moves that were many an attempt still finds a job, and the same plan each time."""
    arrays = arrays_of(generate_problem(300, 96, 0, load=1.6))
    data, dual = pricing_data(arrays), dual_bound(arrays, exact_iterations=20)
    plans = []
    for _ in range(2):
        search = PriceSearch(data, dual, 0)
        search.construct()
        search.improve(3000)
        before = search.value
        for _ in range(5):
            search.put_in_more(lambda: False)
        assert search.value >= before + 1.0
        plans.append(search.plan)
    assert np.array_equal(*plans)


def test_a_job_that_arrives_is_put_in_where_others_can_be_shifted() -> None:
    """Where others hold its only slot one of them is moved, unless prices say that it is not worth it."""
    gpu = (Mode(site="a", gpus=1, rate=1.0),)
    jobs = [Job(id=f"old {i}", deadline=20.0, work=10.0, modes=gpu) for i in range(2)]
    jobs.append(Job(id="new", deadline=10.0, work=10.0, modes=gpu))
    problem = EpochProblem(
        grid=Grid((0.0, 10.0, 20.0)),
        sites=(Site(name="a", kind="cloud", capacity=((0.0, 2),)),),
        jobs=tuple(jobs),
    )
    data = pricing_data(arrays_of(problem))
    plan = np.array([[0, -1], [1, -1], [-1, -1]])
    for price, is_put_in in ((0.2, True), (0.95, False)):
        dual = dual_bound(arrays_of(problem), np.array([[price, 0.1]]), 1, exact_iterations=1)
        assert np.allclose(dual.job_costs, [0.1, 0.1, price])
        search = PriceSearch(data, dual, 0)
        search.adopt(plan, np.array([True, True, False]))
        search.construct()
        assert search.value == 2.0
        assert search.put_in_promising(lambda: False) == float(is_put_in)
        assert search.met.all() == is_put_in
        assert (search.available >= 0).all()
