"""The dual of the interval relaxation: a price for a unit of each site in each interval.

    L(p) = sum_{k,t} supply_kt p_kt + sum_j max(0, w_j - c_j(p)),   p >= 0

is, for any prices, an upper bound on the met weight of every schedule of the trace, with c_j(p) the
least priced cost of doing the work of job j within its window when modes may be mixed (its linear
program, see :mod:`~edgeflow_opt.clairvoyant.intervals`). A job whose fate is assumed contributes
``w_j - c_j`` without the max where it is met, and nothing where it is out: L then bounds the
schedules in which these jobs have these fates. The least L(p) equals the linear program.

Floating point: what is reported is recomputed by
:func:`~edgeflow_opt.clairvoyant.interval_kernels.certified_costs`, with a slack for all rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.clairvoyant.interval_kernels import build_hulls, certified_costs, price_jobs
from edgeflow_opt.solvers.price.dual import PriceStepper

if TYPE_CHECKING:
    from edgeflow_opt.clairvoyant.intervals import IntervalData
    from edgeflow_opt.problem.arrays import FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)

#: Fates of a job.
MET, OPEN, OUT = 1, 0, -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relaxed:
    """Prices, and what they prove under assumed fates.

    Parameters
    ----------
    prices
        (K, T) cost of a unit for a second.
    bound
        Proven bound on the met weight, rounding slack included; -inf where a job that is to be
        met cannot be.
    cost
        (n,) proven least cost of meeting each job at these prices, +inf where it cannot be met.
    multiplier
        (n,) priced cost of the last unit of work of each job.
    share
        (n,) how much of the time of the last evaluations a job was worth its cost, 0 to 1: near the
        value of z in the linear program.
    evaluations
        Evaluations of the dual function.
    """

    prices: FloatArray
    bound: float
    cost: FloatArray
    multiplier: FloatArray
    share: FloatArray
    evaluations: int


class IntervalDual:
    """The dual function of one trace.

    Parameters
    ----------
    data
        The trace on its intervals.
    """

    def __init__(self, data: IntervalData) -> None:
        self.data = data
        n, num_intervals = data.num_jobs, data.supply.shape[1]
        kinds = len(data.mode_start) - 1
        self._count = np.zeros((kinds, num_intervals), dtype=np.int64)
        shape = (kinds, num_intervals, data.most_modes)
        self._mode = np.zeros(shape, dtype=np.int64)
        self._density = np.zeros(shape)
        self._gain = np.zeros(shape)
        longest = int((data.end - data.first).max(initial=0)) * data.most_modes + 1
        self._scratch = np.empty((4, longest))
        self._order = np.empty(longest, dtype=np.int64)
        self.multiplier = np.zeros(n)
        self.cost = np.full(n, np.inf)
        self.evaluations = 0
        supply = float(data.supply.sum())
        self.level = 0.6 * float(data.weight.sum()) / supply if supply > 0 else 0.0
        """A price of the right order of magnitude."""

    def evaluate(self, prices: FloatArray, fate: IntArray) -> tuple[float, FloatArray]:
        """Return L(`prices`) in plain floating point, and supply less usage, a subgradient."""
        data = self.data
        usage = np.zeros_like(prices)
        build_hulls(data, prices, self._count, self._mode, self._density, self._gain)
        gains = price_jobs(
            data, fate, self._count, self._mode, self._density, self._gain,
            self.multiplier, self.cost, usage, self._scratch, self._order,
        )  # fmt: skip
        self.evaluations += 1
        return float((data.supply * prices).sum() + gains), data.supply - usage

    def certify(
        self, prices: FloatArray, multiplier: FloatArray, fate: IntArray
    ) -> tuple[float, FloatArray]:
        """Return the proven bound at `prices` and the proven costs of the jobs behind it."""
        data = self.data
        cost, magnitude = np.empty(data.num_jobs), np.empty(data.num_jobs)
        certified_costs(data, fate, prices, multiplier, cost, magnitude)
        met = fate == MET
        if np.isinf(cost[met]).any():
            return -math.inf, cost
        finite = np.isfinite(cost)
        gain = data.weight[finite] - cost[finite]
        gain = np.where(met[finite], gain, np.maximum(0.0, gain))
        supply = (data.supply * prices).ravel()
        total = math.fsum(supply) + math.fsum(gain)
        # A term is a product of at most three numbers; a job adds at most two terms per interval.
        # Supplies are sums over the steps of capacity within the interval.
        operations = 8.0 * (len(data.boundaries) + 64)
        added = math.fsum(supply) + math.fsum(magnitude[finite]) + math.fsum(data.weight)
        worth = math.fsum(data.weight[finite])
        return min(total + operations * _EPS * added, worth * (1.0 + 4.0 * _EPS)), cost

    def minimise(
        self,
        fate: IntArray,
        prices: FloatArray | None,
        iterations: int,
        *,
        below: float = -math.inf,
        reach: float | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Relaxed:
        """Minimise L under assumed fates, and certify the best prices.

        Parameters
        ----------
        fate
            (n,) :data:`MET`, :data:`OPEN` or :data:`OUT`.
        prices
            (K, T) where to begin; None = a cold start.
        iterations
            Evaluations, at least 1.
        below
            Ends the search once the value is lower.
        reach
            First step, as a share of a mean price; None = by the kind of start.
        stopped
            Ends the search once true, never before the first evaluation.
        """
        data = self.data
        cold = prices is None
        start = np.full(data.supply.shape, self.level)
        at = start if prices is None else prices
        if reach is None:
            reach = 0.15 if cold else 0.02
        decay = (0.005 if cold else 0.05) ** (1.0 / max(1, iterations))
        stepper = PriceStepper(at, np.maximum(reach * start, 1e-300), decay)
        best, best_prices, best_multiplier = math.inf, at, self.multiplier
        share = np.zeros(data.num_jobs)
        count = 0
        for _ in range(max(1, iterations)):
            value, gradient = self.evaluate(stepper.prices, fate)
            share += 0.1 * ((self.cost < data.weight) - share)
            count += 1
            if value < best:
                best, best_prices = value, stepper.prices
                best_multiplier = self.multiplier.copy()
            if best < below or (stopped is not None and stopped()):
                break
            stepper.advance(gradient)
        bound, cost = self.certify(best_prices, best_multiplier, fate)
        return Relaxed(
            prices=best_prices,
            bound=bound,
            cost=cost,
            multiplier=best_multiplier,
            share=share,
            evaluations=count,
        )

    def scaled_bound(self, found: Relaxed, fate: IntArray, scale: float) -> float:
        """Return the proven bound at the prices of `found` times `scale`."""
        return self.certify(scale * found.prices, scale * found.multiplier, fate)[0]
