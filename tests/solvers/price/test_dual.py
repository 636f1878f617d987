"""Tests of the bounds of the price engine."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog
from scipy.sparse import coo_array

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays, arrays_of
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.solvers.price.dual import HullDual, minimise
from edgeflow_opt.solvers.price.exact_dual import ExactDual
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.workloads.generate import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def tight_lp(arrays: ProblemArrays) -> float:
    """Return the optimum of the linear program of the tight compact model without losses.

    Variables x[j, s, m] of the modes that fit the capacity of the slot, and z[j]; -inf where a job
    that must be met makes it infeasible.
    """
    useful = arrays.useful_lengths()
    jobs = np.flatnonzero(arrays.has_deadline)
    n, num_slots = arrays.num_jobs, arrays.num_slots
    rows, cols, values = [], [], []
    column = n
    slot_row = arrays.num_sites * num_slots
    work_row = slot_row + n * num_slots
    for j in jobs:
        rows.append(work_row + j)
        cols.append(j)
        values.append(arrays.required[j])
        for s in range(arrays.first_slot[j], arrays.end_slot[j]):
            rows.append(slot_row + j * num_slots + s)
            cols.append(j)
            values.append(-1.0)
            for m in range(arrays.mode_start[j], arrays.mode_start[j + 1]):
                k = arrays.mode_site[m]
                moldable_elsewhere = (
                    not arrays.malleable[j]
                    and arrays.running_mode[j] >= 0
                    and m != arrays.running_mode[j]
                )
                if (
                    not arrays.mode_usable[m]
                    or arrays.mode_units[m] > arrays.capacity[k, s]
                    or moldable_elsewhere
                ):
                    continue
                rows += [k * num_slots + s, slot_row + j * num_slots + s, work_row + j]
                cols += [column] * 3
                values += [
                    float(arrays.mode_units[m]),
                    1.0,
                    -arrays.mode_rate[m] * useful[j, s],
                ]
                column += 1
    total_rows = work_row + n
    matrix = coo_array((values, (rows, cols)), shape=(total_rows, column)).tocsr()
    limit = np.zeros(total_rows)
    limit[:slot_row] = arrays.capacity.ravel()
    cost = np.zeros(column)
    cost[jobs] = -arrays.weight[jobs]
    low = np.zeros(column)
    low[jobs] = arrays.must_meet[jobs]
    high = np.ones(column)
    high[: arrays.num_jobs] = arrays.has_deadline
    result = linprog(
        cost, A_ub=matrix, b_ub=limit, bounds=np.stack([low, high], axis=1), method="highs"
    )
    if result.status == 2:
        return -math.inf
    assert result.status == 0, result.message
    return -float(result.fun)


@given(problem=problems(losses=False))
@settings(max_examples=examples(60))
def test_hull_bound_equals_tight_lp(problem: EpochProblem) -> None:
    """The hull bound is never below the tight linear program, and reaches it."""
    arrays = arrays_of(problem)
    exact = tight_lp(arrays)
    bound = dual_bound(arrays, iterations=600).bound
    assert bound >= exact - 1e-9
    if exact > -math.inf:
        assert bound <= exact + 1e-3 * max(1.0, abs(exact)) + 2e-2


@pytest.mark.parametrize("others", [0, 2])
def test_hull_bound_where_a_price_must_rise_far_above_all_worth(others: int) -> None:
    """A job that must be met takes nearly all there is: what is left is worth many jobs a unit."""
    only = Mode(site="a", gpus=1, rate=0.5)
    problem = EpochProblem(
        grid=Grid((0.0, 60.0, 160.0, 220.0, 230.0)),
        sites=(
            Site(name="a", kind="cloud", capacity=((0.0, 1),)),
            Site(name="b", kind="cloud", capacity=((0.0, others),)),
        ),
        jobs=(
            Job(id="one", deadline=230.0, work=55.0, modes=(only,)),
            Job(
                id="must", deadline=160.0, work=380.0, must_meet=True,
                modes=(Mode(site="a", gpus=1, rate=3.0),),
            ),
        ),
    )  # fmt: skip
    arrays = arrays_of(problem)
    exact = tight_lp(arrays)
    assert exact - 1e-9 <= dual_bound(arrays, iterations=600).bound <= exact + 2e-3


@pytest.mark.parametrize("seed", range(3))
def test_hull_bound_equals_tight_lp_on_generated_instances(seed: int) -> None:
    """At 20 jobs x 8 slots the hull bound is within 0.1 % above the tight linear program."""
    arrays = arrays_of(generate_problem(20, 8, seed, weights=(1, 5), arrival_spread=0.3))
    exact = tight_lp(arrays)
    bound = dual_bound(arrays, iterations=800).bound
    assert exact - 1e-9 <= bound <= exact * 1.001


@given(problem=problems())
@settings(max_examples=examples(100))
def test_bounds_hold_against_brute_force(problem: EpochProblem) -> None:
    """Optimum <= bound with integer plans <= hull bound, whatever the features of the instance."""
    best = optimum(problem)
    arrays = arrays_of(problem)
    hull = dual_bound(arrays, iterations=40)
    exact = dual_bound(arrays, iterations=40, exact_iterations=10)
    assert exact.bound <= hull.bound
    if best is not None:
        assert exact.bound >= best.value.met_weight


@given(problem=problems())
@settings(max_examples=examples(40))
def test_any_prices_give_a_bound(problem: EpochProblem) -> None:
    """Prices that are far from the best still prove a bound, with and without integer plans."""
    best = optimum(problem)
    arrays = arrays_of(problem)
    rng = np.random.default_rng(len(problem.jobs))
    prices = rng.exponential(0.5, arrays.capacity.shape) * rng.integers(0, 2, arrays.capacity.shape)
    for exact_iterations in (0, 1):
        result = dual_bound(arrays, prices, 1, exact_iterations=exact_iterations)
        if best is not None:
            assert result.bound >= best.value.met_weight


@given(problem=problems())
@settings(max_examples=examples(60))
def test_a_job_that_arrives_adds_no_more_than_its_worth(problem: EpochProblem) -> None:
    """At the old prices the bound rises by the new job's worth at most, and stays above the optimum."""
    before = arrays_of(problem.replace(jobs=problem.jobs[:-1]))
    old = dual_bound(before, iterations=40, exact_iterations=5)
    if old.bound < 0.0:
        return
    new = dual_bound(arrays_of(problem), old.prices, 1, exact_iterations=1)
    assert new.bound <= old.bound + problem.jobs[-1].weight + 1e-6 * max(1.0, old.bound)
    best = optimum(problem)
    if best is not None:
        assert new.bound >= best.value.met_weight


def test_result_does_not_depend_on_workers() -> None:
    """One thread and two give the same prices, costs and bound, bit by bit."""
    arrays = arrays_of(generate_problem(300, 24, 3))
    one = dual_bound(arrays, iterations=15, exact_iterations=3, workers=1)
    two = dual_bound(arrays, iterations=15, exact_iterations=3, workers=2)
    assert one.bound == two.bound
    assert np.array_equal(one.prices, two.prices)
    assert np.array_equal(one.job_costs, two.job_costs)


def test_prices_warm_start() -> None:
    """From good prices one evaluation proves a bound within 0.1 % of the one they came with."""
    arrays = arrays_of(generate_problem(200, 24, 5))
    cold = dual_bound(arrays)
    warm = dual_bound(arrays, cold.prices, 1)
    assert warm.bound <= cold.bound * 1.001


def test_impossible_must_meet_is_proven() -> None:
    """A job that must be met and cannot be gives a bound of -inf."""
    problem = generate_problem(5, 4, 1)
    job = problem.jobs[0]

    hard = dataclasses.replace(job, work=job.work * 1e6, must_meet=True)
    arrays = arrays_of(problem.replace(jobs=(hard, *problem.jobs[1:])))
    assert dual_bound(arrays).bound == -math.inf


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        (np.zeros((1, 4)), "one row per site"),
        (np.full((2, 4), -1.0), "finite and at least 0"),
        (np.full((2, 4), np.nan), "finite and at least 0"),
    ],
)
def test_bad_prices_are_refused(prices: np.ndarray, message: str) -> None:
    """Prices of a wrong shape, negative or not finite are refused by name."""
    arrays = arrays_of(generate_problem(5, 4, 1))
    with pytest.raises(UsageError, match=message):
        dual_bound(arrays, prices)


@pytest.mark.parametrize("seed", range(4))
def test_exact_prices_without_losses_are_those_of_the_cheapest_plans(seed: int) -> None:
    """They lie below the cost of no plan, within rounding of the cheapest, and usage fits to them."""
    random = np.random.default_rng(seed)
    problem = generate_problem(25, 5, seed, load=1.6)
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    prices = random.uniform(0.0, 0.02, data.capacity.shape)
    dual = HullDual(data, 1)
    cost, _, usage, whole = dual.exact_costs(prices, 3200, lambda: False)
    assert whole
    useful = arrays.useful_lengths()
    worth_it = 0.0
    between = 0
    for j in np.flatnonzero(data.priced):
        modes = range(data.mode_start[j], data.mode_start[j + 1])
        # All pairs of work and cost, slot by slot; of equals all are kept.
        work, spent = np.zeros(1), np.zeros(1)
        for s in range(data.first[j], data.end[j]):
            fits = [m for m in modes if data.units[m] <= data.capacity[data.site[m], s]]
            more = [(0.0, 0.0)]
            more += [
                (data.rate[m] * useful[j, s], prices[data.site[m], s] * data.units[m]) for m in fits
            ]
            work = np.add.outer(work, [w for w, _ in more]).ravel()
            spent = np.add.outer(spent, [c for _, c in more]).ravel()
        enough = work >= data.need[j]
        if not enough.any():
            assert cost[j] == math.inf
            continue
        least = float(spent[enough].min())
        if least < data.weight[j]:
            assert least - 1e-6 <= cost[j] <= least + 1e-12
            between += cost[j] > dual.cost[j] + 1e-6
            worth_it += least
        else:
            assert cost[j] <= least + 1e-12
    assert between >= 3
    assert float((usage * prices).sum()) == pytest.approx(worth_it, abs=1e-4)


def test_the_exact_dual_with_losses_ends_on_many_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two evaluations stay at the best prices with more bins, and so does a hurried one."""
    problem = generate_problem(20, 12, 1, load=1.6, restart_s=30.0)
    hull = HullDual(pricing_data(arrays_of(problem)), 1)
    begin = minimise(hull, None, 20)
    seen: list[tuple[bool, int]] = []
    evaluate = ExactDual._evaluate

    def spy(self: ExactDual, prices: FloatArray, bins: int) -> FloatArray | None:
        seen.append((prices is self.best.prices, bins))
        return evaluate(self, prices, bins)

    monkeypatch.setattr(ExactDual, "_evaluate", spy)
    exact = ExactDual(hull, begin, lambda: False)
    while not exact.finished:
        exact.step()
    bins = [number for _, number in seen]
    assert bins[-3] < bins[-2] < bins[-1]
    assert set(bins[:-2]) == {bins[0]}
    assert seen[-2][0]
    assert seen[-1][0]
    assert exact.best.bound <= begin.bound
    hurried = ExactDual(hull, begin, lambda: False)
    hurried.step()
    hurried.fit_into(left_s=100.0, step_s=1.0)
    hurried.step()
    assert seen[-1][1] == bins[0], "there was time enough"
    hurried.fit_into(left_s=1.0, step_s=1.0)
    hurried.step()
    assert [number for _, number in seen[-2:]] == [bins[0], bins[-2]]
