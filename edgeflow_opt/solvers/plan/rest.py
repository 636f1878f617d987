"""What is left to plan where some plans are given: capacities, and the jobs that are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.formulations.plan_columns import JobPlans
    from edgeflow_opt.problem.arrays import BoolArray, IntArray
    from edgeflow_opt.solvers.price.pricing_data import PricingData


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """What is left where some plans are given.

    Parameters
    ----------
    data
        The instance with what is left of the capacities, its open jobs the only ones priced.
    chosen
        The given plans, by number.
    value
        What the given plans are worth.
    """

    data: PricingData
    chosen: IntArray
    value: float

    @classmethod
    def whole(cls, data: PricingData) -> Rest:
        """Return the rest where nothing is given."""
        return cls(data, np.zeros(0, dtype=np.int64), 0.0)

    def without(self, plans: JobPlans, more: IntArray) -> Rest:
        """Return the rest once the plans `more` are given, too."""
        data = self.data
        job, rows = plans.job[more], plans.rows[more]
        given = np.zeros(len(data.weight), dtype=np.bool_)
        given[job] = True
        capacity = data.capacity - taken_by(data, rows)
        open_jobs = data.with_fates(data.must_meet & ~given, data.priced & ~given)
        return Rest(
            open_jobs._replace(
                capacity=capacity, tables=open_jobs.tables._replace(capacity=capacity)
            ),
            np.concatenate([self.chosen, more]),
            self.value + float(data.weight[job].sum()),
        )

    def admits(self, plans: JobPlans) -> BoolArray:
        """Return (N,) which of `plans` are given, or fit into what is left."""
        data = self.data
        slots = np.arange(plans.rows.shape[1])
        held = plans.rows >= 0
        mode = np.where(held, plans.rows, 0)
        units = np.where(held, data.units[mode], 0)
        fits = (units <= data.capacity[data.site[mode], slots]).all(axis=1)
        fits &= data.priced[plans.job]
        fits[self.chosen] = True
        return np.asarray(fits)


def taken_by(data: PricingData, rows: IntArray) -> IntArray:
    """Return (K, T) the units that the plans `rows` (N, T) take together."""
    plan, slot = np.nonzero(rows >= 0)
    mode = rows[plan, slot]
    taken = np.zeros_like(data.capacity)
    np.add.at(taken, (data.site[mode], slot), data.units[mode])
    return taken
