"""Constraints under every solver: the exact ones against enumeration, the others valid."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UnsupportedError
from edgeflow_opt.formulations.linear_rows import obeys_rows, with_jobs_inserted, within_rows
from edgeflow_opt.formulations.plans import usage, walk
from edgeflow_opt.problem import EpochProblem, SolveStatus, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import SolveResult, solve
from edgeflow_opt.solvers.greedy import GreedyOptions, heuristic_plan
from tests.problem.constraints.drawn import best_value, constraints
from tests.strategies import problems

QUICK = settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)


@st.composite
def constrained(draw: st.DrawFn) -> EpochProblem:
    """Draw a tiny instance with one or two constraints."""
    problem = draw(problems(max_jobs=3, max_slots=3, max_modes=2))
    some = draw(st.lists(constraints(problem), min_size=1, max_size=2))
    return problem.replace(constraints=tuple(some))


def _levels_agree(problem: EpochProblem, result: SolveResult) -> None:
    """Assert that a result is proven, and as good as the best by enumeration."""
    best = best_value(problem)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert result.status is SolveStatus.OPTIMAL
    assert result.objective is not None
    assert check(problem, result.schedule).valid
    assert result.bound == pytest.approx(best.level_1, rel=1e-6, abs=1e-6)
    reached = dict(zip(("met", "progress", "leftover", "cost", "reconfigurations"),
                       zip(result.objective.key(), best.key(), strict=True), strict=True))  # fmt: skip
    for level in result.levels:
        if not level.optimal:
            break
        mine, theirs = reached[level.level]
        assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-6), level


@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto"])
@QUICK
@given(problem=constrained())
def test_exact_solvers_equal_enumeration(solver: str, problem: EpochProblem) -> None:
    """Under constraints the exact solvers reach and prove the optimum, or that there is none."""
    _levels_agree(problem, solve(problem, solver, time_limit_s=20.0))


@QUICK
@given(problem=constrained())
def test_heuristics_give_back_what_breaks_a_constraint(problem: EpochProblem) -> None:
    """The greedy and its selecting variant return a valid schedule, or say that they have none."""
    for solver in ("greedy", "edgeflow-select"):
        result = solve(problem, solver)
        # The portfolio begins with them, whatever time it has.
        hurried = solve(problem, "auto", time_limit_s=1e-3)
        if result.objective is not None and solver == "greedy":
            assert hurried.objective is not None
            assert hurried.objective.level_1 >= result.objective.level_1 - 1e-9
        if result.objective is None:
            assert result.status is SolveStatus.NO_SOLUTION
            names = {constraint.type for constraint in problem.constraints}
            assert "least_met" in names or any(job.must_meet for job in problem.jobs)
        else:
            assert check(problem, result.schedule).valid


@QUICK
@given(problem=constrained())
def test_bounds_fall_with_constraints(problem: EpochProblem) -> None:
    """A constraint never raises the proven optimum, and the bound of `auto` at once holds."""
    free = solve(problem.replace(constraints=()), "auto", levels=1)
    tied = solve(problem, "auto", levels=1)
    if tied.value is not None:
        assert free.bound is not None
        assert tied.value <= free.bound + 1e-6
        hurried = solve(problem, "auto", levels=1, time_limit_s=1e-3)
        assert hurried.bound is not None
        assert hurried.bound >= tied.value - 1e-6


@pytest.mark.parametrize("solver", ["price", "plan"])
def test_engines_without_rows_refuse(solver: str) -> None:
    """Engines that decompose by job refuse foreign rows, and name solver and constraint."""
    from edgeflow_opt.problem.constraints.group_quota import GroupQuota
    from edgeflow_opt.workloads import generate_problem

    problem = generate_problem(4, 4, 1).replace(constraints=(GroupQuota(gpus=2),))
    with pytest.raises(UnsupportedError, match=f"'{solver}' does not support .*'group_quota'"):
        solve(problem, solver)


@QUICK
@given(problem=constrained())
def test_inserting_jobs_never_loses_any(problem: EpochProblem) -> None:
    """Units given back go to jobs that miss their deadlines, within all rules, at nobody's cost."""
    arrays = arrays_of(problem)
    plan = within_rows(arrays, heuristic_plan(arrays, GreedyOptions()))
    filled = with_jobs_inserted(arrays, plan)
    before, after = walk(arrays, plan).met, walk(arrays, filled).met
    assert (after | ~before).all()
    assert (usage(arrays, filled) <= arrays.capacity).all()
    assert obeys_rows(arrays, filled) or not obeys_rows(arrays, plan)
