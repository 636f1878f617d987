"""The plan master over given plans: its optimum, its relaxation, and the values of its columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plan_columns import (
    JobPlans,
    PlanColumns,
    build_master,
    plans_of,
)
from edgeflow_opt.formulations.plans import allocations_of, plan_of
from edgeflow_opt.problem import EpochProblem, Schedule, evaluate
from edgeflow_opt.problem.arrays import ProblemArrays, arrays_of
from tests.effort import examples
from tests.formulations.helpers import best_levels, maximum
from tests.strategies import problems, problems_with_schedules


def _all_plans(arrays: ProblemArrays) -> JobPlans:
    """Return every mode sequence of every malleable job that the sites can hold."""
    jobs, rows = [], []
    for job in range(arrays.num_jobs):
        slots = []
        for slot in range(arrays.num_slots):
            fits = [-1]
            for mode in range(arrays.mode_start[job], arrays.mode_start[job + 1]):
                room = arrays.capacity[arrays.mode_site[mode], slot] >= arrays.mode_units[mode]
                if room and arrays.mode_usable[mode] and slot >= arrays.first_slot[job]:
                    fits.append(mode)
            slots.append(fits)
        for row in itertools.product(*slots):
            jobs.append(job)
            rows.append(row)
    return JobPlans(np.array(jobs, dtype=np.int64), np.array(rows, dtype=np.int64))


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=3, max_slots=3, moldable=False, must_meet=False))
def test_with_all_plans_it_is_the_malleable_model(problem: EpochProblem) -> None:
    """Over all plans all levels are those of the malleable model, and the relaxation is as strong."""
    arrays = arrays_of(problem)
    plans = _all_plans(arrays)
    values = plans.values(arrays)
    model = build_master(plans.columns(arrays), arrays.capacity.ravel(), arrays.must_meet)
    floors = []
    expected = best_levels(arrays)
    assert expected is not None
    for level, wanted in zip(LEVELS, expected, strict=True):
        found = maximum(model.with_objective(values[level], floors))
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5), level
        assert found is not None
        floors.append((values[level], found - 1e-6 * max(1.0, abs(found))))
    tight = build_malleable(arrays)
    compact = maximum(tight.model.with_objective(tight.objectives["met"]), relaxed=True)
    over_plans = maximum(model.with_objective(values["met"]), relaxed=True)
    assert compact is not None
    assert over_plans is not None
    assert over_plans <= compact + 1e-6


@settings(max_examples=examples(50))
@given(drawn=problems_with_schedules())
def test_values_and_usage_are_those_of_the_schedule(drawn: tuple[EpochProblem, Schedule]) -> None:
    """The columns of a schedule add up to its levels and usage, and lead back to it."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, schedule)
    empty = np.full_like(plan, -1)
    plans = plans_of([plan, empty, plan])
    x = plans.encode(plan)
    assert np.array_equal(plans.chosen(arrays, x), plan)
    value, _ = evaluate(problem, allocations_of(problem, arrays, plan))
    sums = plans.values(arrays)
    levels = [value.met_weight, value.progress, value.leftover, -value.cost,
              -float(value.reconfigurations)]  # fmt: skip
    for level, expected in zip(LEVELS, levels, strict=True):
        assert float(sums[level] @ x) == pytest.approx(expected, rel=1e-9, abs=1e-9), level
    model = build_master(plans.columns(arrays), arrays.capacity.ravel(), arrays.must_meet)
    activity = model.row_activity(x)
    assert (activity <= model.row_upper + 1e-9).all()


def test_prices_add_up() -> None:
    """A column costs the prices of what it takes."""
    columns = PlanColumns(
        group=np.array([0, 1, 1]),
        starts=np.array([0, 2, 2, 3]),
        resource=np.array([0, 1, 1]),
        amount=np.array([2.0, 1.0, 4.0]),
    )
    assert columns.priced(np.array([0.5, 3.0])).tolist() == [4.0, 0.0, 12.0]


def test_obliged_groups_choose_a_plan() -> None:
    """Generalised assignment as a plan master: every item goes to an agent, at least cost."""
    # Two items, two agents; the cheaper agent has room for one of them.
    columns = PlanColumns(
        group=np.array([0, 0, 1, 1]),
        starts=np.arange(5),
        resource=np.array([0, 1, 0, 1]),
        amount=np.array([3.0, 2.0, 3.0, 2.0]),
    )
    model = build_master(columns, np.array([3.0, 4.0]), np.array([True, True]))
    assert maximum(model.with_objective(np.array([-1.0, -9.0, -2.0, -5.0]))) == pytest.approx(-6.0)
    free = build_master(columns, np.array([3.0, 4.0]), np.array([False, False]))
    assert maximum(free.with_objective(np.array([-1.0, -9.0, -2.0, -5.0]))) == pytest.approx(0.0)
