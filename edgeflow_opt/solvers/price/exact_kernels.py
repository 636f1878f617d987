"""Compiled kernel of the exact dual: all jobs priced with plans of one mode per slot.

A job without losses is first priced with few bins of work, rounded up: where the plan found does all
its work nonetheless, no other is cheaper. Otherwise the cheapest plan of more bins, rounded down, is
the measure for the states without bins (:mod:`~edgeflow_opt.solvers.price.list_kernels`); only where
there are too many of them bins decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.price.hull_kernels import useful_length
from edgeflow_opt.solvers.price.knapsack_kernels import knapsack
from edgeflow_opt.solvers.price.list_kernels import list_knapsack
from edgeflow_opt.solvers.price.lossy_kernels import lossy_knapsack
from edgeflow_opt.solvers.price.run_kernels import cheapest_run

#: Bins of the first pricing; states of a job after which bins are the quicker ones.
_FEW_BINS, _STATES = 400, 1 << 15
#: Jobs with losses get this share of the bins: they cost every mode times every slot.
_LOSSY_SHARE = 4
#: States of a table at most, of 4 bytes each: 200 MB per thread.
_MOST_STATES = 50_000_000
#: Not a literal: the knapsacks are compiled once for either rounding.
_OPTIMISTIC, _PESSIMISTIC = np.bool_(True), np.bool_(False)


@kernel
def _work_of(data: Any, j: int, plan: Any) -> float:
    """Return the work that `plan` does before the deadline of job `j`."""
    work = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        if plan[s] >= 0:
            work += data.modes[plan[s]].rate * useful_length(data, j, s)
    return work


@kernel
def _cost_of(data: Any, j: int, plan: Any, prices: Any) -> float:
    """Return the priced cost of `plan` of job `j`."""
    cost = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        if plan[s] >= 0:
            cost += prices[data.modes[plan[s]].site, s] * data.modes[plan[s]].units
    return cost


@entry
def price_jobs_exactly(
    data: Any,
    prices: Any,
    begin: int,
    stop: int,
    multiplier: Any,
    hull_cost: Any,
    whole_cost: Any,
    bins: int,
    cost: Any,
    usage: Any,
) -> float:
    """Price jobs ``begin : stop`` by one mode per slot; return the sum of gains.

    Jobs that the hull prices above their weight are left at that price.

    Parameters
    ----------
    multiplier, hull_cost, whole_cost
        (n,) from :func:`~edgeflow_opt.solvers.price.hull_kernels.price_jobs` at the same prices.
    cost
        (n,) output: at most the cost of every plan that meets the deadline.
    usage
        (K, T) output, added to: units used by the jobs that are worth it.
    """
    num_slots = prices.shape[1]
    size = data.most_segments
    bins = max(1, min(bins, _MOST_STATES // (num_slots + 1)))
    table = np.empty((num_slots + 1, bins + 1), np.int32)
    start = np.empty((2, num_slots + 1), np.int64)
    mode = np.empty(size, np.int64)
    gain = np.empty(size)
    option_cost = np.empty(size)
    steps = np.empty((2, size), np.int32)
    plan = np.empty(num_slots, np.int64)
    few_bins = min(_FEW_BINS, bins)
    amounts = np.empty((2, _STATES))
    origins = np.empty((2, _STATES), np.int32)
    rest = np.empty((2, num_slots + 1))
    first = np.empty(num_slots + 2, np.int64)
    beyond = np.full_like(prices, np.inf)
    states = data.most_modes + data.capacity.shape[0]
    # Without jobs that lose anything the table is a token one.
    lossy_bins = min(bins // _LOSSY_SHARE, _MOST_STATES // (2 * states * (num_slots + 1)))
    lossy_bins = max(1, lossy_bins)
    any_lossy = False
    for j in range(begin, stop):
        any_lossy = any_lossy or (data.jobs[j].lossy and data.jobs[j].malleable)
    deep = num_slots + 1 if any_lossy else 1
    lossy_table = np.empty((deep, states, 2 * lossy_bins + 1), np.int32)
    best = np.empty((data.capacity.shape[0], 2 * lossy_bins + 1), np.int32)
    total = 0.0
    for j in range(begin, stop):
        cost[j] = hull_cost[j]
        must = data.jobs[j].must_meet
        if cost[j] == np.inf or (cost[j] >= data.jobs[j].weight and not must):
            continue
        if not data.jobs[j].malleable:
            found, m, a, b = cheapest_run(data, j, prices, data.capacity, data.jobs[j].need)
            cost[j] = found
            if found == np.inf:
                continue
            # Sliding sums round by at most eps times all that was ever added to them.
            added = 0.0
            for i in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                for s in range(data.jobs[j].first, data.jobs[j].end):
                    added += prices[data.modes[i].site, s] * data.modes[i].units
            cost[j] = max(hull_cost[j], found - 1e-12 * added)
            worth = data.jobs[j].weight - cost[j]
            if worth > 0.0 or must:
                total += worth
                for s in range(a, b):
                    usage[data.modes[m].site, s] += data.modes[m].units
            continue
        if data.jobs[j].lossy:
            upper = data.jobs[j].weight
            if must:
                for s in range(data.jobs[j].first, data.jobs[j].end):
                    dearest = 0.0
                    for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                        dearest = max(dearest, prices[data.modes[m].site, s] * data.modes[m].units)
                    upper += dearest
            found = lossy_knapsack(
                data, j, prices, data.capacity, data.jobs[j].need, upper, lossy_bins, _OPTIMISTIC,
                lossy_table, gain, best, plan,
            )  # fmt: skip
        else:
            upper = whole_cost[j] if must else min(whole_cost[j], data.jobs[j].weight)
            need, q, hull = data.jobs[j].need, multiplier[j], hull_cost[j]
            found = knapsack(
                data, j, prices, data.capacity, beyond, need, q, hull, upper, few_bins, _OPTIMISTIC,
                table, start, mode, gain, option_cost, steps, plan,
            )  # fmt: skip
            if few_bins < bins and found < upper and _work_of(data, j, plan) < need:
                bound = found
                found = knapsack(
                    data, j, prices, data.capacity, beyond, need, q, hull, upper, bins,
                    _PESSIMISTIC, table, start, mode, gain, option_cost, steps, plan,
                )  # fmt: skip
                if found < upper:
                    # Costs were rounded down; that plan, too, must be among those that are looked at.
                    upper = min(upper, (1.0 + 1e-9) * _cost_of(data, j, plan, prices))
                found = list_knapsack(
                    data, j, prices, data.capacity, beyond, need, q, hull, upper,
                    start, mode, gain, option_cost, plan, amounts, origins, rest, first,
                )  # fmt: skip
                if found == -np.inf:
                    found = knapsack(
                        data, j, prices, data.capacity, beyond, need, q, hull, upper, bins,
                        _OPTIMISTIC, table, start, mode, gain, option_cost, steps, plan,
                    )  # fmt: skip
                found = max(bound, found)
        cost[j] = max(hull_cost[j], found)
        worth = data.jobs[j].weight - cost[j]
        if worth <= 0.0 and not must:
            continue
        total += worth
        for s in range(data.jobs[j].first, data.jobs[j].end):
            m = plan[s]
            if m >= 0:
                usage[data.modes[m].site, s] += data.modes[m].units
    return total
