"""Window dives: what they find is a schedule, what is left is counted right, and they find the job."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.problem import EpochProblem
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.quick_pricing import QuickPricing
from edgeflow_opt.solvers.plan.window_dives import window_dives
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch
from edgeflow_opt.workloads import generate_problem
from tests.oracle import optimum
from tests.strategies import problems

_STEADY = SolveOptions(time_limit_s=None, deterministic=True)


def _work(problem: EpochProblem) -> LevelSolve:
    control = SolveControl(None)
    return LevelSolve(problem, arrays_of(problem), _STEADY, control, HighsEngine())


def test_windows_find_the_job_that_the_search_leaves() -> None:
    """Windows find the job that as many moves without them do not, and the same plan each time."""
    problem = generate_problem(100, 24, 1, load=0.8)
    work = _work(problem)
    work.use_prices(np.inf, fixing=False)
    before, start, dual = work.incumbent.level_1, work.incumbent.plan, work.dual
    assert before is not None
    assert start is not None
    assert dual is not None
    plans = []
    for _ in range(2):
        work = _work(problem)
        work.incumbent.offer(start, "price")
        work.dual = dual
        window_dives(work, work.control, seed=2)
        assert work.incumbent.level_1 == before + 1
        assert work.incumbent.rejected == 0
        plans.append(work.incumbent.plan)
    assert np.array_equal(*plans)
    data = pricing_data(work.arrays)
    position = np.full(work.arrays.num_modes + 1, -1, dtype=np.int64)
    position[data.mode_id] = np.arange(len(data.mode_id))
    search = PriceSearch(data, dual, 2)
    search.adopt(position[start], walk(work.arrays, start).met & data.priced)
    assert search.improve(30_000) == 0.0


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(), seed=st.integers(0, 1000))
def test_windows_offer_schedules_only(problem: EpochProblem, seed: int) -> None:
    """Begun from little, they never offer a plan that breaks a rule, nor take one that is worse.

    Losses, weights, jobs that must be met and moldable ones among the instances.
    """
    best = optimum(problem)
    assume(best is not None)
    work = _work(problem)
    work.offer_starts()
    work.dual = dual_bound(work.arrays)
    before = work.incumbent.level_1
    window_dives(work, work.control, seed)
    if before is not None:
        assert work.incumbent.rejected == 0
        assert work.incumbent.level_1 is not None
        assert before - 1e-6 <= work.incumbent.level_1 <= best.value.level_1 + 1e-6


def test_nothing_is_done_without_prices_or_plan() -> None:
    """Where there is nothing to begin from, windows are not opened."""
    work = _work(generate_problem(10, 8, 0, load=1.6))
    window_dives(work, work.control, seed=0)
    assert "windows" not in work.statistics


def test_quick_pricing_finds_plans_that_meet_their_deadlines() -> None:
    """Every plan fits what is left and meets its job; the bound is within a hair of the proven one."""
    problem = generate_problem(40, 12, 0, load=1.6)
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    dual = dual_bound(arrays, exact_iterations=20)
    priced = QuickPricing(data).price(dual.prices, Branch.root(data))
    for job, row in zip(priced.job, priced.rows, strict=True):
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        plan[job] = np.where(row >= 0, data.mode_id[row], -1)
        assert walk(arrays, plan).met[job]
    assert abs(priced.dual.bound - dual.bound) < 0.02 * dual.bound
    closed = data.with_fates(data.must_meet, np.zeros_like(data.priced))
    nothing = QuickPricing(closed).price(dual.prices, Branch.root(data))
    assert not len(nothing.job)
    must = dataclasses.replace(Branch.root(data), met=data.priced)
    none_left = data._replace(
        capacity=np.zeros_like(data.capacity),
        tables=data.tables._replace(capacity=np.zeros_like(data.capacity)),
    )
    assert QuickPricing(none_left).price(dual.prices, must).dual.bound == -np.inf
