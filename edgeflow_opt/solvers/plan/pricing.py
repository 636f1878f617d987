"""The pricing problem: bounds and plans of all jobs at given prices.

The Lagrangian bound at prices p >= 0 is that of the plan master,

    L(p) = sum_{k,s} capacity_ks p_ks + sum_j max(0, w_j - c_j(p)),

with c_j(p) a lower bound on the priced cost of every plan of job j that meets its deadline, losses
included (no max for a job that must be met). It holds at any prices, so that it may be taken at any
round, and its least value is that of the linear relaxation of the master up to the bins of work.

Floating point: as in :mod:`edgeflow_opt.solvers.price.dual`, whose own sum is used. Prices are plain
numbers, work is lowered by more than the rounding of the checker's sums, gains are rounded up and
costs down in whole bins, and ``operations * eps * (sum of absolute values)`` is added. Nothing that
the linear programming solver says enters the bound, but the prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.solvers.price.dual import DualResult, HullDual, lagrangian_bound, run_blocks
from edgeflow_opt.solvers.price.insertion_kernels import workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import FloatArray, IntArray
    from edgeflow_opt.solvers.plan.branch import Branch
    from edgeflow_opt.solvers.plan.rest import Rest
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Jobs that are priced between two looks at the clock.
_CHUNK = 16

#: Bins of work per job without losses that has too many labels.
BINS = 3200


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """What the pricing of all jobs at some prices has found.

    Parameters
    ----------
    dual
        The prices, the Lagrangian bound and the job costs behind it.
    job
        (N,) the jobs for which a plan was found that is worth its price.
    rows
        (N, T) their plans, in kept modes of the pricing data.
    cost
        (N,) priced costs of these plans.
    usage
        (K, T) units that these plans take together.
    complete
        Whether all jobs were priced; otherwise it was stopped, and some have their hull cost only.
    """

    dual: DualResult
    job: IntArray
    rows: IntArray
    cost: FloatArray
    usage: FloatArray
    complete: bool


class PlanPricing:
    """Prices all jobs of an instance, by threads; results do not depend on their number.

    Parameters
    ----------
    data
        The instance.
    workers
        Threads, at least 1.
    stopped
        Asked every few jobs; once true, the jobs left keep their hull costs.
    """

    def __init__(self, data: PricingData, workers: int, stopped: Callable[[], bool]) -> None:
        self.data = data
        self._hull = HullDual(data, workers)
        self._stopped = stopped
        self._spaces: dict[int, tuple[Any, Any]] = {}
        self.tables = 0
        """Prices of jobs so far that had too many labels, so that bins of work bound them."""

    def price(self, prices: FloatArray, branch: Branch, rest: Rest | None = None) -> Priced:
        """Return bound and plans at `prices` (K, T), at least 0, for the schedules of `branch`.

        With `rest` for what is left where some plans are given: the bound counts their worth.
        """
        data = self.data if rest is None else rest.data
        data = data.with_fates(data.must_meet | branch.met, data.priced & ~branch.unmet)
        given = 0.0 if rest is None else rest.value
        hull = self._hull
        hull.data = data
        n, num_slots = len(data.weight), prices.shape[1]
        hull.evaluate(prices)
        proven, magnitude = hull.certify_costs(prices, hull.multiplier)
        hull_cost = np.where(data.priced, hull.cost, np.inf)
        cost, plan_cost = hull_cost.copy(), np.full(n, np.inf)
        rows = np.full((n, num_slots), -1, dtype=np.int64)
        reached = np.zeros(n, dtype=np.bool_)
        tables = [0] * len(hull.blocks)

        def work(number: int, begin: int, stop: int) -> None:
            from edgeflow_opt.solvers.plan.pricing_kernels import price_plans

            for first in range(begin, stop, _CHUNK):
                if self._stopped():
                    return
                last = min(stop, first + _CHUNK)
                tables[number] += price_plans(
                    data.tables, prices, branch.allowed, branch.may_idle, first, last, hull.multiplier,
                    hull_cost, hull.whole_cost, *self._space(number), cost, plan_cost, rows,
                )  # fmt: skip
                reached[first:last] = True

        run_blocks(hull.blocks, work, hull.workers)
        self.tables += sum(tables)
        # What the hull code priced counts by what is proven of it, which is no more than the hull
        # cost; the rest as it is.
        proven = np.where(reached & (cost > hull_cost), cost, proven)
        proven = np.where(data.priced, proven, np.inf)
        found = np.flatnonzero(reached & np.isfinite(plan_cost))
        found = found[branch.admits(found, rows[found])]
        usage = np.zeros_like(prices)
        plan, slot = np.nonzero(rows[found] >= 0)
        mode = rows[found[plan], slot]
        np.add.at(usage, (data.site[mode], slot), data.units[mode])
        return Priced(
            dual=DualResult(
                prices=prices,
                bound=lagrangian_bound(data, prices, proven, magnitude) + given,
                job_costs=proven,
                multipliers=hull.multiplier.copy(),
                evaluations=1,
            ),
            job=found,
            rows=rows[found],
            cost=plan_cost[found],
            usage=usage,
            complete=bool(reached.all()),
        )

    def _space(self, number: int) -> tuple[Any, Any]:
        """Return the work arrays of a block."""
        if number not in self._spaces:
            from edgeflow_opt.solvers.plan.label_kernels import label_space

            self._spaces[number] = (label_space(self.data), workspace(self.data, BINS))
        return self._spaces[number]
