"""Ctrl-C and cancellation during real solves: the incumbent is kept, the process unharmed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from edgeflow_opt.errors import CallbackError
from edgeflow_opt.problem import Limit, SolveStatus, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import Progress, SolveControl, SolveOptions, solve
from edgeflow_opt.solvers.lexicographic import level_solve
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.mip.engine import EngineAnswer
from tests.solvers.instances import crowded, small

#: Parameters with which the native solver itself has to work.
NO_PRICES = {"cpsat": {"prices": False}, "highs": {}}

#: Solves a large instance, presses Ctrl-C in the midst of it, and once more afterwards.
SCRIPT = """
import _thread, json, signal, sys, threading, time
from edgeflow_opt.solvers import solve
from tests.solvers.instances import crowded, small

solver = sys.argv[1]
options = {"params": {"prices": False}} if solver == "cpsat" else {}
solve(small(), solver)
handler = signal.getsignal(signal.SIGINT)
how = _thread.interrupt_main if sys.argv[2] == "interrupt_main" else (
    lambda: signal.raise_signal(signal.SIGINT))
timer = threading.Timer(0.7, how)
timer.daemon = True
timer.start()
result = solve(crowded(), solver, time_limit_s=60.0)
same = signal.getsignal(signal.SIGINT) is handler
try:
    signal.raise_signal(signal.SIGINT)
    second = False
except KeyboardInterrupt:
    second = True
print(json.dumps({
    "status": result.status, "limit": result.limit, "value": result.value,
    "bound": result.bound, "seconds": result.schedule.seconds, "same": same, "second": second,
}))
"""


@pytest.mark.parametrize(
    ("solver", "how"),
    [("cpsat", "interrupt_main"), ("highs", "raise_signal"), ("auto", "raise_signal")],
)
def test_ctrl_c_returns_the_incumbent(solver: str, how: str) -> None:
    """Interrupted in mid-solve: limit interrupted, a plan and a bound; Ctrl-C works as before."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, solver, how], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["limit"] == "interrupted"
    assert found["status"] == "feasible"
    assert 0 < found["value"] < found["bound"]
    assert found["seconds"] < 30.0
    assert found["same"]
    assert found["second"]


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_ctrl_c_between_native_solves_keeps_the_incumbent(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted while the model is built in Python: the greedy's plan is returned."""

    def build(*_: Any) -> Any:
        raise KeyboardInterrupt

    problem = crowded(num_jobs=12, num_slots=6)
    monkeypatch.setattr(level_solve, "build_malleable", build)
    result = solve(problem, solver)
    assert result.limit is Limit.INTERRUPTED
    assert result.status is SolveStatus.FEASIBLE
    assert result.value is not None
    assert result.value >= (solve(problem, "greedy").value or 0.0)
    assert result.bound is not None


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_a_callback_may_end_the_solve(solver: str) -> None:
    """KeyboardInterrupt in a progress callback, in a native thread even, keeps the incumbent."""
    told: list[str] = []

    def on_progress(progress: Progress) -> None:
        told.append(progress.source)
        if progress.source == solver:
            raise KeyboardInterrupt

    result = solve(crowded(20, 10), solver, on_progress=on_progress, params=NO_PRICES[solver])
    assert solver in told
    assert result.limit is Limit.INTERRUPTED
    assert result.status is SolveStatus.FEASIBLE
    assert result.bound is not None
    assert 0.0 < (result.value or 0.0) < result.bound


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_an_error_in_a_callback_is_not_swallowed(solver: str) -> None:
    """Any other exception of a callback, in a native thread even, ends the solve and comes through.

    It is the cause of an error that brings the schedule found until then.
    """

    def on_progress(progress: Progress) -> None:
        if progress.source == solver:
            raise LookupError("in the callback")

    problem = crowded(20, 10)
    with pytest.raises(CallbackError, match="LookupError: in the callback; what was") as caught:
        solve(problem, solver, on_progress=on_progress, params=NO_PRICES[solver])
    assert isinstance(caught.value.__cause__, LookupError)
    result = caught.value.result
    assert result is not None
    assert result.limit is Limit.INTERRUPTED
    assert check(problem, result.schedule).valid
    assert (result.value or 0.0) > 0.0


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_bounds_are_told_while_the_engine_runs(solver: str) -> None:
    """A bound better than the trivial one comes before the end, from the thread that solves."""
    threads: list[str] = []
    bounds: list[float] = []

    def on_progress(progress: Progress) -> None:
        assert progress.bound is not None
        bounds.append(progress.bound)
        if progress.source == solver and progress.bound < bounds[0] - 1.0:
            threads.append(threading.current_thread().name)
            raise KeyboardInterrupt

    result = solve(
        crowded(20, 10), solver, time_limit_s=60.0, levels=1, on_progress=on_progress,
        params=NO_PRICES[solver],
    )  # fmt: skip
    assert threads
    assert threads[0] != threading.current_thread().name
    assert result.bound is not None
    assert result.bound <= bounds[-1]


def test_a_highs_that_fails_gives_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error inside HiGHS its numbers are all 0: nothing of them is believed."""
    import highspy

    def run(native: Any) -> Any:
        def fail(_: Any) -> None:
            raise KeyboardInterrupt

        native.cbMipInterrupt.subscribe(fail)
        return highspy._core._Highs.run(native)

    monkeypatch.setattr(highspy.Highs, "run", run)
    result = solve(crowded(20, 10), "highs", levels=1)
    assert result.bound is not None
    assert result.value is not None
    assert result.bound >= 18.0


class _Runaway:
    """An engine that never stops: it is left to itself, and speaks up too late."""

    name = "runaway"
    bound_slack = 0.0
    columns_per_second = 1e9

    def maximise(self, model: Any, *, on_incumbent: Any, on_bound: Any, **_: Any) -> EngineAnswer:
        """Tell a bound in time, and remember whom to tell the rest."""
        self.on_incumbent, self.on_bound, self.columns = on_incumbent, on_bound, model.num_columns
        on_bound(3.2)
        return EngineAnswer(statistics={"abandoned": "runaway did not stop in time"})


def test_an_engine_left_to_itself_is_heard_no_more() -> None:
    """Its bound told in time counts; what it finds after the end changes nothing."""
    problem = small()
    arrays = arrays_of(problem)
    control = SolveControl(None)
    engine = _Runaway()
    work = LevelSolve(problem, arrays, SolveOptions(levels=1), control, engine)
    work.first_level()
    assert work.bound == 3.0
    engine.on_bound(0.0)
    engine.on_incumbent(np.ones(engine.columns))
    assert work.bound == 3.0
    assert control.bound == 3.0
    assert work.incumbent.plan is None
    assert work.draft().status is SolveStatus.NO_SOLUTION
