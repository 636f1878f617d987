"""Single-slot problems: the knapsack path proves on every level what others prove too."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.problem import EpochProblem, Grid, Mode, Objective, Site, SolveStatus, Weights
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import SolveControl, SolveOptions, SolveResult, solve
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.single_slot import knapsack
from edgeflow_opt.solvers.single_slot.choices import choices_of
from edgeflow_opt.solvers.single_slot.knapsack import Knapsack, multipliers, select
from tests.effort import examples
from tests.oracle import optimum
from tests.strategies import problems


def _assert_best(problem: EpochProblem, result: SolveResult) -> None:
    best = optimum(problem)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert result.status is SolveStatus.OPTIMAL
    assert result.objective is not None
    assert all(level.optimal for level in result.levels)
    assert result.objective.key() == pytest.approx(best.value.key(), rel=1e-6, abs=1e-6)


@settings(max_examples=examples(50))
@given(problem=problems(max_jobs=5, max_slots=1, max_modes=4))
def test_every_level_is_that_of_brute_force(problem: EpochProblem) -> None:
    """All five levels are proven, and have the values of the definitions."""
    _assert_best(problem, solve(problem, "auto", time_limit_s=60.0))


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=4, max_slots=1, weighted=True))
def test_the_weighted_sum_is_that_of_brute_force(problem: EpochProblem) -> None:
    """The weighted sum is one knapsack, whose optimum is proven."""
    result = solve(problem, "auto", time_limit_s=60.0)
    best = optimum(problem)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert result.value == pytest.approx(best.value.level_1, rel=1e-6, abs=1e-6)
    assert result.bound is not None
    assert result.bound == pytest.approx(best.value.level_1, rel=1e-5, abs=1e-5)


@settings(max_examples=examples(40))
@given(problem=problems(max_jobs=4, max_slots=1))
def test_choices_are_worth_what_the_rule_says(problem: EpochProblem) -> None:
    """Each choice has the values of its plan by the run-and-loss rule."""
    arrays = arrays_of(problem)
    choices = choices_of(arrays)
    for job, mode, met, restarts in zip(
        choices.job, choices.mode, choices.values["met"], choices.values["reconfigurations"],
        strict=True,
    ):  # fmt: skip
        plan = np.full((arrays.num_jobs, 1), -1, dtype=np.int64)
        plan[job, 0] = mode
        done = walk(arrays, plan)
        assert met == (arrays.weight[job] if done.met[job] else 0.0)
        assert restarts == -done.reconfigurations[job]


@st.composite
def _knapsacks(draw: st.DrawFn) -> Knapsack:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    count = sum(sizes)
    value = [draw(st.sampled_from((0.0, 0.5, 1.0, 2.25, 7.0, -1.0))) for _ in range(count)]
    rows = [[draw(st.sampled_from((0.0, 1.0, 2.0, 5.0))) for _ in range(count)] for _ in range(2)]
    limits = [draw(st.sampled_from((0.0, 3.0, 6.0, 11.0))) for _ in range(2)]
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Knapsack(first, np.array(value), np.array(rows), np.array(limits))


def _brute_force(problem: Knapsack) -> float:
    ends = [*problem.first[1:], len(problem.value)]
    best = -math.inf
    for chosen in itertools.product(
        *(range(a, b) for a, b in zip(problem.first, ends, strict=True))
    ):
        picked = np.array(chosen)
        if (problem.rows[:, picked].sum(axis=1) <= problem.limits).all():
            best = max(best, float(problem.value[picked].sum()))
    return best


@settings(max_examples=examples(60))
@given(problem=_knapsacks(), first_core=st.sampled_from([1, 150]))
def test_knapsacks_are_solved_exactly(problem: Knapsack, first_core: int) -> None:
    """Optimum and infeasibility are those of enumeration; the dual bound is never below.

    So they are where the first core is too small, and grows.
    """
    best = _brute_force(problem)
    assert multipliers(problem).bound >= best
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "_FIRST_CORE", first_core)
        patch.setattr(knapsack, "_LARGE_CORE", 4 * first_core)
        found = select(problem, HighsEngine(), SolveOptions(), SolveControl(None))
    if best == -math.inf:
        assert found.infeasible
        assert found.chosen is None
        return
    assert found.value == pytest.approx(best)
    assert found.bound == pytest.approx(best)


def test_hard_deadlines_that_clash_are_proven_infeasible() -> None:
    """Two jobs that must be met with units for one, of no weight even: no schedule."""
    from tests.solvers.instances import small

    problem = small().replace(grid=dataclasses.replace(small().grid, boundaries=(0.0, 10.0)))
    jobs = [dataclasses.replace(job, deadline=10.0, work=18.0, must_meet=True, weight=0.0)
            for job in problem.jobs[:2]]  # fmt: skip
    assert solve(problem.replace(jobs=tuple(jobs)), "auto").status is SolveStatus.INFEASIBLE
    assert solve(problem.replace(jobs=tuple(jobs[:1])), "auto").status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("weighted", [False, True])
def test_dear_modes_do_not_hide_what_the_others_are_worth(weighted: bool) -> None:
    """Tolerances follow the values of good choices, beside a mode that costs 1e12 times as much."""
    from tests.solvers.instances import small

    dear = Site(name="dear", kind="cloud", capacity=((0.0, 8),), price=1e12)
    problem = small().replace(
        grid=Grid((0.0, 20.0)),
        sites=(*small().sites, dear),
        jobs=tuple(
            dataclasses.replace(
                job,
                modes=(*job.modes, Mode(site="dear", gpus=1, rate=0.01)),
                work=work,
                last_site="cloud",
            )
            for job, work in zip(small().jobs, (30.0, 16.0, 17.0, 12.0), strict=True)
        ),
    )
    if weighted:
        weights = Weights(met=1.0, progress=0.3, leftover=0.1, cost=1e-4)
        problem = problem.replace(objective=Objective(mode="weighted", weights=weights))
    best = optimum(problem)
    assert best is not None
    result = solve(problem, "auto", time_limit_s=60.0)
    assert result.status is SolveStatus.OPTIMAL
    assert all(level.optimal for level in result.levels)
    assert result.value == pytest.approx(best.value.level_1, rel=1e-6)
    assert result.objective is not None
    if not weighted:
        assert result.objective.key() == pytest.approx(best.value.key(), rel=1e-6)
