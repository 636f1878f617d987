"""Compiled kernels of the interval relaxation: hull prices of kinds, and the costs of jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from edgeflow_opt.solvers.price.hull_kernels import select_segments


@njit(cache=True, nogil=True)
def overlap_s(data: Any, j: int, t: int) -> float:
    """Return the seconds of interval `t` that lie in the window of job `j`."""
    if t == data.first[j]:
        return data.head_s[j]
    if t == data.end[j] - 1:
        return data.tail_s[j]
    return data.boundaries[t + 1] - data.boundaries[t]


@njit(cache=True, nogil=True)
def build_hulls(data: Any, prices: Any, count: Any, mode: Any, density: Any, gain: Any) -> None:
    """Build the lower hull of (cost, rate) of a second in each interval, for each kind of job.

    Parameters
    ----------
    prices
        (K, T) cost of a unit for a second.
    count
        (C, T) output: number of segments of the hull.
    mode, density, gain
        (C, T, M') output by segment: the mode at its upper end (the lower end is that of the
        segment before, idle for the first), cost per unit of work, work per second.
    """
    width = data.most_modes
    point_cost = np.empty(width)
    point_mode = np.empty(width, np.int64)
    for c in range(len(data.mode_start) - 1):
        for t in range(data.kind_first[c], data.kind_end[c]):
            points = 0
            for m in range(data.mode_start[c], data.mode_start[c + 1]):
                k = data.site[m]
                if data.units[m] > data.most_units[k, t]:
                    continue
                cost = prices[k, t] * data.units[m]
                i = points
                while i > 0 and point_cost[i - 1] > cost:
                    point_cost[i] = point_cost[i - 1]
                    point_mode[i] = point_mode[i - 1]
                    i -= 1
                point_cost[i] = cost
                point_mode[i] = m
                points += 1
            size = 0
            for i in range(points):
                m = point_mode[i]
                rate = data.rate[m]
                while True:
                    below_cost, below_rate = 0.0, 0.0
                    if size > 0:
                        below = mode[c, t, size - 1]
                        below_rate = data.rate[below]
                        below_cost = prices[data.site[below], t] * data.units[below]
                    if rate <= below_rate:
                        break
                    slope = (point_cost[i] - below_cost) / (rate - below_rate)
                    if size > 0 and slope <= density[c, t, size - 1]:
                        size -= 1
                        continue
                    mode[c, t, size] = m
                    density[c, t, size] = slope
                    gain[c, t, size] = rate - below_rate
                    size += 1
                    break
            count[c, t] = size


@njit(cache=True, nogil=True)
def price_jobs(
    data: Any,
    fate: Any,
    count: Any,
    mode: Any,
    density: Any,
    gain: Any,
    multiplier: Any,
    cost: Any,
    usage: Any,
    scratch: Any,
    order: Any,
) -> float:
    """Price all jobs that are not out and return the sum of their gains ``w - c``.

    Parameters
    ----------
    fate
        (n,) 1 = met for certain (its gain counts even where negative), 0 = open, -1 = out.
    count, mode, density, gain
        Of :func:`build_hulls`.
    multiplier, cost
        (n,) output: cost of the last unit of work, cost of the job; +inf where it cannot be met.
    usage
        (K, T) output, added to: unit-seconds used by the jobs that are worth it.
    scratch, order
        (4, S) and (S,) work arrays, S >= the segments of any job.
    """
    total = 0.0
    for j in range(len(data.need)):
        if fate[j] < 0:
            cost[j] = np.inf
            continue
        c = data.kind[j]
        size = 0
        for t in range(data.first[j], data.end[j]):
            length = overlap_s(data, j, t)
            if length <= 0.0:
                continue
            for i in range(count[c, t]):
                scratch[0, size] = density[c, t, i]
                scratch[1, size] = gain[c, t, i] * length
                scratch[2, size] = t
                scratch[3, size] = i
                size += 1
        taken, left = select_segments(scratch, size, data.need[j], order)
        if taken < 0:
            cost[j] = np.inf
            multiplier[j] = 0.0
            if fate[j] > 0:
                return -np.inf
            continue
        spent = 0.0
        for i in range(taken):
            spent += scratch[0, order[i]] * scratch[1, order[i]]
        last = order[taken]
        multiplier[j] = scratch[0, last]
        cost[j] = spent + left * scratch[0, last]
        worth = data.weight[j] - cost[j]
        if worth <= 0.0 and fate[j] == 0:
            continue
        total += worth
        for i in range(taken + 1):
            segment = order[i]
            t = int(scratch[2, segment])
            level = int(scratch[3, segment])
            above = mode[c, t, level]
            seconds = overlap_s(data, j, t)
            if i == taken:
                seconds *= left / scratch[1, segment]
            usage[data.site[above], t] += seconds * data.units[above]
            if level > 0:
                below = mode[c, t, level - 1]
                usage[data.site[below], t] -= seconds * data.units[below]
    return total


@njit(cache=True, nogil=True)
def certified_costs(
    data: Any, fate: Any, prices: Any, multiplier: Any, cost: Any, magnitude: Any
) -> None:
    """Recompute the costs of the jobs from below, from prices and multipliers alone.

    For any q >= 0, ``q need - sum_t length_t max(0, max_m (q rate_m - price_t units_m))`` is at most
    the cost of every way to do the work of the job within its window. No hull is trusted.

    Parameters
    ----------
    cost
        (n,) output; +inf where the whole window at the best rate cannot do the work, and for jobs
        that are out.
    magnitude
        (n,) output: sum of the absolute values that were added, for the rounding slack.
    """
    for j in range(len(data.need)):
        cost[j] = np.inf
        magnitude[j] = 0.0
        if fate[j] < 0:
            continue
        c = data.kind[j]
        q = multiplier[j]
        value = q * data.need[j]
        size = value
        most = 0.0
        for t in range(data.first[j], data.end[j]):
            length = overlap_s(data, j, t)
            best, best_rate, largest = 0.0, 0.0, 0.0
            for m in range(data.mode_start[c], data.mode_start[c + 1]):
                k = data.site[m]
                if data.units[m] > data.most_units[k, t]:
                    continue
                worth = q * data.rate[m]
                price = prices[k, t] * data.units[m]
                best = max(best, worth - price)
                best_rate = max(best_rate, data.rate[m])
                largest = max(largest, worth + price)
            value -= best * length
            size += largest * length
            most += best_rate * length
        if most >= data.need[j] * (1.0 - 1e-10):
            cost[j] = max(0.0, value)
            magnitude[j] = size
