"""Solves beside other work, and solves that somebody ends."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import edgeflow_opt as ef
from edgeflow_opt.problem import Limit
from edgeflow_opt.workloads import generate_problem


def hard() -> ef.EpochProblem:
    """Return an instance whose levels take many seconds to prove."""
    return generate_problem(60, 24, load=1.6, seed=3)


def test_the_loop_goes_on_while_solves_run() -> None:
    """Two solves and other work of the loop go side by side, and both results are checked ones."""
    problem = hard()
    ticks = 0

    async def work() -> list[ef.SolveResult]:
        nonlocal ticks
        solves = [
            asyncio.create_task(ef.solve_async(problem, name, time_limit_s=0.5, levels=1))
            for name in ("price", "greedy")
        ]
        while not all(task.done() for task in solves):
            ticks += 1
            await asyncio.sleep(0.005)
        return [task.result() for task in solves]

    for result in asyncio.run(work()):
        assert result.schedule is not None
        assert ef.check(problem, result.schedule).valid
    assert ticks > 1


def test_solves_wait_for_no_other_work_of_the_loop() -> None:
    """Where the threads that a loop keeps for everybody are all taken, a solve begins at once."""
    problem = generate_problem(4, 6, seed=1)
    go_on = threading.Event()

    async def work() -> ef.SolveResult:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        other = asyncio.create_task(asyncio.to_thread(go_on.wait))
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(60.0):
                return await ef.solve_async(problem, "greedy")
        finally:
            go_on.set()
            await other

    assert asyncio.run(work()).value is not None


COLD = """
import asyncio, sys
import edgeflow_opt as ef
problem = ef.read_problem(sys.argv[1])
async def work():
    return await asyncio.gather(*(
        ef.solve_async(problem, name, time_limit_s=0.5) for name in sys.argv[2:]
    ))
print(*(result.value is not None for result in asyncio.run(work())))
"""


def test_solves_may_begin_side_by_side_in_a_cold_process(tmp_path: Path) -> None:
    """Threads that load solvers and kernels at the same time do not wait for each other for ever."""
    path = tmp_path / "epoch.json"
    ef.write_problem(hard(), path)
    names = ["price", "cpsat", "highs", "greedy", "auto"]
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(path), *names],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.split() == ["True"] * len(names), done.stderr[-2000:]


def test_cancelling_the_task_ends_the_solve() -> None:
    """A task that is cancelled raises, and its solver does not work on behind it."""

    async def work() -> None:
        async with asyncio.timeout(0.3):
            await ef.solve_async(hard(), "auto", time_limit_s=120)

    begin = time.perf_counter()
    with pytest.raises(TimeoutError):
        asyncio.run(work())
    # The thread would otherwise be waited for: two minutes.
    assert time.perf_counter() - begin < 60.0


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs", "price", "plan"])
def test_an_event_ends_the_solve_and_keeps_the_incumbent(solver: str) -> None:
    """Set from another thread it ends every solver, whose plan so far comes back checked."""
    cancelled = threading.Event()
    problem = hard()

    def on_progress(point: object) -> None:
        # The first plan is there: from another thread, as a caller would.
        threading.Timer(0.05, cancelled.set).start()

    result = ef.solve(
        problem, solver, time_limit_s=120, on_progress=on_progress, cancelled=cancelled
    )
    assert result.schedule.seconds < 60.0
    assert result.limit is Limit.INTERRUPTED
    assert result.schedule is not None
    assert ef.check(problem, result.schedule).valid
    assert pickle.loads(pickle.dumps(result)).value == result.value


def test_the_event_is_never_set_by_the_solver() -> None:
    """The event belongs to the caller, whose other solves may watch it too."""
    cancelled = threading.Event()
    ef.solve(hard(), "greedy", cancelled=cancelled)
    assert not cancelled.is_set()


def test_anything_but_an_event_is_refused() -> None:
    """A callable, say, would never be asked."""
    with pytest.raises(ef.UsageError, match=r"option cancelled: must be a threading\.Event"):
        ef.solve(hard(), "greedy", cancelled=lambda: True)


def test_show_versions(capsys: pytest.CaptureFixture[str]) -> None:
    """What reports of faults need is printed, one line each."""
    ef.show_versions()
    out = capsys.readouterr().out
    for name in ("edgeflow_opt", "python", "platform", "ortools", "highspy"):
        assert f"\n{name} " in f"\n{out}"
