"""The stronger bound: the same Lagrangian dual with exact pricing, one mode per slot.

With integer plans in the pricing the dual has no integrality property: its bound is that of the
plan model (Geoffrion, 1974). Most of the gain over the hull comes with the first evaluation at the
hull's prices.

Without losses costs are those of the cheapest plans, up to floating point. At 1000 jobs and 96 slots
(loads .8 to 2.5) an evaluation takes .03 to .12 CPU seconds, and is .2 to .25 of a job below one with
3200 bins. Steps of 0.006 of the mean price that shrink by 0.9 bring .1 to .3 of a job in 20
evaluations, where steps of 0.03 overshoot for as many before they bring anything.

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
MOVES = 25
_DECAY = 0.9
#: The same where jobs have losses, and factors on the bins of the evaluations that follow.
_LOSSY_BINS, _LOSSY_MOVES, _LOSSY_DECAY, _LOSSY_REFINEMENTS = 1600, 12, 0.955, (8, 32)
#: The same where jobs must be met: there the dual may fall without end, which proves that no schedule
#: meets them all, and short steps do not come far enough.
_OBLIGED_MOVES, _OBLIGED_DECAY, _OBLIGED_REACH = 40, 0.955, 0.03
#: Share of the time left that the moves to come may take.
_MOVES_SHARE = 0.6
#: First step relative to the mean price: from the hull's prices, and from those of an exact dual.
REACH, WARM_REACH = 0.006, 0.003


class ExactDual:
    """A descent on the exact dual that can be taken one evaluation at a time.

    Parameters
    ----------
    dual
        The dual function of the instance, which this object uses from now on.
    start
        Prices to begin from and the bound known so far.
    reach
        First step, relative to the mean price.
    stopped
        Asked between blocks of jobs; once true, the jobs left keep their hull costs.
    """

    def __init__(
        self,
        dual: DualFunction,
        start: DualResult,
        stopped: Callable[[], bool],
        reach: float = REACH,
    ) -> None:
        self._dual = dual
        data = dual.data
        self._bins, self._moves, decay = BINS, MOVES, _DECAY
        self._refinements: tuple[int, ...] = ()
        if (data.lossy & data.malleable & data.priced).any():
            self._bins, self._moves, decay = _LOSSY_BINS, _LOSSY_MOVES, _LOSSY_DECAY
            self._refinements, reach = _LOSSY_REFINEMENTS, REACH
        elif (data.must_meet & data.priced).any():
            self._moves, decay, reach = _OBLIGED_MOVES, _OBLIGED_DECAY, max(reach, _OBLIGED_REACH)
        self._stopped = stopped
        step = reach * np.maximum(start_prices(dual.data), 1e-300) / 0.6
        self._stepper = PriceStepper(start.prices, step, decay)
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
            gradient = self._evaluate(self._stepper.prices, self._bins)
            if gradient is not None:
                self._stepper.advance(gradient)
        elif self.evaluations <= self._moves + len(self._refinements):
            refinement = self._refinements[self.evaluations - self._moves - 1]
            self._evaluate(self.best.prices, self._bins * refinement)

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
