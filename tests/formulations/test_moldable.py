"""The moldable model: its enumerated starts are all the runs that can meet a deadline."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.moldable import build_moldable
from edgeflow_opt.formulations.plans import plan_of, usage, walk
from edgeflow_opt.problem import EpochProblem, Schedule
from edgeflow_opt.problem.arrays import arrays_of
from tests.effort import examples
from tests.formulations.helpers import assert_satisfies, maximum, undominated
from tests.oracle import optimum
from tests.strategies import problems, problems_with_schedules


@settings(max_examples=examples(100))
@given(problems(max_jobs=3, max_slots=5))
def test_starts_enumerated_equal_the_malleable_model_and_brute_force(problem: EpochProblem) -> None:
    """On moldable jobs both models have the optimum of level 1 of the definitions."""
    rigid = problem.as_moldable()
    arrays = arrays_of(rigid)
    starts, states = build_moldable(arrays), build_malleable(arrays)
    first = maximum(starts.model.with_objective(starts.objectives["met"]))
    second = maximum(states.model.with_objective(states.objectives["met"]))
    best = optimum(rigid)
    if best is None:
        assert first is None
        assert second is None
        return
    assert first == pytest.approx(best.value.met_weight, abs=1e-6)
    assert second == pytest.approx(best.value.met_weight, abs=1e-6)


@settings(max_examples=examples(100))
@given(problems(max_jobs=2, max_slots=5))
def test_the_options_are_the_shortest_runs_that_meet_the_deadline(problem: EpochProblem) -> None:
    """Every option meets its deadline, none does in a slot less, and no run that does is missing."""
    arrays = undominated(arrays_of(problem.as_moldable()))
    built = build_moldable(arrays)
    found = built.options
    options = set(zip(found.mode.tolist(), found.start.tolist(), found.stop.tolist(), strict=True))
    assert len(options) == len(found.mode)
    assert (np.diff(found.job) >= 0).all()
    expected = set()
    for mode in np.nonzero(arrays.mode_usable)[0].tolist():
        job = int(arrays.mode_job[mode])
        runs = int(arrays.running_mode[job])
        for start, stop in itertools.combinations(range(arrays.num_slots + 1), 2):
            if start < arrays.first_slot[job] or (runs >= 0 and (start > 0 or mode != runs)):
                continue
            plan = np.full((arrays.num_jobs, arrays.num_slots), -1)
            plan[job, start:stop] = mode
            fits = (usage(arrays, plan) <= arrays.capacity).all()
            done = walk(arrays, plan)
            if fits and done.met[job] and done.last_slot[job] == stop - 1:
                expected.add((mode, start, stop))
    assert options == expected


@settings(max_examples=examples(100))
@given(problems_with_schedules(max_jobs=3, max_slots=5))
def test_every_valid_plan_of_moldable_jobs_is_a_point(drawn: tuple[EpochProblem, Schedule]) -> None:
    """The met jobs of a plan encode to options that obey the rows and decode to these jobs met."""
    problem, schedule = drawn
    rigid = [k for k, job in enumerate(problem.jobs) if not job.malleable]
    arrays = undominated(arrays_of(problem.as_moldable()))
    plan = plan_of(problem, arrays, schedule)
    plan[[k for k in range(arrays.num_jobs) if k not in rigid]] = -1
    built = build_moldable(arrays)
    x = built.encode(plan)
    assert_satisfies(built.model, x)
    met = walk(arrays, plan).met
    again = built.decode(x)
    assert walk(arrays, again).met.tolist() == met.tolist()
    # What is decoded ends with the work; it is otherwise what was planned.
    assert ((again == plan) | (again == -1)).all()
    assert built.objectives["met"] @ x == pytest.approx(arrays.weight @ met)
