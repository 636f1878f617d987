"""Faults at random moments: every solve ends with a checked schedule or one clear error."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflow_opt.errors import CallbackError, EdgeflowError, SolverFaultError
from edgeflow_opt.formulations.plans import empty_plan
from edgeflow_opt.problem import (
    EpochProblem,
    Limit,
    Objective,
    SolveStatus,
    Weights,
    check,
    evaluate,
    read_schedule,
    write_problem,
)
from edgeflow_opt.solvers import SOLVERS, Draft, Progress, SolveResult, solve
from edgeflow_opt.solvers.mip.cpsat import CpSatEngine
from edgeflow_opt.solvers.mip.engine import EngineAnswer
from edgeflow_opt.solvers.mip.highs import HighsEngine
from tests.effort import examples
from tests.solvers.fakes import FakeSolver, plug_in
from tests.solvers.instances import crowded, small
from tests.solvers.strikes import INSTANCES

ALL = SOLVERS.names()
EXACT = tuple(name for name in ALL if SOLVERS.get(name).capabilities.exact)


def _assert_clean(problem: EpochProblem, result: SolveResult) -> None:
    """Assert that a result is what a caller may rely on, however the solve ended."""
    report = check(problem, result.schedule)
    assert report.valid, report.violations
    if result.value is None:
        assert result.status in (SolveStatus.NO_SOLUTION, SolveStatus.INFEASIBLE)
        assert result.schedule.allocations == ()
    elif result.bound is not None:
        assert result.bound >= result.value - 1e-6
    if result.status is SolveStatus.FEASIBLE and result.bound is not None:
        assert result.limit is not None or result.bound > (result.value or 0.0)


def _solved(
    problem: EpochProblem, solver: str, **options: Any
) -> tuple[SolveResult | None, SolverFaultError | CallbackError | None]:
    """Solve; return the result, or that which came along with an error, and the error."""
    try:
        return solve(problem, solver, **options), None
    except (SolverFaultError, CallbackError) as fault:
        return fault.result, fault


def test_ctrl_c_at_random_moments() -> None:
    """A signal in mid-solve, wherever it strikes, leaves a checked schedule and says so."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.solvers.strikes", str(examples(2))],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    # The HiGHS that PuLP makes greets on stdout.
    ends = json.loads(done.stdout.splitlines()[-1])
    # Outside: before the search had begun, or after the result was there.
    allowed = {"interrupted", "time", "outside", "optimal"}
    assert [end for end in ends if end[2] not in allowed] == []
    assert {solver for solver, _, end in ends if end == "interrupted"} >= {"cpsat", "highs"}
    assert {solver for solver, _, _ in ends} == set(EXACT)


@pytest.mark.parametrize("solver", ALL)
def test_ctrl_c_while_the_schedule_is_checked(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Ctrl-C after the search does not cost the schedule."""
    struck: list[bool] = []

    def strike(*given: Any) -> Any:
        if not struck:
            struck.append(True)
            raise KeyboardInterrupt
        return check(*given)

    monkeypatch.setattr("edgeflow_opt.solvers.front.check", strike)
    result = solve(small(), solver)
    assert struck
    assert result.value == 2.0


def test_ctrl_c_that_strikes_a_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba makes a SystemError of it, or one behind another: an interruption like any other."""
    causes: list[BaseException] = []

    def strike(problem: EpochProblem, arrays: Any, options: Any, control: Any) -> Draft:
        control.keep(empty_plan(arrays), evaluate(problem, ())[0])
        raise SystemError("kernel") from causes.pop()

    plug_in(monkeypatch, fake=FakeSolver(strike))
    callback = SystemError("callback")
    callback.__cause__ = KeyboardInterrupt()
    for cause in (KeyboardInterrupt(), callback):
        causes.append(cause)
        result = solve(small(), "fake")
        assert result.limit is Limit.INTERRUPTED
        assert result.value == 0.0
    causes.append(ValueError("no signal at all"))
    with pytest.raises(SolverFaultError, match="SystemError: kernel"):
        solve(small(), "fake")


@pytest.mark.parametrize("solver", EXACT)
def test_ctrl_c_at_any_improvement(solver: str) -> None:
    """KeyboardInterrupt from on_progress, at whichever call, is an interruption with a schedule."""
    problem = INSTANCES["malleable"]
    for at in range(5):
        calls = itertools.count()

        def on_progress(_: Progress, at: int = at, calls: Iterator[int] = calls) -> None:
            if next(calls) == at:
                raise KeyboardInterrupt

        result = solve(problem, solver, time_limit_s=0.3, on_progress=on_progress)
        _assert_clean(problem, result)
        if next(calls) > at:
            assert result.limit is Limit.INTERRUPTED or result.status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("kind", INSTANCES)
@pytest.mark.parametrize("solver", ALL)
def test_an_exception_in_a_callback_brings_the_schedule(solver: str, kind: str) -> None:
    """At any improvement it ends the solve, once, and its error holds a checked result."""
    problem = INSTANCES[kind]
    for at in (0, 1, 3):
        calls: list[Progress] = []

        def on_progress(point: Progress, at: int = at, calls: list[Progress] = calls) -> None:
            calls.append(point)
            if len(calls) > at:
                raise LookupError(f"at {at}")

        result, fault = _solved(problem, solver, time_limit_s=0.3, on_progress=on_progress)
        if fault is None:
            assert len(calls) <= at
        else:
            assert isinstance(fault, CallbackError)
            assert isinstance(fault.__cause__, LookupError)
            assert len(calls) == at + 1
        assert result is not None
        _assert_clean(problem, result)


#: Seams between the phases of the engines: module, attribute, and who comes by on which instance.
SEAMS = (
    ("lexicographic.level_solve", "build_malleable", "highs", "malleable"),
    ("lexicographic.level_solve", "build_moldable", "highs", "moldable"),
    ("lexicographic.by_levels", "polish", "cpsat", "malleable"),
    ("auto", "polish", "auto", "moldable"),
    ("price.solver", "minimise", "auto", "malleable"),
    ("price.solver", "ExactDual", "auto", "malleable"),
    ("price.solver", "PriceSearch", "price", "malleable"),
    # In a thread of its own, beside the search.
    ("price.exact_dual.ExactDual", "step", "auto", "malleable"),
    ("price.exact_dual.ExactDual", "step", "auto", "weighted sum"),
    ("moldable.solver", "minimise", "price", "moldable"),
    ("moldable.solver", "OptionSearch", "auto", "moldable"),
    ("single_slot.solver", "choices_of", "auto", "single slot"),
    ("single_slot.knapsack", "multipliers", "auto", "single slot"),
    ("mip.highs", "_answer", "auto", "single slot"),
    ("mip.highs", "_native_model", "highs", "malleable"),
    ("mip.highs", "_answer", "highs", "moldable"),
    ("mip.cpsat", "native_model", "cpsat", "malleable"),
    ("mip.cpsat", "_set_parameters", "auto", "moldable"),
)


@pytest.mark.parametrize("fault", [MemoryError, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(("module", "name", "solver", "kind"), SEAMS)
def test_a_fault_between_phases(
    module: str,
    name: str,
    solver: str,
    kind: str,
    fault: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No memory and Ctrl-C leave the schedule, a crash is an error that brings it along."""
    if kind == "weighted sum":
        weights = Weights(met=1.0, progress=0.1, cost=1e-6)
        problem = INSTANCES["malleable"].replace(
            objective=Objective(mode="weighted", weights=weights)
        )
    else:
        problem = INSTANCES[kind]
    known = solve(problem, "greedy").value or 0.0
    struck: list[str] = []

    def strike(*_: Any, **__: Any) -> Any:
        struck.append(name)
        raise fault("injected")

    monkeypatch.setattr(f"edgeflow_opt.solvers.{module}.{name}", strike)
    # The polish comes by when prices and proof have had their share; the others well before the
    # end on a busy machine too.
    limit_s = 2.0 if name == "polish" else 20.0
    result, error = _solved(problem, solver, time_limit_s=limit_s)
    assert struck
    if fault is RuntimeError:
        assert isinstance(error, SolverFaultError)
        assert "RuntimeError: injected" in str(error)
        assert result is None or result.bound is None
    else:
        assert result is not None
        expected = Limit.MEMORY if fault is MemoryError else Limit.INTERRUPTED
        assert result.limit is expected or result.status is SolveStatus.OPTIMAL
    if solver == "price" and fault is not KeyboardInterrupt:
        # By itself it has no plan before its search.
        assert result is None or result.value is None
        if result is not None:
            _assert_clean(problem, result)
        return
    assert result is not None
    _assert_clean(problem, result)
    assert result.value is not None
    if solver != "price":
        # What the greedy had found before is never lost.
        assert result.value >= known - 1e-9


ANSWERS: dict[str, Callable[[], EngineAnswer]] = {
    "nothing": EngineAnswer,
    "left to itself": lambda: EngineAnswer(statistics={"abandoned": "did not stop"}),
    "bound that is not a number": lambda: EngineAnswer(bound=float("nan")),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
def test_a_native_solver_without_an_answer(
    solver: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that returns no status, plan or bound leaves what is known without it."""
    for engine in (HighsEngine, CpSatEngine):
        monkeypatch.setattr(engine, "maximise", lambda *_, **__: ANSWERS[answer]())
    for problem in INSTANCES.values():
        _assert_clean(problem, solve(problem, solver, time_limit_s=0.2))


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
def test_a_native_solver_that_lies(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Infeasible though a schedule is known, or a bound below it, is a fault with its schedule."""
    lies = (
        EngineAnswer(bound=-np.inf, proven=True, infeasible=True),
        EngineAnswer(bound=0.0, proven=True),
    )
    problem = INSTANCES["malleable"]
    for lie in lies:
        for engine in (HighsEngine, CpSatEngine):
            monkeypatch.setattr(engine, "maximise", lambda *_, lie=lie, **__: lie)
        result, _ = _solved(problem, solver, time_limit_s=0.3)
        assert result is not None
        # Under a cut-off at the incumbent, infeasible means that this is the best.
        _assert_clean(problem, result)


def test_highs_with_an_error_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A HiGHS that reports an error, or that did not run, proves nothing and loses nothing."""
    import highspy

    problem = INSTANCES["malleable"]
    monkeypatch.setattr(highspy.Highs, "run", lambda native: highspy.HighsStatus.kError)
    with pytest.raises(SolverFaultError, match="highs did not run") as caught:
        solve(problem, "highs", time_limit_s=0.3)
    assert caught.value.result is not None
    _assert_clean(problem, caught.value.result)


@pytest.mark.parametrize("status", ["UNKNOWN", "MODEL_INVALID", "INFEASIBLE"])
def test_cpsat_with_any_status(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever status CP-SAT returns without a search, the schedule stays and no bound is false."""
    from ortools.sat.python import cp_model

    problem = INSTANCES["malleable"]
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_: getattr(cp_model, status))
    monkeypatch.setattr(cp_model.CpSolver, "num_branches", 0)
    monkeypatch.setattr(cp_model.CpSolver, "num_conflicts", 0)

    class Response:
        """What is there before a search."""

        deterministic_time = 0.0

    monkeypatch.setattr(cp_model.CpSolver, "response_proto", Response())
    params = {"prices": False}
    result, fault = _solved(problem, "cpsat", time_limit_s=0.5, params=params, levels=1)
    assert (fault is not None) == (status in ("MODEL_INVALID", "INFEASIBLE"))
    assert result is not None
    _assert_clean(problem, result)


@pytest.mark.parametrize("solver", ALL)
def test_random_limits(solver: str) -> None:
    """From next to nothing to a moment, every limit gives a checked schedule, and says if it cut."""
    draws = random.Random(solver)
    for problem in INSTANCES.values():
        for power in (-9.0, -4.0, -2.0, -0.7):
            limit = 10.0 ** draws.uniform(power, power + 0.5)
            _assert_clean(problem, solve(problem, solver, time_limit_s=min(1.0, limit)))


@pytest.mark.parametrize("jump", [1e6, -1e6, 0.4])
@pytest.mark.parametrize("solver", ALL)
def test_a_clock_that_jumps(solver: str, jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jump of the clock in mid-solve, either way, costs time at most."""
    true_clock = time.perf_counter
    problem = INSTANCES["malleable"]
    looks = itertools.count()
    # Half the looks of an undisturbed solve at the clock, or so.
    at = random.Random(f"{solver} {jump}").randint(3, 30)

    def clock() -> float:
        return true_clock() + (jump if next(looks) >= at else 0.0)

    monkeypatch.setattr("edgeflow_opt.solvers.control.time.perf_counter", clock)
    limit = 0.3 if jump > 0 else None
    params = {"moves": 2000} if solver == "price" else {}
    levels = {"levels": 1} if limit is None else {}
    if limit is None and solver != "price":
        # Without a limit they go on to the proof.
        problem = small()
    result = solve(problem, solver, time_limit_s=limit, params=params, **levels)
    _assert_clean(problem, result)
    assert result.schedule.seconds >= 0.0


def test_a_crash_brings_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that dies after keeping a plan: the error holds it, checked, without a bound."""

    def die(problem: EpochProblem, arrays: Any, options: Any, control: Any) -> Draft:
        control.keep(empty_plan(arrays), evaluate(problem, ())[0])
        control.report("fake", value=0.0, bound=0.0)
        raise ZeroDivisionError("by nought")

    plug_in(monkeypatch, fake=FakeSolver(die))
    with pytest.raises(SolverFaultError, match="ZeroDivisionError: by nought") as caught:
        solve(small(), "fake")
    result = caught.value.result
    assert result is not None
    assert result.value == 0.0
    # The bound of a solver that is broken is not believed.
    assert result.bound is None


def test_a_broken_plan_behind_a_crash_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that fails the checker does not come along with the error."""

    def die(problem: EpochProblem, arrays: Any, options: Any, control: Any) -> Draft:
        plan = np.repeat(arrays.mode_start[1:, None] - 1, arrays.num_slots, axis=1)
        control.keep(plan, evaluate(problem, ())[0])
        raise ZeroDivisionError("by nought")

    plug_in(monkeypatch, fake=FakeSolver(die))
    with pytest.raises(SolverFaultError, match="ZeroDivisionError: by nought") as caught:
        solve(small(), "fake")
    assert caught.value.result is None


#: Solves with so many MB of memory more than the process has after a first solve.
STARVED = """
import json, resource, sys
from edgeflow_opt.errors import EdgeflowError
from edgeflow_opt.problem import check
from edgeflow_opt.solvers import solve
from tests.solvers.instances import crowded, small

for solver in ("auto", "highs", "price"):
    solve(small(), solver)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20,) * 2)
ends = []
problem = crowded(200, 48)
for solver in ("greedy", "price", "auto", "highs"):
    try:
        result = solve(problem, solver, time_limit_s=0.5)
        assert check(problem, result.schedule).valid
        ends.append(str(result.limit))
    except EdgeflowError as fault:
        ends.append(type(fault).__name__)
print(json.dumps(ends))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to tell memory")
def test_starved_of_memory() -> None:
    """With 8 MB to spare every solve ends in a checked schedule or an error of the package."""
    done = subprocess.run(
        [sys.executable, "-c", STARVED, "8"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(json.loads(done.stdout)) == 4


def test_sigint_at_random_moments_of_the_command(tmp_path: Path) -> None:
    """`edgeflow solve` exits with 130 and a valid file, whenever in the search SIGINT comes."""
    problem = crowded(40, 24)
    instance, output = tmp_path / "epoch.json", tmp_path / "plan.json"
    write_problem(problem, instance)
    draws = random.Random(7)
    for _ in range(2):
        output.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "edgeflow_opt", "solve", str(instance), "--time-limit", "60",
             "--output", str(output)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        # The first line of progress tells that the search has begun.
        process.stderr.readline()
        time.sleep(draws.uniform(0.0, 0.8))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130, out + err
        assert "Traceback" not in err
        schedule = read_schedule(output)
        assert schedule.limit is Limit.INTERRUPTED
        assert check(problem, schedule).valid


def test_errors_of_the_package_are_all_of_one_root() -> None:
    """Who catches EdgeflowError catches crashes and callbacks too, with their results."""
    for kind in (SolverFaultError, CallbackError):
        assert issubclass(kind, EdgeflowError)
        assert kind("x").result is None
    assert dataclasses.is_dataclass(SolveResult)
