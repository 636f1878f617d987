"""The incumbent: only plans that obey the rules and are better are taken."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from edgeflow_opt.formulations.plans import empty_plan, plan_of
from edgeflow_opt.problem import Objective, Weights
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import SolveControl, solve
from edgeflow_opt.solvers.lexicographic.incumbent import Incumbent
from tests.solvers.instances import small


def test_a_better_plan_is_taken_trimmed_and_reported() -> None:
    """Better plans replace the incumbent, without the slots after completion; others do not."""
    problem = small()
    arrays = arrays_of(problem)
    control = SolveControl(None)
    best = Incumbent(problem, arrays, control)
    assert best.level_1 is None
    assert best.met().tolist() == [0, 0, 0, 0]
    assert best.offer(empty_plan(arrays), "empty")
    assert best.level_1 == 0.0
    plan = empty_plan(arrays)
    plan[0] = arrays.mode_start[0]
    assert best.offer(plan, "one job")
    assert best.plan is not None
    assert (best.plan[0] >= 0).tolist() == [True, True, False]
    assert best.met().tolist() == [1, 0, 0, 0]
    assert not best.offer(plan, "the same")
    assert not best.offer(empty_plan(arrays), "worse")
    assert [(p.source, p.value) for p in control.trace] == [("empty", 0.0), ("one job", 1.0)]
    assert best.rejected == 0


def test_a_plan_that_breaks_a_rule_is_counted_and_not_taken() -> None:
    """Too many units, or a job that must be met and is not: rejected."""
    problem = small()
    arrays = arrays_of(problem)
    best = Incumbent(problem, arrays, SolveControl(None))
    crowd = np.repeat(arrays.mode_start[:-1, None], arrays.num_slots, axis=1)
    assert not best.offer(crowd, "all at once")
    assert (best.rejected, best.plan) == (1, None)
    jobs = (dataclasses.replace(problem.jobs[0], must_meet=True), *problem.jobs[1:])
    hard = problem.replace(jobs=jobs)
    strict = Incumbent(hard, arrays_of(hard), SolveControl(None))
    assert not strict.offer(empty_plan(arrays), "empty")
    assert (strict.rejected, strict.plan) == (1, None)


def test_level_1_is_the_weighted_sum_where_that_is_the_objective() -> None:
    """A plan that meets more jobs, but costs more than they are worth, is not better."""
    weights = Weights(met=1.0, cost=0.1)
    problem = small(objective=Objective(mode="weighted", weights=weights))
    arrays = arrays_of(problem)
    best = Incumbent(problem, arrays, SolveControl(None))
    assert best.offer(empty_plan(arrays), "empty")
    assert not best.offer(plan_of(problem, arrays, solve(small(), "cpsat").schedule), "dear")
    assert best.level_1 == pytest.approx(0.0)
