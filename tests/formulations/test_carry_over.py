"""Plans carried over to another epoch keep all rules, and as much as fits."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.carry_over import carried_over
from edgeflow_opt.formulations.plans import allocations_of
from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Running,
    Schedule,
    Site,
    SolveStatus,
    check,
    evaluate,
)
from edgeflow_opt.problem.arrays import arrays_of
from tests.effort import examples
from tests.strategies import problems, problems_with_schedules

ONE, TWO = Mode(site="cloud", gpus=1, rate=1.0), Mode(site="cloud", gpus=2, rate=1.5)


def _problem(*jobs: Job, units: int = 2, grid: tuple[float, ...] = (0, 10, 20, 30)) -> EpochProblem:
    site = Site(name="cloud", kind="cloud", capacity=((grid[0], units),))
    return EpochProblem(grid=Grid(tuple(map(float, grid))), sites=(site,), jobs=jobs)


def _job(name: str, deadline: float = 30.0, **fields: object) -> Job:
    return Job(id=name, deadline=deadline, work=20.0, modes=(ONE, TWO), **fields)  # type: ignore[arg-type]


def _held(job: str, start: float, end: float, gpus: int = 1) -> Allocation:
    return Allocation(job=job, start=start, end=end, site="cloud", gpus=gpus)


def _carried(problem: EpochProblem, *allocations: Allocation) -> list[tuple[object, ...]]:
    arrays = arrays_of(problem)
    plan = carried_over(problem, arrays, allocations)
    return [(a.job, a.start, a.end, a.gpus) for a in allocations_of(problem, arrays, plan)]


def test_a_slot_does_what_the_plan_does_at_its_start() -> None:
    """On other boundaries a job holds in a slot what it held at the start of the slot."""
    problem = _problem(_job("a"), grid=(5, 12, 25))
    assert _carried(problem, _held("a", 0.0, 10.0), _held("a", 10.0, 20.0, 2)) == [
        ("a", 5.0, 12.0, 1),
        ("a", 12.0, 25.0, 2),
    ]


def test_jobs_and_modes_that_have_gone_are_left_out() -> None:
    """Nothing is made of what the problem does not have."""
    problem = _problem(_job("a"))
    assert _carried(problem, _held("gone", 0.0, 30.0), _held("a", 0.0, 30.0, 4)) == []


def test_the_latest_deadline_loses_its_place_first() -> None:
    """Where one unit is left, the job that can wait least keeps it."""
    problem = _problem(_job("late", 30.0), _job("early", 20.0), units=1)
    held = _carried(problem, _held("late", 0.0, 20.0), _held("early", 0.0, 20.0))
    assert held == [("early", 0.0, 20.0, 1)]


def test_a_moldable_job_keeps_its_run_whole_or_not_at_all() -> None:
    """A run that loses a slot, or that is not the running one, goes."""
    rigid = _job("rigid", 30.0, malleable=False)
    other = _held("early", 0.0, 10.0, 2)
    assert _carried(_problem(rigid, _job("early", 20.0)), _held("rigid", 0.0, 20.0), other) == [
        ("early", 0.0, 10.0, 2)
    ]
    running = dataclasses.replace(rigid, running=Running(site="cloud", gpus=2))
    assert _carried(_problem(running), _held("rigid", 0.0, 20.0)) == []
    assert _carried(_problem(running), _held("rigid", 0.0, 20.0, 2)) == [("rigid", 0.0, 20.0, 2)]


def _as_schedule(problem: EpochProblem, allocations: tuple[Allocation, ...]) -> Schedule:
    value, outcomes = evaluate(problem, allocations)
    return Schedule(
        solver="carried",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=allocations,
        outcomes=outcomes,
    )


@settings(max_examples=examples(60))
@given(problems_with_schedules(), problems(max_jobs=4, max_slots=4), st.booleans())
def test_what_is_carried_over_keeps_all_rules(
    drawn: tuple[EpochProblem, Schedule], other: EpochProblem, same: bool
) -> None:
    """Whatever the plan and the problem, only deadlines that must be met can be missed."""
    problem, schedule = drawn
    target = problem if same else other
    arrays = arrays_of(target)
    plan = carried_over(target, arrays, schedule.allocations)
    allocations = allocations_of(target, arrays, plan)
    report = check(target, _as_schedule(target, allocations))
    assert report.kinds() <= {"must_meet"}
    if same:
        assert allocations == allocations_of(target, arrays, plan)
        assert evaluate(target, allocations)[0] == evaluate(target, schedule.allocations)[0]
