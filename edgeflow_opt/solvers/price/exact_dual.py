"""The stronger bound: the same Lagrangian dual with exact pricing, one mode per slot.

With integer plans in the pricing the dual has no integrality property: its bound is that of the
plan model (Geoffrion, 1974), up to the rounding of work to bins. Most of the gain over the hull
comes with the first evaluation at the hull's prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.price.dual import (
    DualResult,
    HullDual,
    PriceStepper,
    lagrangian_bound,
    run_blocks,
    start_prices,
)
from edgeflow_opt.solvers.price.exact_kernels import price_jobs_exactly

if TYPE_CHECKING:
    from collections.abc import Callable


#: Bins of work per job in the exact pricing.
BINS = 3200
_DECAY = 0.955


class ExactDual:
    """A descent on the exact dual that can be taken one evaluation at a time.

    Parameters
    ----------
    dual
        The hull dual of the instance, which this object uses from now on.
    start
        Prices to begin from and the bound known so far.
    bins
        Resolution of work in the exact pricing.
    stopped
        Asked between blocks of jobs; once true, the jobs left keep their hull costs.
    """

    def __init__(
        self, dual: HullDual, start: DualResult, stopped: Callable[[], bool], bins: int = BINS
    ) -> None:
        self._dual = dual
        self._bins = bins
        self._stopped = stopped
        step = 0.03 * np.maximum(start_prices(dual.data), 1e-300) / 0.6
        self._stepper = PriceStepper(start.prices, step, _DECAY)
        self.best = start
        """The best prices so far, with their bound and job costs."""
        self.evaluations = 0

    def step(self) -> float:
        """Evaluate the dual once, move the prices, and return the bound found (not the best)."""
        dual, data = self._dual, self._dual.data
        prices = self._stepper.prices
        dual.evaluate(prices)
        proven, hull = dual.certify_costs(prices, dual.multiplier)
        cost = dual.cost.copy()
        usage = np.zeros((len(dual.blocks), *prices.shape))
        reached = np.zeros(len(dual.blocks), dtype=np.bool_)

        def work(number: int, begin: int, stop: int) -> None:
            if self._stopped():
                return
            price_jobs_exactly(
                data, prices, begin, stop, dual.multiplier, dual.cost, dual.whole_cost,
                self._bins, cost, usage[number],
            )  # fmt: skip
            reached[number] = True

        run_blocks(dual.blocks, work, dual.workers)
        for number, (begin, stop) in enumerate(dual.blocks):
            if reached[number]:
                # What the hull code priced is replaced by what is proven of it.
                exact = cost[begin:stop]
                raised = exact > dual.cost[begin:stop]
                proven[begin:stop] = np.where(
                    raised, np.maximum(exact, proven[begin:stop]), proven[begin:stop]
                )
        bound = lagrangian_bound(data, prices, proven, hull)
        self.evaluations += 1
        if bound < self.best.bound:
            self.best = DualResult(
                prices=prices,
                bound=bound,
                job_costs=proven,
                multipliers=dual.multiplier.copy(),
                evaluations=self.best.evaluations + self.evaluations,
            )
        if reached.all():
            self._stepper.advance(data.capacity - usage.sum(axis=0))
        return bound
