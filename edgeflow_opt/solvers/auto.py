"""The portfolio: a good answer at once, a better one soon, and a proof as time allows.

1. The greedy and its selecting variant, in milliseconds: the plan that no later one may fall below.
2. Capacity prices: a proven bound and price-guided plans (:mod:`edgeflow_opt.solvers.price`).
3. Where these do not meet: on small instances branch and price over whole plans
   (:mod:`edgeflow_opt.solvers.plan`), beside the search for the plan that reaches the bound where
   there are two workers, then HiGHS on what reduced costs leave open (where all jobs have one run,
   CP-SAT and HiGHS); on larger ones without losses rounded relaxations over whole plans, made to fit
   (:mod:`edgeflow_opt.solvers.plan.rounding`), beside attempts to put in a job that does not fit
   (:mod:`edgeflow_opt.solvers.lexicographic.packing`).
4. The levels below the first: a few jobs at a time (:mod:`edgeflow_opt.solvers.polish`), then on
   CP-SAT where the model is small enough.

Constraints of an instance are known to the models only. With them the bounds of the second step hold
as before, its plans and those of the greedy are brought within them, and HiGHS and CP-SAT take the
rest.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from edgeflow_opt.formulations.moldable import one_run_only
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.problem import Objective
from edgeflow_opt.solvers.base import FEATURES, Capabilities
from edgeflow_opt.solvers.kernels import BY_LEVELS, PLAN, PRICE
from edgeflow_opt.solvers.lexicographic.level_solve import SMALL_COLUMNS, LevelSolve
from edgeflow_opt.solvers.lexicographic.packing import pack_on
from edgeflow_opt.solvers.lexicographic.side_by_side import search_on, side_by_side
from edgeflow_opt.solvers.mip.cpsat import CpSatEngine
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.polish import polish
from edgeflow_opt.solvers.single_slot import settle_single_slot

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl

#: Share of the time for prices where a MILP engine can follow on level 1, where one can on the
#: levels below only, and where none can.
_PRICE_SHARE_SMALL, _PRICE_SHARE_MIDDLE, _PRICE_SHARE_LARGE = 0.25, 0.85, 0.9

#: Prices before the relaxation is rounded: share of the time at most, and wall seconds at least, in any
#: case and per column of the model. They end before, as soon as the bound is done.
_PRICE_SHARE_BEFORE_ROUNDING, _PRICE_LEAST_S, _PRICE_S_PER_COLUMN = 0.6, 0.8, 6e-6

#: Share of the time for rounding where packing cannot run beside it.
_ROUNDING_SHARE = 0.7

#: Share of the time left for the polish where a MILP engine follows.
_POLISH_SHARE = 0.7

#: Share of the time left for the polish before the proof of level 1.
_EARLY_POLISH_SHARE = 0.08

#: Shares of the time left of a weighted sum: for level 1 where it decides whom to meet, and for prices
#: and moves where a MILP engine follows.
_LEVEL_1_SHARE, _SUM_SHARE = 0.6, 0.3

#: Shares of the time left for the first closer of level 1, and for the one that follows it.
_CLOSER_SHARE, _LAST_SHARE = 0.75, 0.75


class AutoSolver:
    """The solver ``auto``: the portfolio above; never worse than the greedy."""

    name = "auto"
    capabilities = Capabilities(
        summary="portfolio: greedy, capacity prices, then branch and price and MILP for the proof",
        exact=True,
        features=frozenset(FEATURES),
        requires=("highspy", "ortools", "numba"),
        kernels=(*BY_LEVELS, PRICE),
    )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """See :meth:`edgeflow_opt.solvers.base.Solver.solve`."""
        plain = dataclasses.replace(options, params={})
        work = LevelSolve(problem, arrays, plain, control, HighsEngine())
        with control.interruptible():
            self._steps(work)
        return work.draft()

    def _steps(self, work: LevelSolve) -> None:
        control = work.control
        work.offer_starts()
        if work.arrays.rows.num_rows:
            _with_rows(work)
            return
        if work.arrays.num_slots == 1 and settle_single_slot(work):
            return
        if work.problem.objective.weights is not None:
            self._weighted_sum(work)
            return
        small = work.columns() <= SMALL_COLUMNS
        share = _PRICE_SHARE_LARGE
        if small:
            share = _PRICE_SHARE_SMALL
        elif work.fits((1.0 - _PRICE_SHARE_MIDDLE) * control.left_s, LEVELS):
            share = _PRICE_SHARE_MIDDLE
        seconds = share * control.left_s
        until = control.elapsed_s + seconds
        # Plans with losses cannot be shifted, and those of one run are no plans of prices.
        rounding = not (small or work.arrays.has_losses.any() or one_run_only(work.arrays))
        if small:
            seconds = min(seconds, work.price_s)
        elif rounding:
            least = _PRICE_LEAST_S + _PRICE_S_PER_COLUMN * work.columns()
            # In less time there is none to round anything.
            rounding = seconds > least or work.options.deterministic
            seconds = min(seconds, max(_PRICE_SHARE_BEFORE_ROUNDING * seconds, least))
        work.use_prices(seconds, fixing=small, ends_with_bound=rounding)
        if rounding and not work.closed and not control.stopped:
            _round(work, until - control.elapsed_s)
        if small and not work.closed and not control.stopped:
            # The proof of level 1 may take all the time there is.
            polish(work, _EARLY_POLISH_SHARE * control.left_s)
            _close(work)
        polish(work, (_POLISH_SHARE if work.fits(control.left_s, LEVELS) else 1.0) * control.left_s)
        work.engine = CpSatEngine()
        work.levels_below()

    def _weighted_sum(self, work: LevelSolve) -> None:
        """Solve a weighted sum: prices and moves that they guide, level 1, then HiGHS where it can.

        Where the prices have about as much weight met as can be, whom to meet is decided as on level
        1. Its steps find the last job, and a bound that prices alone do not have.
        """
        control = work.control
        small = work.columns(LEVELS) <= SMALL_COLUMNS
        found = work.weigh(control.counted_part(_SUM_SHARE * control.left_s), fixing=small)
        try:
            found.first_prices()
            level_1 = None
            if found.meets_most():
                level_1 = self._level_1(work, _LEVEL_1_SHARE * control.left_s)
            share = _SUM_SHARE if small else 1.0
            found.go_on_with(control.counted_part(share * control.left_s))
            if level_1 is None or level_1.incumbent.plan is None:
                found.improve()
            else:
                found.improve(level_1.incumbent.plan, level_1.bound)
        finally:
            work.note_weighted()
        if small and not work.closed and not control.stopped:
            work.first_level()

    def _level_1(self, work: LevelSolve, seconds: float) -> LevelSolve:
        """Return what is found out in `seconds` about level 1 of an instance with a weighted sum."""
        problem = work.problem.replace(objective=Objective())
        options = dataclasses.replace(work.options, levels=1)
        part = work.control.aside(seconds)
        level_1 = LevelSolve(problem, work.arrays, options, part, HighsEngine())
        with part.interruptible():
            self._steps(level_1)
        return level_1


def _with_rows(work: LevelSolve) -> None:
    """Go through the levels where the instance has constraints, which only the models know."""
    seconds = _PRICE_SHARE_SMALL * work.control.left_s
    work.use_prices(min(seconds, work.price_s), fixing=True)
    for engine, share in ((HighsEngine(), _CLOSER_SHARE), (CpSatEngine(), _LAST_SHARE)):
        if not work.closed and not work.control.stopped:
            work.engine = engine
            work.first_level(share=share)
    work.engine = CpSatEngine()
    work.levels_below()


def _round(work: LevelSolve, seconds: float) -> None:
    """Look for the last jobs of level 1, where no proof is to be had, for at most `seconds`."""
    control, seed = work.control, work.options.seed
    if seconds <= 0.0 and not work.options.deterministic:
        return
    from edgeflow_opt.solvers.plan.rounding import round_relaxations

    if work.options.workers >= 2 and not work.options.deterministic:
        side_by_side(
            work,
            seconds,
            here=lambda part: round_relaxations(work, part, seed),
            beside=lambda part: pack_on(work, part, seed + 1),
        )
        return
    until = control.elapsed_s + seconds
    with control.interruptible():
        round_relaxations(work, control.counted_part(_ROUNDING_SHARE * seconds), seed)
        pack_on(work, control.counted_part(until - control.elapsed_s), seed + 1)


def _close(work: LevelSolve) -> None:
    """Prove level 1 by what closes instances of this kind soonest."""
    control = work.control
    if one_run_only(work.arrays):
        # Options are a choice in whole numbers, on which CP-SAT is the quicker one.
        for engine, share in ((CpSatEngine(), _CLOSER_SHARE), (HighsEngine(), _LAST_SHARE)):
            if not work.closed and not control.stopped:
                work.engine = engine
                work.first_level(share=share)
        return
    from edgeflow_opt.solvers.plan import close_first_level

    # Many instances are settled before, so that their first solve need not wait for these.
    control.load_kernels(PLAN)
    seconds = _CLOSER_SHARE * control.left_s
    if work.options.workers >= 2 and not work.options.deterministic:
        side_by_side(
            work,
            seconds,
            here=lambda part: close_first_level(work, part, workers=1),
            beside=lambda part: search_on(work, part),
        )
    else:
        with control.interruptible():
            close_first_level(work, control.part(seconds))
    if not work.closed and not control.stopped:
        # Where the tree is at an end without an answer: moldable jobs in shares of runs.
        work.engine = HighsEngine()
        work.first_level(share=_LAST_SHARE)


SOLVER = AutoSolver()
