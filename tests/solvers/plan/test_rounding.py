"""Rounding: what it finds is a schedule, and it finds the job; the relaxation in a box is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.problem import EpochProblem
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.lexicographic.packing import pack_on
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.plan.boxed_relaxation import BoxedRelaxation
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.known_plans import KnownPlans
from edgeflow_opt.solvers.plan.quick_pricing import QuickPricing
from edgeflow_opt.solvers.plan.relaxation import Relaxation
from edgeflow_opt.solvers.plan.rounding import round_relaxations
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


def test_rounding_finds_the_job_that_the_search_leaves() -> None:
    """Rounding finds the job that as many moves without it do not, and the same plan each time."""
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
        round_relaxations(work, work.control, seed=2)
        assert work.incumbent.level_1 == before + 1
        assert work.incumbent.rejected == 0
        plans.append(work.incumbent.plan)
    assert np.array_equal(*plans)
    data = pricing_data(work.arrays)
    rows, _ = data.in_kept_modes(start)
    search = PriceSearch(data, dual, 2)
    search.adopt(rows, walk(work.arrays, start).met & data.priced)
    assert search.improve(30_000) == 0.0


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(problem=problems(), seed=st.integers(0, 1000))
def test_rounding_and_packing_offer_schedules_only(problem: EpochProblem, seed: int) -> None:
    """They never offer a plan that breaks a rule, nor take a worse one; no bound cuts off the optimum.

    Losses, weights, jobs that must be met and moldable ones among the instances.
    """
    best = optimum(problem)
    assume(best is not None)
    work = _work(problem)
    work.offer_starts()
    # Far from the best prices, so that the relaxation has something to prove.
    work.dual = dual_bound(work.arrays, iterations=20)
    before = work.incumbent.level_1
    round_relaxations(work, work.control, seed)
    pack_on(work, work.control, seed)
    if before is not None:
        assert work.incumbent.rejected == 0
        assert work.incumbent.level_1 is not None
        assert work.bound >= best.value.level_1 - 1e-6
        assert before - 1e-6 <= work.incumbent.level_1 <= best.value.level_1 + 1e-6


def test_nothing_is_done_without_prices_or_plan() -> None:
    """Where there is nothing to begin from, nothing is rounded or packed."""
    work = _work(generate_problem(10, 8, 0, load=1.6))
    round_relaxations(work, work.control, seed=0)
    pack_on(work, work.control, seed=0)
    assert not {"roundings", "packings"} & set(work.statistics)


def test_packing_puts_in_a_job_that_does_not_fit() -> None:
    """From a plan just built it reaches more than the same moves alone."""
    problem = generate_problem(100, 24, 1, load=0.8)
    work = _work(problem)
    work.dual = dual = dual_bound(work.arrays, exact_iterations=40)
    search = PriceSearch(pricing_data(work.arrays), dual, 0)
    search.construct()
    work.incumbent.offer(search.filled_plan(work.arrays, left_over=False), "price")
    pack_on(work, work.control, seed=1)
    search.improve(500 * work.statistics["packings"])
    assert work.incumbent.level_1 is not None
    assert work.incumbent.level_1 > search.value
    assert work.incumbent.rejected == 0


def test_relaxation_proves_what_prices_leave_open() -> None:
    """Begun from the prices of the hull, its prices prove a bound a job below theirs, and no less."""
    work = _work(generate_problem(60, 24, 0, load=1.6))
    work.offer_starts()
    work.dual = dual_bound(work.arrays)
    exact = dual_bound(work.arrays, work.dual.prices, exact_iterations=42).bound
    work.tighten(np.floor(work.dual.bound))
    round_relaxations(work, work.control, seed=0)
    assert np.floor(exact) - 1 <= work.bound <= np.floor(work.dual.bound) - 1


@pytest.mark.parametrize("seed", [0, 1])
def test_box_closes_between_dual_and_master(seed: int) -> None:
    """Without reach the value is the dual of the plans known at the prices; with much, their master's.

    In between it lies between the two, and prices lie in the box.
    """
    arrays = arrays_of(generate_problem(30, 12, seed, load=2.0))
    data = pricing_data(arrays)
    dual = dual_bound(arrays, exact_iterations=10)
    control = SolveControl(None)
    box, whole = BoxedRelaxation(data, control), Relaxation(data, control)
    pricing = QuickPricing(data)
    random = np.random.default_rng(seed)
    known = KnownPlans(arrays.num_slots)
    for _ in range(6):
        priced = pricing.price(dual.prices * random.uniform(0.5, 1.5, dual.prices.shape))
        new = known.add(priced.job, priced.rows)
        box.add(new.job, new.rows)
        whole.add(new.job, new.rows)
    plans = known.all()
    assert len(known) == len(plans.job) == len(np.unique(np.c_[plans.job, plans.rows], axis=0))
    whole.restrict(Branch.root(data), np.ones(len(known), dtype=np.bool_))
    master = whole.solve()
    plan, slot = np.nonzero(plans.rows >= 0)
    mode = plans.rows[plan, slot]
    priced = np.bincount(plan, dual.prices[data.site[mode], slot] * data.units[mode])
    gain = np.zeros(arrays.num_jobs)
    np.maximum.at(gain, plans.job, data.weight[plans.job] - priced)
    closed, near, far = (box.solve(dual.prices, reach) for reach in (0.0, 0.01, 1e3))
    assert master is not None
    assert closed is not None
    assert near is not None
    assert far is not None
    assert closed.value == pytest.approx((data.capacity * dual.prices).sum() + gain.sum())
    assert far.value == pytest.approx(master.value)
    assert far.value - 1e-6 <= near.value <= closed.value + 1e-6
    assert np.abs(near.prices - dual.prices).max() <= 0.01 + 1e-6
    assert far.met.sum() == pytest.approx(far.share.sum())


def test_quick_pricing_finds_plans_that_meet_their_deadlines() -> None:
    """Every plan fits what is left and meets its job; the bound is within a hair of the proven one."""
    problem = generate_problem(40, 12, 0, load=1.6)
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    dual = dual_bound(arrays, exact_iterations=20)
    priced = QuickPricing(data).price(dual.prices)
    for job, row in zip(priced.job, priced.rows, strict=True):
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        plan[job] = np.where(row >= 0, data.mode_id[row], -1)
        assert walk(arrays, plan).met[job]
    assert abs(priced.dual.bound - dual.bound) < 0.02 * dual.bound
    closed = data.with_fates(data.must_meet, np.zeros_like(data.priced))
    nothing = QuickPricing(closed).price(dual.prices)
    assert not len(nothing.job)
    none_left = data.with_fates(data.priced, data.priced)._replace(
        capacity=np.zeros_like(data.capacity),
    )
    none_left = none_left._replace(
        tables=none_left.tables._replace(capacity=np.zeros_like(data.capacity))
    )
    assert QuickPricing(none_left).price(dual.prices).dual.bound == -np.inf
