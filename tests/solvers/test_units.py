"""Weights of any size: what solvers see of them, and what comes back."""

from __future__ import annotations

import dataclasses

import pytest

from edgeflow_opt.problem import EpochProblem, Objective, Weights
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.progress import Progress
from edgeflow_opt.solvers.units import Unit, in_unit_of_solvers
from tests.solvers.instances import small

EXACT = ("auto", "cpsat", "highs", "price")


def _weighing(weight: float, **changes: object) -> EpochProblem:
    problem = small(**changes)
    return problem.replace(
        jobs=tuple(dataclasses.replace(job, weight=weight * job.weight) for job in problem.jobs)
    )


def test_weights_near_one_are_left_alone() -> None:
    """An instance with ordinary weights is the very object that solvers see."""
    problem = small()
    assert in_unit_of_solvers(problem) == (problem, Unit())
    assert in_unit_of_solvers(problem)[0] is problem


@pytest.mark.parametrize("weight", [1e-90, 1e-12, 0.3, 3e9, 1e15])
def test_the_heaviest_job_weighs_about_one_and_no_bit_is_lost(weight: float) -> None:
    """Weights of no common unit are divided by a power of two: the heaviest comes to [1, 2)."""
    problem = small()
    weights = [weight * share for share in (0.3, 1.0, 0.7, 0.45)]
    problem = problem.replace(
        jobs=tuple(
            dataclasses.replace(job, weight=w) for job, w in zip(problem.jobs, weights, strict=True)
        )
    )
    seen, unit = in_unit_of_solvers(problem)
    assert 1.0 <= max(job.weight for job in seen.jobs) < 2.0
    for job, before in zip(seen.jobs, problem.jobs, strict=True):
        assert job.weight * unit.weight == before.weight


def test_no_weight_grows_beyond_what_solvers_can_hold() -> None:
    """Beside a best-effort job that weighs 1e21 times as much, those with deadlines become light."""
    first, *others = small().jobs
    jobs = [dataclasses.replace(job, weight=1e-6 * (3 + k)) for k, job in enumerate(others)]
    heavy = dataclasses.replace(first, deadline=None, weight=1e15)
    problem = small(jobs=(heavy, *jobs))
    seen, unit = in_unit_of_solvers(problem)
    assert 2.0**48 <= seen.jobs[0].weight <= 2.0**49
    for job, before in zip(seen.jobs, problem.jobs, strict=True):
        assert job.weight * unit.weight == before.weight


def test_multiples_of_the_lightest_weight_become_whole_numbers() -> None:
    """Weights 0.3, 0.3, 0.6, 0.3 are those of 1, 1, 2 and 1 jobs."""
    jobs = small().jobs
    weights = (0.3, 0.3, 0.6, 0.3)
    problem = small(
        jobs=tuple(dataclasses.replace(j, weight=w) for j, w in zip(jobs, weights, strict=True))
    )
    seen, unit = in_unit_of_solvers(problem)
    assert [job.weight for job in seen.jobs] == [1.0, 1.0, 2.0, 1.0]
    assert unit == Unit(weight=0.3, level_1=0.3)


def test_weights_of_levels_keep_their_proportions() -> None:
    """The weighted sum in the unit of solvers is that of the caller divided by one number."""
    weights = Weights(met=1e-8, progress=5e-9, cost=1e-20, reconfigurations=1e-15)
    problem = _weighing(1e-3, objective=Objective(mode="weighted", weights=weights))
    seen, unit = in_unit_of_solvers(problem)
    told = seen.objective.weights
    assert told is not None
    assert told.met * seen.jobs[0].weight * unit.level_1 == weights.met * problem.jobs[0].weight
    assert 1.0 <= told.met < 2.0
    assert told.progress / told.met == pytest.approx(weights.progress / weights.met)
    assert told.cost * unit.level_1 == pytest.approx(weights.cost)
    assert told.reconfigurations * unit.level_1 == pytest.approx(weights.reconfigurations)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("weight", [1e-12, 1e-6, 1e14])
def test_the_unit_of_weights_does_not_change_what_is_found(solver: str, weight: float) -> None:
    """The optimum, its bound and its levels scale with the weights; the gap stays."""
    plain = solve(small(), solver, time_limit_s=5.0)
    told: list[Progress] = []
    result = solve(_weighing(weight), solver, time_limit_s=5.0, on_progress=told.append)
    assert result.schedule.met == plain.schedule.met == 2
    assert result.value == pytest.approx(2.0 * weight)
    assert result.status is plain.status
    assert result.bound is not None
    assert result.bound == pytest.approx(weight * plain.bound)
    assert result.gap == pytest.approx(plain.gap, abs=1e-6)
    assert told[-1].value == pytest.approx(result.value)
    assert told[-1].bound == pytest.approx(result.bound)
    for report, before in zip(result.levels, plain.levels, strict=True):
        of_weights = report.level in ("met", "progress", "leftover")
        assert report.value == pytest.approx(before.value * (weight if of_weights else 1.0))


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_a_tiny_weighted_sum_is_proven_too(solver: str) -> None:
    """A sum of 1e-9 a job is optimised as one of 1 a job is."""
    results = []
    for scale in (1.0, 1e-9):
        weights = Weights(met=scale, cost=scale / 1024.0)
        problem = small(objective=Objective(mode="weighted", weights=weights))
        results.append(solve(problem, solver, time_limit_s=5.0))
    plain, tiny = results
    assert tiny.value == pytest.approx(1e-9 * plain.value)
    assert tiny.status is plain.status
