"""Tests of edgeflow_opt.solvers.capacity_prices and of solves that begin from prices."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import EpochProblem, Grid, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import CapacityPrices, solve
from edgeflow_opt.solvers.price import dual_bound
from edgeflow_opt.workloads import generate_problem

PRICES = CapacityPrices(
    sites=("cloud", "edge"),
    boundaries=(0.0, 10.0, 30.0),
    per_unit_second=((1.0, 2.0), (0.5, 0.0)),
)


def _on(grid: Grid) -> EpochProblem:
    """Return an instance with the sites cloud and edge on `grid`."""
    problem = generate_problem(num_jobs=3, num_slots=2, seed=1)
    assert [site.name for site in problem.sites] == ["cloud", "edge"]
    return problem.replace(grid=grid, jobs=())


def test_the_same_grid_gives_the_prices_back() -> None:
    """Prices of slots that go out come back the same on the grid that they come from."""
    problem = _on(Grid((0.0, 10.0, 30.0)))
    slots = PRICES.on_slots(problem)
    np.testing.assert_allclose(slots, [[10.0, 40.0], [5.0, 0.0]], rtol=1e-15)
    assert CapacityPrices.of_slots(problem, slots) == PRICES


def test_a_later_grid_gets_the_prices_of_its_times() -> None:
    """On a grid that begins later, other slots included, prices are those of the times covered."""
    problem = _on(Grid((5.0, 15.0, 30.0, 40.0)))
    expected = [[5.0 + 10.0, 30.0, 20.0], [2.5, 0.0, 0.0]]
    np.testing.assert_allclose(PRICES.on_slots(problem), expected, rtol=1e-12)


def test_an_unknown_site_gets_the_mean() -> None:
    """A site that the prices do not know is priced at the mean of those that they know."""
    known = CapacityPrices(
        sites=("cloud", "other"), boundaries=(0.0, 10.0), per_unit_second=((1.0,), (3.0,))
    )
    slots = known.on_slots(_on(Grid((0.0, 10.0))))
    np.testing.assert_allclose(slots, [[10.0], [20.0]])


def test_prices_survive_json_and_pickle() -> None:
    """JSON and pickle give equal prices back, digits and all."""
    odd = PRICES.scaled(1.0 / 3.0)
    assert CapacityPrices.from_json(odd.to_json()) == odd
    assert pickle.loads(pickle.dumps(odd)) == odd


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[", "must be a JSON document"),
        ('{"format": "edgeflow-prices/2"}', "the format being 'edgeflow-prices/1'"),
        ('{"format": "edgeflow-prices/1", "boundaries": [0, 1], "sites": []}', "sites must be"),
        ('{"format": "edgeflow-prices/1", "boundaries": "01", "sites": {}}', "list of numbers"),
        ('{"format": "edgeflow-prices/1", "boundaries": [1, 0], "sites": {}}', "times that rise"),
        (
            '{"format": "edgeflow-prices/1", "boundaries": [0, 1], "sites": {"a": [1, 2]}}',
            "one for each of the 1 pieces",
        ),
        (
            '{"format": "edgeflow-prices/1", "boundaries": [0, 1], "sites": {"a": [-1]}}',
            "finite and at least 0, got -1",
        ),
    ],
)
def test_bad_documents_are_refused(text: str, rule: str) -> None:
    """A document that is not one of prices is refused with the rule that it breaks."""
    with pytest.raises(UsageError, match=rule):
        CapacityPrices.from_json(text)


def test_prices_that_are_none_are_refused() -> None:
    """An option prices of another type is refused before anything is solved."""
    with pytest.raises(UsageError, match=r"option prices: must be a CapacityPrices, got list"):
        solve(_on(Grid((0.0, 1.0))), "price", prices=[1.0])


@pytest.mark.parametrize("weight", [1.0, 3.0e6])
def test_a_result_carries_its_prices_in_the_unit_of_the_weights(weight: float) -> None:
    """The prices of a result prove its bound again, in whatever unit the weights are."""
    problem = generate_problem(num_jobs=40, num_slots=12, load=2.5, seed=3)
    jobs = tuple(dataclasses.replace(job, weight=weight) for job in problem.jobs)
    problem = problem.replace(jobs=jobs)
    found = solve(problem, "price", deterministic=True, params={"moves": 10})
    assert found.prices is not None
    assert found.bound is not None
    arrays = arrays_of(problem)
    again = dual_bound(arrays, found.prices.on_slots(problem), 1, exact_iterations=1)
    assert again.bound >= found.value
    assert again.bound <= found.statistics["bound"] * weight * 1.01


@pytest.mark.parametrize("solver", ["price", "auto"])
def test_an_arrival_costs_no_job_and_little_bound(solver: str) -> None:
    """With plan and prices of before, no met job is lost to an arrival, and the bound stays near."""
    problem = generate_problem(num_jobs=60, num_slots=24, load=2.0, seed=5)
    before = problem.replace(jobs=problem.jobs[:-1])
    old = solve(before, "price", deterministic=True, params={"moves": 2000})
    assert old.value is not None
    assert old.bound is not None
    params = {"moves": 0, "exact_iterations": 2} if solver == "price" else {}
    new = solve(
        problem, solver, warm_start=old.schedule, prices=old.prices, time_limit_s=2.0, params=params
    )
    assert check(problem, new.schedule).valid
    assert new.value is not None
    assert new.bound is not None
    assert new.prices is not None
    assert new.value >= old.value
    assert new.bound <= old.bound + 2.0


def test_the_plan_of_the_epoch_before_is_cut_at_now() -> None:
    """A plan of an earlier grid, with jobs that have gone since, serves as a start all the same."""
    problem = generate_problem(num_jobs=30, num_slots=12, load=1.0, seed=4)
    old = solve(problem, "price", deterministic=True, params={"moves": 200})
    times = problem.grid.boundaries
    held = {a.job: a for a in old.schedule.allocations if a.start == times[0]}
    gone = problem.jobs[0].id
    later = problem.replace(
        grid=Grid(times[1:]),
        jobs=tuple(j for j in problem.jobs if j.id != gone and j.id not in held),
    )
    new = solve(later, "price", warm_start=old.schedule, prices=old.prices, deterministic=True,
                params={"moves": 0})  # fmt: skip
    assert new.value is not None
    kept = {o.job for o in old.schedule.outcomes if o.met} & {j.id for j in later.jobs}
    assert new.value >= len(kept)


def test_wrong_prices_still_give_a_true_bound() -> None:
    """Prices of another instance cost strength, never truth: the bound is not below a value."""
    problem = generate_problem(num_jobs=20, num_slots=12, load=1.6, seed=2)
    best = solve(problem, "auto", time_limit_s=5.0, levels=1)
    far = CapacityPrices(sites=("x",), boundaries=(0.0, 1.0), per_unit_second=((50.0,),))
    for prices in (far, far.scaled(1e-12)):
        found = solve(problem, "price", prices=prices, deterministic=True, params={"moves": 50})
        assert found.bound is not None
        assert best.value is not None
        assert found.bound >= best.value
