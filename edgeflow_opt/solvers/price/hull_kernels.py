"""Compiled kernels of the hull pricing: the cheapest fractional way to do a job's work.

In every slot the modes of a job (and idling) are points (priced cost, credited work). The lower
hull of these points is a chain of segments of rising cost per unit of work; filling segments in
that order until the work is done gives the optimum of the job's linear program, in which a slot may
be shared among modes (Kellerer, Pferschy, Pisinger: Knapsack Problems, 2004, section 11.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel

#: Jobs whose deadline cannot be met at any price cost this.
NEVER = np.inf


@kernel
def useful_length(data: Any, j: int, s: int) -> float:
    """Return the seconds of slot `s` before the deadline of job `j`."""
    end = data.boundaries[s + 1]
    if data.jobs[j].deadline < end:
        end = data.jobs[j].deadline
    return max(0.0, end - data.boundaries[s])


@kernel
def mode_cost(data: Any, m: int, s: int, prices: Any, available: Any, beyond: Any) -> float:
    """Return the priced cost of mode `m` in slot `s`; +inf where it must not be held.

    Parameters
    ----------
    prices, available
        (K, T) price of a unit; units that are left, below 0 where too many are taken.
    beyond
        (K, T) price of a unit beyond those that are left, on top; +inf = none may be taken.
    """
    k, units = data.modes[m].site, data.modes[m].units
    cost = prices[k, s] * units
    excess = units - available[k, s]
    if excess > 0:
        if units > data.capacity[k, s]:
            return np.inf
        cost += beyond[k, s] * min(excess, units)
    return cost


@kernel
def segments_of(
    data: Any, j: int, prices: Any, available: Any, beyond: Any, slots: Any, floats: Any
) -> int:
    """List the hull segments of job `j` in all its slots and return their number.

    Parameters
    ----------
    prices, available, beyond
        As in :func:`mode_cost`.
    slots
        (3, S) output: slot, lower mode (-1 = idle), upper mode of each segment.
    floats
        (3, S) output: cost per unit of work, work, cost of each segment.
    """
    count = 0
    lo, hi = data.jobs[j].mode_start, data.jobs[j].mode_end
    width = hi - lo
    point_cost = np.empty(width)
    point_mode = np.empty(width, np.int64)
    for s in range(data.jobs[j].first, data.jobs[j].end):
        length = useful_length(data, j, s)
        points = 0
        for m in range(lo, hi):
            # As in `mode_cost`, a call of which would take as long as all the rest.
            k, units = data.modes[m].site, data.modes[m].units
            cost = prices[k, s] * units
            excess = units - available[k, s]
            if excess > 0:
                if units > data.capacity[k, s] or beyond[k, s] == np.inf:
                    continue
                cost += beyond[k, s] * min(excess, units)
            i = points
            while i > 0 and point_cost[i - 1] > cost:
                point_cost[i] = point_cost[i - 1]
                point_mode[i] = point_mode[i - 1]
                i -= 1
            point_cost[i] = cost
            point_mode[i] = m
            points += 1
        base = count
        for i in range(points):
            m = point_mode[i]
            cost = point_cost[i]
            rate = data.modes[m].rate
            while True:
                if count > base:
                    below = slots[2, count - 1]
                    below_cost = floats[2, count - 1]
                    below_rate = data.modes[below].rate
                else:
                    below = -1
                    below_cost = 0.0
                    below_rate = 0.0
                if rate <= below_rate:
                    break
                density = (cost - below_cost) / ((rate - below_rate) * length)
                if count > base and density <= floats[0, count - 1]:
                    count -= 1
                    continue
                slots[0, count] = s
                slots[1, count] = below
                slots[2, count] = m
                floats[0, count] = density
                floats[1, count] = (rate - below_rate) * length
                floats[2, count] = cost  # of the upper mode, for now
                count += 1
                break
        for i in range(count - 1, base, -1):
            floats[2, i] -= floats[2, i - 1]
    return count


@kernel
def select_segments(floats: Any, count: int, work: float, order: Any) -> tuple[int, float]:
    """Put the segments that are filled first into ``order[:taken]``, the next one behind them.

    Returns
    -------
    taken, open_work
        Number of segments used whole; work left for segment ``order[taken]``. taken = -1 where all
        segments together do less than `work`.
    """
    density, amount = floats[0], floats[1]
    total = 0.0
    for i in range(count):
        order[i] = i
        total += amount[i]
    if total < work or count == 0:
        return -1, 0.0
    lo, hi = 0, count
    left = work
    while hi - lo > 12:
        a, b, c = density[order[lo]], density[order[(lo + hi) // 2]], density[order[hi - 1]]
        pivot = max(min(a, b), min(max(a, b), c))
        below, i, above = lo, lo, hi
        work_below = 0.0
        work_equal = 0.0
        while i < above:
            index = order[i]
            value = density[index]
            if value < pivot:
                order[i] = order[below]
                order[below] = index
                work_below += amount[index]
                below += 1
                i += 1
            elif value > pivot:
                above -= 1
                order[i] = order[above]
                order[above] = index
            else:
                work_equal += amount[index]
                i += 1
        if work_below >= left:
            hi = below
        elif work_below + work_equal >= left:
            left -= work_below
            lo, hi = below, above
            break
        else:
            left -= work_below + work_equal
            lo = above
    if hi - lo <= 12:
        for i in range(lo + 1, hi):
            index = order[i]
            value = density[index]
            k = i
            while k > lo and density[order[k - 1]] > value:
                order[k] = order[k - 1]
                k -= 1
            order[k] = index
    taken = lo
    while taken < count - 1 and amount[order[taken]] < left:
        left -= amount[order[taken]]
        taken += 1
    return taken, min(left, amount[order[taken]])


@entry
def price_jobs(
    data: Any,
    prices: Any,
    begin: int,
    stop: int,
    multiplier: Any,
    cost: Any,
    whole_cost: Any,
    usage: Any,
) -> float:
    """Price jobs ``begin : stop`` by the hull and return the sum of their gains ``w - c``.

    Parameters
    ----------
    multiplier, cost, whole_cost
        (n,) output: cost of the last unit of work, cost of the job, cost if the last segment is
        used whole (an integral plan); +inf where the deadline cannot be met.
    usage
        (K, T) output, added to: units used by the jobs that are worth it.
    """
    total = 0.0
    size = data.most_segments
    slots = np.empty((3, size), np.int64)
    floats = np.empty((3, size))
    order = np.empty(size, np.int64)
    beyond = np.full_like(prices, np.inf)
    for j in range(begin, stop):
        cost[j] = NEVER
        whole_cost[j] = NEVER
        multiplier[j] = 0.0
        if not data.jobs[j].priced:
            continue
        count = segments_of(data, j, prices, data.capacity, beyond, slots, floats)
        taken, left = select_segments(floats, count, data.jobs[j].need, order)
        if taken < 0:
            continue
        spent = 0.0
        for i in range(taken):
            spent += floats[2, order[i]]
        last = order[taken]
        share = left / floats[1, last]
        multiplier[j] = floats[0, last]
        cost[j] = spent + share * floats[2, last]
        whole_cost[j] = spent + floats[2, last]
        gain = data.jobs[j].weight - cost[j]
        if gain <= 0.0 and not data.jobs[j].must_meet:
            continue
        total += gain
        for i in range(taken + 1):
            segment = order[i]
            part = share if i == taken else 1.0
            s = slots[0, segment]
            below, above = slots[1, segment], slots[2, segment]
            usage[data.modes[above].site, s] += part * data.modes[above].units
            if below >= 0:
                usage[data.modes[below].site, s] -= part * data.modes[below].units
    return total


@entry
def certified_costs(
    data: Any, prices: Any, begin: int, stop: int, multiplier: Any, cost: Any, magnitude: Any
) -> None:
    """Recompute the costs of jobs ``begin : stop`` from below, from their multipliers alone.

    For any multiplier q >= 0, ``q need - sum_s max(0, max_m (q rate_m length_s - price_s units_m))``
    is at most the cost of every plan of the job. Nothing of the hull code is trusted.

    Parameters
    ----------
    cost
        (n,) output; +inf where all slots together cannot do the work.
    magnitude
        (n,) output: sum of the absolute values that were added, for the rounding slack.
    """
    for j in range(begin, stop):
        cost[j] = NEVER
        magnitude[j] = 0.0
        if not data.jobs[j].priced:
            continue
        q = multiplier[j]
        value = q * data.jobs[j].need
        size = value
        most = 0.0
        for s in range(data.jobs[j].first, data.jobs[j].end):
            length = useful_length(data, j, s)
            best = 0.0
            best_rate = 0.0
            largest = 0.0
            for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                k = data.modes[m].site
                if data.modes[m].units > data.capacity[k, s]:
                    continue
                worth = q * (data.modes[m].rate * length)
                price = prices[k, s] * data.modes[m].units
                best = max(best, worth - price)
                best_rate = max(best_rate, data.modes[m].rate)
                largest = max(largest, worth + price)
            value -= best
            size += largest
            most += best_rate * length
        # `need` already lies below what the checker demands by more than the rounding of `most`.
        if most >= data.jobs[j].need:
            cost[j] = max(0.0, value)
            magnitude[j] = size
