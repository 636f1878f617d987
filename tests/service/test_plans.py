"""Plans of a session: what handing on leftovers may not give up."""

from __future__ import annotations

import dataclasses

import numpy as np

from edgeflow_opt.problem import EpochProblem, Grid, Objective, Weights
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.service.plans import _no_worse, schedule_of
from tests.service.clusters import job, sites


def test_a_changed_plan_gives_up_no_met_job_for_another() -> None:
    """Neither with a floor that is lower nor for a job of more weight; an equal plan is none."""
    problem = EpochProblem(
        grid=Grid.uniform(0.0, 100.0, 2),
        sites=sites(1, 0),
        jobs=(job("a", 200.0, 100.0), job("b", 200.0, 100.0, weight=3.0)),
    )
    arrays = arrays_of(problem)
    of_a, of_b = arrays.mode_start[0], arrays.mode_start[1]

    def plan(*rows: tuple[int, int]) -> np.ndarray:
        return np.array(rows, dtype=np.int64)

    idle = (-1, -1)
    only_a, only_b, both = plan((of_a, -1), idle), plan(idle, (of_b, -1)), plan((of_a, -1), (-1, of_b))  # fmt: skip
    floor = schedule_of(problem, arrays, plan(idle, idle), "floor")
    best = schedule_of(problem, arrays, both, "best")
    first = schedule_of(problem, arrays, only_a, "best")
    assert floor is not None
    assert best is not None
    assert first is not None
    for least in (None, floor):
        assert _no_worse(problem, arrays, only_b, both, best, least) is None
        assert _no_worse(problem, arrays, only_b, only_a, first, least) is None
        found = _no_worse(problem, arrays, both, only_a, first, least)
        assert found is not None
        assert [outcome.met for outcome in found.outcomes] == [True, True]
    assert _no_worse(problem, arrays, both, both, best, floor) is None


def test_a_changed_plan_may_cost_more_but_for_the_floor_and_a_weighted_sum() -> None:
    """Two GPUs for one: met as before, dearer; refused below the floor, and where costs count."""
    cheap = EpochProblem(
        grid=Grid.uniform(0.0, 100.0, 2), sites=sites(2, 0), jobs=(job("a", 200.0, 100.0),)
    )
    weighted = cheap.replace(
        objective=Objective(mode="weighted", weights=Weights(met=1.0, cost=1e-3))
    )
    for problem in (cheap, weighted):
        arrays = arrays_of(problem)
        one, two = np.array([[0, -1]]), np.array([[1, -1]])
        schedule = schedule_of(problem, arrays, one, "best")
        assert schedule is not None
        found = _no_worse(problem, arrays, two, one, schedule, None)
        assert (found is None) is (problem is weighted)
        assert _no_worse(problem, arrays, two, one, schedule, schedule) is None
        dear = schedule_of(problem, arrays, two, "dear")
        assert (_no_worse(problem, arrays, two, one, schedule, dear) is None) is (
            problem is weighted
        )
    assert dataclasses.replace(cheap, objective=weighted.objective) == weighted
