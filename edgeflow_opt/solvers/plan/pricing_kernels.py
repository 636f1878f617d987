"""Compiled kernel of the pricing: a bound on the cost of every plan, and a plan, for each job."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.plan.label_kernels import cheapest_plan
from edgeflow_opt.solvers.price.insertion_kernels import insert
from edgeflow_opt.solvers.price.knapsack_kernels import knapsack
from edgeflow_opt.solvers.price.lossy_kernels import lossy_knapsack
from edgeflow_opt.solvers.price.row_kernels import credit_of, row_cost
from edgeflow_opt.solvers.price.run_kernels import cheapest_run

#: Not a literal: the knapsacks are compiled once for either rounding.
_OPTIMISTIC = np.bool_(True)


@entry
def price_plans(
    data: Any,
    prices: Any,
    allowed: Any,
    may_idle: Any,
    begin: int,
    stop: int,
    multiplier: Any,
    hull_cost: Any,
    whole_cost: Any,
    labels: Any,
    space: Any,
    cost: Any,
    plan_cost: Any,
    rows: Any,
) -> int:
    """Price jobs ``begin : stop`` by one mode per slot, losses included.

    Jobs that the hull prices above their weight are left at that price, without a plan. Where
    there are too many labels, the bound is that of bins of work, rounded optimistically.

    Parameters
    ----------
    allowed, may_idle
        What a branch allows; the bounds of moldable jobs, and the plans of such and of jobs with
        too many labels, do not heed it.
    multiplier, hull_cost, whole_cost
        (n,) from :func:`~edgeflow_opt.solvers.price.hull_kernels.price_jobs` at the same prices.
    labels, space
        Work arrays of one thread.
    cost
        (n,) output: at most the cost of every plan that meets the deadline.
    plan_cost
        (n,) output: priced cost of the plan in `rows`; +inf = none was found.
    rows
        (n, T) output: the plan of each job.

    Returns
    -------
    tables
        Number of jobs that had too many labels.
    """
    num_slots = prices.shape[1]
    row = space.row
    tables = 0
    for j in range(begin, stop):
        cost[j] = hull_cost[j]
        plan_cost[j] = np.inf
        must = data.jobs[j].must_meet
        if cost[j] == np.inf or (cost[j] >= data.jobs[j].weight and not must):
            continue
        first, end = data.jobs[j].first, data.jobs[j].end
        unbranched = True
        for s in range(num_slots):
            row[s] = -1
            unbranched = unbranched and may_idle[j, s]
            for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                unbranched = unbranched and allowed[s, m]
        if not data.jobs[j].malleable:
            found = cheapest_run(data, j, prices, data.capacity, data.jobs[j].need)[0]
            if found < np.inf:
                # Sliding sums round by at most eps times all that was ever added to them.
                added = 0.0
                for i in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                    for s in range(first, end):
                        added += prices[data.modes[i].site, s] * data.modes[i].units
                found -= 1e-12 * added
        else:
            upper = data.jobs[j].weight
            if must:
                # More than any plan costs, where neither job nor units are worth anything too.
                for s in range(first, end):
                    dearest = 0.0
                    for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                        dearest = max(dearest, prices[data.modes[m].site, s] * data.modes[m].units)
                    upper += dearest
                upper = 2.0 * upper + 1.0
            if not data.jobs[j].lossy and unbranched:
                upper = min(upper, whole_cost[j])
            found, exact = cheapest_plan(
                data, j, prices, allowed, may_idle, data.jobs[j].need, upper, labels, row
            )
            if not exact and found < upper:
                # Too many labels: bins of work bound the cost, too, and find another plan.
                tables += 1
                found = max(found, _binned(
                    data, j, prices, multiplier[j], hull_cost[j], upper, space, row
                ))  # fmt: skip
            elif not exact and must and (data.jobs[j].lossy or not unbranched):
                found = np.inf
        cost[j] = max(hull_cost[j], found)
        if cost[j] == np.inf or (cost[j] >= data.jobs[j].weight and not must):
            continue
        if data.jobs[j].malleable and credit_of(data, j, row, first, end) >= data.jobs[j].target:
            plan_cost[j] = row_cost(data, row, prices, first, end)
        else:
            plan_cost[j] = insert(data, j, prices, data.capacity, space)
        for s in range(num_slots):
            rows[j, s] = row[s] if first <= s < end else -1
    return tables


@kernel
def _binned(
    data: Any,
    j: int,
    prices: Any,
    multiplier: float,
    hull_cost: float,
    upper: float,
    space: Any,
    row: Any,
) -> float:
    """Return a bound on the cost of every plan of job `j`, by bins of work; `row` is its plan."""
    if data.jobs[j].lossy:
        bins = (space.best.shape[1] - 1) // 2
        return lossy_knapsack(
            data, j, prices, data.capacity, data.jobs[j].need, upper, bins, _OPTIMISTIC,
            space.lossy_table, space.gain, space.best, row,
        )  # fmt: skip
    bins = space.table.shape[1] - 1
    return knapsack(
        data, j, prices, data.capacity, space.beyond, data.jobs[j].need, multiplier, hull_cost, upper,
        bins, _OPTIMISTIC, space.table, space.start, space.mode, space.gain, space.cost, space.steps, row,
    )  # fmt: skip
