"""The ladder: a decision comes in time, whatever the solvers above the floor do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflow_opt.problem import check
from edgeflow_opt.service import EpochSession, JobArrived, SessionOptions, SolverPool
from edgeflow_opt.service.pool import TaskError
from tests.service.clusters import job, sites


@pytest.fixture(scope="module")
def pool(plug_in_folder: Path) -> Iterator[SolverPool]:
    """Return one process that knows the solvers of the plug-in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plug_in_folder))
        with SolverPool(1, memory_mib=512) as made:
            made.start()
            yield made


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize(
    ("solver", "outcome", "why"),
    [
        ("hanging", "late", "no answer within"),
        ("crashing", "failed", "ended by signal 11"),
        ("hungry", "failed", "found no plan|memory|signal"),
        ("failing", "failed", "it is not my day"),
    ],
)
def test_a_bad_solver_costs_its_rung_only(
    pool: SolverPool, solver: str, outcome: str, why: str
) -> None:
    """A solver that hangs, crashes, devours memory or raises leaves the decision to other rungs."""
    options = SessionOptions(rungs=("price", solver), max_slots=6)
    session = EpochSession(sites(), jobs=[job("a"), job("b")], options=options, pool=pool)
    assert session.wait_ready(120.0)
    # Only the hanging one takes all the time there is.
    decision = session.decide(0.0, 1.5 if solver == "hanging" else 60.0)
    assert check(decision.problem, decision.schedule).valid
    assert decision.value == 2.0
    told = {report.rung: report for report in decision.rungs}
    assert told["price"].outcome in ("ready", "used")
    assert told[solver].outcome == outcome
    assert any(word in told[solver].message for word in why.split("|"))
    # The next decision is as good, and has all rungs that work.
    session.update([JobArrived(time=1.0, job=job("c"))])
    assert session.wait_ready(120.0)
    again = session.decide(1.0, 1.5 if solver == "hanging" else 60.0)
    assert next(r for r in again.rungs if r.rung == "price").outcome in ("ready", "used")


@pytest.mark.usefixtures("plug_in")
def test_a_cancelled_decision_takes_what_is_ready(pool: SolverPool) -> None:
    """Cancelling ends the rungs above, heeded or not, and the best plan ready is the decision."""
    assert pool.wait_ready(120.0)
    options = SessionOptions(rungs=("price", "hanging"), max_slots=6)
    session = EpochSession(sites(), jobs=[job("a")], options=options, pool=pool)
    cancelled = threading.Event()
    timer = threading.Timer(1.0, cancelled.set)
    timer.start()
    decision = session.decide(0.0, 100.0, cancelled=cancelled)
    assert decision.value == 1.0
    assert decision.seconds < 50.0
    assert decision.rungs[-1].message == "the task was cancelled"
    assert pool.wait_ready(120.0)


def test_a_stopped_process_that_reads_nothing_is_late(pool: SolverPool) -> None:
    """A process that no longer reads, and arguments larger than any buffer, are waited for in vain."""
    assert pool.wait_ready(120.0)
    told: list[str] = []

    def run() -> None:
        try:
            pool.run("operator:length_hint", {"data": bytes(1 << 24)}, limit_s=0.3)
        except TaskError as fault:
            told.append(fault.kind)

    stopped = pool.pids
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    caller = threading.Thread(target=run, daemon=True)
    caller.start()
    caller.join(20.0)
    for pid in stopped:
        os.kill(pid, signal.SIGKILL)
    assert told == ["late"]
    # Others come in their places.
    assert pool.wait_ready(120.0)


def test_a_closed_pool_says_so() -> None:
    """Work for a pool that is closed fails with words, and does not wait."""
    pool = SolverPool(1)
    pool.close()
    with pytest.raises(TaskError, match="pool of solver processes is closed"):
        pool.run("time:sleep", {}, limit_s=30.0)


def test_without_a_process_the_floor_decides() -> None:
    """A session whose pool is closed decides by the rungs of its own process."""
    pool = SolverPool(1)
    pool.close()
    session = EpochSession(sites(), jobs=[job("a")], pool=pool)
    decision = session.decide(0.0, 0.5)
    assert decision.rung == "edgeflow-select"
    assert decision.value == 1.0
    assert decision.rungs[-1].message == "no time was left"
    assert "closed" in decision.rungs[-2].message
