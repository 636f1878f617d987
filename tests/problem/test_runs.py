"""The run-and-loss rule: hand-computed credits, and a numerical integration as second opinion."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Job,
    Mode,
    Outcome,
    Running,
    Schedule,
    evaluate,
)
from edgeflow_opt.problem.evaluate import by_job, outcome_of
from edgeflow_opt.problem.runs import RunKind, completion_of, credit_by, runs_of
from tests.problem.examples import alloc, rich_problem, rich_schedule
from tests.strategies import problems_with_schedules

MODES = (
    Mode(site="cloud", gpus=1, rate=1.0),
    Mode(site="cloud", gpus=2, rate=2.0),
    Mode(site="edge", gpus=1, rate=0.5),
)


def _job(**fields: Any) -> Job:
    given_fields = {
        "id": "j", "deadline": 1000.0, "work": 100.0, "modes": MODES,
        "restart_s": 10.0, "migration_s": 30.0, **fields,
    }  # fmt: skip
    return Job(**given_fields)


def _on_cloud(left: float = 0.0) -> dict[str, Any]:
    return {
        "running": Running(site="cloud", gpus=1, loss_left_s=left),
        "last_site": "cloud",
    }


# What the job did before, its allocations (start, end, site, gpus), the kinds of its runs, and its
# credit by given times, computed by hand.
CASES: dict[
    str, tuple[dict[str, Any], list[tuple[float, float, str, int]], str, dict[float, float]]
]
CASES = {
    "first run": ({}, [(0, 100, "cloud", 1)], "F", {0: 0, 50: 50, 100: 100, 500: 100}),
    "first run later": ({}, [(50, 100, "cloud", 2)], "F", {50: 0, 60: 20, 100: 100}),
    "continued": (_on_cloud(), [(0, 100, "cloud", 1)], "C", {40: 40, 100: 100}),
    "continued with loss": (_on_cloud(25), [(0, 100, "cloud", 1)], "C", {25: 0, 40: 15, 100: 75}),
    "other GPUs at now": (_on_cloud(25), [(0, 100, "cloud", 2)], "R", {10: 0, 40: 60, 100: 180}),
    "other site at now": (_on_cloud(), [(0, 100, "edge", 1)], "M", {30: 0, 50: 10, 100: 35}),
    "same mode after idling": (_on_cloud(), [(50, 100, "cloud", 1)], "R", {60: 0, 100: 40}),
    "idle, last on cloud": ({"last_site": "cloud"}, [(0, 50, "cloud", 1)], "R", {10: 0, 50: 40}),
    "idle, last on edge": ({"last_site": "edge"}, [(0, 50, "cloud", 1)], "M", {30: 0, 50: 20}),
    "loss as long as the run": ({"last_site": "edge"}, [(0, 30, "cloud", 1)], "M", {30: 0, 99: 0}),
    "loss longer than the run": (
        # The run earns nothing, yet counts: the next one restarts instead of migrating.
        {"last_site": "edge"}, [(0, 20, "cloud", 1), (20, 60, "cloud", 2)], "MR", {20: 0, 60: 60},
    ),
    "loss spanning allocations": (
        {"last_site": "edge"}, [(0, 20, "cloud", 1), (20, 40, "cloud", 1), (40, 60, "cloud", 1)],
        "M", {20: 0, 30: 0, 40: 10, 60: 30},
    ),
    "abutting allocations merge": (
        {}, [(0, 20, "cloud", 1), (20, 40, "cloud", 1)], "F", {20: 20, 40: 40},
    ),
    "a gap does not merge": (
        {}, [(0, 20, "cloud", 1), (30, 60, "cloud", 1)], "FR", {20: 20, 40: 20, 60: 40},
    ),
    "change of GPUs": ({}, [(0, 20, "cloud", 1), (20, 60, "cloud", 2)], "FR", {30: 20, 60: 80}),
    "there and back": (
        {}, [(0, 50, "cloud", 1), (50, 100, "edge", 1), (100, 150, "cloud", 1)], "FMM",
        {50: 50, 80: 50, 100: 60, 130: 60, 150: 80},
    ),
    "elsewhere after idling": (
        {}, [(0, 50, "cloud", 1), (80, 150, "edge", 1)], "FM", {110: 50, 150: 70},
    ),
    "running mode again after another": (
        _on_cloud(5), [(0, 50, "edge", 1), (50, 100, "cloud", 1)], "MM", {50: 10, 80: 10, 100: 30},
    ),
    "no allocation": (_on_cloud(), [], "", {0: 0, 100: 0}),
}  # fmt: skip

LETTERS = {
    "F": RunKind.FIRST, "C": RunKind.CONTINUED, "R": RunKind.RESTARTED, "M": RunKind.MIGRATED,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_credit_by_hand(name: str) -> None:
    """Kinds of the runs and credits are those computed by hand."""
    past, rows, kinds, credits = CASES[name]
    runs = runs_of(_job(**past), [alloc("j", *row) for row in rows], 0.0)
    assert [run.kind for run in runs] == [LETTERS[letter] for letter in kinds]
    for time, credit in credits.items():
        assert credit_by(runs, time) == pytest.approx(credit, abs=1e-9)


def test_only_a_run_from_now_continues() -> None:
    """In a history that is followed from the first run on, nothing is continued."""
    job = _job(**_on_cloud(5))
    runs = runs_of(job, [alloc("j", 0, 50, "cloud", 1)], None)
    assert runs[0].kind is RunKind.RESTARTED


def test_only_restarts_and_migrations_are_reconfigurations() -> None:
    """First and continued runs are none."""
    assert [kind for kind in RunKind if kind.reconfiguration] == [
        RunKind.RESTARTED,
        RunKind.MIGRATED,
    ]


@pytest.mark.parametrize(
    ("past", "rows", "required", "completion"),
    [
        ({}, [(0, 100, "cloud", 1)], 100.0, 100.0),
        ({}, [(0, 100, "cloud", 1)], 40.0, 40.0),
        ({}, [(0, 100, "cloud", 1)], 100.5, None),
        ({}, [(0, 50, "cloud", 1), (50, 100, "cloud", 2)], 70.0, 70.0),
        # The second run begins with 50 and earns nothing before 60.
        ({}, [(0, 50, "cloud", 1), (50, 100, "cloud", 2)], 50.0, 50.0),
        ({"last_site": "edge"}, [(0, 100, "cloud", 1)], 1.0, 31.0),
        ({"last_site": "edge"}, [(0, 20, "cloud", 1), (20, 90, "cloud", 2)], 20.0, 40.0),
        ({}, [], 1.0, None),
    ],
)
def test_completion_by_hand(
    past: dict[str, Any],
    rows: list[tuple[float, float, str, int]],
    required: float,
    completion: float | None,
) -> None:
    """The completion is the first time at which the credit suffices."""
    runs = runs_of(_job(**past), [alloc("j", *row) for row in rows], 0.0)
    assert completion_of(runs, required) == completion


@pytest.mark.parametrize(
    ("deadline", "work", "met", "completion"),
    [
        (100.0, 70.0, True, 100.0),  # migrated: 30 s of loss, exactly enough by the deadline
        (99.0, 70.0, False, 100.0),
        (20.0, 10.0, False, 40.0),  # the deadline lies inside the loss
        (30.0, 10.0, False, 40.0),
        (100.0, 71.0, False, 101.0),
        (0.0, 10.0, False, 40.0),
        (-50.0, 10.0, False, 40.0),
        (None, 10.0, None, 40.0),
        (900.0, 500.0, False, None),
    ],
)
def test_outcome_by_hand(
    deadline: float | None, work: float, met: bool | None, completion: float | None
) -> None:
    """Met is completion by the deadline; a late completion is given too."""
    job = _job(deadline=deadline, work=work, last_site="edge", arrival=-100.0)
    outcome = outcome_of(job, runs_of(job, [alloc("j", 0, 200, "cloud", 1)], 0.0))
    assert outcome.met is met
    expected = None if completion is None else pytest.approx(completion, rel=2e-6)
    assert outcome.completion == expected


def test_work_tolerance() -> None:
    """A credit of work (1 - 1e-6) suffices, one of work (1 - 2e-6) does not."""
    allocations = [alloc("j", 0, 100, "cloud", 1)]
    for work, met in ((100.0 / (1 - 0.9e-6), True), (100.0 / (1 - 2e-6), False)):
        job = _job(work=work, deadline=100.0)
        assert outcome_of(job, runs_of(job, allocations, 0.0)).met is met


def test_a_met_job_completes_no_later_than_its_deadline() -> None:
    """Where rounding of the division sets the completion behind the deadline, the credit decides."""
    fast = (Mode(site="cloud", gpus=1, rate=2.6),)
    job = _job(modes=fast, work=128.70012870012872, deadline=50.2)
    runs = runs_of(job, [alloc("j", 0.7, 60.0, "cloud", 1)], 0.0)
    by_division = completion_of(runs, job.required)
    assert by_division is not None
    assert by_division > 50.2
    assert outcome_of(job, runs) == Outcome(job="j", met=True, completion=50.2)


@pytest.mark.parametrize("now", [0.0, 1701000181.123])
@pytest.mark.parametrize(("seconds", "met"), [(0.0, False), (60.0, True)])
def test_the_credit_decides_and_not_the_clock(now: float, seconds: float, met: bool) -> None:
    """Nothing is earned in no time, even where the clock is too coarse to tell the completion."""
    job = _job(work=1e-9, deadline=now + seconds)
    outcome = outcome_of(job, runs_of(job, [alloc("j", now, now + 60.0, "cloud", 1)], now))
    assert outcome.met is met
    assert outcome.completion == pytest.approx(now, abs=1e-6)
    assert job.deadline is not None
    assert outcome.completion is not None
    assert (outcome.completion <= job.deadline) is met


def test_levels_by_hand() -> None:
    """All five levels of an instance with every kind of job, computed by hand."""
    problem = rich_problem()
    value, outcomes = evaluate(problem, rich_schedule(problem).allocations)
    assert {o.job: o.met for o in outcomes} == {
        "plain": True, "runs": True, "hard": True, "effort": None, "rigid": True, "large": True,
    }  # fmt: skip
    completion = {o.job: o.completion for o in outcomes}
    assert completion["plain"] == pytest.approx(150 / 1.8, rel=2e-6)
    # 95 by 100 s, then 30 s of migration, then 175 at 1.5 a second.
    assert completion["runs"] == pytest.approx(130 + 175 / 1.5, rel=2e-6)
    assert completion["effort"] is None
    assert value.met_weight == 6.0
    assert value.progress == 0.0
    assert value.leftover == pytest.approx(100 / 1000)
    # Prices: cloud 2, edge 1 per GPU-second.
    assert value.cost == 2 * (200 + 100 + 100 + 200 + 100) + 4 * 300
    assert value.reconfigurations == 1


def test_progress_and_leftover_by_hand() -> None:
    """An unmet job counts with its credit by the deadline, and again with that by the horizon."""
    problem = rich_problem()
    job = dataclasses.replace(problem.jobs[0], deadline=150.0, work=400.0, weight=2.0)
    problem = problem.replace(jobs=(job,))
    value, _ = evaluate(problem, [alloc("plain", 100.0, 300.0, "cloud", 1)])
    assert value.met_weight == 0.0
    assert value.progress == pytest.approx(2 * 50 / 400)
    assert value.leftover == pytest.approx(2 * 200 / 400)


def test_by_job_sorts_and_ignores_strangers() -> None:
    """Allocations are grouped by job in order of start; unknown ids are left out."""
    rows = [alloc("a", 5, 6, "s", 1), alloc("x", 0, 1, "s", 1), alloc("a", 1, 2, "s", 1)]
    jobs = [_job(id="a"), _job(id="b")]
    assert by_job(jobs, rows) == {"a": [rows[2], rows[0]], "b": []}


@dataclass
class _Integral:
    """A job followed in steps so small that nothing happens within one."""

    credit_by_deadline: float = 0.0
    credit: float = 0.0
    completion: float | None = None
    reconfigurations: int = 0
    gpu_seconds: float = 0.0


STEP = 0.25  # all times and losses of the strategies are whole multiples of it


def _integrate(problem: EpochProblem, job: Job, allocations: list[Allocation]) -> _Integral:
    """Follow `job` through time by nothing but the wording of the rule."""
    result = _Integral()
    held: tuple[str, int] | None = None
    site_before = job.last_site
    if job.running is not None:
        held = (job.running.site, job.running.gpus)
    loss = job.running.loss_left_s if job.running is not None else 0.0
    rates = {(mode.site, mode.gpus): mode.rate for mode in job.modes}
    time = problem.now
    pending = sorted(allocations, key=lambda a: a.start)
    while time < problem.grid.end:
        while pending and pending[0].end <= time:
            pending.pop(0)
        current = None
        if pending and pending[0].start <= time:
            current = (pending[0].site, pending[0].gpus)
        if current is not None and current != held:
            loss = 0.0
            if site_before is not None:
                loss = job.restart_s if site_before == current[0] else job.migration_s
                result.reconfigurations += 1
        held = current
        if current is not None:
            site_before = current[0]
            result.gpu_seconds += current[1] * STEP
            if loss > 0:
                loss -= STEP
            else:
                result.credit += rates[current] * STEP
                if job.deadline is not None and time < job.deadline:
                    result.credit_by_deadline += rates[current] * STEP
        time += STEP
        if result.completion is None and result.credit >= job.required:
            result.completion = time
    return result


@given(problems_with_schedules(max_jobs=3, max_slots=4, prices=False))
def test_agrees_with_numerical_integration(drawn: tuple[EpochProblem, Schedule]) -> None:
    """Credits, completions, met, cost and reconfigurations equal those of plain integration."""
    problem, schedule = drawn
    groups = by_job(problem.jobs, schedule.allocations)
    cost, reconfigurations = 0.0, 0
    for job, outcome in zip(problem.jobs, schedule.outcomes, strict=True):
        truth = _integrate(problem, job, groups[job.id])
        runs = runs_of(job, groups[job.id], problem.now)
        assert credit_by(runs, problem.grid.end) == pytest.approx(truth.credit)
        if job.deadline is not None:
            assert credit_by(runs, job.deadline) == pytest.approx(truth.credit_by_deadline)
            assert outcome.met is (truth.credit_by_deadline >= job.required)
        assert (outcome.completion is None) is (truth.completion is None)
        if outcome.completion is not None and truth.completion is not None:
            assert truth.completion - STEP - 1e-6 <= outcome.completion <= truth.completion + 1e-6
        cost += truth.gpu_seconds
        reconfigurations += truth.reconfigurations
    assert schedule.objective is not None
    assert schedule.objective.cost == pytest.approx(cost)
    assert schedule.objective.reconfigurations == reconfigurations
