"""The Lagrangian dual of the tight compact model: one price per unit of each site and slot.

    L(p) = sum_{k,s} capacity_ks p_ks + sum_j max(0, w_j - c_j(p)),   p >= 0

is an upper bound on the weighted number of jobs met, with c_j(p) any lower bound on the priced cost
of every plan that meets the deadline of job j (a job that must be met contributes w_j - c_j without
the max). With the hull cost (:mod:`~edgeflow_opt.solvers.price.hull_kernels`) the least L(p) equals
the linear program of the compact model with rows ``sum_m x <= z``; reconfiguration losses are left
out of c_j, which keeps it valid since losses only take credit away.

Floating point. Prices are plain numbers, and any p >= 0 gives a bound. The bound that is reported is
recomputed from the prices and one multiplier per job by a few lines that do not depend on how these
were found, its sums are bounded by ``(operations) * eps * (sum of absolute values)``, and that slack
is added; work is lowered beforehand by more than the rounding of the checker's own sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.solvers.price.exact_kernels import price_jobs_exactly
from edgeflow_opt.solvers.price.hull_kernels import certified_costs, price_jobs

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Evaluations of a cold start; after them the bound is within about 0.01 % of the best.
COLD_ITERATIONS = 80

#: Evaluations after which steps begin anew from the best prices. They shrink, and so go a certain way
#: only, while the price of a job that must be met may lie far above the worth of all others.
_ROUND = 100

#: A round that lowered the bound by more than this share is followed by one of longer steps, by the
#: factor; any other one by one of shorter steps.
_GAINED, _LONGER = 1e-3, 4.0

_EPS = float(np.finfo(np.float64).eps)
_BLOCKS = 8
_SMALLEST_BLOCK = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DualResult:
    """Prices and the bound that they prove.

    Parameters
    ----------
    prices
        (K, T) worth of one more unit of each site in each slot.
    bound
        Proven upper bound on the weighted number of jobs met, rounding slack included; -inf where
        a job that must be met cannot be.
    job_costs
        (n,) proven least priced cost of meeting each job's deadline, the one behind `bound`;
        +inf where it cannot be met, and where the job plays no part (best effort, no weight).
    multipliers
        (n,) priced cost of the last unit of work of each job.
    evaluations
        Number of evaluations of the dual function that were used.
    """

    prices: FloatArray
    bound: float
    job_costs: FloatArray
    multipliers: FloatArray
    evaluations: int


class PriceStepper:
    """A normalised subgradient method with a scale per coordinate (Kingma and Ba, 2015).

    Parameters
    ----------
    prices
        (K, T) where to begin.
    step
        (K, T) first step length per coordinate.
    decay
        Factor on the step after each step, in (0, 1).
    """

    def __init__(self, prices: FloatArray, step: FloatArray, decay: float) -> None:
        self.prices = prices.copy()
        self._step = step
        self._decay = decay
        self._first = np.zeros_like(prices)
        self._second = np.zeros_like(prices)
        self._count = 0

    def advance(self, gradient: FloatArray) -> None:
        """Take one step against `gradient`, (K, T) capacity less usage."""
        self._count += 1
        self._first = 0.8 * self._first + 0.2 * gradient
        self._second = 0.95 * self._second + 0.05 * gradient**2
        first = self._first / (1.0 - 0.8**self._count)
        second = np.sqrt(self._second / (1.0 - 0.95**self._count))
        moved = self.prices - self._step * first / np.maximum(second, 1e-30)
        self.prices = np.maximum(0.0, moved)
        self._step = self._step * self._decay


def job_blocks(data: PricingData) -> list[tuple[int, int]]:
    """Return the fixed blocks of jobs that threads share: sums over them do not depend on workers."""
    n = len(data.weight)
    count = max(1, min(_BLOCKS, n // _SMALLEST_BLOCK))
    length = np.concatenate([[0.0], np.cumsum(data.end - data.first + 1.0)])
    cuts = np.searchsorted(length, np.linspace(0.0, length[-1], count + 1)[1:-1])
    edges = [0, *(int(cut) for cut in cuts), n]
    return [(a, b) for a, b in itertools.pairwise(edges) if a < b]


def run_blocks(
    blocks: list[tuple[int, int]], work: Callable[[int, int, int], None], workers: int
) -> None:
    """Call ``work(number, begin, stop)`` for every block, by `workers` threads."""
    if workers <= 1 or len(blocks) <= 1:
        for number, (begin, stop) in enumerate(blocks):
            work(number, begin, stop)
        return
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work, i, a, b) for i, (a, b) in enumerate(blocks)]:
            future.result()


def start_prices(data: PricingData) -> FloatArray:
    """Return (K, T) prices to begin from: 0.6 of the total worth spread over the capacity."""
    lengths = np.diff(data.boundaries)
    capacity = float((data.capacity * lengths).sum())
    worth = float(data.weight[data.priced].sum())
    level = 0.6 * worth / capacity if capacity > 0 else 0.0
    prices: FloatArray = np.tile(level * lengths, (data.capacity.shape[0], 1))
    return prices


class DualFunction(Protocol):
    """A Lagrangian dual over capacity prices, as the descents on it need it."""

    data: PricingData
    workers: int
    multiplier: FloatArray

    def evaluate(self, prices: FloatArray) -> tuple[float, FloatArray]:
        """Return L(`prices`) in plain floating point, and capacity less usage, a subgradient."""
        ...

    def certify(self, prices: FloatArray, multiplier: FloatArray) -> tuple[float, FloatArray]:
        """Return the proven bound at `prices` and the proven costs of the jobs behind it."""
        ...

    def evaluate_exactly(
        self, prices: FloatArray, bins: int, stopped: Callable[[], bool]
    ) -> tuple[DualResult, FloatArray | None]:
        """Return the bound of exact pricing, and the subgradient (None if stopped early)."""
        ...


class HullDual:
    """The dual function with hull costs, evaluated by threads.

    Parameters
    ----------
    data
        The instance.
    workers
        Threads, at least 1; results do not depend on it.
    """

    def __init__(self, data: PricingData, workers: int = 1) -> None:
        n = len(data.weight)
        self.data = data
        self.workers = workers
        self.blocks = job_blocks(data)
        self.multiplier = np.zeros(n)
        self.cost = np.full(n, np.inf)
        self.whole_cost = np.full(n, np.inf)

    def evaluate(self, prices: FloatArray) -> tuple[float, FloatArray]:
        """Return L(`prices`) in plain floating point, and capacity less usage, a subgradient."""
        usage = np.zeros((len(self.blocks), *prices.shape))
        gain = np.zeros(len(self.blocks))

        def work(number: int, begin: int, stop: int) -> None:
            gain[number] = price_jobs(
                self.data.tables, prices, begin, stop,
                self.multiplier, self.cost, self.whole_cost, usage[number],
            )  # fmt: skip

        run_blocks(self.blocks, work, self.workers)
        value = float((self.data.capacity * prices).sum() + gain.sum())
        return value, self.data.capacity - usage.sum(axis=0)

    def certify_costs(
        self, prices: FloatArray, multiplier: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return (n,) proven costs of the jobs, and the sums of absolute values behind them."""
        n = len(self.data.weight)
        cost = np.full(n, np.inf)
        magnitude = np.zeros(n)

        def work(_: int, begin: int, stop: int) -> None:
            certified_costs(self.data.tables, prices, begin, stop, multiplier, cost, magnitude)

        run_blocks(self.blocks, work, self.workers)
        return cost, magnitude

    def certify(self, prices: FloatArray, multiplier: FloatArray) -> tuple[float, FloatArray]:
        """Return the proven bound at `prices` and the proven costs of the jobs behind it."""
        cost, magnitude = self.certify_costs(prices, multiplier)
        return lagrangian_bound(self.data, prices, cost, magnitude), cost

    def exact_costs(
        self, prices: FloatArray, bins: int, stopped: Callable[[], bool]
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Price all jobs by plans of one mode per slot, with work rounded to `bins`.

        Returns
        -------
        cost, magnitude
            (n,) proven costs, and the sums of absolute values behind them.
        usage
            (K, T) units used by the jobs that are worth it.
        whole
            Whether this is so of all jobs; those left when `stopped` keep their hull costs.
        """
        data = self.data
        self.evaluate(prices)
        proven, magnitude = self.certify_costs(prices, self.multiplier)
        cost = self.cost.copy()
        usage = np.zeros((len(self.blocks), *prices.shape))
        reached = np.zeros(len(self.blocks), dtype=np.bool_)

        def work(number: int, begin: int, stop: int) -> None:
            if stopped():
                return
            price_jobs_exactly(
                data.tables, prices, begin, stop, self.multiplier, self.cost, self.whole_cost,
                bins, cost, usage[number],
            )  # fmt: skip
            reached[number] = True

        run_blocks(self.blocks, work, self.workers)
        for number, (begin, stop) in enumerate(self.blocks):
            if reached[number]:
                # What the hull code priced counts by what is proven of it, which is no more than
                # the hull cost; the rest as it is.
                exact, hull = cost[begin:stop], self.cost[begin:stop]
                proven[begin:stop] = np.where(exact > hull, exact, proven[begin:stop])
        return proven, magnitude, usage.sum(axis=0), bool(reached.all())

    def evaluate_exactly(
        self, prices: FloatArray, bins: int, stopped: Callable[[], bool]
    ) -> tuple[DualResult, FloatArray | None]:
        """Return the bound of exact pricing, and the subgradient (None if stopped early)."""
        cost, magnitude, usage, whole = self.exact_costs(prices, bins, stopped)
        found = DualResult(
            prices=prices,
            bound=lagrangian_bound(self.data, prices, cost, magnitude),
            job_costs=cost,
            multipliers=self.multiplier.copy(),
            evaluations=1,
        )
        return found, self.data.capacity - usage if whole else None


def lagrangian_bound(
    data: PricingData, prices: FloatArray, cost: FloatArray, magnitude: FloatArray
) -> float:
    """Return the bound that job costs prove, with the slack of all rounding on the safe side.

    Parameters
    ----------
    cost
        (n,) lower bounds on the costs of the jobs, up to rounding.
    magnitude
        (n,) sums of the absolute values that were added to get them.
    """
    must = data.priced & data.must_meet
    if np.any(np.isinf(cost[must])):
        return -math.inf
    finite = np.isfinite(cost)
    gain = data.weight[finite] - cost[finite]
    gain = np.where(data.must_meet[finite], gain, np.maximum(0.0, gain))
    supply = (data.capacity * prices).ravel()
    total = math.fsum(supply) + math.fsum(gain)
    # A term is a product of at most three numbers; a job adds at most two terms per slot.
    operations = 4.0 * (len(data.boundaries) + 16)
    worth = math.fsum(data.weight[finite])
    added = math.fsum(supply) + math.fsum(magnitude[finite]) + worth
    # No more than the jobs that can be met at all are worth.
    return min(total + operations * _EPS * added, worth)


def minimise(
    dual: DualFunction,
    prices: FloatArray | None,
    iterations: int,
    stopped: Callable[[], bool] | None = None,
) -> DualResult:
    """Minimise the hull dual from `prices` (None = cold start) and certify the best prices.

    Parameters
    ----------
    iterations
        Evaluations, at least 1.
    stopped
        Ends the search early once true, never before the first evaluation.
    """
    data = dual.data
    cold = prices is None
    start = start_prices(data)
    at = start if prices is None else prices
    reach = 0.1 if cold else 0.02
    # The step shrinks by the same factor whatever the number of iterations, up to a round.
    length = max(1, min(iterations, _ROUND))
    decay = (0.02 if cold else 0.1) ** (1.0 / length)
    step = reach * np.maximum(start, 1e-300) / 0.6
    stepper = PriceStepper(at, step, decay)
    best_value, best_prices = math.inf, at
    best_multiplier = dual.multiplier
    value_before = math.inf
    count = 0
    for number in range(max(1, iterations)):
        if number and number % length == 0:
            gained = not value_before - best_value <= _GAINED * abs(best_value)
            step = step * _LONGER if gained else step / _LONGER
            stepper, value_before = PriceStepper(best_prices, step, decay), best_value
        value, gradient = dual.evaluate(stepper.prices)
        count += 1
        if value < best_value:
            best_value, best_prices = value, stepper.prices
            best_multiplier = dual.multiplier.copy()
        if stopped is not None and stopped():
            break
        stepper.advance(gradient)
    bound, costs = dual.certify(best_prices, best_multiplier)
    return DualResult(
        prices=best_prices,
        bound=bound,
        job_costs=costs,
        multipliers=best_multiplier,
        evaluations=count,
    )


def checked_prices(data: PricingData, prices: FloatArray | None) -> FloatArray | None:
    """Return `prices` as a contiguous array.

    Raises
    ------
    UsageError
        If they have another shape than (K, T), are negative or not finite.
    """
    if prices is None:
        return None
    found = np.ascontiguousarray(prices, dtype=np.float64)
    if found.shape != data.capacity.shape:
        raise UsageError(
            f"prices: must have one row per site and one column per slot, "
            f"{data.capacity.shape}, got {found.shape}"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise UsageError("prices: must be finite and at least 0; leave them out for a cold start")
    return found
