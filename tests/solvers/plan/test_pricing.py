"""The exact pricing against all plans there are, and its bound at any prices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plan_columns import JobPlans
from edgeflow_opt.problem import EpochProblem
from edgeflow_opt.problem.arrays import IntArray, arrays_of
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.pricing import PlanPricing
from edgeflow_opt.solvers.price.pricing_data import PricingData, pricing_data
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def _plans_within(data: PricingData, branch: Branch, job: int) -> IntArray:
    """Return every sequence of kept modes of `job` that sites and branch allow."""
    slots = []
    for slot in range(data.capacity.shape[1]):
        fits = [-1] if branch.may_idle[job, slot] else []
        for mode in range(data.mode_start[job], data.mode_start[job + 1]):
            room = data.capacity[data.site[mode], slot] >= data.units[mode]
            if room and branch.allowed[slot, mode] and data.first[job] <= slot < data.end[job]:
                fits.append(mode)
        slots.append(fits)
    found = list(itertools.product(*slots))
    return np.array(found, dtype=np.int64).reshape(len(found), len(slots))


@settings(max_examples=examples(40))
@given(
    problem=problems(max_jobs=3, moldable=False, must_meet=False),
    seed=st.integers(0, 10_000),
    decisions=st.integers(0, 2),
)
def test_pricing_is_exact(problem: EpochProblem, seed: int, decisions: int) -> None:
    """Under any prices and branch, cost and plan are those of the cheapest plan by enumeration.

    Losses longer than slots, migrations and running jobs among them; only plans that cost less
    than the weight matter.
    """
    arrays = arrays_of(problem)
    data = pricing_data(arrays)
    draws = np.random.default_rng(seed)
    prices = np.round(draws.uniform(0.0, 0.4, data.capacity.shape), 3)
    branch = Branch.root(data)
    for _ in range(decisions if len(data.site) else 0):
        mode = int(draws.integers(len(data.site)))
        job = int(np.searchsorted(data.mode_start, mode, side="right")) - 1
        if data.end[job] <= data.first[job]:
            continue
        slot = int(draws.integers(data.first[job], data.end[job]))
        if draws.random() < 0.5:
            branch = branch.without(slot, mode)
        else:
            branch = branch.holding(data, job, slot, mode)
    pricing = PlanPricing(data, 1, lambda: False)
    priced = pricing.price(prices, branch)
    assert pricing.tables == 0
    for job in np.flatnonzero(data.priced):
        rows = _plans_within(data, branch, int(job))
        # The last entry stands for idling.
        names = np.append(data.mode_id, -1)
        plans = JobPlans(np.full(len(rows), job), names[rows])
        met = plans.values(arrays)["met"] > 0
        cost = plans.columns(arrays).priced(prices.ravel())
        least = float(cost[met].min()) if met.any() else np.inf
        assert priced.dual.job_costs[job] <= least + 1e-9
        if least < data.weight[job] - 1e-9:
            assert priced.dual.job_costs[job] == pytest.approx(least, abs=1e-8)
            found = np.flatnonzero(priced.job == job)
            assert priced.cost[found] == pytest.approx(least, abs=1e-8)
            assert branch.admits(priced.job[found], priced.rows[found]).all()


@settings(max_examples=examples(25))
@given(problem=problems(), seed=st.integers(0, 10_000))
def test_the_bound_holds_at_any_prices(problem: EpochProblem, seed: int) -> None:
    """The Lagrangian bound at random prices is never below the optimum by brute force."""
    best = optimum(problem)
    data = pricing_data(arrays_of(problem))
    prices = np.random.default_rng(seed).uniform(0.0, 1.0, data.capacity.shape)
    priced = PlanPricing(data, 1, lambda: False).price(prices, Branch.root(data))
    if best is not None:
        assert priced.dual.bound >= best.value.met_weight


def test_a_stopped_pricing_still_bounds() -> None:
    """Jobs that are not reached keep their hull costs: a weaker bound, but a bound, and no plans."""
    from tests.solvers.instances import crowded

    data = pricing_data(arrays_of(crowded(20, 6)))
    prices = np.full(data.capacity.shape, 0.02)
    whole = PlanPricing(data, 1, lambda: False).price(prices, Branch.root(data))
    stopped = PlanPricing(data, 1, lambda: True).price(prices, Branch.root(data))
    assert whole.complete
    assert not stopped.complete
    assert len(stopped.job) == 0
    assert stopped.dual.bound >= whole.dual.bound


def test_the_number_of_threads_does_not_matter() -> None:
    """Bound, costs and plans are the same by one thread and by two."""
    from tests.solvers.instances import crowded

    data = pricing_data(arrays_of(crowded(140, 4)))
    prices = np.full(data.capacity.shape, 0.02)
    one, two = (
        PlanPricing(data, workers, lambda: False).price(prices, Branch.root(data))
        for workers in (1, 2)
    )
    assert one.dual.bound == two.dual.bound
    assert np.array_equal(one.dual.job_costs, two.dual.job_costs)
    assert np.array_equal(one.rows, two.rows)
