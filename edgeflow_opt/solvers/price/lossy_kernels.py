"""Compiled kernel of the exact pricing of jobs with losses: a shortest path over bins of work.

The state after a slot is the mode held (or, idle, the last site) and the bins of work done; a run
that begins pays its loss at once, in bins, and may be in debt until it has earned it back. Costs
and rounding are as in :mod:`~edgeflow_opt.solvers.price.knapsack_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import kernel, shared
from edgeflow_opt.solvers.price.hull_kernels import useful_length
from edgeflow_opt.solvers.price.knapsack_kernels import bins_for

_UNREACHED = np.int32(2**30)
_COST_UNITS = 2.0**25
_MOST_COST = 2**27
_ROOM = 1e-9
#: Bins of one slot count up to here: far beyond any table, and sums of slots remain whole numbers.
_MANY_BINS = 2.0**40
#: Not a literal: kernels are compiled once for all whole numbers.
_ZERO: Any = np.int64(0)


@kernel
def _relax(new: Any, old: Any, low: int, shift: int, cost: Any) -> None:
    """Let ``new[b]`` be at most ``old[b - shift] + cost``, ``old[0]`` standing for all below it."""
    size = len(new)
    if shift > low:
        reached = np.int32(old[0] + cost)
        short = new[low : min(shift, size)]
        for b in range(len(short)):
            short[b] = reached if reached < short[b] else short[b]
    first = max(low, shift)
    last = min(size, size + shift)
    if first < last:
        target = new[first:last]
        source = old[first - shift : last - shift]
        for b in range(len(target)):
            other = np.int32(source[b] + cost)
            target[b] = other if other < target[b] else target[b]


@kernel
def _bins(work: float, scale: float, optimistic: bool) -> int:
    """Return `work`, which may be negative, in bins; a tiny job is done by one slot many times over."""
    ratio = min(max(work * scale, -_MANY_BINS), _MANY_BINS)
    if optimistic:
        return int(np.ceil(ratio - abs(ratio) * _ROOM))
    return int(np.floor(ratio + abs(ratio) * _ROOM))


@shared
def lossy_knapsack(
    data: Any,
    j: int,
    prices: Any,
    available: Any,
    work: float,
    upper: float,
    bins: int,
    optimistic: bool,
    table: Any,
    gain: Any,
    best: Any,
    row: Any,
) -> float:
    """Solve the exact pricing of job `j`, losses included, for plans that cost less than `upper`.

    Parameters
    ----------
    work
        Iterations that the plan must earn.
    bins
        Resolution of work; as much again is kept for debts.
    table
        (T + 1, modes + sites, 2 bins + 1) int32 work array.
    gain
        (options,) work array.
    best
        (sites, 2 bins + 1) int32 work array.
    row
        (T,) output in the slots of the job: a mode, -1 = idle; all idle where no plan was found.

    Returns
    -------
    cost
        Optimistic: at most the cost of every plan, and at most `upper` if there is a plan at all;
        +inf where there is none. Otherwise: that of `row` up to rounding, or `upper` where none
        was found.
    """
    begin, stop = data.jobs[j].first, data.jobs[j].end
    lo = data.jobs[j].mode_start
    width = data.jobs[j].mode_end - lo
    num_sites = data.capacity.shape[0]
    for s in range(begin, stop):
        row[s] = -1
    if stop <= begin or width == 0 or upper <= 0.0:
        return upper
    count = _ZERO
    longest = 0.0
    for s in range(begin, stop):
        length = useful_length(data, j, s)
        if length == longest:
            continue
        longest = length
        for i in range(width):
            gain[count] = data.modes[lo + i].rate * length
            count += 1
    used = bins_for(gain, count, work, bins, optimistic)
    scale = used / work
    restart, migration = data.jobs[j].restart_s, data.jobs[j].migration_s
    # Debts deeper than the work itself are cut off: optimistic in a bound, left out of plans.
    debt = _ZERO
    fastest = 0.0
    for i in range(width):
        fastest = max(fastest, data.modes[lo + i].rate)
    worst_loss = max(restart, migration)
    if data.jobs[j].running >= 0:
        worst_loss = max(worst_loss, data.jobs[j].loss_left_s)
    for s in range(begin, stop):
        over = worst_loss - useful_length(data, j, s)
        if over > 0.0:
            debt = max(debt, int(min(float(bins), over * fastest * scale + 2.0)))
    size = debt + used + 1
    cost_scale = _COST_UNITS / upper
    ahead = 0
    for s in range(begin, stop):
        ahead += _most_bins(data, j, s, available, scale, optimistic)
    if ahead < used:
        return np.inf if optimistic else upper
    first = table[begin]
    for i in range(width + num_sites):
        first[i, :size] = _UNREACHED
    new_job = data.jobs[j].last_site < 0
    if not new_job:
        first[width + data.jobs[j].last_site, : debt + 1] = 0
    for s in range(begin, stop):
        length = useful_length(data, j, s)
        ahead -= _most_bins(data, j, s, available, scale, optimistic)
        low = max(0, debt + used - ahead)
        old, new = table[s], table[s + 1]
        for k in range(num_sites):
            for b in range(size):
                best[k, b] = old[width + k, b]
        for i in range(width):
            here = best[data.modes[lo + i].site, :size]
            held = old[i, :size]
            for b in range(size):
                here[b] = held[b] if held[b] < here[b] else here[b]
        for k in range(num_sites):
            for b in range(size):
                new[width + k, b] = best[k, b]
        for i in range(width):
            m = lo + i
            k = data.modes[m].site
            target = new[i, :size]
            target[:] = _UNREACHED
            if data.modes[m].units > available[k, s]:
                continue
            price = prices[k, s] * data.modes[m].units
            cost = np.int32(min(price * cost_scale, float(_MOST_COST)))
            earned = data.modes[m].rate * length
            step = _bins(earned, scale, optimistic)
            _relax(target, old[i, :size], low, step, cost)
            if s == 0 and m == data.jobs[j].running:
                step = _bins(
                    earned - data.modes[m].rate * data.jobs[j].loss_left_s, scale, optimistic
                )
                if optimistic or step >= -debt:
                    _relax(target, old[width + k, :size], low, max(step, -debt), cost)
                continue
            if new_job:
                high = min(size, debt + step + 1)
                for b in range(low, high):
                    target[b] = cost if cost < target[b] else target[b]
            step = _bins(earned - data.modes[m].rate * restart, scale, optimistic)
            if optimistic or step >= -debt:
                _relax(target, best[k, :size], low, max(step, -debt), cost)
            step = _bins(earned - data.modes[m].rate * migration, scale, optimistic)
            if optimistic or step >= -debt:
                for elsewhere in range(num_sites):
                    if elsewhere != k:
                        _relax(target, best[elsewhere, :size], low, max(step, -debt), cost)
            if optimistic and restart < migration:
                # A run shorter than its loss earns nothing, but changes the site.
                for elsewhere in range(num_sites):
                    if elsewhere != k:
                        _relax(new[width + k, :size], best[elsewhere, :size], low, _ZERO, cost)
    final = table[stop]
    state = _ZERO
    for i in range(width + num_sites):
        if final[i, size - 1] < final[state, size - 1]:
            state = i
    reached = final[state, size - 1]
    if reached >= _UNREACHED:
        return np.inf if optimistic else upper
    _trace(data, j, prices, available, state, size, debt, scale, cost_scale, optimistic, table, row)
    found = reached / cost_scale
    if optimistic:
        found -= 1e-9 * upper
    return min(upper, found)


@kernel
def _most_bins(data: Any, j: int, s: int, available: Any, scale: float, optimistic: bool) -> int:
    """Return the most bins that job `j` can earn in slot `s`."""
    length = useful_length(data, j, s)
    most = _ZERO
    for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
        if data.modes[m].units <= available[data.modes[m].site, s]:
            most = max(most, _bins(data.modes[m].rate * length, scale, optimistic))
    return most


@kernel
def _source(data: Any, lo: int, width: int, old: Any, k: int, b: int, size: int, value: int) -> int:
    """Return a state of site `k` whose cost at `b` bins is `value`, -1 where there is none."""
    if b >= size:
        return -1
    at = max(0, b)
    if old[width + k, at] == value:
        return width + k
    for i in range(width):
        if data.modes[lo + i].site == k and old[i, at] == value:
            return i
    return -1


@kernel
def _trace(
    data: Any,
    j: int,
    prices: Any,
    available: Any,
    state: int,
    size: int,
    debt: int,
    scale: float,
    cost_scale: float,
    optimistic: bool,
    table: Any,
    row: Any,
) -> None:
    """Write into `row` the modes of the path that ends in `state` with all bins done."""
    begin, stop = data.jobs[j].first, data.jobs[j].end
    lo = data.jobs[j].mode_start
    width = data.jobs[j].mode_end - lo
    num_sites = data.capacity.shape[0]
    b = size - 1
    for s in range(stop - 1, begin - 1, -1):
        old = table[s]
        value = table[s + 1, state, b]
        length = useful_length(data, j, s)
        if state >= width:
            k = state - width
            source = _source(data, lo, width, old, k, b, size, np.int64(value))
            if source >= 0:
                state = source
                continue
            # A creditless run that changes the site: it is left out of the row.
            for m in range(lo, lo + width):
                if data.modes[m].site != k or data.modes[m].units > available[k, s]:
                    continue
                price = prices[k, s] * data.modes[m].units
                cost = np.int32(min(price * cost_scale, float(_MOST_COST)))
                for elsewhere in range(num_sites):
                    if source < 0 and elsewhere != k:
                        source = _source(
                            data, lo, width, old, elsewhere, b, size, np.int64(value - cost)
                        )
            if source >= 0:
                state = source
            continue
        m = lo + state
        k = data.modes[m].site
        row[s] = m
        price = prices[k, s] * data.modes[m].units
        cost = np.int32(min(price * cost_scale, float(_MOST_COST)))
        earned = data.modes[m].rate * length
        step = _bins(earned, scale, optimistic)
        before = value - cost
        if b - step < size and old[state, max(0, b - step)] == before:
            b = max(0, b - step)
            continue
        if s == 0 and m == data.jobs[j].running:
            return
        if data.jobs[j].last_site < 0 and before == 0 and b <= debt + step:
            return
        for elsewhere in range(num_sites):
            loss = data.jobs[j].restart_s if elsewhere == k else data.jobs[j].migration_s
            step = max(-debt, _bins(earned - data.modes[m].rate * loss, scale, optimistic))
            source = _source(data, lo, width, old, elsewhere, b - step, size, np.int64(before))
            if source >= 0:
                state = source
                b = max(0, b - step)
                break
