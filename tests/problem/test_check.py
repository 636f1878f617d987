"""The checker: valid schedules pass, and every minimal mutation is told by kind and amount."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Limit,
    Mode,
    Objective,
    Outcome,
    Running,
    Schedule,
    Site,
    SolveStatus,
    Violation,
    Weights,
    check,
    evaluate,
)
from edgeflow_opt.problem.schedule import in_order
from tests.effort import examples
from tests.problem.examples import alloc, rich_problem, rich_schedule, schedule_of
from tests.strategies import problems_with_schedules


def test_hand_made_schedule_is_valid() -> None:
    """A schedule with every kind of job passes, with its met jobs recomputed."""
    problem = rich_problem()
    report = check(problem, rich_schedule(problem))
    assert report.violations == ()
    assert report.valid
    assert (report.met, report.met_weight) == (5, 6.0)
    assert report.kinds() == set()


def test_empty_schedule_is_valid() -> None:
    """Doing nothing is valid where no job must be met."""
    problem = rich_problem()
    jobs = tuple(job for job in problem.jobs if not job.must_meet)
    assert check(problem.replace(jobs=jobs), schedule_of(problem.replace(jobs=jobs))).valid


def _with(index: int, **changes: Any) -> Schedule:
    """Return the hand-made schedule with one allocation changed and true claims."""
    problem = rich_problem()
    allocations = list(rich_schedule(problem).allocations)
    allocations[index] = dataclasses.replace(allocations[index], **changes)
    return schedule_of(problem, *allocations)


def _plus(*extra: Allocation) -> Schedule:
    """Return the hand-made schedule with further allocations and true claims."""
    problem = rich_problem()
    return schedule_of(problem, *rich_schedule(problem).allocations, *extra)


def _raw_plus(*extra: Allocation) -> Schedule:
    """Return the hand-made schedule with further allocations that cannot be valued."""
    schedule = rich_schedule(rich_problem())
    return dataclasses.replace(schedule, allocations=(*schedule.allocations, *extra))


def _claims(**changes: Any) -> Schedule:
    return dataclasses.replace(rich_schedule(rich_problem()), **changes)


def _levels(**changes: Any) -> Schedule:
    schedule = rich_schedule(rich_problem())
    assert schedule.objective is not None
    return _claims(objective=dataclasses.replace(schedule.objective, **changes))


def _outcome(index: int, **changes: Any) -> Schedule:
    outcomes = list(rich_schedule(rich_problem()).outcomes)
    outcomes[index] = dataclasses.replace(outcomes[index], **changes)
    return _claims(outcomes=tuple(outcomes))


def _without(job: str) -> Schedule:
    problem = rich_problem()
    kept = [a for a in rich_schedule(problem).allocations if a.job != job]
    return schedule_of(problem, *kept)


TRUE = rich_schedule(rich_problem())
assert TRUE.objective is not None
RUNS_AT = TRUE.outcomes[1].completion
assert RUNS_AT is not None

# A mutation, and the one violation that it causes: kind, job, site, time, amount.
# Allocations in order: plain, runs, hard at 0; runs, effort, rigid at 100; large at 200.
Expected = tuple[str, str | None, str | None, float | None, float | None]
MUTATIONS: dict[str, tuple[Schedule, Expected]] = {
    "unknown job": (
        _raw_plus(alloc("ghost", 0.0, 100.0, "cloud", 1)),
        ("unknown_job", "ghost", "cloud", 0.0, None),
    ),
    "unknown site": (
        _raw_plus(alloc("large", 0.0, 100.0, "moon", 1)),
        ("unknown_site", "large", "moon", 0.0, None),
    ),
    "unknown mode": (
        _raw_plus(alloc("large", 0.0, 100.0, "cloud", 3)),
        ("unknown_mode", "large", "cloud", 0.0, 3.0),
    ),
    "no GPUs": (
        _raw_plus(alloc("large", 0.0, 100.0, "cloud", 0)),
        ("unknown_mode", "large", "cloud", 0.0, 0.0),
    ),
    "empty interval": (
        _raw_plus(alloc("large", 100.0, 100.0, "cloud", 1)),
        ("bad_interval", "large", "cloud", None, None),
    ),
    "backwards": (
        _raw_plus(alloc("large", 200.0, 100.0, "cloud", 1)),
        ("bad_interval", "large", "cloud", None, None),
    ),
    "NaN start": (
        _raw_plus(alloc("large", math.nan, 100.0, "cloud", 1)),
        ("bad_interval", "large", "cloud", None, None),
    ),
    "NaN end": (
        _raw_plus(alloc("large", 0.0, math.nan, "cloud", 1)),
        ("bad_interval", "large", "cloud", None, None),
    ),
    "off the grid": (_with(6, start=250.0), ("off_grid", "large", "cloud", 250.0, 50.0)),
    "just off the grid": (
        _with(6, start=200.0 + 2**-20), ("off_grid", "large", "cloud", 200.0 + 2**-20, 2**-20),
    ),
    "beyond the horizon": (
        _with(6, end=350.0), ("outside_horizon", "large", "cloud", 200.0, 50.0),
    ),
    "overlap": (
        _raw_plus(alloc("plain", 0.0, 100.0, "cloud", 1)),
        ("overlap", "plain", "cloud", 0.0, 100.0),
    ),
    "overlap on another site": (
        _raw_plus(alloc("runs", 200.0, 300.0, "cloud", 1)),
        ("overlap", "runs", "cloud", 200.0, 100.0),
    ),
    "before the arrival": (
        _with(4, start=0.0), ("before_arrival", "effort", "cloud", 0.0, 100.0),
    ),
    "cloud capacity": (
        _plus(alloc("plain", 100.0, 200.0, "cloud", 2)),
        ("capacity", None, "cloud", 100.0, 1.0),
    ),
    "edge capacity": (
        _plus(alloc("plain", 100.0, 200.0, "edge", 4)),
        ("capacity", None, "edge", 100.0, 1.0),
    ),
    "capacity after the tide": (
        _plus(alloc("plain", 200.0, 300.0, "cloud", 2), alloc("effort", 200.0, 300.0, "cloud", 1)),
        ("capacity", None, "cloud", 200.0, 1.0),
    ),
    "memory": (
        _plus(alloc("large", 100.0, 200.0, "edge", 4)),
        ("memory", "large", "edge", 100.0, 4.0),
    ),
    "moldable in two modes": (
        _plus(alloc("rigid", 200.0, 300.0, "cloud", 1)),
        ("not_malleable", "rigid", "cloud", 200.0, 1.0),
    ),
    "must meet, never done": (_without("hard"), ("must_meet", "hard", None, 200.0, None)),
    "outcome missing": (
        _claims(outcomes=TRUE.outcomes[:-1]), ("outcomes", "large", None, None, 1.0),
    ),
    "outcome twice": (
        _claims(outcomes=(*TRUE.outcomes, TRUE.outcomes[0])), ("outcomes", None, None, None, 1.0),
    ),
    "outcomes out of order": (
        _claims(outcomes=TRUE.outcomes[::-1]), ("outcomes", None, None, None, 0.0),
    ),
    "outcome of a stranger": (
        _claims(outcomes=(*TRUE.outcomes[:-1], Outcome(job="x", met=None, completion=None))),
        ("outcomes", "large", None, None, 2.0),
    ),
    "met denied": (_outcome(1, met=False), ("met", "runs", None, RUNS_AT, None)),
    "met null": (_outcome(1, met=None), ("met", "runs", None, RUNS_AT, None)),
    "best effort called met": (_outcome(3, met=True), ("met", "effort", None, None, None)),
    "completion too early": (
        _outcome(1, completion=RUNS_AT - 0.25), ("completion", "runs", None, RUNS_AT, 0.25),
    ),
    "completion NaN": (
        _outcome(1, completion=math.nan), ("completion", "runs", None, RUNS_AT, math.nan),
    ),
    "completion infinite": (
        _outcome(1, completion=math.inf), ("completion", "runs", None, RUNS_AT, math.inf),
    ),
    "completion left out": (
        _outcome(1, completion=None), ("completion", "runs", None, RUNS_AT, None),
    ),
    "completion made up": (
        _outcome(3, completion=250.0), ("completion", "effort", None, None, None),
    ),
    "met weight": (_levels(met_weight=7.0), ("objective", None, None, None, 1.0)),
    "progress": (_levels(progress=0.25), ("objective", None, None, None, 0.25)),
    "leftover": (
        _levels(leftover=TRUE.objective.leftover + 0.5), ("objective", None, None, None, 0.5),  # type: ignore[operator]
    ),
    "cost": (_levels(cost=TRUE.objective.cost - 50), ("objective", None, None, None, 50.0)),
    "cost NaN": (_levels(cost=math.nan), ("objective", None, None, None, math.nan)),
    "reconfigurations": (_levels(reconfigurations=0), ("objective", None, None, None, 1.0)),
    "weighted sum made up": (_levels(weighted=6.0), ("objective", None, None, None, None)),
    "bound below the value": (_claims(bound=5.5), ("bound", None, None, None, 0.5)),
    "bound NaN": (_claims(bound=math.nan), ("bound", None, None, None, None)),
    "bound infinite": (_claims(bound=math.inf), ("bound", None, None, None, None)),
    "optimal without a bound": (
        _claims(status=SolveStatus.OPTIMAL), ("status", None, None, None, None),
    ),
    "optimal with a gap": (
        _claims(status=SolveStatus.OPTIMAL, bound=6.5), ("status", None, None, None, None),
    ),
    "plan without an objective": (_claims(objective=None), ("status", None, None, None, None)),
    "infeasible with a plan": (
        _claims(status=SolveStatus.INFEASIBLE), ("status", None, None, None, None),
    ),
}  # fmt: skip


def _same(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return a == pytest.approx(b, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_caught(name: str) -> None:
    """One change of a valid schedule gives the violation that it should, with its amount."""
    schedule, (kind, job, site, time, amount) = MUTATIONS[name]
    report = check(rich_problem(), schedule)
    assert not report.valid
    found = [v for v in report.violations if v.kind == kind]
    assert len(found) == 1, report.violations
    violation = found[0]
    assert (violation.job, violation.site) == (job, site)
    if kind not in ("bad_interval",):
        assert _same(violation.time, time)
    assert _same(violation.amount, amount)
    assert violation.message


# The only server of the edge is taken all the time, so that this mutation breaks two rules.
SIDE_EFFECTS = {"memory": {"capacity"}}


@pytest.mark.parametrize("name", MUTATIONS)
def test_nothing_else_is_reported(name: str) -> None:
    """A mutation causes its own violation and no other."""
    schedule, expected = MUTATIONS[name]
    report = check(rich_problem(), schedule)
    assert report.kinds() - SIDE_EFFECTS.get(name, set()) == {expected[0]}, report.violations


def test_every_kind_of_violation_has_a_mutation() -> None:
    """The kinds named in the documentation of `Violation` are those tested, stalls apart."""
    assert Violation.__doc__ is not None
    text = Violation.__doc__.split("one of ``")[1].split("``")[0]
    kinds = {word.strip() for word in text.replace("\n", " ").split(",")}
    assert {expected[0] for _, expected in MUTATIONS.values()} == kinds - {"bad_stall"}


def test_all_violations_come_together() -> None:
    """Several broken rules are all in one report."""
    problem = rich_problem()
    schedule = dataclasses.replace(
        rich_schedule(problem),
        allocations=(
            alloc("ghost", 0.0, 100.0, "cloud", 1),
            alloc("plain", 0.0, 100.0, "edge", 4),
            alloc("runs", 50.0, 350.0, "edge", 4),
            alloc("effort", 0.0, 100.0, "cloud", 1),
            alloc("large", 0.0, 100.0, "edge", 4),
        ),
    )
    assert check(problem, schedule).kinds() == {
        "unknown_job", "off_grid", "outside_horizon", "before_arrival", "memory", "capacity",
        "must_meet", "met", "completion", "objective",
    }  # fmt: skip


def test_must_meet_late_says_how_late() -> None:
    """A job that must be met and is late is reported with its lateness."""
    problem = rich_problem()
    allocations = [a for a in rich_schedule(problem).allocations if a.job not in ("hard", "runs")]
    schedule = schedule_of(problem, *allocations, alloc("hard", 200.0, 300.0, "edge", 4))
    violations = check(problem, schedule).violations
    assert [v.kind for v in violations] == ["must_meet"]
    assert violations[0].amount == pytest.approx(200 + 100 / 1.5 - 200, rel=1e-5)


def test_must_meet_is_told_even_if_outcomes_are_malformed() -> None:
    """A missing outcome does not hide that a hard deadline is missed."""
    problem = rich_problem()
    schedule = dataclasses.replace(_without("hard"), outcomes=())
    assert check(problem, schedule).kinds() == {"outcomes", "must_meet"}


def test_all_that_overlaps_one_long_allocation_is_told() -> None:
    """What lies within an allocation does not hide that a later one overlaps it as well."""
    rows = [
        alloc("plain", start, end, "cloud", gpus)
        for start, end, gpus in ((0.0, 300.0, 1), (0.0, 100.0, 2), (200.0, 300.0, 2))
    ]
    raw = dataclasses.replace(schedule_of(rich_problem()), allocations=tuple(rows))
    found = [v for v in check(rich_problem(), raw).violations if v.kind == "overlap"]
    assert [(v.time, v.amount) for v in found] == [(0.0, 100.0), (200.0, 100.0)]


def test_a_running_moldable_job_must_go_on_in_its_mode() -> None:
    """Starting anew, later or in another mode is a violation; going on or stopping is not."""
    problem = rich_problem()
    job = dataclasses.replace(
        problem.jobs[1], malleable=False, running=Running(site="cloud", gpus=1)
    )
    problem = problem.replace(jobs=(job,))
    good = alloc("runs", 0.0, 200.0, "cloud", 1)
    assert check(problem, schedule_of(problem, good)).valid
    assert check(problem, schedule_of(problem)).valid
    for bad in (
        alloc("runs", 0.0, 200.0, "cloud", 2),
        alloc("runs", 100.0, 200.0, "cloud", 1),
        alloc("runs", 0.0, 200.0, "edge", 4),
    ):
        violations = check(problem, schedule_of(problem, bad)).violations
        assert [(v.kind, v.amount) for v in violations] == [("not_malleable", 1.0)]


@pytest.mark.parametrize("status", [SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION])
def test_documents_without_a_plan_are_valid(status: SolveStatus) -> None:
    """A document that states that there is no schedule needs nothing else."""
    schedule = Schedule(solver="x", status=status, limit=Limit.TIME)
    report = check(rich_problem(), schedule)
    assert report.valid
    assert report.met == 0


@pytest.mark.parametrize(
    "change",
    [
        {"bound": 6.0},
        {"bound": 100.0},
        {"bound": 6.0, "status": SolveStatus.OPTIMAL},
        {"bound": 6.0 - 1e-7, "status": SolveStatus.OPTIMAL},
        {"limit": Limit.TIME},
    ],
    ids=str,
)
def test_true_claims_pass(change: dict[str, Any]) -> None:
    """Bounds at or above the value are fine, and optimal where they meet."""
    assert check(rich_problem(), _claims(**change)).valid


def test_unstated_leftover_passes() -> None:
    """Documents of other programs need not state the leftover."""
    assert check(rich_problem(), _levels(leftover=None)).valid


def test_completions_may_be_rounded_to_hundredths() -> None:
    """A completion written with two decimals passes, one off by a hundredth does not."""
    assert RUNS_AT is not None
    assert check(rich_problem(), _outcome(1, completion=round(RUNS_AT, 2))).valid
    assert not check(rich_problem(), _outcome(1, completion=RUNS_AT + 0.01)).valid


def _one_job_at(start: float) -> tuple[EpochProblem, Schedule]:
    """Return an instance on a clock that shows `start`, whose job completes 50 s later."""
    problem = EpochProblem(
        grid=Grid.uniform(start, 100.0, 2),
        sites=(Site(name="s", kind="cloud", capacity=((start, 1),)),),
        jobs=(Job(id="j", deadline=start + 200, work=50.0,
                  modes=(Mode(site="s", gpus=1, rate=1.0),)),),
    )  # fmt: skip
    schedule = schedule_of(problem, alloc("j", start, start + 100, "s", 1))
    return problem, schedule


def test_tolerance_of_a_completion_does_not_grow_with_the_clock() -> None:
    """On a clock that counts from 1970 a completion is still held to hundredths of a second."""
    start = 1.7e9
    problem, schedule = _one_job_at(start)
    assert check(problem, schedule).valid
    wrong = dataclasses.replace(schedule.outcomes[0], completion=start + 51.0)
    report = check(problem, dataclasses.replace(schedule, outcomes=(wrong,)))
    assert report.kinds() == {"completion"}


@pytest.mark.parametrize("start", [0.0, 1e14])
def test_a_completion_may_be_off_by_what_a_double_can_hold(start: float) -> None:
    """At 1e14 s times are 1/64 s apart: some of these steps pass, more do not, and none at 0."""
    problem, schedule = _one_job_at(start)
    (true,) = schedule.outcomes
    assert true.completion is not None
    for steps, passes in ((4, start > 0.0), (-4, start > 0.0), (5, False), (-5, False)):
        said = dataclasses.replace(true, completion=true.completion + steps / 64)
        report = check(problem, dataclasses.replace(schedule, outcomes=(said,)))
        assert report.valid is passes


def test_small_weights_of_levels_are_compared_in_their_unit() -> None:
    """Where a job met counts 1e-9, a weighted sum or a bound that is off by 1e-10 is not let pass."""
    problem = EpochProblem(
        grid=Grid.uniform(0.0, 100.0, 2),
        sites=(Site(name="s", kind="cloud", capacity=((0.0, 1),)),),
        jobs=(Job(id="j", deadline=200.0, work=500.0, modes=(Mode(site="s", gpus=1, rate=1.0),)),),
        objective=Objective(mode="weighted", weights=Weights(met=1e-9)),
    )
    schedule = schedule_of(problem, alloc("j", 0.0, 100.0, "s", 1))
    assert schedule.objective is not None
    assert schedule.objective.weighted == 0.0
    for off, kinds in ((1e-16, set()), (1e-10, {"objective"})):
        said = dataclasses.replace(schedule.objective, weighted=off)
        assert check(problem, dataclasses.replace(schedule, objective=said)).kinds() == kinds
    for bound, kinds in ((-1e-16, set()), (-1e-10, {"bound"})):
        assert check(problem, dataclasses.replace(schedule, bound=bound)).kinds() == kinds


STEPS = ((0.0, 3), (100.0, 2), (150.0, 1), (200.0, 3))


@pytest.mark.parametrize(
    ("rows", "excess"),
    [
        # (start, end, units) on a site of 3, from 100 s 2, from 150 s 1, from 200 s 3 units.
        ([(0, 100, 3), (200, 300, 3)], []),
        ([(0, 100, 3), (100, 150, 2), (150, 200, 1)], []),
        ([(0, 200, 1)], []),
        ([(0, 200, 2)], [(150, 1)]),
        ([(0, 200, 3)], [(100, 2)]),
        ([(0, 300, 3)], [(100, 2)]),
        ([(0, 100, 4), (200, 300, 5)], [(0, 1), (200, 2)]),
        ([(0, 100, 2), (0, 100, 2), (100, 150, 3)], [(0, 1)]),
        ([(0, 100, 2), (50, 150, 2)], [(50, 1)]),
        ([(0, 100, 1), (50, 100, 1), (100, 200, 1), (100, 150, 1)], []),
    ],
)
def test_capacity_is_compared_at_every_moment(
    rows: list[tuple[float, float, int]], excess: list[tuple[float, float]]
) -> None:
    """Intervals are half-open, steps hold from their time on, and each lack is told once."""
    modes = tuple(Mode(site="s", gpus=gpus, rate=1.0) for gpus in range(1, 6))
    problem = EpochProblem(
        grid=Grid.uniform(0.0, 50.0, 6),
        sites=(Site(name="s", kind="cloud", capacity=STEPS),),
        jobs=tuple(
            Job(id=f"j{i}", deadline=300.0, work=1.0, modes=modes) for i in range(len(rows))
        ),
    )
    rows_of = [alloc(f"j{i}", a, b, "s", units) for i, (a, b, units) in enumerate(rows)]
    violations = check(problem, schedule_of(problem, *rows_of)).violations
    assert {v.kind for v in violations} <= {"capacity"}
    assert [(v.time, v.amount) for v in violations] == excess


@given(problems_with_schedules())
def test_random_valid_schedules_pass(drawn: tuple[EpochProblem, Schedule]) -> None:
    """Whatever respects the rules is accepted."""
    problem, schedule = drawn
    report = check(problem, schedule)
    assert report.valid, report.violations
    assert report.met == schedule.met


def _true_of(problem: EpochProblem, allocations: list[Allocation]) -> Schedule:
    """Return a schedule with true claims as far as they can be computed."""
    value, outcomes = evaluate(problem, allocations)
    return Schedule(
        solver="random",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=in_order(allocations, problem.jobs),
        outcomes=outcomes,
    )


@settings(max_examples=examples(100))
@given(
    drawn=problems_with_schedules(),
    data=st.data(),
    what=st.sampled_from(
        ["job", "site", "gpus", "shift", "past", "double", "met", "completion", "cost", "drop"]
    ),
)
def test_random_mutations_are_caught(
    drawn: tuple[EpochProblem, Schedule], data: st.DataObject, what: str
) -> None:
    """Whatever is changed so that a rule or a claim breaks, the checker says so."""
    problem, schedule = drawn
    rows = list(schedule.allocations)
    assume(rows)
    index = data.draw(st.integers(0, len(rows) - 1))
    a = rows[index]
    expected: set[str]
    if what == "job":
        rows[index], expected = dataclasses.replace(a, job="ghost"), {"unknown_job"}
    elif what == "site":
        rows[index], expected = dataclasses.replace(a, site="moon"), {"unknown_site"}
    elif what == "gpus":
        rows[index], expected = dataclasses.replace(a, gpus=99), {"unknown_mode"}
    elif what == "shift":
        rows[index], expected = dataclasses.replace(a, end=a.end - 1.0), {"off_grid"}
    elif what == "past":
        rows[index] = dataclasses.replace(a, start=problem.now - 10.0)
        expected = {"outside_horizon"}
    elif what == "double":
        rows.append(a)
        expected = {"overlap"}
    if what in ("job", "site", "gpus", "shift", "past", "double"):
        mutated = dataclasses.replace(schedule, allocations=tuple(rows))
    elif what == "met":
        position = data.draw(st.integers(0, len(problem.jobs) - 1))
        old = schedule.outcomes[position]
        mutated, expected = _with_outcome(schedule, position, met=not old.met), {"met"}
    elif what == "completion":
        position = data.draw(st.integers(0, len(problem.jobs) - 1))
        old_time = schedule.outcomes[position].completion
        new_time = problem.now + 1.0 if old_time is None else old_time + 1.0
        mutated = _with_outcome(schedule, position, completion=new_time)
        expected = {"completion"}
    elif what == "cost":
        assert schedule.objective is not None
        value = dataclasses.replace(schedule.objective, cost=schedule.objective.cost * 1.1 + 1)
        mutated, expected = dataclasses.replace(schedule, objective=value), {"objective"}
    else:
        # Without an allocation that costs something the claims are no longer true.
        rows.pop(index)
        mutated = dataclasses.replace(schedule, allocations=tuple(rows))
        price = {site.name: site.price for site in problem.sites}[a.site]
        assume(price * a.gpus * (a.end - a.start) > 0)
        expected = {"objective"}
    report = check(problem, mutated)
    assert not report.valid
    assert expected <= report.kinds(), report.violations


def _with_outcome(schedule: Schedule, position: int, **changes: Any) -> Schedule:
    outcomes = list(schedule.outcomes)
    outcomes[position] = dataclasses.replace(outcomes[position], **changes)
    return dataclasses.replace(schedule, outcomes=tuple(outcomes))


@settings(max_examples=examples(100))
@given(drawn=problems_with_schedules(max_jobs=3), data=st.data())
def test_random_plans_are_judged_as_the_rules_say(
    drawn: tuple[EpochProblem, Schedule], data: st.DataObject
) -> None:
    """A plan drawn without regard to the rules is valid iff a plain recount says so."""
    problem, _ = drawn
    slots = list(itertools.pairwise(problem.grid.boundaries))
    rows = []
    for job in problem.jobs:
        for start, end in slots:
            mode = data.draw(st.sampled_from([None, *job.modes]))
            if mode is not None:
                rows.append(alloc(job.id, start, end, mode.site, mode.gpus))
    broken = _recount(problem, rows)
    assert check(problem, _true_of(problem, rows)).kinds() == broken


def _recount(problem: EpochProblem, rows: list[Allocation]) -> set[str]:
    """Return the kinds of violations of slot-wise `rows`, found by counting alone."""
    kinds = set()
    site_of = {site.name: site for site in problem.sites}
    boundaries = problem.grid.boundaries
    for site in problem.sites:
        moments = sorted({*boundaries[:-1], *(t for t, _ in site.capacity if t >= boundaries[0])})
        for moment in moments:
            held = [a for a in rows if a.site == site.name and a.start <= moment < a.end]
            used = sum(a.gpus if site.kind == "cloud" else 1 for a in held)
            units = [u for t, u in site.capacity if t <= moment][-1]
            if used > units:
                kinds.add("capacity")
    for job in problem.jobs:
        mine = [a for a in rows if a.job == job.id]
        assert job.arrival is not None
        if any(a.start < job.arrival for a in mine):
            kinds.add("before_arrival")
        for a in mine:
            limit = site_of[a.site].memory_gib
            if limit is not None and job.memory_gib > limit:
                kinds.add("memory")
        if not job.malleable and mine:
            one_mode = len({(a.site, a.gpus) for a in mine}) == 1
            no_break = all(a.end == b.start for a, b in itertools.pairwise(mine))
            goes_on = job.running is None or (
                (mine[0].site, mine[0].gpus, mine[0].start)
                == (job.running.site, job.running.gpus, problem.now)
            )
            if not (one_mode and no_break and goes_on):
                kinds.add("not_malleable")
    return kinds


@given(problems_with_schedules())
def test_order_of_allocations_and_jobs_does_not_matter(
    drawn: tuple[EpochProblem, Schedule],
) -> None:
    """Shuffled allocations pass as well, and so do the jobs in another order."""
    problem, schedule = drawn
    backwards = dataclasses.replace(schedule, allocations=schedule.allocations[::-1])
    assert check(problem, backwards).valid
    turned = problem.replace(jobs=problem.jobs[::-1])
    other = dataclasses.replace(schedule, outcomes=schedule.outcomes[::-1])
    assert check(turned, other).met_weight == pytest.approx(check(problem, schedule).met_weight)
    assert check(turned, other).valid
