"""Tests of the polish of the levels below the first."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflow_opt.formulations.plans import allocations_of, empty_plan, plan_of, usage, walk
from edgeflow_opt.problem import EpochProblem, Objective, Schedule, Weights, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.problem.check import check
from edgeflow_opt.problem.objective import ObjectiveValue
from edgeflow_opt.problem.schedule import SolveStatus
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.polish import Polisher, polish
from edgeflow_opt.workloads import generate_problem
from tests.oracle import optimum
from tests.strategies import problems, problems_with_schedules


def _value(problem: EpochProblem, plan: np.ndarray) -> ObjectiveValue:
    allocations = allocations_of(problem, arrays_of(problem), plan)
    value, outcomes = evaluate(problem, allocations)
    schedule = Schedule(
        solver="polish", status=SolveStatus.FEASIBLE, objective=value, allocations=allocations,
        outcomes=outcomes,
    )  # fmt: skip
    report = check(problem, schedule)
    assert report.valid, report.violations[0].message
    return value


def _short_runs_never_pay(problem: EpochProblem) -> bool:
    """Whether a run that ends before its loss is paid is of no use to any job."""
    shortest = min(np.diff(problem.grid.boundaries))
    return all(job.migration_s <= job.restart_s + shortest for job in problem.jobs)


@given(problem=problems(1, 5, max_modes=4, must_meet=False))
def test_one_job_is_planned_to_the_optimum_of_all_levels(problem: EpochProblem) -> None:
    """A sweep from the empty plan finds the brute-force optimum of an instance with one job."""
    assume(_short_runs_never_pay(problem))
    best = optimum(problem)
    assume(best is not None)
    polisher = Polisher(arrays_of(problem), empty_plan(arrays_of(problem)), 0)
    polisher.sweep()
    value = _value(problem, polisher.plan)
    assert value.key() == pytest.approx(best.value.key(), rel=1e-5, abs=1e-5)


@given(drawn=problems_with_schedules(4, 5), seed=st.integers(0, 99))
def test_no_move_makes_a_plan_worse(drawn: tuple[EpochProblem, Schedule], seed: int) -> None:
    """Sweeps and shakes keep a plan valid, and never lower it in the lexicographic order."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    value = schedule.objective
    assert value is not None
    polisher = Polisher(arrays, plan_of(problem, arrays, schedule), seed)
    for _ in range(3):
        polisher.sweep()
        polisher.shake(10)
        found = _value(problem, polisher.plan)
        assert not value.better_than(found)
        value = found


@given(drawn=problems_with_schedules(5, 4, weights=False), seed=st.integers(0, 99))
def test_what_is_kept_of_the_plan_adds_up(drawn: tuple[EpochProblem, Schedule], seed: int) -> None:
    """The free units that the kernels keep are those that the plan leaves."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    polisher = Polisher(arrays, plan_of(problem, arrays, schedule), seed)
    polisher.sweep()
    polisher.shake(20)
    left = arrays.capacity - usage(arrays, polisher.plan)
    assert np.array_equal(polisher._space.free, left)


def _work(problem: EpochProblem, seed: int = 0, **changes: int) -> LevelSolve:
    options = SolveOptions(seed=seed, **changes)
    work = LevelSolve(problem, arrays_of(problem), options, SolveControl(60.0), HighsEngine())
    work.offer_starts()
    return work


@pytest.mark.parametrize("restart_s", [0.0, 20.0])
def test_a_polished_plan_is_better_and_keeps_the_met_weight(restart_s: float) -> None:
    """On a generated instance the greedy's plan gets better below level 1, which never falls."""
    problem = generate_problem(
        30, 24, 3, load=1.6, restart_s=restart_s, migration_s=3 * restart_s, running_share=0.3
    )
    work = _work(problem)
    before = work.incumbent.value
    assert before is not None
    polish(work, 1.0)
    after = work.incumbent.value
    assert after is not None
    assert after.better_than(before)
    assert after.met_weight >= before.met_weight
    assert work.incumbent.rejected == 0


def test_the_same_seed_and_moves_give_the_same_plan() -> None:
    """The plan after a number of sweeps and moves depends on the seed only."""
    problem = generate_problem(30, 24, 5, load=1.6, restart_s=20.0, migration_s=60.0)
    arrays = arrays_of(problem)
    start = _work(problem).incumbent.plan
    assert start is not None
    plans = []
    for seed in (7, 7, 8):
        polisher = Polisher(arrays, start, seed)
        polisher.sweep()
        polisher.shake(200)
        plans.append(polisher.plan)
    assert np.array_equal(plans[0], plans[1])
    assert not np.array_equal(plans[0], plans[2])


def test_hard_deadlines_stay_met() -> None:
    """Jobs that must be met are met after any number of moves."""
    problem = generate_problem(12, 12, 2, load=1.6, restart_s=20.0, migration_s=60.0)
    arrays = arrays_of(problem)
    start = _work(problem).incumbent.plan
    assert start is not None
    met = walk(arrays, start).met
    assert met.any()
    jobs = tuple(
        dataclasses.replace(job, must_meet=bool(m))
        for job, m in zip(problem.jobs, met, strict=True)
    )
    hard = arrays_of(problem.replace(jobs=jobs))
    polisher = Polisher(hard, start, 1)
    for _ in range(3):
        polisher.sweep()
        polisher.shake(200)
        assert walk(hard, polisher.plan).met[met].all()


def test_polish_leaves_a_single_level_alone() -> None:
    """Where level 1 alone is wanted, or a weighted sum, the plan is left as it is."""
    problem = generate_problem(12, 12, 2, load=1.6)
    work = _work(problem, levels=1)
    before = work.incumbent.plan
    polish(work, 1.0)
    assert work.incumbent.plan is before
    weighted = problem.replace(objective=Objective(mode="weighted", weights=Weights(cost=1e-6)))
    work = _work(weighted)
    before = work.incumbent.plan
    polish(work, 1.0)
    assert work.incumbent.plan is before


def test_a_stopped_clock_ends_a_sweep() -> None:
    """A sweep that is stopped at once plans nothing anew."""
    problem = generate_problem(12, 12, 2, load=1.6)
    arrays = arrays_of(problem)
    polisher = Polisher(arrays, empty_plan(arrays), 0)
    assert polisher.sweep(lambda: True) == 0
    assert (polisher.plan < 0).all()
    assert polisher.sweep() > 0
