"""The stronger bound: the same Lagrangian dual with exact pricing, one mode per slot.

With integer plans in the pricing the dual has no integrality property: its bound is that of the
plan model (Geoffrion, 1974). Most of the gain over the hull comes with the first evaluation at the
hull's prices.

Without losses costs are those of the cheapest plans, up to floating point. At 1000 jobs and 96
slots (loads .8 to 2.5) an evaluation takes .03 to .12 CPU seconds, and is .2 to .25 of a job below
one with 3200 bins. Where the hull is 0.6 % off, the moves bring .1 to .3 of a job, and first steps
of 0.03 of the mean price overshoot for 15 evaluations; at 24 slots it is 6 % off, such steps bring
two jobs of 600, and those of 0.006 none.

With losses work is rounded to bins, and these count: what a run loses falls between them, and is
rounded away. At 1000 jobs and 96 slots (load 2.5, restart 30 s, migration 180 s on slots of 300 s)
the same prices prove 657.3 with 1600 bins, 655.2 with 3200, 653.2 with 12,800, 652.7 with 51,200,
and 652.6 without any bins, while moving the prices brings 0.6. So the prices move little, on few
bins, and there are many at the end.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.price.dual import PriceStepper, start_prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.price.dual import DualFunction, DualResult


#: Bins of work per job in the exact pricing, of the plans that its lists of states are measured by.
BINS = 3200
#: Evaluations that move the prices; by the decay of the steps there is little to come after them.
MOVES = 40
#: The same where jobs have losses, and factors on the bins of the evaluations that follow.
_LOSSY_BINS, _LOSSY_MOVES, _LOSSY_REFINEMENTS, _LOSSY_REACH = 1600, 12, (8, 32), 0.006
_DECAY = 0.955
#: Share of the time left that the moves to come may take.
_MOVES_SHARE = 0.6
#: First step relative to the mean price: the least, from prices of an exact dual, and the most, which
#: is also that where jobs must be met: there the dual may fall without end, which proves that no
#: schedule meets them all, and short steps do not come far enough.
WARM_REACH, MOST_REACH = 0.003, 0.03
#: From prices of the hull it is this share of what the first evaluation lowers the bound by, relative
#: to the bound: the farther the hull is off, the farther are its prices.
_REACH_SHARE = 0.6


class ExactDual:
    """A descent on the exact dual that can be taken one evaluation at a time.

    Parameters
    ----------
    dual
        The dual function of the instance, which this object uses from now on.
    start
        Prices to begin from and the bound known so far.
    reach
        First step, relative to the mean price; None = by what the first evaluation gains.
    stopped
        Asked between blocks of jobs; once true, the jobs left keep their hull costs.
    """

    def __init__(
        self,
        dual: DualFunction,
        start: DualResult,
        stopped: Callable[[], bool],
        reach: float | None = None,
    ) -> None:
        self._dual = dual
        data = dual.data
        self._bins, self._moves = BINS, MOVES
        self._refinements: tuple[int, ...] = ()
        if (data.lossy & data.malleable & data.priced).any():
            self._bins, self._moves = _LOSSY_BINS, _LOSSY_MOVES
            self._refinements, reach = _LOSSY_REFINEMENTS, _LOSSY_REACH
        elif (data.must_meet & data.priced).any():
            reach = MOST_REACH
        self._stopped = stopped
        self._reach = reach
        self._start = start
        self._stepper: PriceStepper | None = None
        self.best = start
        """The best prices so far, with their bound and job costs."""
        self.evaluations = 0
        self._before = start.evaluations

    def step(self) -> None:
        """Take the next step: an evaluation and a move, or, at last, an evaluation with more bins.

        The first evaluations move the prices; those after them stay at the best prices and refine
        the rounding of work.
        """
        self.evaluations += 1
        if self.evaluations <= self._moves:
            at = self._start.prices if self._stepper is None else self._stepper.prices
            gradient = self._evaluate(at, self._bins)
            if gradient is not None:
                if self._stepper is None:
                    self._stepper = self._first_stepper()
                self._stepper.advance(gradient)
        elif self.evaluations <= self._moves + len(self._refinements):
            refinement = self._refinements[self.evaluations - self._moves - 1]
            self._evaluate(self.best.prices, self._bins * refinement)

    def _first_stepper(self) -> PriceStepper:
        """Return the stepper that begins where the first evaluation was."""
        reach = self._reach
        if reach is None:
            gained = (self._start.bound - self.best.bound) / max(1e-300, abs(self.best.bound))
            reach = min(MOST_REACH, max(WARM_REACH, _REACH_SHARE * gained))
        step = reach * np.maximum(start_prices(self._dual.data), 1e-300) / 0.6
        return PriceStepper(self._start.prices, step, _DECAY)

    def fit_into(self, left_s: float, step_s: float) -> None:
        """Move the prices no more if the moves to come would take most of the time.

        Parameters
        ----------
        left_s
            Seconds left.
        step_s
            Seconds that the last step took.
        """
        moves_left = max(0, self._moves - self.evaluations)
        if moves_left * step_s > _MOVES_SHARE * left_s:
            self.refine_next()

    def refine_next(self) -> None:
        """Move the prices no more where more bins bring more, which takes losses."""
        if self._refinements:
            self._moves = min(self._moves, self.evaluations)

    @property
    def finished(self) -> bool:
        """Whether further steps would bring nothing."""
        return self.evaluations >= self._moves + len(self._refinements)

    def _evaluate(self, prices: FloatArray, bins: int) -> FloatArray | None:
        """Evaluate the dual and keep the bound; return the subgradient, None if stopped early."""
        found, gradient = self._dual.evaluate_exactly(prices, bins, self._stopped)
        if found.bound < self.best.bound:
            evaluations = self._before + self.evaluations
            self.best = dataclasses.replace(found, evaluations=evaluations)
        return gradient
