"""Two threads on level 1: what one finds ends both, and no fault of either is lost."""

from __future__ import annotations

import threading

import pytest

from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.lexicographic.side_by_side import search_on, side_by_side
from edgeflow_opt.solvers.mip.highs import HighsEngine
from tests.solvers.instances import crowded


def _work(seconds: float = 30.0) -> LevelSolve:
    problem = crowded(num_jobs=12, num_slots=8)
    work = LevelSolve(
        problem, arrays_of(problem), SolveOptions(), SolveControl(seconds), HighsEngine()
    )
    work.offer_starts()
    return work


def _until_stopped(part: SolveControl) -> None:
    while not part.stopped:
        threading.Event().wait(0.001)


def test_a_proof_of_the_other_thread_ends_this_one() -> None:
    """Once the bound meets the value, by whomever, both parts are needless."""
    work = _work()
    level_1 = work.incumbent.level_1
    assert level_1 is not None
    side_by_side(work, 30.0, here=_until_stopped, beside=lambda _: work.tighten(level_1))
    assert work.closed
    assert not work.control.stopped


def test_the_thread_beside_ends_with_the_work_here() -> None:
    """What runs beside is for the sake of what runs here, and does not outlive it."""
    work = _work()
    ended = threading.Event()

    def beside(part: SolveControl) -> None:
        _until_stopped(part)
        ended.set()

    side_by_side(work, 30.0, here=lambda _: None, beside=beside)
    assert ended.is_set()
    assert not work.control.stopped


@pytest.mark.parametrize("side", ["here", "beside"])
def test_a_fault_of_either_ends_both_and_is_raised(side: str) -> None:
    """An exception reaches the caller, and the other thread does not run on."""

    def fail(part: SolveControl) -> None:
        raise RuntimeError(f"lost {side}")

    ways = {"here": _until_stopped, "beside": _until_stopped, side: fail}
    with pytest.raises(RuntimeError, match=f"lost {side}"):
        side_by_side(_work(), 30.0, **ways)


def test_ctrl_c_here_ends_both_and_is_noted() -> None:
    """The incumbent stays, and the solve knows that it was interrupted."""

    def interrupt(part: SolveControl) -> None:
        raise KeyboardInterrupt

    work = _work()
    side_by_side(work, 30.0, here=interrupt, beside=_until_stopped)
    assert work.control.interrupted
    assert work.incumbent.plan is not None


def test_the_search_offers_what_it_finds() -> None:
    """Begun from the empty plan, it reaches at least the plan that prices construct."""
    problem = crowded(num_jobs=12, num_slots=8)
    work = LevelSolve(
        problem, arrays_of(problem), SolveOptions(), SolveControl(30.0), HighsEngine()
    )
    work.use_prices(10.0)
    found = work.incumbent.level_1
    assert found is not None
    assert work.dual is not None
    fresh = LevelSolve(
        problem, arrays_of(problem), SolveOptions(), SolveControl(30.0), HighsEngine()
    )
    fresh.dual = work.dual
    part = fresh.control.part(
        20.0, needless=lambda: (fresh.incumbent.level_1 or 0.0) >= 0.8 * found
    )
    search_on(fresh, part)
    assert fresh.incumbent.level_1 is not None
    assert fresh.incumbent.level_1 >= 0.8 * found
