"""Engines under changes of the instance whose effect on the optimum is known, and side by side.

Brute force is not needed for these, so that instances may be larger than it can bear.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, SolveStatus, check
from edgeflow_opt.solvers import SOLVERS, SolveResult, solve
from edgeflow_opt.solvers.base import features_of
from tests.effort import examples
from tests.strategies import problems

#: All that prove bounds, those of plug-ins too.
ENGINES = tuple(name for name in SOLVERS.names() if SOLVERS.get(name).capabilities.exact)

TOLERANCE = 1e-6

Change = Callable[[EpochProblem], EpochProblem]


def _each_job(problem: EpochProblem, change: Callable[[Job], dict[str, Any]]) -> EpochProblem:
    jobs = (dataclasses.replace(job, **change(job)) for job in problem.jobs)
    return problem.replace(jobs=tuple(jobs))


def _with_more_capacity(problem: EpochProblem) -> EpochProblem:
    sites = (
        dataclasses.replace(
            site, capacity=tuple((time, units + 1) for time, units in site.capacity)
        )
        for site in problem.sites
    )
    return problem.replace(sites=tuple(sites))


def _with_split_slots(problem: EpochProblem) -> EpochProblem:
    boundaries = problem.grid.boundaries
    middles = [(a + b) / 2 for a, b in itertools.pairwise(boundaries)]
    return problem.replace(grid=Grid(tuple(sorted((*boundaries, *middles)))))


def _with_one_more_mode(problem: EpochProblem) -> EpochProblem:
    def change(job: Job) -> dict[str, Any]:
        name = problem.sites[0].name
        taken = {mode.gpus for mode in job.modes if mode.site == name}
        gpus = next(count for count in range(1, 9) if count not in taken)
        return {"modes": (*job.modes, Mode(site=name, gpus=gpus, rate=2.0))}

    return _each_job(problem, change)


#: Changes after which every schedule of before is still one, worth no less on level 1.
RELAXATIONS: dict[str, Change] = {
    "more capacity": _with_more_capacity,
    "split slots": _with_split_slots,
    "one more mode": _with_one_more_mode,
    "later deadlines": lambda p: _each_job(
        p, lambda job: {"deadline": None if job.deadline is None else job.deadline + 40.0}
    ),
    "malleable": lambda p: _each_job(p, lambda job: {"malleable": True}),
    "nothing must be met": lambda p: _each_job(p, lambda job: {"must_meet": False}),
    "no losses": lambda p: _each_job(
        p,
        lambda job: {
            "restart_s": 0.0,
            "migration_s": 0.0,
            "running": job.running and dataclasses.replace(job.running, loss_left_s=0.0),
        },
    ),
    "faster": lambda p: _each_job(
        p, lambda job: {"modes": tuple(dataclasses.replace(m, rate=2 * m.rate) for m in job.modes)}
    ),
}


def _with_a_hopeless_job(problem: EpochProblem) -> EpochProblem:
    """Add a job that no unit can host, so that it changes nothing on any level."""
    sites = tuple(
        dataclasses.replace(site, memory_gib=site.memory_gib or 1e6) for site in problem.sites
    )
    mode = Mode(site=sites[0].name, gpus=1, rate=1.0)
    job = Job(
        id="hopeless",
        deadline=problem.grid.end,
        work=1.0,
        modes=(mode,),
        memory_gib=1e9,
        weight=2.0,
    )
    return problem.replace(sites=sites, jobs=(job, *problem.jobs))


def _in_another_unit_of_work(problem: EpochProblem, factor: float = 64.0) -> EpochProblem:
    return _each_job(
        problem,
        lambda job: {
            "work": job.work * factor,
            "modes": tuple(dataclasses.replace(m, rate=m.rate * factor) for m in job.modes),
        },
    )


def _with_other_weights(problem: EpochProblem, factor: float = 3.0) -> EpochProblem:
    return _each_job(problem, lambda job: {"weight": job.weight * factor})


def _later(problem: EpochProblem, by: float = 5000.0) -> EpochProblem:
    """Return the problem on another clock."""
    jobs = (
        dataclasses.replace(
            job,
            deadline=None if job.deadline is None else job.deadline + by,
            arrival=None if job.arrival is None else job.arrival + by,
        )
        for job in problem.jobs
    )
    sites = tuple(
        dataclasses.replace(
            site, capacity=tuple((time + by, units) for time, units in site.capacity)
        )
        for site in problem.sites
    )
    grid = Grid(tuple(time + by for time in problem.grid.boundaries))
    return problem.replace(grid=grid, sites=sites, jobs=tuple(jobs))


#: Changes that leave the optimum of level 1 as it is, but for a factor.
SYMMETRIES: dict[str, tuple[Change, float]] = {
    "a hopeless job": (_with_a_hopeless_job, 1.0),
    "unit of work": (_in_another_unit_of_work, 1.0),
    "unit of weight": (_with_other_weights, 3.0),
    "clock": (_later, 1.0),
    "order of sites": (lambda p: p.replace(sites=p.sites[::-1]), 1.0),
    "order of modes": (lambda p: _each_job(p, lambda job: {"modes": job.modes[::-1]}), 1.0),
}


def _solve(problem: EpochProblem, solver: str) -> SolveResult:
    result = solve(problem, solver, levels=1, time_limit_s=0.3 if solver == "price" else 20.0)
    if result.value is not None:
        assert check(problem, result.schedule).valid
        assert result.bound is not None
        assert result.bound >= result.value - TOLERANCE * max(1.0, abs(result.value))
    return result


def _supported(solver: str, problem: EpochProblem) -> bool:
    return set(features_of(problem)) <= SOLVERS.get(solver).capabilities.features


def _enclosure(result: SolveResult) -> tuple[float, float]:
    """Return the least and the most that the optimum can be; -1 where there is no schedule."""
    if result.status is SolveStatus.INFEASIBLE:
        return -1.0, -1.0
    low = -1.0 if result.value is None else result.value
    return low, float("inf") if result.bound is None else result.bound


@pytest.mark.parametrize("solver", ENGINES)
@pytest.mark.parametrize("change", RELAXATIONS)
@settings(max_examples=examples(5))
@given(problem=problems(max_jobs=6, max_slots=5, offset=False))
def test_a_relaxed_instance_is_worth_no_less(
    change: str, solver: str, problem: EpochProblem
) -> None:
    """What was possible still is: no bound after the change is below a value before it."""
    relaxed = RELAXATIONS[change](problem)
    if not (_supported(solver, problem) and _supported(solver, relaxed)):
        return
    before, _ = _enclosure(_solve(problem, solver))
    _, after = _enclosure(_solve(relaxed, solver))
    assert after >= before - TOLERANCE * max(1.0, before)


@pytest.mark.parametrize("solver", ENGINES)
@pytest.mark.parametrize("change", SYMMETRIES)
@settings(max_examples=examples(5))
@given(problem=problems(max_jobs=6, max_slots=5))
def test_a_symmetric_instance_is_worth_the_same(
    change: str, solver: str, problem: EpochProblem
) -> None:
    """Order, clock and units do not matter: value and bound before and after enclose one optimum."""
    apply, factor = SYMMETRIES[change]
    if not _supported(solver, problem):
        return
    low, high = _enclosure(_solve(problem, solver))
    other_low, other_high = (x if x < 0 else x / factor
                             for x in _enclosure(_solve(apply(problem), solver)))  # fmt: skip
    slack = TOLERANCE * max(1.0, low)
    assert max(low, other_low) <= min(high, other_high) + slack
    if solver != "price":
        assert low == pytest.approx(other_low, abs=slack)


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=9, max_slots=7, max_sites=3))
def test_engines_agree_beyond_brute_force(problem: EpochProblem) -> None:
    """On several sites, with all features, every value is below every bound, and proofs agree."""
    found = {name: _solve(problem, name) for name in ENGINES if _supported(name, problem)}
    encloses = {name: _enclosure(result) for name, result in found.items()}
    low, high = max(a for a, _ in encloses.values()), min(b for _, b in encloses.values())
    assert low <= high + TOLERANCE * max(1.0, low), encloses
    infeasible = {name for name, r in found.items() if r.status is SolveStatus.INFEASIBLE}
    assert not infeasible or all(r.value is None for r in found.values()), encloses


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=7, max_slots=6, max_sites=3))
def test_moldable_instances_agree(problem: EpochProblem) -> None:
    """The same with every job moldable, which engines solve by other ways."""
    rigid = problem.as_moldable()
    encloses = {
        name: _enclosure(_solve(rigid, name)) for name in ENGINES if _supported(name, rigid)
    }
    low, high = max(a for a, _ in encloses.values()), min(b for _, b in encloses.values())
    assert low <= high + TOLERANCE * max(1.0, low), encloses


@pytest.mark.parametrize("solver", ENGINES)
@settings(max_examples=examples(8))
@given(problem=problems(max_jobs=5, max_slots=4), data=st.data())
def test_a_warm_start_never_hurts(solver: str, problem: EpochProblem, data: st.DataObject) -> None:
    """Begun from any engine's schedule, an engine ends no lower."""
    other = data.draw(st.sampled_from(ENGINES))
    if not (_supported(solver, problem) and _supported(other, problem)):
        return
    first = _solve(problem, other)
    if first.value is None:
        return
    again = solve(problem, solver, warm_start=first.schedule, levels=1, time_limit_s=0.5)
    assert again.value is not None
    assert again.value >= first.value - TOLERANCE * max(1.0, first.value)


@functools.cache
def _reference() -> float:
    return _solve(_fixed(), "highs").value or 0.0


def _fixed() -> EpochProblem:
    from edgeflow_opt.workloads import generate_problem

    return generate_problem(
        10, 6, 5, load=2.0, restart_s=30.0, migration_s=120.0, running_share=0.3,
        suspended_share=0.2, best_effort_share=0.1, moldable_share=0.3, weights=(1, 3),
    )  # fmt: skip


@pytest.mark.parametrize("solver", ENGINES)
def test_engines_agree_on_a_generated_instance(solver: str) -> None:
    """With all features of the generator at once, every engine encloses one optimum."""
    low, high = _enclosure(_solve(_fixed(), solver))
    assert low - TOLERANCE <= _reference() <= high + TOLERANCE
