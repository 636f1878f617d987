"""The clock of a solve: limits, cancellation, progress, and native solvers in a thread."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
import time

import pytest

from edgeflow_opt.problem import Limit
from edgeflow_opt.solvers import Progress, SolveControl

INF = float("inf")


def _nothing() -> None:
    """Stop nothing: what is run comes to an end by itself, or never."""


def test_without_a_limit_nothing_stops_the_clock() -> None:
    """No limit: infinite time left, no limit named, not stopped."""
    control = SolveControl(None)
    assert control.left_s == INF
    assert control.limit is None
    assert not control.stopped


def test_time_runs_out() -> None:
    """Once the limit has passed no time is left, and the limit is time."""
    control = SolveControl(0.01)
    time.sleep(0.02)
    assert control.elapsed_s >= 0.02
    assert control.left_s == 0.0
    assert control.stopped
    assert control.limit is Limit.TIME


def test_interruption_counts_before_time() -> None:
    """Cancelled and out of time: the limit is the interruption."""
    control = SolveControl(1e-9)
    control.cancel()
    assert control.stopped
    assert control.limit is Limit.INTERRUPTED


def test_a_part_ends_before_the_whole() -> None:
    """A part has its own limit, never later than the whole; the whole is not shortened."""
    whole = SolveControl(100.0)
    part = whole.part(1.0)
    assert 0.5 < part.left_s <= 1.0
    assert whole.left_s > 99.0
    assert whole.part(1000.0).left_s <= 100.0
    assert part.part(50.0).left_s <= 1.0
    assert SolveControl(None).part(5.0).left_s <= 5.0
    assert SolveControl(None).part(INF).left_s == INF


def test_a_part_shares_cancellation_and_progress() -> None:
    """What is cancelled or reported on either side is so on both."""
    seen: list[Progress] = []
    whole = SolveControl(100.0, seen.append)
    part = whole.part(1.0)
    part.report("a", value=1.0)
    whole.report("b", bound=3.0)
    assert (whole.value, part.bound) == (1.0, 3.0)
    assert whole.trace == part.trace == tuple(seen)
    part.cancel()
    assert whole.interrupted
    other = SolveControl(100.0).part(1.0)
    assert not other.interrupted


def test_forgiven_time_is_not_on_the_clock() -> None:
    """Time forgiven is taken off what has elapsed and put back to what is left."""
    control = SolveControl(10.0)
    before = control.left_s
    control.forgive(5.0)
    assert control.elapsed_s < 0.0
    assert control.left_s == pytest.approx(before + 5.0, abs=0.5)


def test_only_improvements_are_kept() -> None:
    """The trace is monotone: worse or equal values and bounds leave no point."""
    control = SolveControl(None)
    control.report("a", value=1.0, bound=5.0)
    control.report("b", value=1.0, bound=5.0)
    control.report("c", value=0.5)
    control.report("d", bound=7.0)
    control.report("e", value=2.0)
    control.report("f", value=1.0, bound=2.0)
    points = [(p.source, p.value, p.bound) for p in control.trace]
    assert points == [("a", 1.0, 5.0), ("e", 2.0, 5.0), ("f", 2.0, 2.0)]
    times = [p.seconds for p in control.trace]
    assert times == sorted(times)


def test_run_gives_what_the_work_returns() -> None:
    """Work that ends in time gives its result, from another thread, and is never asked to stop."""
    asked: list[int] = []
    control = SolveControl(30.0)
    assert control.run(threading.current_thread, lambda: asked.append(1)) is not (
        threading.current_thread()
    )
    assert asked == []


def test_exceptions_of_the_work_come_through() -> None:
    """What the work raises is raised by run(), of the same class."""

    def work() -> None:
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        SolveControl(30.0).run(work, _nothing)


@pytest.mark.parametrize("how", ["time", "cancel from another thread"])
def test_work_is_asked_to_stop(how: str) -> None:
    """When time is up, or another thread cancels, the work is asked to stop and its result kept."""
    end = threading.Event()
    control = SolveControl(0.1 if how == "time" else None)
    if how != "time":
        threading.Timer(0.1, control.cancel).start()

    def work() -> str:
        assert end.wait(30.0)
        return "kept"

    assert control.run(work, end.set) == "kept"
    assert control.limit is (Limit.TIME if how == "time" else Limit.INTERRUPTED)


def test_stop_is_asked_for_again_where_the_request_was_lost() -> None:
    """A request that came before the search had begun is repeated."""
    end, requests = threading.Event(), [0]

    def stop() -> None:
        requests[0] += 1
        if requests[0] == 3:
            end.set()

    assert SolveControl(0.05).run(lambda: end.wait(30.0), stop) is True
    assert requests[0] == 3


@pytest.mark.parametrize("limit_s", [0.1, None, INF])
def test_a_native_solver_that_never_stops_is_left_to_itself(limit_s: float | None) -> None:
    """After the grace run() comes back without a result, whatever the limit was."""
    end = threading.Event()
    control = SolveControl(None if limit_s is None else 1.0).part(limit_s or INF)
    if limit_s is None or limit_s == INF:
        control = SolveControl(None) if limit_s is None else SolveControl(None).part(INF)
        threading.Timer(0.05, control.cancel).start()
    begin = time.perf_counter()
    assert control.run(lambda: end.wait(60.0), _nothing) is None
    assert time.perf_counter() - begin < 30.0
    end.set()


def test_ctrl_c_cancels_and_keeps_the_result() -> None:
    """Ctrl-C while a native solver runs asks it to stop; its result is kept, no handler changes."""
    handler = signal.getsignal(signal.SIGINT)
    end = threading.Event()
    control = SolveControl(None)

    def work() -> str:
        time.sleep(0.05)
        _thread.interrupt_main()
        assert end.wait(30.0)
        return "kept"

    assert control.run(work, end.set) == "kept"
    assert control.limit is Limit.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_interruptible_block_ends_and_is_noted() -> None:
    """Ctrl-C in Python code ends the block; other exceptions come through."""
    control = SolveControl(None)
    with control.interruptible():
        raise KeyboardInterrupt
    assert control.limit is Limit.INTERRUPTED
    with pytest.raises(ValueError, match="other"), control.interruptible():
        raise ValueError("other")


def test_the_process_waits_for_what_was_left_to_itself() -> None:
    """A native solver that stops late has come to its end before the process does."""
    script = (
        "import time\n"
        "from edgeflow_opt.solvers import SolveControl\n"
        "def work():\n"
        "    time.sleep(1.0)\n"
        "    print('at its end', flush=True)\n"
        "control = SolveControl(0.05)\n"
        "print(control.run(work, lambda: None), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["None", "at its end"]
