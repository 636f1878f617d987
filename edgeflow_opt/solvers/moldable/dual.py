r"""The dual side of the moldable model: one price per unit of each site and slot.

With prices p >= 0 an option o costs :math:`c_o = u_o \sum_{s \in o} p_{k(o) s}`, and

.. math::

    L(p) = \sum_{k,s} C_{ks} p_{ks} + \sum_j \max(0, w_j - \min_{o \text{ of } j} c_o)

bounds the weighted number of jobs met (for jobs that must be met without the max). Each job picks
one option of a list, which an LP does too: the least L(p) is the bound of the linear program of the
moldable model. The dual is minimised as in :mod:`edgeflow_opt.solvers.price.dual`.

**Safeguard.** In floating point a prefix sum of T prices is off by at most T eps/2 of its last
entry, to first order, so that the computed cost of an option of u units exceeds the true one by
at most :math:`u (2T + 3)\, eps/2\, P_{kT}`. Twice that is taken off every cost, and the sums of L
are exactly rounded (``math.fsum``) and raised by their terms' own rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.moldable import Options, options_of
from edgeflow_opt.solvers.bounds import FLOAT_SLACK, attainable_step
from edgeflow_opt.solvers.moldable.kernels import OptionData, price_options
from edgeflow_opt.solvers.price.dual import PriceStepper

if TYPE_CHECKING:
    from edgeflow_opt.formulations.moldable import MoldableModel
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Evaluations of the dual from a cold start.
ITERATIONS = 200

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class OptionTable:
    """The options that matter on level 1, as the kernels take them.

    Parameters
    ----------
    arrays
        The instance.
    options
        All options; ``kept`` (N,) are their indices in this table: an option is left out where
        another one of its job holds no more units in no other slots of the same site.
    data
        The kept ones.
    """

    arrays: ProblemArrays
    options: Options
    kept: IntArray
    data: OptionData


def option_table(arrays: ProblemArrays) -> OptionTable:
    """Enumerate the options of `arrays` and drop those that others dominate."""
    options = options_of(arrays)
    worthy = arrays.must_meet | (arrays.weight > 0)
    kept = np.nonzero(_undominated(arrays, options) & worthy[options.job])[0]
    mode, job = options.mode[kept], options.job[kept]
    data = OptionData(
        first=np.searchsorted(job, np.arange(arrays.num_jobs + 1)).astype(np.int64),
        site=arrays.mode_site[mode],
        start=options.start[kept],
        stop=options.stop[kept],
        units=arrays.mode_units[mode],
    )
    return OptionTable(arrays, options, kept, data)


def _undominated(arrays: ProblemArrays, options: Options) -> BoolArray:
    """Return (N,) the options of which no other one is a part: same site and start, shorter, thinner.

    Of options of a job on a site that begin together, sorted by units, an option stays if it ends
    sooner than all those with fewer units.
    """
    site, units = arrays.mode_site[options.mode], arrays.mode_units[options.mode]
    order = np.lexsort((options.stop, units, options.start, site, options.job))
    group = np.stack([options.job, site, options.start])[:, order]
    kept = np.ones(len(order), dtype=np.bool_)
    stop = options.stop[order]
    least = stop.copy()
    # As many passes as a group has members, but one.
    for _ in range(int(np.diff(arrays.mode_start).max(initial=1))):
        same = np.all(group[:, 1:] == group[:, :-1], axis=0)
        np.minimum(least[1:], np.where(same, least[:-1], least[1:]), out=least[1:])
    if len(order):
        same = np.all(group[:, 1:] == group[:, :-1], axis=0)
        kept[1:] = ~same | (stop[1:] < least[:-1])
    result = np.zeros(len(order), dtype=np.bool_)
    result[order] = kept
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptionDual:
    """Prices and what they prove.

    Parameters
    ----------
    table
        The options priced.
    prices
        (K, T) worth of one more unit of each site in each slot.
    bound
        Proven upper bound on the weighted number of jobs met, rounding slack included; -inf where
        a job that must be met cannot be.
    option_costs
        (N,) proven costs of the kept options at `prices`, rounding taken off.
    job_costs
        (n,) the least of them by job, +inf where it has no option.
    evaluations
        Number of evaluations of the dual function that were used.
    """

    table: OptionTable
    prices: FloatArray
    bound: float
    option_costs: FloatArray
    job_costs: FloatArray
    evaluations: int

    def restrict(self, model: MoldableModel, incumbent: float) -> tuple[SparseModel, int, int]:
        """Return the model of the schedules worth more than `incumbent`, and what is left out.

        With slack ``spare`` = what the prices prove less the next attainable value above `incumbent`, such a
        schedule uses no option o with ``c_o - min(w_j, c_j) > spare``, no job with
        ``c_j - w_j > spare``, and meets every job with ``w_j - c_j > spare``.

        Returns
        -------
        model
            The restricted rows and columns.
        fixed_jobs, num_options
            Jobs whose fate is decided, and options that are left.
        """
        arrays, table = self.table.arrays, self.table
        weight, must = arrays.weight, arrays.must_meet
        step = attainable_step(weight[arrays.has_deadline])
        aim = incumbent
        if step is not None:
            aim = (math.floor(incumbent / step + 1e-9) + 1) * step
        possible = np.isfinite(self.job_costs)
        gain = np.where(possible, weight - self.job_costs, -np.inf)
        # The bound may be what all jobs are worth, which is not what these prices prove.
        earning = np.where(must, gain, np.maximum(0.0, gain))[possible]
        proven = float((arrays.capacity * self.prices).sum() + earning.sum())
        proven = max(proven, self.bound)
        spare = proven - aim + FLOAT_SLACK * max(1.0, abs(proven), abs(aim))
        spare = max(0.0, spare)
        met = arrays.has_deadline & (must | (gain > spare))
        unmet = arrays.has_deadline & ~must & (gain < -spare)
        job = table.options.job[table.kept]
        # What the job earns in the bound: not less than nothing, unless it must be met.
        earned = np.where(must, gain, np.maximum(0.0, gain))[job]
        near = earned - (weight[job] - self.option_costs) <= spare
        kept = np.zeros(len(table.options.mode), dtype=np.bool_)
        kept[table.kept[near]] = True
        kept &= ~unmet[table.options.job]
        return model.restricted(met, unmet, kept), int((met | unmet).sum()), int(kept.sum())


def minimise(
    table: OptionTable,
    prices: FloatArray | None = None,
    iterations: int = ITERATIONS,
    stopped: Callable[[], bool] | None = None,
) -> OptionDual:
    """Minimise the dual from `prices` (None = cold start) and certify the best prices.

    Parameters
    ----------
    iterations
        Evaluations, at least 1.
    stopped
        Ends the search early once true, never before the first evaluation.
    """
    arrays, data = table.arrays, table.data
    n = arrays.num_jobs
    weight = arrays.weight
    must = arrays.must_meet & arrays.has_deadline
    cost, best = np.zeros(len(table.kept)), np.zeros(n, dtype=np.int64)
    change = np.zeros((arrays.num_sites, arrays.num_slots + 1))
    start = _start_prices(table)
    cold = prices is None
    stepper = PriceStepper(
        start if prices is None else prices,
        (0.1 if cold else 0.02) * np.maximum(start, 1e-300) / 0.6,
        min(0.99, (0.01 if cold else 0.1) ** (1.0 / max(1, iterations))),
    )
    least, chosen, count = math.inf, stepper.prices, 0
    for _ in range(max(1, iterations)):
        gain = price_options(data, _prefix(stepper.prices), weight, must, cost, best, change)
        value = float((arrays.capacity * stepper.prices).sum()) + gain
        count += 1
        if value < least:
            least, chosen = value, stepper.prices
        if stopped is not None and stopped():
            break
        stepper.advance(arrays.capacity - np.cumsum(change, axis=1)[:, :-1])
    prefix = _prefix(chosen)
    price_options(data, prefix, weight, must, cost, best, change)
    cost = cost - data.units * (2 * arrays.num_slots + 3) * _EPS * prefix[data.site, -1]
    job_costs = np.full(n, np.inf)
    np.minimum.at(job_costs, table.options.job[table.kept], cost)
    return OptionDual(
        table=table,
        prices=chosen,
        bound=_bound(arrays, must, chosen, job_costs),
        option_costs=cost,
        job_costs=job_costs,
        evaluations=count,
    )


def _prefix(prices: FloatArray) -> FloatArray:
    """Return (K, T+1) the sums of the prices before each slot."""
    prefix = np.zeros((prices.shape[0], prices.shape[1] + 1))
    np.cumsum(prices, axis=1, out=prefix[:, 1:])
    return prefix


def _start_prices(table: OptionTable) -> FloatArray:
    """Return (K, T) prices to begin from: 0.6 of the worth of all jobs spread over the capacity."""
    arrays = table.arrays
    possible = np.diff(table.data.first) > 0
    supply = float((arrays.capacity * arrays.lengths).sum())
    level = 0.6 * float(arrays.weight[possible].sum()) / supply if supply > 0 else 0.0
    prices: FloatArray = np.tile(level * arrays.lengths, (arrays.num_sites, 1))
    return prices


def _bound(
    arrays: ProblemArrays, must: BoolArray, prices: FloatArray, job_costs: FloatArray
) -> float:
    """Return the bound that proven costs prove, with the rounding of the sums on the safe side."""
    if np.isinf(job_costs[must]).any():
        return -math.inf
    possible = np.isfinite(job_costs)
    weight = arrays.weight[possible]
    gain = weight - job_costs[possible]
    gain = np.where(must[possible], gain, np.maximum(0.0, gain))
    supply = (arrays.capacity * prices).ravel()
    total = math.fsum(supply) + math.fsum(gain)
    # Each term has been rounded at most three times.
    added = math.fsum(supply) + math.fsum(np.abs(gain)) + math.fsum(weight)
    return min(total + 8.0 * _EPS * added, math.fsum(weight))
