"""Diving: what it finds is a schedule, what is left is counted right, and it finds the last job."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plan_columns import JobPlans
from edgeflow_opt.formulations.plans import plan_of, walk
from edgeflow_opt.problem import EpochProblem, SolveStatus
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.dive import dive
from edgeflow_opt.solvers.plan.generation import Generation
from edgeflow_opt.solvers.plan.rest import Rest, taken_by
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.workloads import generate_problem
from tests.oracle import optimum
from tests.solvers.instances import crowded
from tests.strategies import problems


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(moldable=False, must_meet=False), seed=st.integers(0, 1000))
def test_what_is_left_is_bounded(problem: EpochProblem, seed: int) -> None:
    """Given some plans of a best schedule, the bound is never below its value, nor a dive above.

    Losses, weights, tides and running jobs among the instances.
    """
    best = optimum(problem)
    assert best is not None
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    position = np.full(arrays.num_modes + 1, -1, dtype=np.int64)
    position[data.mode_id] = np.arange(len(data.mode_id))
    matrix = plan_of(problem, arrays, best.schedule)
    met = walk(arrays, matrix).met & data.priced
    rows = np.where(met[:, None], position[matrix], -1)
    value = float(data.weight[met].sum())
    assume(met.any() and ((rows >= 0) | (matrix < 0) | ~met[:, None]).all())
    draws = np.random.default_rng(seed)
    jobs = np.flatnonzero(met)
    generation = Generation(data, 1, SolveControl(None))
    generation.add(jobs, rows[jobs])
    root = dual_bound(arrays)
    chosen = np.flatnonzero(draws.random(len(jobs)) < 0.5)
    rest = Rest.whole(data).without(generation.plans(), chosen)
    assert (rest.data.capacity == data.capacity - taken_by(data, rows[jobs[chosen]])).all()
    # No schedule is worth so much: the node is bounded until nothing improves it.
    answer = generation.node(root, Branch.root(data), np.inf, to_the_end=True, rest=rest)
    assert answer.dual.bound >= value - 1e-6
    for _ in range(3):
        found = dive(generation, root, value, draws)
        if found is not None:
            plans = generation.plans()
            assert len(set(plans.job[found].tolist())) == len(found)
            assert (taken_by(data, plans.rows[found]) <= data.capacity).all()
            assert value - 1e-6 <= data.weight[plans.job[found]].sum() <= value + 1e-6
    assert dive(generation, root, value + 1e-3, draws) is None


def test_what_does_not_fit_is_not_admitted() -> None:
    """A plan is admitted if it is given, or if its job is open and its units are left."""
    problem = crowded(12, 6, seed=2)
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    result = solve(problem, "price", deterministic=True, params={"moves": 100})
    plan = plan_of(problem, arrays, result.schedule)
    position = np.full(arrays.num_modes + 1, -1, dtype=np.int64)
    position[data.mode_id] = np.arange(len(data.mode_id))
    jobs = np.flatnonzero(walk(arrays, plan).met)
    plans = JobPlans(np.concatenate([jobs, jobs]), np.tile(position[plan[jobs]], (2, 1)))
    given = np.arange(len(jobs) - 1)
    rest = Rest.whole(data).without(plans, given)
    admitted = rest.admits(plans)
    # The last job is open, and fits; the second copies of the others are of jobs that have a plan.
    assert admitted.tolist() == ([True] * len(jobs)) + [False] * (len(jobs) - 1) + [True]
    full = Rest.whole(data)
    full = Rest(data._replace(capacity=np.zeros_like(data.capacity)), full.chosen, full.value)
    assert not full.admits(plans).any()


def test_dives_close_what_the_search_leaves_open() -> None:
    """A few dives find the one job that bounds leave room for, and thousands of moves do not."""
    problem = generate_problem(100, 24, 1, load=0.8)
    search = solve(problem, "price", deterministic=True)
    plan = solve(
        problem, "plan", deterministic=True, time_limit_s=None, levels=1, params={"nodes": 0}
    )
    assert search.status is SolveStatus.FEASIBLE
    assert plan.status is SolveStatus.OPTIMAL
    assert search.value is not None
    assert plan.value is not None
    assert plan.value > search.value
    assert plan.statistics["dives"] > 0
    assert "masters" not in plan.statistics
