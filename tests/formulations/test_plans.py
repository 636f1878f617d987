"""Plan matrices against the definitions in problem/: same outcomes, same levels, same allocations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.plans import (
    allocations_of,
    empty_plan,
    plan_of,
    trim,
    usage,
    walk,
)
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Schedule, Site, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from tests.effort import examples
from tests.strategies import problems_with_schedules

QUICK = settings(max_examples=examples(100))


@QUICK
@given(problems_with_schedules(max_jobs=4, max_slots=6))
def test_a_walk_gives_the_levels_of_evaluate(drawn: tuple[EpochProblem, Schedule]) -> None:
    """met, credits and reconfigurations of a walk sum up to what evaluate() says of a schedule."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    done = walk(arrays, plan_of(problem, arrays, schedule))
    value = schedule.objective
    assert value is not None
    assert done.met.tolist() == [outcome.met is True for outcome in schedule.outcomes]
    assert arrays.weight @ done.met == pytest.approx(value.met_weight, rel=1e-12)
    unmet = arrays.weight * ~done.met
    progress = unmet @ np.minimum(1.0, done.credit_by_deadline / arrays.work)
    leftover = unmet @ np.minimum(1.0, done.credit_by_horizon / arrays.work)
    assert progress == pytest.approx(value.progress, rel=1e-12)
    assert leftover == pytest.approx(value.leftover, rel=1e-12)
    assert int(done.reconfigurations.sum()) == value.reconfigurations


@QUICK
@given(problems_with_schedules(max_jobs=3, max_slots=6))
def test_the_last_slot_is_that_of_the_completion(drawn: tuple[EpochProblem, Schedule]) -> None:
    """A job completes within last_slot, or, with last_slot = T, not by the horizon."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    last_slot = walk(arrays, plan_of(problem, arrays, schedule)).last_slot
    for slot, outcome in zip(last_slot.tolist(), schedule.outcomes, strict=True):
        if outcome.completion is None:
            assert slot == arrays.num_slots
            continue
        begin, end = arrays.boundaries[slot : slot + 2]
        slack = 1e-9 * max(1.0, abs(end))
        assert begin - slack <= outcome.completion <= end + slack


@QUICK
@given(problems_with_schedules(max_jobs=4, max_slots=6))
def test_a_plan_is_a_schedule_and_back(drawn: tuple[EpochProblem, Schedule]) -> None:
    """plan_of(allocations_of(plan)) is the plan; the allocations are worth what the schedule is."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, schedule)
    allocations = allocations_of(problem, arrays, plan)
    value, outcomes = evaluate(problem, allocations)
    assert value == schedule.objective
    assert outcomes == schedule.outcomes
    again = Schedule(solver="x", status=schedule.status, allocations=allocations)
    assert np.array_equal(plan_of(problem, arrays, again), plan)
    keys = [(a.start, problem.job_index[a.job]) for a in allocations]
    assert keys == sorted(keys)
    # One allocation per run: no two of them abut in one mode.
    ends = {(a.job, a.site, a.gpus, a.end) for a in allocations}
    assert not any((a.job, a.site, a.gpus, a.start) in ends for a in allocations)


@QUICK
@given(problems_with_schedules(max_jobs=4, max_slots=6))
def test_usage_is_the_sum_of_the_units_held(drawn: tuple[EpochProblem, Schedule]) -> None:
    """usage() adds up the units of the allocations, and those of a valid schedule fit."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    used = usage(arrays, plan_of(problem, arrays, schedule))
    for k, site in enumerate(problem.sites):
        for s in range(arrays.num_slots):
            held = 0
            for a in schedule.allocations:
                mode = problem.jobs[problem.job_index[a.job]].mode(a.site, a.gpus)
                assert mode is not None
                if a.site == site.name and a.start <= arrays.boundaries[s] < a.end:
                    held += site.units(mode)
            assert used[k, s] == held
    assert (used <= arrays.capacity).all()


@QUICK
@given(problems_with_schedules(max_jobs=4, max_slots=6))
def test_trimming_keeps_outcomes_and_cuts_what_is_done(
    drawn: tuple[EpochProblem, Schedule],
) -> None:
    """A trimmed plan has the same completions, no slot after them, and no higher cost."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, schedule)
    short = trim(arrays, plan)
    value, outcomes = evaluate(problem, allocations_of(problem, arrays, short))
    assert outcomes == schedule.outcomes
    assert schedule.objective is not None
    assert value.cost <= schedule.objective.cost
    assert not schedule.objective.better_than(value)
    last_slot = walk(arrays, plan).last_slot
    for job in range(arrays.num_jobs):
        assert np.array_equal(short[job, : last_slot[job] + 1], plan[job, : last_slot[job] + 1])
        assert (short[job, last_slot[job] + 1 :] == -1).all()


def test_a_plan_without_jobs_has_no_allocations() -> None:
    """No jobs: an empty plan matrix, no allocations, nothing used."""
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    problem = EpochProblem(grid=Grid((0.0, 10.0)), sites=(site,), jobs=())
    arrays = arrays_of(problem)
    plan = empty_plan(arrays)
    assert plan.shape == (0, 1)
    assert allocations_of(problem, arrays, plan) == ()
    assert usage(arrays, plan).tolist() == [[0]]
    assert walk(arrays, plan).met.shape == (0,)


def test_a_run_of_which_all_is_loss_counts_as_a_run() -> None:
    """A run without credit is a reconfiguration all the same, and moves the job's last site."""
    modes = (Mode(site="a", gpus=1, rate=1.0), Mode(site="b", gpus=1, rate=1.0))
    job = Job(
        id="j", deadline=40.0, work=5.0, modes=modes, last_site="a", restart_s=1.0,
        migration_s=10.0,
    )  # fmt: skip
    sites = tuple(Site(name=name, kind="cloud", capacity=((0.0, 1),)) for name in "ab")
    problem = EpochProblem(grid=Grid((0.0, 10.0, 20.0, 30.0)), sites=sites, jobs=(job,))
    arrays = arrays_of(problem)
    # To b (all loss), idle, and on b again: the second run pays a restart, not a migration.
    done = walk(arrays, np.array([[1, -1, 1]]))
    assert done.credit_by_deadline.tolist() == [9.0]
    assert done.reconfigurations.tolist() == [2]
    assert done.last_slot.tolist() == [2]
