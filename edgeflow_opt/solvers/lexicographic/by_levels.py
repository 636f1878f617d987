"""Solve with one MILP engine, level by level: starts, prices, the first level, polish, the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.solvers.lexicographic.level_solve import SMALL_COLUMNS, LevelSolve
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.polish import polish

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.engine import Engine

#: Share of the time limit for the price engine, where a MILP engine begins from it.
_PRICE_SHARE = 0.3

#: The same, where the engine can hardly add to it.
_PRICE_SHARE_ALONE = 0.9

#: Share of the time limit for level 1, where levels below are wanted too.
_FIRST_LEVEL_SHARE = 0.8

#: Share of the time left for the polish before the engine is asked about the levels below.
_POLISH_SHARE = 0.5

#: Relative gap of a weighted sum that the rounding to whole numbers can explain.
_ROUNDING_GAP = 1e-3


def solve_by_levels(
    problem: EpochProblem,
    arrays: ProblemArrays,
    options: SolveOptions,
    control: SolveControl,
    engine: Engine,
    *,
    prices: bool,
) -> Draft:
    """Solve `problem` with `engine`, in the lexicographic order or as a weighted sum.

    Begins from the warm start and the greedy's plan, and never returns a worse one. With `prices`
    also from bound, plan and reduced costs of the price engine.
    """
    work = LevelSolve(problem, arrays, options, control, engine)
    with control.interruptible():
        work.offer_starts()
        if prices:
            follows = work.columns() <= SMALL_COLUMNS
            share = _PRICE_SHARE if follows else _PRICE_SHARE_ALONE
            seconds = share * control.left_s
            work.use_prices(min(seconds, work.price_s) if follows else seconds, fixing=follows)
        below = options.levels > 1 and problem.objective.weights is None
        work.first_level(share=_FIRST_LEVEL_SHARE if below else 1.0)
        if problem.objective.weights is not None and engine.bound_slack == 0.0:
            _close_in_real_numbers(work)
        # Where no model follows there is nothing better to do.
        share = _POLISH_SHARE if work.fits(control.left_s, LEVELS) else 1.0
        polish(work, share * control.left_s)
        work.levels_below()
    return work.draft()


def _close_in_real_numbers(work: LevelSolve) -> None:
    """Ask HiGHS for what rounding to whole numbers leaves open of a weighted sum.

    Shares of work are real numbers, of which an engine of whole numbers proves a sum up to some
    1e-6 only.
    """
    value = work.incumbent.level_1
    if work.closed or value is None or work.control.stopped:
        return
    if work.bound - value <= _ROUNDING_GAP * max(1.0, abs(value)):
        work.first_level(engine=HighsEngine())
