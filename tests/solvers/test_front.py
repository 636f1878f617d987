"""The front door: what it refuses, what it checks, and what it hands out."""

from __future__ import annotations

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

from edgeflow_opt.errors import (
    InvalidScheduleError,
    SolverFaultError,
    SolverUnavailableError,
    UnsupportedError,
    UsageError,
)
from edgeflow_opt.formulations.plans import empty_plan
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Limit,
    Objective,
    Running,
    Schedule,
    SolveStatus,
    Weights,
    check,
    schedule_from_dict,
    schedule_to_dict,
)
from edgeflow_opt.problem.constraints.group_quota import GroupQuota
from edgeflow_opt.solvers import SOLVERS, Draft, SolveOptions, SolveResult, solve
from edgeflow_opt.solvers.base import FEATURES, features_of
from tests.solvers.fakes import FakeSolver, plug_in
from tests.solvers.instances import CLOUD, MODES, small

ALL = ("auto", "greedy", "edgeflow-select", "cpsat", "highs", "price")

#: All built-in names in the registry, whatever else is installed.
NAMES = tuple(SOLVERS._built_in)
EXACT = ("auto", "cpsat", "highs", "price")


def _idle(problem: EpochProblem, arrays: Any, *_: Any) -> Draft:
    return Draft(status=SolveStatus.FEASIBLE, plan=empty_plan(arrays), bound=4.0)


# What is refused before a solver starts.


def test_an_unknown_solver_is_refused_with_a_suggestion() -> None:
    """The message names what was asked for, the nearest name and all names."""
    with pytest.raises(UsageError, match=r"'cpsta' is not known; did you mean 'cpsat'\?.*highs"):
        solve(small(), "cpsta")
    with pytest.raises(UsageError, match=r"'family:XY' is not known; known are auto"):
        solve(small(), "family:XY")


def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    """So is an option that does not exist."""
    with pytest.raises(UsageError, match=r"'time_limit' is not known; did you mean 'time_limit_s'"):
        solve(small(), time_limit=3.0)


@pytest.mark.parametrize(
    ("solver", "name", "suggestion"),
    [
        ("cpsat", "symetry_level", "did you mean 'symmetry_level'"),
        ("highs", "presolv", "did you mean 'presolve'"),
        ("price", "move", "did you mean 'moves'"),
        ("auto", "zzz", "known are: "),
    ],
)
def test_an_unknown_parameter_is_refused_with_a_suggestion(
    solver: str, name: str, suggestion: str
) -> None:
    """Parameters are those of the solver named; what it does not have it does not swallow."""
    with pytest.raises(
        UsageError, match=rf"'{name}' is not one of solver '{solver}'.*{suggestion}"
    ):
        solve(small(), solver, params={name: 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time_limit_s": 0}, r"time_limit_s: must be .* above 0 or None, got 0"),
        ({"time_limit_s": -1.0}, "time_limit_s: .* got -1.0"),
        ({"time_limit_s": float("nan")}, "time_limit_s: .* got nan"),
        ({"time_limit_s": float("inf")}, "time_limit_s: .* got inf"),
        ({"time_limit_s": "5"}, "time_limit_s: .* got '5'"),
        ({"time_limit_s": True}, "time_limit_s: .* got True"),
        ({"seed": -1}, "seed: must be a whole number >= 0, got -1"),
        ({"seed": 1.5}, "seed: .* got 1.5"),
        ({"seed": 2**31}, "seed: must be below"),
        ({"workers": 0}, "workers: must be a whole number >= 1, got 0"),
        ({"workers": True}, "workers: .* got True"),
        ({"levels": 0}, "levels: must be a whole number >= 1, got 0"),
    ],
)
def test_senseless_options_are_refused(changes: dict[str, Any], message: str) -> None:
    """Each with the name of the option, the rule and the value."""
    with pytest.raises(UsageError, match=message):
        solve(small(), "greedy", **changes)


@pytest.mark.parametrize(
    ("solver", "params"),
    [
        ("cpsat", {"linearization_level": "high"}),
        ("highs", {"presolve": "perhaps"}),
        ("highs", {"mip_max_nodes": "many"}),
        ("price", {"moves": "many"}),
        ("price", {"iterations": -1}),
        ("price", {"exact_iterations": 1.5}),
    ],
)
def test_a_parameter_value_of_the_wrong_kind_is_a_usage_error(
    solver: str, params: dict[str, Any]
) -> None:
    """Whoever refuses it, it is told in one line of ours, even where nothing is left to be solved."""
    name, value = next(iter(params.items()))
    told = f"^parameter '{name}' of solver '{solver}'.*{value}'?$"
    for problem in (small(), small(jobs=small().jobs[:1])):
        with pytest.raises(UsageError, match=told):
            solve(problem, solver, params=params)


def _demanding() -> dict[str, EpochProblem]:
    """Return for each feature an instance that needs it and no other."""
    problem = small()
    first = problem.jobs[0]

    def with_first(**changes: Any) -> EpochProblem:
        return problem.replace(jobs=(dataclasses.replace(first, **changes), *problem.jobs[1:]))

    return {
        "losses": with_first(running=Running(site="cloud", gpus=1, loss_left_s=1.0)),
        "must_meet": with_first(must_meet=True),
        "moldable": with_first(malleable=False),
        "best_effort": with_first(deadline=None),
        "weighted": problem.replace(objective=Objective(mode="weighted", weights=Weights())),
        "constraints": problem.replace(constraints=(GroupQuota(gpus=1),)),
    }


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_that_is_not_supported_is_refused(
    feature: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solver and feature are both named, and the solver is never started; else it is."""
    problem = _demanding()[feature]
    assert set(features_of(problem)) == {feature}
    started: list[str] = []

    def draft(*args: Any) -> Draft:
        started.append(feature)
        return _idle(*args)

    # A plan of idle jobs does for all but the job that must be met.
    plug_in(
        monkeypatch,
        fake=FakeSolver(draft, features=frozenset(FEATURES) - {feature}),
        able=FakeSolver(draft, features=frozenset({feature}), name="able"),
    )
    with pytest.raises(UnsupportedError, match=f"'fake' does not support {FEATURES[feature]}"):
        solve(problem, "fake")
    assert started == []
    if feature != "must_meet":
        assert solve(problem, "able").status is SolveStatus.FEASIBLE
        assert started == [feature]


def test_a_loss_of_any_kind_is_a_feature() -> None:
    """Restart and migration losses are found too, with the job that has them."""
    job = small().jobs[1]
    for name in ("restart_s", "migration_s"):
        problem = small(jobs=(small().jobs[0], dataclasses.replace(job, **{name: 5.0})))
        assert features_of(problem) == {"losses": "job 'j1'"}


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver whose library is not there is refused with the name of the library."""
    plug_in(monkeypatch, fake=FakeSolver(_idle, requires=("no_such_module_here",)))
    with pytest.raises(SolverUnavailableError, match=r"'fake' needs .* 'no_such_module_here'"):
        solve(small(), "fake")


@pytest.mark.parametrize("solver", ALL)
def test_what_fits_of_an_earlier_plan_is_a_warm_start(solver: str) -> None:
    """A schedule of another epoch never makes a solve fail: what does not fit is left out."""
    good = solve(small(), "cpsat").schedule
    later = small(
        grid=Grid((5.0, 17.0, 40.0)), sites=(dataclasses.replace(CLOUD, capacity=((0.0, 1),)),)
    )
    assert check(later, solve(later, solver, warm_start=good, time_limit_s=2.0).schedule).valid


@pytest.mark.parametrize("solver", ALL)
def test_a_warm_start_of_other_jobs_is_refused(solver: str) -> None:
    """A schedule that has no job of the instance is a mistake, and is named."""
    good = solve(small(), "cpsat").schedule
    jobs = tuple(dataclasses.replace(job, id=f"other {job.id}") for job in small().jobs)
    with pytest.raises(UsageError, match="option warm_start: has no job of this instance; give a"):
        solve(small(jobs=jobs), solver, warm_start=good)


@pytest.mark.parametrize("solver", EXACT)
def test_a_warm_start_is_never_fallen_below(solver: str) -> None:
    """With no time at all the warm start's level 1 is still reached."""
    best = solve(small(), "cpsat").schedule
    assert best.objective is not None
    result = solve(small(), solver, warm_start=best, time_limit_s=1e-6)
    assert result.value == best.objective.met_weight


# What a solver hands in is checked.


def test_an_invalid_schedule_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that exceeds the capacity is an error of the solver named, not a result."""

    def draft(problem: EpochProblem, arrays: Any, *_: Any) -> Draft:
        plan = np.repeat(arrays.mode_start[1:, None] - 1, arrays.num_slots, axis=1)
        return Draft(status=SolveStatus.FEASIBLE, plan=plan)

    plug_in(monkeypatch, fake=FakeSolver(draft))
    with pytest.raises(InvalidScheduleError, match="'fake' produced a schedule that fails"):
        solve(small(), "fake")


def test_a_forgotten_hard_deadline_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that misses a job that must be met fails too."""
    plug_in(monkeypatch, fake=FakeSolver(_idle, features=frozenset(FEATURES)))
    with pytest.raises(InvalidScheduleError, match="'j0'"):
        solve(_demanding()["must_meet"], "fake")


@pytest.mark.parametrize(
    ("bound", "status", "message"),
    [
        (-0.5, SolveStatus.FEASIBLE, "bound -0.5 is below the value 0"),
        (1.0, SolveStatus.OPTIMAL, "'optimal' needs a bound equal to the value"),
        (None, SolveStatus.OPTIMAL, "'optimal' needs a bound equal to the value"),
        (float("inf"), SolveStatus.FEASIBLE, "bound must be a finite number"),
    ],
)
def test_a_false_claim_is_not_returned(
    bound: float | None, status: SolveStatus, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound below the value, or optimality without the bound for it, is refused."""

    def draft(problem: EpochProblem, arrays: Any, *_: Any) -> Draft:
        return Draft(status=status, plan=empty_plan(arrays), bound=bound)

    plug_in(monkeypatch, fake=FakeSolver(draft))
    with pytest.raises(InvalidScheduleError, match=message):
        solve(small(), "fake")


def test_optimal_within_rounding_in_the_unit_of_solvers_only_is_feasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five times what a solver of weights 5 takes for closed is too much for the caller."""
    problem = small()
    heavy = problem.replace(
        jobs=tuple(dataclasses.replace(job, weight=5.0) for job in problem.jobs)
    )

    def draft(problem: EpochProblem, arrays: Any, *_: Any) -> Draft:
        return Draft(status=SolveStatus.OPTIMAL, plan=empty_plan(arrays), bound=9e-7)

    plug_in(monkeypatch, fake=FakeSolver(draft))
    result = solve(heavy, "fake")
    assert (result.status, result.bound) == (SolveStatus.FEASIBLE, pytest.approx(4.5e-6))


def test_a_crash_is_a_solver_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash is told with the solver's name and the cause, which stays attached."""

    def draft(*_: Any) -> Draft:
        raise ZeroDivisionError("by nought")

    plug_in(monkeypatch, fake=FakeSolver(draft))
    with pytest.raises(
        SolverFaultError, match="'fake' failed with ZeroDivisionError: by nought"
    ) as e:
        solve(small(), "fake")
    assert isinstance(e.value.__cause__, ZeroDivisionError)


def test_ctrl_c_in_a_solver_without_an_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that keeps nothing gives no solution, and says that it was interrupted."""

    def draft(*_: Any) -> Draft:
        raise KeyboardInterrupt

    plug_in(monkeypatch, fake=FakeSolver(draft))
    result = solve(small(), "fake")
    assert result.status is SolveStatus.NO_SOLUTION
    assert result.limit is Limit.INTERRUPTED
    assert result.schedule.allocations == ()


# Plug-ins.


def test_a_plug_in_is_a_solver_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed behind the built-in ones, and its parameters reach it."""
    seen: list[SolveOptions] = []

    def draft(problem: EpochProblem, arrays: Any, options: SolveOptions, _: Any) -> Draft:
        seen.append(options)
        return _idle(problem, arrays)

    plug_in(monkeypatch, fake=FakeSolver(draft, params={"depth": "how deep"}))
    assert SOLVERS.names() == (*NAMES, "fake")
    result = solve(small(), "fake", params={"depth": 3}, seed=7)
    assert result.schedule.solver == "fake"
    assert (seen[0].params, seen[0].seed) == ({"depth": 3}, 7)


def test_a_broken_plug_in_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error, with its package, when asked for by name, and only then."""
    plug_in(monkeypatch, fake=FakeSolver(_idle), broken=ImportError("no module called lost"))
    assert solve(small(), "greedy").value == 2.0
    assert solve(small(), "fake").value == 0.0
    with pytest.raises(UsageError, match=r"'broken' of plug-in 'package_of_broken:SOLVER'.*lost"):
        solve(small(), "broken")


def test_a_plug_in_cannot_take_a_built_in_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The built-in solver stays, and the plug-in is ignored with a warning."""
    plug_in(monkeypatch, greedy=FakeSolver(_idle))
    assert SOLVERS.names() == NAMES
    assert solve(small(), "greedy").value == 2.0
    assert "is ignored: the name is taken" in caplog.text


# What is handed out.


@pytest.fixture(scope="module", params=ALL)
def result(request: pytest.FixtureRequest) -> SolveResult:
    """Return the result of each solver on the small instance."""
    return solve(small(), request.param)


def test_results_are_plain_data(result: SolveResult) -> None:
    """They survive pickling, compare equal, and their statistics are JSON."""
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again != dataclasses.replace(result, trace=())
    text = json.dumps(dict(result.statistics), allow_nan=False)
    assert json.loads(text)["num_jobs"] == 4
    assert result.versions["edgeflow-opt"]
    assert result.versions["numpy"]


def test_results_pass_the_checker(result: SolveResult) -> None:
    """The schedule of every solver is valid, and properties repeat what it says."""
    assert check(small(), result.schedule).valid
    assert result.objective == result.schedule.objective
    assert result.value == 2.0
    assert result.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
    exact = result.schedule.solver in EXACT
    assert (result.bound == 2.0) if exact else (result.bound is None)
    assert (result.gap == 0.0) if exact else (result.gap is None)


def test_the_trace_ends_at_the_result(result: SolveResult) -> None:
    """Values rise, bounds fall, times do not run back, and the last point is the result."""
    points = result.trace
    assert points[-1].value == result.value
    if result.bound is not None:
        assert points[-1].bound == result.bound
    values = [p.value for p in points if p.value is not None]
    bounds = [p.bound for p in points if p.bound is not None]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    seconds = [p.seconds for p in points]
    assert seconds == sorted(seconds)
    assert 0.0 <= seconds[-1] <= result.schedule.seconds


def test_progress_is_what_the_trace_holds() -> None:
    """on_progress is called with every point of the trace, in its order."""
    seen: list[Any] = []
    found = solve(small(), "highs", on_progress=seen.append)
    assert tuple(seen) == found.trace


@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto", "price"])
def test_a_deterministic_solve_can_be_repeated(solver: str) -> None:
    """Same input, options and seed: the same schedule but for the time it took."""
    from tests.solvers.instances import crowded

    problem = crowded(num_jobs=5, num_slots=4, seed=3)
    found = [
        solve(problem, solver, deterministic=True, seed=5, time_limit_s=60.0).schedule
        for _ in range(2)
    ]
    first, second = (dataclasses.replace(schedule, seconds=0.0) for schedule in found)
    assert first == second


@pytest.mark.parametrize("solver", EXACT)
def test_levels_stops_where_it_says(solver: str) -> None:
    """levels=1 reports and optimises level 1 alone; more levels are reported in their order."""
    names = ["met", "progress", "leftover", "cost", "reconfigurations"]
    found = solve(small(), solver, levels=1)
    assert [level.level for level in found.levels] == ["met"]
    assert "num_below_rows" not in found.statistics
    if solver != "price":
        for count in (2, 3, 5):
            found = solve(small(), solver, levels=count)
            assert [level.level for level in found.levels] == names[:count]
            assert all(level.optimal for level in found.levels)
            assert found.limit is None


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
def test_the_weighted_sum_is_level_1(solver: str) -> None:
    """Value, bound and optimality speak of the weighted sum; a dear job is then left undone."""
    weights = Weights(met=1.0, cost=0.06)
    problem = small(objective=Objective(mode="weighted", weights=weights))
    found = solve(problem, solver)
    assert found.status is SolveStatus.OPTIMAL
    assert found.objective is not None
    # On one GPU through both slots a job takes 20 GPU seconds: 1.2 for a gain of 1.
    assert found.objective.met_weight == 0.0
    assert found.value == pytest.approx(0.0, abs=1e-9)
    cheap = Weights(met=1.0, cost=0.04)
    found = solve(problem.replace(objective=Objective(mode="weighted", weights=cheap)), solver)
    assert found.value == pytest.approx(2 * (1.0 - 0.8))
    assert found.bound == pytest.approx(found.value, abs=1e-5)
    assert [level.level for level in found.levels] == ["weighted"]


# Instances at the edge of the format.


@pytest.mark.parametrize("solver", EXACT)
def test_must_meet_that_cannot_be_is_proven_infeasible(solver: str) -> None:
    """Three jobs that each need one of two GPUs all the time: infeasible, with an empty schedule."""
    jobs = tuple(
        dataclasses.replace(job, must_meet=True, modes=MODES[:1], work=20.0)
        for job in small().jobs[:3]
    )
    found = solve(small(jobs=jobs), solver)
    assert found.status is SolveStatus.INFEASIBLE
    assert found.value is None
    assert found.schedule.allocations == ()
    assert found.schedule.outcomes == ()
    assert solve(small(jobs=jobs[:2]), solver).status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("solver", EXACT)
def test_must_meet_that_cannot_be_even_alone_is_proven_infeasible(solver: str) -> None:
    """Work beyond the fastest mode, no units, or no memory: infeasible all the same."""
    job = dataclasses.replace(small().jobs[0], must_meet=True)
    site = small().sites[0]
    cases = (
        small(jobs=(dataclasses.replace(job, work=36.01),)),
        small(jobs=(job,), sites=(dataclasses.replace(site, capacity=((0.0, 0),)),)),
        small(
            jobs=(dataclasses.replace(job, memory_gib=9.0),),
            sites=(dataclasses.replace(site, memory_gib=8.0),),
        ),
        small(jobs=(dataclasses.replace(job, deadline=0.0),)),
    )
    for problem in cases:
        assert solve(problem, solver).status is SolveStatus.INFEASIBLE


@pytest.mark.parametrize("solver", ALL)
def test_edge_cases_are_ordinary_instances(solver: str) -> None:
    """No jobs, hopeless jobs, no capacity, one slot, weight zero: a valid schedule each."""
    problem = small()
    site = problem.sites[0]
    closed = dataclasses.replace(site, capacity=((0.0, 0),))
    hopeless = tuple(dataclasses.replace(job, work=1e6) for job in problem.jobs)
    weightless = tuple(dataclasses.replace(job, weight=0.0) for job in problem.jobs)
    fractions = tuple(dataclasses.replace(job, weight=0.1 + k / 3) for k, job in
                      enumerate(problem.jobs))  # fmt: skip
    late = tuple(dataclasses.replace(job, deadline=-5.0, arrival=None) for job in problem.jobs)
    effort = tuple(dataclasses.replace(job, deadline=None) for job in problem.jobs)
    one_slot = dataclasses.replace(problem.grid, boundaries=(0.0, 20.0))
    cases = {
        "no jobs": (small(jobs=()), 0.0),
        "hopeless": (small(jobs=hopeless), 0.0),
        "no capacity": (small(sites=(closed,)), 0.0),
        "one slot": (small(grid=one_slot), 2.0),
        "weight zero": (small(jobs=weightless), 0.0),
        "fractions": (small(jobs=fractions), 0.1 + 2 / 3 + 0.1 + 1.0),
        "deadlines passed": (small(jobs=late), 0.0),
        "best effort": (small(jobs=effort), 0.0),
    }
    for name, (instance, value) in cases.items():
        found = solve(instance, solver, time_limit_s=2.0)
        assert check(instance, found.schedule).valid, name
        if solver == "price" and name == "fractions":
            # Its bound need not close where weights have no common step.
            assert found.value is not None
            assert found.bound is not None
            assert found.value <= value + 1e-9 <= found.bound + 2e-9
        elif solver in EXACT:
            assert found.status is SolveStatus.OPTIMAL, name
            assert found.value == pytest.approx(value), name
            assert found.bound == pytest.approx(value), name
        else:
            assert found.value is not None
            assert found.value <= value + 1e-9, name
            assert found.bound is None, name


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("seconds", [1e-9, 1e308, None])
def test_any_limit_is_obeyed(solver: str, seconds: float | None) -> None:
    """With next to no time the greedy's plan is there, with all the time there is the optimum."""
    found = solve(small(), solver, time_limit_s=seconds)
    assert found.value is not None
    if solver in EXACT:
        assert found.bound is not None
        if seconds == 1e-9:
            assert found.limit is Limit.TIME or found.status is SolveStatus.OPTIMAL
        else:
            assert found.status is SolveStatus.OPTIMAL
            assert found.limit is None


def test_a_schedule_without_a_plan_has_no_gap() -> None:
    """Value, objective and gap are None where there is no plan."""
    found = SolveResult(schedule=Schedule(solver="x", status=SolveStatus.NO_SOLUTION, bound=1.0))
    assert (found.value, found.objective, found.gap, found.bound) == (None, None, None, 1.0)


@pytest.mark.parametrize("solver", ALL)
def test_solvers_print_nothing(solver: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither Python nor a native library writes to stdout or stderr."""
    solve(small(), solver)
    assert capfd.readouterr() == ("", "")


def test_levels_travel_with_the_schedule() -> None:
    """The document tells each level with its final value, and round-trips."""
    result = solve(small(), "cpsat")
    schedule = result.schedule
    assert [report.level for report in schedule.levels] == [
        "met", "progress", "leftover", "cost", "reconfigurations",
    ]  # fmt: skip
    assert schedule.objective is not None
    values = [report.value for report in schedule.levels]
    objective = schedule.objective
    assert values == [
        objective.met_weight, objective.progress, objective.leftover, objective.cost,
        float(objective.reconfigurations),
    ]  # fmt: skip
    assert schedule_from_dict(schedule_to_dict(schedule)) == schedule


def test_arguments_of_another_kind_are_refused() -> None:
    """A path in place of a problem, or a result in place of a schedule, is named with the way out."""
    with pytest.raises(UsageError, match=r"must be an EpochProblem, got str; read_problem"):
        solve("epoch.json")  # type: ignore[arg-type]
    result = solve(small(), "greedy")
    with pytest.raises(UsageError, match=r"warm_start: must be a Schedule, got SolveResult; of a"):
        solve(small(), "greedy", warm_start=result)
    with pytest.raises(UsageError, match=r"option levels: must be at most 5, got 6"):
        solve(small(), "greedy", levels=6)
