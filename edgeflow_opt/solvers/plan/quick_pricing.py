"""Pricing for plans alone: a cheap plan of each job at given prices, without a proof that it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.plan.pricing import Priced
from edgeflow_opt.solvers.price.dual import DualResult
from edgeflow_opt.solvers.price.insertion_kernels import workspace
from edgeflow_opt.solvers.price.plan_kernels import cheapest_plans
from edgeflow_opt.solvers.price.search import INSERTION_BINS

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.price.insertion_kernels import Workspace
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Plans of jobs that are worth so much less than their price, by weight, are of no interest.
_LEAST_GAIN = -0.2


class QuickPricing:
    """Prices jobs by the plans that insertion finds, some fifty times as fast as labels do.

    What it calls a bound is not proven: a plan that is dearer than need be makes it too small, by
    the rounding of bins of work. It tells a search where to look, and must not be told to others.

    Parameters
    ----------
    data
        The instance.
    space
        Work arrays of one thread; None = new ones.
    """

    def __init__(self, data: PricingData, space: Workspace | None = None) -> None:
        self.data = data
        self._space = workspace(data, INSERTION_BINS) if space is None else space

    def price(self, prices: FloatArray) -> Priced:
        """Return plans at `prices` (K, T), and about what no schedule is worth more than."""
        data = self.data
        must = data.must_meet & data.priced
        jobs = np.flatnonzero(data.priced)
        cost = np.empty(len(jobs))
        rows = np.full((len(jobs), prices.shape[1]), -1, dtype=np.int64)
        cheapest_plans(data.tables, jobs, prices, data.capacity, self._space, cost, rows)
        weight = data.weight[jobs]
        gain = weight - cost
        taken = np.isfinite(cost) & ((gain > 0.0) | must[jobs])
        lacking = (must[jobs] & ~np.isfinite(cost)).any()
        bound = float((data.capacity * prices).sum() + gain[taken].sum())
        costs = np.full(len(data.weight), np.inf)
        costs[jobs] = cost
        kept = np.isfinite(cost) & ((gain > _LEAST_GAIN * weight) | must[jobs])
        plan, slot = np.nonzero(rows[taken] >= 0)
        mode = rows[taken][plan, slot]
        usage = np.zeros_like(prices)
        np.add.at(usage, (data.site[mode], slot), data.units[mode])
        return Priced(
            dual=DualResult(
                prices=prices,
                bound=-math.inf if lacking else bound,
                job_costs=costs,
                multipliers=np.zeros(len(costs)),
                evaluations=1,
            ),
            job=jobs[kept],
            rows=rows[kept],
            cost=cost[kept],
            usage=usage,
            complete=True,
        )
