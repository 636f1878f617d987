"""Compiled kernels of the exact pricing: one mode per slot, a multiple-choice knapsack.

The hull leaves the question which slots really matter. With multiplier q every option of a slot
(a mode, or idling) has a reduced cost, and a plan costs at least the hull cost plus the reduced
costs of its options; so options whose reduced cost exceeds (upper - hull cost) are dropped, and in
most slots one option is left. What remains, the core (Pisinger, 1995), is solved by dynamic
programming over bins of work, with integer costs.

Rounding makes the answer a bound from the side that is asked for: `optimistic` rounds gains up and
costs down (a lower bound on the cost of every plan), otherwise gains are rounded down (a plan).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import kernel, shared
from edgeflow_opt.solvers.price.hull_kernels import useful_length

#: Cost of a state that cannot be reached; twice this is still a 32-bit integer.
_UNREACHED = np.int32(2**30)
#: Integer cost of what the plan may spend beyond its base: fine enough that 300 slots of rounding
#: lose 1e-5 of it.
_COST_UNITS = 2.0**25
_MOST_COST = 2**27
#: Relative room for rounding of the ratios work : bin, far above eps and far below a bin.
_ROOM = 1e-9
_DISTINCT = 24
_TRIED_SCALES = 24


@kernel
def core_of(
    data: Any,
    j: int,
    prices: Any,
    available: Any,
    beyond: Any,
    q: float,
    gap: float,
    start: Any,
    mode: Any,
    gain: Any,
    cost: Any,
    base_mode: Any,
) -> tuple[int, float, float]:
    """List the options of job `j` whose reduced cost is at most `gap`.

    Parameters
    ----------
    prices, available, beyond
        As in :func:`~edgeflow_opt.solvers.price.hull_kernels.mode_cost`.
    start, mode, gain, cost
        Output: options of the free slots (two or more options) beyond the first, those of free slot
        f at ``start[f] : start[f + 1]``; gain and cost are relative to the first option, which has
        the least of both.
    base_mode
        (T,) output: the first option of each slot, -1 = idle.

    Returns
    -------
    free, work, cost
        Number of free slots (their numbers are ``start`` of the second row), work and cost of the
        first options together.
    """
    free = 0
    count = 0
    base_work = 0.0
    base_cost = 0.0
    lo, hi = data.jobs[j].mode_start, data.jobs[j].mode_end
    width = hi - lo + 1
    option_gain = np.empty(width)
    option_cost = np.empty(width)
    option_mode = np.empty(width, np.int64)
    mode_price = np.empty(width)
    start[0, 0] = 0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        length = useful_length(data, j, s)
        best = 0.0
        for m in range(lo, hi):
            # As in `mode_cost`, a call of which would take as long as all the rest.
            k, units = data.modes[m].site, data.modes[m].units
            price = prices[k, s] * units
            excess = units - available[k, s]
            if excess > 0:
                if units > data.capacity[k, s]:
                    price = np.inf
                else:
                    price += beyond[k, s] * min(excess, units)
            mode_price[m - lo] = price
            best = max(best, q * (data.modes[m].rate * length) - price)
        options = 0
        if best <= gap:
            option_gain[0] = 0.0
            option_cost[0] = 0.0
            option_mode[0] = -1
            options = 1
        for m in range(lo, hi):
            work = data.modes[m].rate * length
            price = mode_price[m - lo]
            if best - (q * work - price) > gap:
                continue
            i = options
            while i > 0 and (
                option_cost[i - 1] > price
                or (option_cost[i - 1] == price and option_gain[i - 1] > work)
            ):
                option_gain[i] = option_gain[i - 1]
                option_cost[i] = option_cost[i - 1]
                option_mode[i] = option_mode[i - 1]
                i -= 1
            option_gain[i] = work
            option_cost[i] = price
            option_mode[i] = m
            options += 1
        # Of options sorted by cost only those stay that gain more than all cheaper ones; equal
        # costs were sorted by gain, so that the last of them wins.
        kept = 0
        for i in range(options):
            if kept > 0 and option_gain[i] <= option_gain[kept - 1]:
                continue
            if kept > 0 and option_cost[i] == option_cost[kept - 1]:
                kept -= 1
            option_gain[kept] = option_gain[i]
            option_cost[kept] = option_cost[i]
            option_mode[kept] = option_mode[i]
            kept += 1
        base_work += option_gain[0]
        base_cost += option_cost[0]
        base_mode[s] = option_mode[0]
        if kept > 1:
            for i in range(1, kept):
                mode[count] = option_mode[i]
                gain[count] = option_gain[i] - option_gain[0]
                cost[count] = option_cost[i] - option_cost[0]
                count += 1
            start[1, free] = s
            free += 1
            start[0, free] = count
    return free, base_work, base_cost


@kernel
def bins_for(gain: Any, count: int, work: float, bins: int, optimistic: bool) -> int:
    """Return the number of bins for `work`, in [bins/2, bins], that rounds the gains the least."""
    distinct = np.empty(_DISTINCT)
    number = np.zeros(_DISTINCT)
    found = 0
    for i in range(count):
        at = 0
        while at < found and abs(distinct[at] - gain[i]) > 1e-9 * gain[i]:
            at += 1
        if at < found:
            number[at] += 1.0
        elif found < _DISTINCT:
            distinct[found] = gain[i]
            number[found] = 1.0
            found += 1
    best, best_error = bins, np.inf
    for trial in range(_TRIED_SCALES):
        tried = bins - (bins * trial) // (2 * _TRIED_SCALES)
        error = 0.0
        for i in range(found):
            ratio = distinct[i] / work * tried
            if ratio > tried:
                continue
            if optimistic:
                error += number[i] * (np.ceil(ratio * (1.0 - _ROOM)) - ratio)
            else:
                error += number[i] * (ratio - np.floor(ratio * (1.0 + _ROOM)))
        error /= tried
        if error < best_error * 0.999:
            best, best_error = tried, error
    return best


@kernel
def _relax(new: Any, old: Any, low: int, high: int, gain: int, cost: Any) -> None:
    """Let an option improve ``new[low : high + 1]``; the loops are written to become vectors."""
    first = max(low, gain)
    if low < gain:
        short = new[low : min(gain, high + 1)]
        for b in range(len(short)):
            short[b] = cost if cost < short[b] else short[b]
    if first <= high:
        target = new[first : high + 1]
        source = old[first - gain : high + 1 - gain]
        for b in range(len(target)):
            other = np.int32(source[b] + cost)
            target[b] = other if other < target[b] else target[b]


@shared
def knapsack(
    data: Any,
    j: int,
    prices: Any,
    available: Any,
    beyond: Any,
    work: float,
    q: float,
    hull_cost: float,
    upper: float,
    bins: int,
    optimistic: bool,
    table: Any,
    start: Any,
    mode: Any,
    gain: Any,
    cost: Any,
    steps: Any,
    plan: Any,
) -> float:
    """Solve the exact pricing of job `j` for plans that cost less than `upper`.

    Parameters
    ----------
    prices, available, beyond
        As in :func:`~edgeflow_opt.solvers.price.hull_kernels.mode_cost`.
    work
        Iterations that the plan must do.
    q, hull_cost
        Multiplier and its hull cost.
    upper
        Plans that cost more are of no interest.
    bins
        Resolution of work.
    table, start, mode, gain, cost, steps
        Work arrays: (slots + 1, bins + 1) int32, (2, slots + 1), (options,) ..., (2, options) int32.
    plan
        (T,) output: a mode per slot, -1 = idle; where the result is `upper` it is meaningless.

    Returns
    -------
    cost
        Optimistic: at most the cost of every plan, and at most `upper`. Otherwise: that of `plan`
        up to rounding, or `upper` where none was found.
    """
    tolerance = 1e-9 * (upper + q * work)
    free, base_work, base_cost = core_of(
        data, j, prices, available, beyond, q, upper - hull_cost + tolerance,
        start, mode, gain, cost, plan,
    )  # fmt: skip
    if optimistic:
        left = work - base_work - 1e-11 * work
    else:
        left = work - base_work + 1e-11 * work
    if left <= 0.0:
        return min(upper, base_cost)
    count = start[0, free]
    room = upper - base_cost + tolerance
    if free == 0 or room <= 0.0:
        return upper
    used_bins = bins_for(gain, count, left, bins, optimistic)
    scale = _COST_UNITS / room
    for i in range(count):
        ratio = gain[i] / left * used_bins
        if optimistic:
            ratio = np.ceil(ratio * (1.0 - _ROOM))
        else:
            ratio = np.floor(ratio * (1.0 + _ROOM))
        steps[0, i] = np.int32(min(ratio, float(used_bins)))
        steps[1, i] = np.int32(min(cost[i] * scale, float(_MOST_COST)))
    # Bins that the slots from f on can still add: fewer bins done before them lead nowhere.
    ahead = 0
    for f in range(free):
        ahead += steps[0, start[0, f + 1] - 1]
    if ahead < used_bins:
        return upper
    row = table[0]
    for b in range(used_bins + 1):
        row[b] = _UNREACHED
    row[0] = 0
    done = 0
    for f in range(free):
        most = steps[0, start[0, f + 1] - 1]
        ahead -= most
        old, new = table[f], table[f + 1]
        low = max(0, used_bins - ahead)
        high = min(used_bins, done + most)
        # A state stands for "at least b bins"; those below `low` are never read again.
        for b in range(low, used_bins + 1):
            new[b] = old[b]
        for i in range(start[0, f], start[0, f + 1]):
            _relax(new, old, low, high, steps[0, i], steps[1, i])
        done = high
    if table[free, used_bins] >= _UNREACHED:
        return upper
    reached = table[free, used_bins]
    b = used_bins
    for f in range(free - 1, -1, -1):
        value = table[f + 1, b]
        if value == table[f, b]:
            continue
        for i in range(start[0, f], start[0, f + 1]):
            before = max(0, b - steps[0, i])
            if np.int32(table[f, before] + steps[1, i]) == value:
                plan[start[1, f]] = mode[i]
                b = before
                break
    if optimistic:
        return min(upper, base_cost + reached / scale - tolerance)
    return base_cost + reached / scale
