"""The portfolio, and all solvers side by side: never worse than the greedy, no bound too low."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import EpochProblem, Grid, SolveStatus, check
from edgeflow_opt.solvers import SOLVERS, SolveResult, auto, solve
from edgeflow_opt.solvers.base import features_of
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import crowded, small
from tests.strategies import problems

ALL = ("auto", "greedy", "edgeflow-select", "cpsat", "highs", "price")


def _supported(problem: EpochProblem) -> list[str]:
    needs = set(features_of(problem))
    return [name for name in ALL if needs <= SOLVERS.get(name).capabilities.features]


@settings(max_examples=examples(30))
@given(
    problem=problems(max_jobs=5, max_slots=5),
    seconds=st.sampled_from([1e-6, 0.02, 10.0]),
    levels=st.sampled_from([1, 5]),
)
def test_auto_is_never_worse_than_the_greedy(
    problem: EpochProblem, seconds: float, levels: int
) -> None:
    """Whatever the time, auto's schedule is as good as the greedy's in the lexicographic order."""
    greedy = solve(problem, "greedy")
    auto = solve(problem, "auto", time_limit_s=seconds, levels=levels)
    if greedy.objective is not None:
        assert auto.objective is not None
        assert not greedy.objective.better_than(auto.objective)
    if auto.objective is not None:
        assert check(problem, auto.schedule).valid


@pytest.mark.parametrize("seconds", [1e-6, 0.05, 0.5])
@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
def test_larger_instances_do_not_fall_below_the_greedy_either(solver: str, seconds: float) -> None:
    """Under overload and within short limits the greedy's plan is the least that is returned."""
    problem = crowded(num_jobs=30, num_slots=12)
    greedy = solve(problem, "greedy")
    found = solve(problem, solver, time_limit_s=seconds)
    assert greedy.objective is not None
    assert found.objective is not None
    assert not greedy.objective.better_than(found.objective)


@pytest.mark.parametrize("kind", ["malleable", "lossless", "moldable"])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_serves_large_instances_serves_small_ones(
    kind: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of large instances, rounding among it, ends between the greedy and the optimum."""
    problem = crowded(num_jobs=10, num_slots=8)
    if kind == "lossless":
        problem = problem.replace(
            jobs=tuple(
                dataclasses.replace(job, restart_s=0.0, migration_s=0.0) for job in problem.jobs
            )
        )
    elif kind == "moldable":
        problem = problem.as_moldable()
    greedy, best = solve(problem, "greedy"), solve(problem, "auto", levels=1)
    monkeypatch.setattr(auto, "SMALL_COLUMNS", 0)
    # Else prices leave nothing open on an instance as small as this.
    for seconds in ("_PRICE_LEAST_S", "_PRICE_S_PER_COLUMN", "_PRICE_SHARE_BEFORE_ROUNDING"):
        monkeypatch.setattr(auto, seconds, 0.0)
    found = solve(problem, "auto", levels=1, time_limit_s=2.0, workers=workers)
    assert best.status is SolveStatus.OPTIMAL
    assert greedy.value is not None
    assert best.value is not None
    assert found.value is not None
    assert found.bound is not None
    assert greedy.value - 1e-9 <= found.value <= best.value + 1e-6 <= found.bound + 2e-6
    assert ("roundings" in found.statistics) is (kind == "lossless")


@settings(max_examples=examples(15))
@given(problems(max_jobs=4, max_slots=4, weighted=False))
def test_no_bound_is_below_any_value_and_all_results_are_valid(problem: EpochProblem) -> None:
    """Bounds of all solvers against values of all, and every schedule against the checker."""
    results = [solve(problem, name, time_limit_s=5.0) for name in _supported(problem)]
    values = [r.value for r in results if r.value is not None]
    for result in results:
        if result.objective is not None:
            assert check(problem, result.schedule).valid
            assert result.status is not SolveStatus.INFEASIBLE
        if result.status is SolveStatus.INFEASIBLE:
            assert values == []
        for point in result.trace:
            if point.bound is not None and values:
                assert point.bound >= max(values) - 1e-6
    optimal = {round(r.value or 0.0, 6) for r in results if r.status is SolveStatus.OPTIMAL}
    assert len(optimal) <= 1


def test_no_bound_of_an_unfinished_solve_is_below_any_value() -> None:
    """Stopped early, the bounds of all solvers still lie above the values of all."""
    problem = crowded(num_jobs=25, num_slots=10, seed=4)
    results = [solve(problem, name, time_limit_s=seconds) for name in ALL for seconds in (0.1, 0.8)]
    best = max(r.value or 0.0 for r in results)
    bounds = [p.bound for r in results for p in r.trace if p.bound is not None]
    assert best > 0.0
    assert len(bounds) > 4
    assert min(bounds) >= best - 1e-6


@settings(max_examples=examples(12))
@given(problems(max_jobs=3, max_slots=4, must_meet=False))
def test_moldable_jobs_are_never_better_off(problem: EpochProblem) -> None:
    """Tied to one mode in one run, the optimum by auto is no higher, and that of brute force."""
    rigid = problem.as_moldable()
    bound, value = solve(problem, "auto", levels=1).bound, solve(rigid, "auto", levels=1).value
    best = optimum(rigid)
    assert bound is not None
    assert value is not None
    assert best is not None
    assert value <= bound + 1e-6
    assert value == pytest.approx(best.value.met_weight, abs=1e-6)


def _moved(problem: EpochProblem, by: float) -> EpochProblem:
    """Return `problem` on a clock that shows `by` seconds more."""
    grid = Grid(tuple(time + by for time in problem.grid.boundaries))
    sites = tuple(
        dataclasses.replace(s, capacity=tuple((time + by, units) for time, units in s.capacity))
        for s in problem.sites
    )
    jobs = tuple(
        dataclasses.replace(
            job,
            arrival=None if job.arrival is None else job.arrival + by,
            deadline=None if job.deadline is None else job.deadline + by,
        )
        for job in problem.jobs
    )
    return problem.replace(grid=grid, sites=sites, jobs=jobs)


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs", "price"])
@settings(max_examples=examples(8))
@given(problem=problems(max_jobs=3, max_slots=4, offset=False), by=st.sampled_from([-5e3, 1e7]))
def test_the_clock_does_not_matter(solver: str, problem: EpochProblem, by: float) -> None:
    """On another clock status and level 1 are the same."""
    first, second = solve(problem, solver), solve(_moved(problem, by), solver)
    assert first.status is second.status
    assert (first.value is None) == (second.value is None)
    if first.value is not None:
        assert second.value == pytest.approx(first.value, rel=1e-9)


@settings(max_examples=examples(15))
@given(problems(max_jobs=3, max_slots=4), st.integers(0, 1))
def test_more_capacity_never_lowers_what_is_proven(problem: EpochProblem, which: int) -> None:
    """With one more unit at a site the proven optimum is no lower."""
    index = which % len(problem.sites)
    site = problem.sites[index]
    steps = tuple((time, units + 1) for time, units in site.capacity)
    sites = list(problem.sites)
    sites[index] = dataclasses.replace(site, capacity=steps)
    first = solve(problem, "auto", levels=1)
    second = solve(problem.replace(sites=tuple(sites)), "auto", levels=1)
    if first.value is not None:
        assert second.value is not None
        assert second.value >= first.value - 1e-6


def _statistics_name_the_parts(result: SolveResult) -> bool:
    return "prices" in result.statistics and "num_below_columns" in result.statistics


def test_the_portfolio_tells_which_part_found_what() -> None:
    """Trace and statistics name the parts that took part."""
    result = solve(small(), "auto")
    assert _statistics_name_the_parts(result)
    sources = {point.source for point in result.trace}
    assert sources <= {
        "reachable jobs", "empty plan", "greedy", "price", "plan", "highs", "cpsat", "auto",
        "warm start",
    }  # fmt: skip
    assert "greedy" in sources or "price" in sources
