"""All solvers against brute force, and against themselves under changes that cannot matter."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import EpochProblem, Grid, ObjectiveValue, SolveStatus, check
from edgeflow_opt.solvers import SOLVERS, SolveResult, solve
from edgeflow_opt.solvers.base import features_of
from tests.effort import examples
from tests.oracle import Optimum, optimum
from tests.strategies import problems

#: Proves bounds, and the optimum mostly.
BOUNDING = ("price",)
#: Every other solver that is registered, those of plug-ins too, must reach and prove the optimum.
EXACT = tuple(
    name
    for name in SOLVERS.names()
    if name not in BOUNDING and SOLVERS.get(name).capabilities.exact
)
#: Those of them that take a weighted sum of the levels.
WEIGHTED = tuple(name for name in EXACT if "weighted" in SOLVERS.get(name).capabilities.features)
HEURISTIC = tuple(name for name in SOLVERS.names() if not SOLVERS.get(name).capabilities.exact)

#: Relative tolerance between levels computed in different orders of summation.
TOLERANCE = 1e-6

LEVELS = ("met", "progress", "leftover", "cost", "reconfigurations")


def _supports(solver: str, problem: EpochProblem) -> bool:
    return set(features_of(problem)) <= SOLVERS.get(solver).capabilities.features


def _close(a: float, b: float) -> bool:
    return a == pytest.approx(b, rel=TOLERANCE, abs=TOLERANCE)


def _assert_sound(problem: EpochProblem, result: SolveResult, best: Optimum | None) -> None:
    """Assert what must hold of every solver: nothing beats the optimum, no bound is below it."""
    if best is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION)
        return
    assert result.status is not SolveStatus.INFEASIBLE
    top = best.value.level_1
    if result.bound is not None:
        assert result.bound >= top - TOLERANCE * max(1.0, abs(top))
    if result.objective is None:
        assert result.status is SolveStatus.NO_SOLUTION
        return
    report = check(problem, result.schedule)
    assert report.valid, report.violations
    assert not _beats(result.objective, best.value)
    if result.status is SolveStatus.OPTIMAL:
        assert _close(result.objective.level_1, top)


def _beats(value: ObjectiveValue, best: ObjectiveValue) -> bool:
    """Whether `value` is better than what brute force calls best, beyond rounding."""
    if value.weighted is not None and best.weighted is not None:
        return value.weighted > best.weighted and not _close(value.weighted, best.weighted)
    for mine, theirs in zip(value.key(), best.key(), strict=True):
        if not _close(mine, theirs):
            return mine > theirs
    return False


def _assert_proven_levels(result: SolveResult, best: Optimum) -> None:
    """Assert that each level said to be proven, all before it too, has the value of the optimum."""
    assert result.objective is not None
    expected = dict(zip(LEVELS, best.value.key(), strict=True))
    reached = dict(zip(LEVELS, result.objective.key(), strict=True))
    for level in result.levels:
        if level.level == "weighted" or not level.optimal:
            break
        assert _close(reached[level.level], expected[level.level]), level


QUICK = settings(max_examples=examples(25))


@pytest.mark.parametrize("solver", EXACT)
@QUICK
@given(problem=problems())
def test_exact_solvers_equal_brute_force(solver: str, problem: EpochProblem) -> None:
    """An exact solver reaches and proves the optimum, losses included, or proves there is none."""
    if not _supports(solver, problem):
        return
    result = solve(problem, solver, time_limit_s=20.0)
    best = optimum(problem)
    _assert_sound(problem, result, best)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert result.status is SolveStatus.OPTIMAL
    _assert_proven_levels(result, best)


@pytest.mark.parametrize("solver", BOUNDING)
@QUICK
@given(problem=problems())
def test_bounding_solvers_enclose_brute_force(solver: str, problem: EpochProblem) -> None:
    """A solver that may stop short of the proof encloses the optimum by value and bound."""
    if _supports(solver, problem):
        _assert_sound(problem, solve(problem, solver, time_limit_s=0.5), optimum(problem))


@pytest.mark.parametrize("solver", WEIGHTED)
@QUICK
@given(problem=problems(max_jobs=3, max_slots=3, weighted=True))
def test_exact_solvers_equal_brute_force_on_the_weighted_sum(
    solver: str, problem: EpochProblem
) -> None:
    """With the weighted sum as objective the optimum is reached, and the bound is next to it."""
    if not _supports(solver, problem):
        return
    result = solve(problem, solver, time_limit_s=20.0)
    best = optimum(problem)
    _assert_sound(problem, result, best)
    if best is not None:
        top = best.value.level_1
        assert result.objective is not None
        assert _close(result.objective.level_1, top)
        assert result.bound is not None
        # A bound that is safe against rounding may lie a little above what it bounds.
        assert result.bound <= top + 1e-5 * max(1.0, abs(top))


@pytest.mark.parametrize("solver", HEURISTIC)
@settings(max_examples=examples(75))
@given(problem=problems())
def test_heuristics_are_sound(solver: str, problem: EpochProblem) -> None:
    """A heuristic's schedule is valid and no better than the optimum; it claims no bound."""
    if not _supports(solver, problem):
        return
    result = solve(problem, solver)
    assert result.bound is None
    assert result.status in (SolveStatus.FEASIBLE, SolveStatus.NO_SOLUTION)
    _assert_sound(problem, result, optimum(problem))


@given(problem=problems(max_jobs=3, max_slots=3), site=st.integers(0, 1), extra=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_more_capacity_never_hurts_brute_force(
    problem: EpochProblem, site: int, extra: int
) -> None:
    """With more units the optimum is no worse: what was possible still is."""
    best, richer = optimum(problem), optimum(_with_capacity(problem, site, extra))
    if best is not None:
        assert richer is not None
        assert not _beats(best.value, richer.value)


def _with_capacity(problem: EpochProblem, index: int, extra: int) -> EpochProblem:
    sites = list(problem.sites)
    site = sites[index % len(sites)]
    steps = tuple((time, units + extra) for time, units in site.capacity)
    sites[index % len(sites)] = dataclasses.replace(site, capacity=steps)
    return problem.replace(sites=tuple(sites))


def _scaled(problem: EpochProblem, factor: float) -> EpochProblem:
    """Return `problem` with all times `factor` as long and all rates as much smaller."""

    def times(item: Any, *names: str) -> dict[str, Any]:
        found = {name: getattr(item, name) for name in names}
        return {name: None if t is None else t * factor for name, t in found.items()}

    jobs = []
    for job in problem.jobs:
        running = job.running
        if running is not None:
            running = dataclasses.replace(running, **times(running, "loss_left_s"))
        modes = tuple(dataclasses.replace(mode, rate=mode.rate / factor) for mode in job.modes)
        changed = times(job, "deadline", "arrival", "restart_s", "migration_s")
        jobs.append(dataclasses.replace(job, modes=modes, running=running, **changed))
    sites = [
        dataclasses.replace(s, capacity=tuple((time * factor, units) for time, units in s.capacity))
        for s in problem.sites
    ]
    grid = Grid(tuple(time * factor for time in problem.grid.boundaries))
    return problem.replace(grid=grid, sites=tuple(sites), jobs=tuple(jobs))


def _levels(result: SolveResult, cost_scale: float = 1.0) -> tuple[float, ...]:
    """Return what must not change: the levels; none where there is proven to be no schedule."""
    if result.objective is None:
        assert result.status is SolveStatus.INFEASIBLE
        return ()
    key = list(result.objective.key())
    key[3] /= cost_scale
    return tuple(key)


@pytest.mark.parametrize("solver", EXACT)
@settings(max_examples=examples(12))
@given(problem=problems(max_jobs=3, max_slots=3), factor=st.sampled_from((0.5, 2.0, 64.0)))
def test_the_scale_of_time_does_not_matter(
    solver: str, problem: EpochProblem, factor: float
) -> None:
    """In other units of time the levels are the same, the cost in proportion."""
    first = _levels(solve(problem, solver))
    second = _levels(solve(_scaled(problem, factor), solver), cost_scale=factor)
    assert len(first) == len(second)
    assert all(map(_close, first, second))


@pytest.mark.parametrize("solver", EXACT)
@settings(max_examples=examples(12))
@given(problem=problems(max_slots=3), order=st.randoms(use_true_random=False))
def test_the_order_of_jobs_does_not_matter(solver: str, problem: EpochProblem, order: Any) -> None:
    """Shuffled jobs give the same levels."""
    jobs = list(problem.jobs)
    order.shuffle(jobs)
    first = _levels(solve(problem, solver))
    second = _levels(solve(problem.replace(jobs=tuple(jobs)), solver))
    assert len(first) == len(second)
    assert all(map(_close, first, second))
