"""The brute-force oracle, held against instances small enough to solve on paper."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    Running,
    Schedule,
    Site,
    Weights,
    check,
)
from tests.oracle import optimum
from tests.strategies import problems, problems_with_schedules


def _cloud(units: int, **fields: object) -> Site:
    return Site(name="cloud", kind="cloud", capacity=((0.0, units),), **fields)  # type: ignore[arg-type]


def _job(name: str, deadline: float | None, work: float, *rates: float, **fields: object) -> Job:
    modes = tuple(Mode(site="cloud", gpus=g, rate=r) for g, r in enumerate(rates, start=1))
    return Job(id=name, deadline=deadline, work=work, modes=modes, **fields)  # type: ignore[arg-type]


def _problem(*jobs: Job, units: int = 1, slots: int = 2, **fields: object) -> EpochProblem:
    return EpochProblem(
        grid=Grid.uniform(0.0, 100.0, slots), sites=(_cloud(units),), jobs=jobs, **fields
    )  # type: ignore[arg-type]


def test_two_jobs_share_one_gpu_by_taking_turns() -> None:
    """Two jobs of one slot each on one GPU with two slots are both met, the urgent one first."""
    best = optimum(_problem(_job("late", 200, 100, 1.0), _job("urgent", 100, 100, 1.0)))
    assert best is not None
    assert best.value.key() == (2.0, 0.0, 0.0, -200.0, 0.0)
    assert [(a.job, a.start) for a in best.schedule.allocations] == [("urgent", 0), ("late", 100)]


def test_the_heavier_job_wins_and_the_other_gets_leftovers() -> None:
    """Where one of two fits, weight decides; the other earns what is left by the horizon."""
    best = optimum(
        _problem(_job("light", 200, 200, 1.0), _job("heavy", 100, 100, 1.0, weight=3.0), slots=2)
    )
    assert best is not None
    # The light job has the second slot: half its work by its deadline and by the horizon.
    assert best.value.key() == (3.0, 0.5, 0.5, -200.0, 0.0)


def test_cost_is_least_once_the_levels_above_are_equal() -> None:
    """Two GPUs finish in one slot for 200 GPU-seconds, one in two slots for 200: 1.9 is a loss."""
    cheaper = optimum(_problem(_job("j", 200, 190, 0.95, 1.9), units=2, slots=2))
    assert cheaper is not None
    assert cheaper.value.cost == 200.0
    priced = optimum(_problem(_job("j", 200, 190, 0.96, 1.8), units=2, slots=2))
    assert priced is not None
    assert priced.value.cost == 200.0
    assert {a.gpus for a in priced.schedule.allocations} == {1}


def test_a_restart_loss_makes_the_running_mode_worth_keeping() -> None:
    """With a loss of 60 s the faster mode is too late; the running one goes on and meets."""
    job = _job(
        "j", 100, 95, 1.0, 2.0, running=Running(site="cloud", gpus=1), restart_s=60.0,
    )  # fmt: skip
    best = optimum(_problem(job, units=2, slots=1))
    assert best is not None
    assert best.value.key() == (1.0, 0.0, 0.0, -100.0, 0.0)
    switching = optimum(_problem(dataclasses.replace(job, restart_s=50.0), units=2, slots=1))
    assert switching is not None
    assert switching.value.reconfigurations == 0


def test_a_migration_takes_its_own_loss() -> None:
    """A job that last ran elsewhere pays the migration, and is met only if that leaves time."""
    sites = (_cloud(1), Site(name="edge", kind="edge", capacity=((0.0, 1),)))
    job = Job(
        id="j", deadline=100, work=70, modes=(Mode(site="edge", gpus=2, rate=1.0),),
        last_site="cloud", migration_s=30.0, restart_s=99.0,
    )  # fmt: skip
    problem = EpochProblem(grid=Grid.uniform(0.0, 100.0, 1), sites=sites, jobs=(job,))
    best = optimum(problem)
    assert best is not None
    assert best.value.key() == (1.0, 0.0, 0.0, -200.0, -1.0)
    late = problem.replace(jobs=(dataclasses.replace(job, migration_s=31.0),))
    second = optimum(late)
    assert second is not None
    assert second.value.met_weight == 0.0
    assert second.value.progress == pytest.approx(69 / 70)


def test_must_meet_overrides_weight() -> None:
    """A job that must be met is, though a heavier one then is not."""
    best = optimum(
        _problem(
            _job("heavy", 100, 100, 1.0, weight=9.0),
            _job("hard", 100, 100, 1.0, must_meet=True),
            slots=1,
        )
    )
    assert best is not None
    assert best.value.met_weight == 1.0


def test_infeasible_if_two_must_be_met_and_one_fits() -> None:
    """Where jobs that must be met do not fit together there is no schedule."""
    jobs = [_job(name, 100, 100, 1.0, must_meet=True) for name in "ab"]
    assert optimum(_problem(*jobs, slots=1)) is None


def test_infeasible_if_the_job_cannot_be_met_alone() -> None:
    """A job that must be met and never can be makes the instance infeasible."""
    assert optimum(_problem(_job("j", 100, 101, 1.0, must_meet=True), slots=1)) is None


def test_a_moldable_job_keeps_its_mode() -> None:
    """Capacity 2, then 1: a malleable job uses both, a moldable one must choose one mode."""
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 2), (100.0, 1)))
    job = _job("j", 200, 300, 1.0, 2.0)
    problem = EpochProblem(grid=Grid.uniform(0.0, 100.0, 2), sites=(site,), jobs=(job,))
    malleable, moldable = optimum(problem), optimum(problem.as_moldable())
    assert malleable is not None
    assert moldable is not None
    assert malleable.value.met_weight == 1.0
    assert moldable.value.met_weight == 0.0
    assert moldable.value.progress == pytest.approx(2 / 3)


def test_the_least_capacity_within_a_slot_binds() -> None:
    """A dip inside a slot takes the units away for the whole slot."""
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1), (40.0, 0), (50.0, 1)))
    job = _job("j", 200, 100, 1.0)
    problem = EpochProblem(grid=Grid.uniform(0.0, 100.0, 2), sites=(site,), jobs=(job,))
    best = optimum(problem)
    assert best is not None
    assert [a.start for a in best.schedule.allocations] == [100.0]


def test_weighted_objective_trades_levels() -> None:
    """In a weighted sum a deadline is worth its weight only."""
    job = _job("j", 100, 100, 1.0)
    cheap = _problem(job, slots=1, objective=Objective(mode="weighted", weights=Weights(cost=0.02)))
    best = optimum(cheap)
    assert best is not None
    assert best.value.met_weight == 0.0
    dear = _problem(job, slots=1, objective=Objective(mode="weighted", weights=Weights(cost=0.002)))
    other = optimum(dear)
    assert other is not None
    assert other.value.met_weight == 1.0


def test_refuses_what_is_too_large_to_enumerate() -> None:
    """Beyond 200,000 sequences of a job the oracle refuses instead of hanging."""
    job = _job("j", 2000, 300, *[1.0 + g for g in range(9)])
    with pytest.raises(ValueError, match="more than 200000 sequences"):
        optimum(_problem(job, units=9, slots=20))


@given(problems())
def test_its_schedule_is_valid(problem: EpochProblem) -> None:
    """The optimal schedule passes the checker, with its value as bound."""
    best = optimum(problem)
    if best is not None:
        report = check(problem, best.schedule)
        assert report.valid, report.violations
        assert report.met_weight == best.value.met_weight


@given(problems_with_schedules())
def test_no_random_schedule_beats_it(drawn: tuple[EpochProblem, Schedule]) -> None:
    """Whatever valid schedule is drawn, the oracle is at least as good in lexicographic order."""
    problem, schedule = drawn
    best = optimum(problem)
    assert best is not None
    assert schedule.objective is not None
    assert not schedule.objective.better_than(best.value)


@given(problems(max_jobs=3, max_slots=3, weighted=True))
def test_its_weighted_schedule_is_valid(problem: EpochProblem) -> None:
    """With a weighted sum the bound is the sum reached, and the checker agrees."""
    best = optimum(problem)
    if best is not None:
        report = check(problem, best.schedule)
        assert report.valid, report.violations
        assert best.schedule.bound == best.value.weighted
