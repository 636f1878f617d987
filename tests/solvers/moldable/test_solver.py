"""The search over options, and the solvers that stand on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.plans import usage, walk
from edgeflow_opt.problem import EpochProblem, Limit, SolveStatus, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.moldable import OptionSearch, minimise, option_table
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import small
from tests.strategies import problems


def _search(problem: EpochProblem) -> tuple[OptionSearch, EpochProblem]:
    table = option_table(arrays_of(problem))
    return OptionSearch(table, minimise(table), 3), problem


@settings(max_examples=examples(30))
@given(problem=problems(max_jobs=4, max_slots=4))
def test_every_step_of_the_search_is_a_valid_plan(problem: EpochProblem) -> None:
    """After construction and after moves, units are kept and each job held is met by its run."""
    search, rigid = _search(problem.as_moldable())
    arrays = arrays_of(rigid)
    search.construct()
    value = float(search.worth[search.met].sum())
    for moves in (0, 1, 40):
        gained = search.improve(moves)
        assert gained >= 0.0
        plan = search.plan(left_over=False)
        assert (usage(arrays, plan) <= arrays.capacity).all()
        assert np.array_equal(walk(arrays, plan).met | ~search.met, np.ones_like(search.met))
        value += gained
        assert float(search.worth[search.met].sum()) == pytest.approx(value)


@settings(max_examples=examples(20))
@given(problem=problems(max_jobs=4, max_slots=4))
def test_price_encloses_the_optimum_of_moldable_jobs(problem: EpochProblem) -> None:
    """Value and bound of `price` enclose brute force; infeasible is said only where it is true."""
    rigid = problem.as_moldable()
    result = solve(rigid, "price", deterministic=True)
    best = optimum(rigid)
    if best is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION)
        return
    assert result.status is not SolveStatus.INFEASIBLE
    assert result.bound is not None
    assert result.bound >= best.value.met_weight - 1e-9
    if result.value is not None:
        assert result.value <= best.value.met_weight + 1e-9


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("solver", ["auto", "cpsat"])
def test_small_moldable_instances_are_closed(solver: str, seed: int) -> None:
    """CP-SAT on what the option prices leave open proves what HiGHS finds on the whole model."""
    problem = generate_problem(14, 12, seed, load=1.6, moldable_share=1.0)
    mine = solve(problem, solver, levels=1, time_limit_s=60.0)
    other = solve(problem, "highs", levels=1, time_limit_s=60.0)
    assert mine.status is SolveStatus.OPTIMAL
    assert other.status is SolveStatus.OPTIMAL
    assert mine.value == other.value


def test_losses_and_running_jobs_are_honoured() -> None:
    """With losses, running and suspended jobs and hard deadlines, plans are valid and bounds true."""
    problem = generate_problem(
        25, 12, 4, load=1.2, moldable_share=1.0, restart_s=30.0, migration_s=180.0,
        running_share=0.3, suspended_share=0.3, best_effort_share=0.1, weights=(1, 4),
    )  # fmt: skip
    found = solve(problem, "price", deterministic=True)
    assert check(problem, found.schedule).valid
    exact = solve(problem, "highs", levels=1, time_limit_s=60.0)
    assert exact.status is SolveStatus.OPTIMAL
    assert found.value is not None
    assert exact.value is not None
    assert found.bound is not None
    assert found.value <= exact.value <= found.bound


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_mixed_instances_are_solved_by_all(share: float) -> None:
    """Malleable jobs beside moldable ones: exact solvers agree, and `price` encloses them."""
    problem = generate_problem(8, 6, 3, load=2.0, moldable_share=share)
    exact = {s: solve(problem, s, levels=1, time_limit_s=60.0) for s in ("auto", "cpsat", "highs")}
    assert {result.status for result in exact.values()} == {SolveStatus.OPTIMAL}
    (value,) = {result.value for result in exact.values()}
    near = solve(problem, "price", deterministic=True)
    assert near.value is not None
    assert near.bound is not None
    assert value is not None
    assert near.value <= value <= near.bound


def test_a_warm_start_is_kept() -> None:
    """The search begins from a plan that is better than its own, and never ends below it."""
    problem = generate_problem(40, 24, 0, load=1.6, moldable_share=1.0)
    best = solve(problem, "price", deterministic=True, params={"moves": 60_000})
    again = solve(problem, "price", params={"moves": 0}, warm_start=best.schedule)
    assert best.value is not None
    assert again.value is not None
    assert again.value >= best.value
    assert again.limit is Limit.ITERATIONS or again.status is SolveStatus.OPTIMAL


def test_options_of_the_solver_count() -> None:
    """Evaluations and moves are what the parameters say, and the seed decides the rest."""
    problem = generate_problem(30, 12, 1, load=2.5, moldable_share=1.0)
    params = {"iterations": 7, "moves": 500}
    first, second = (solve(problem, "price", params=params, seed=4) for _ in range(2))
    assert first.statistics["hull_evaluations"] == 7
    assert first.statistics["moves"] <= 500
    alike = [dataclasses.replace(r.schedule, seconds=0.0) for r in (first, second)]
    assert alike[0] == alike[1]


def test_units_left_over_go_to_late_jobs() -> None:
    """A moldable job that cannot be met still makes progress on what the others leave."""
    problem = small().as_moldable()
    jobs = (problem.jobs[0], dataclasses.replace(problem.jobs[1], work=500.0))
    found = solve(problem.replace(jobs=jobs), "price")
    assert found.value == 1.0
    assert found.objective is not None
    assert found.objective.progress > 0.0
