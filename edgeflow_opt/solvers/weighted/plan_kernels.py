"""Compiled kernels of the weighted search: the most profitable plan of one job, and moves of several.

Labels as in :mod:`edgeflow_opt.solvers.polish.kernels`: a way to reach a state at a boundary, with the
work credited and what it cost, kept by bins of work. Here one pass weighs all that can become of the
job: it stops at any boundary, is paid for progress and leftover, or completes and is met. Until the
deadline all work is progress; behind it the pay for progress is fixed, and taken off the cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.polish.data import MOST_TOGETHER
from edgeflow_opt.solvers.polish.kernels import choose, copy_row, draw, hold, loss_of, row_value

#: More units than any mode takes.
_MANY = 2**40

# Arguments of kernels, typed: a literal would have them compiled once for each value.
_HOLD, _RELEASE = np.int64(-1), np.int64(1)
_NOWHERE, _NO_MODE = np.int64(-1), np.int64(-1)
_STEPS, _KINDS, _LIMITS = np.int64(1000), np.int64(4), np.int64(6)

#: Highest prices of a move, times those of the dual.
_DEAREST = 1.5


@kernel
def _look_ahead(data: Any, j: int, space: Any, begin: int, stop: int, limit: int) -> None:
    """Fill in the most work by the deadline from each boundary on, and the least cost of a unit."""
    work, unit = space.ahead[0], space.ahead[1]
    for s in range(stop, len(work)):
        work[s] = 0.0
        unit[s] = np.inf
    for s in range(stop - 1, begin - 1, -1):
        useful = max(0.0, min(data.boundaries[s + 1], data.deadline[j]) - data.boundaries[s])
        fastest = 0.0
        least = np.inf
        for m in range(data.mode_start[j], data.mode_start[j + 1]):
            k = data.mode_site[m]
            if data.mode_kept[m] and data.mode_units[m] <= min(limit, space.free[k, s]):
                fastest = max(fastest, data.mode_rate[m])
                price = data.mode_cost[m] + space.extra[k, s] * data.mode_units[m]
                least = min(least, price / data.mode_rate[m])
        work[s] = work[s + 1] + fastest * useful
        unit[s] = min(unit[s + 1], least)


@kernel
def _push(space: Any, at: int, i: int, w: float, v: float, came: int, need: float) -> None:
    """Enter a label that is not complete, if the one in its bin is not better."""
    bins = space.value.shape[2]
    b = int(min(bins - 1.0, w * (bins / need)))
    old = space.value[at, i, b]
    if v > old or (v == old and w <= space.work[at, i, b]):
        return
    space.work[at, i, b] = w
    space.value[at, i, b] = v
    space.came[at, i, b] = came


@kernel
def _malleable(data: Any, worth: Any, j: int, space: Any, limit: int, row: Any) -> None:
    """Find the most profitable plan of job `j` in the free capacity."""
    num_slots = len(row)
    met_worth, progress, leftover = worth[j, 0], worth[j, 1], worth[j, 2]
    must = data.must_meet[j]
    timed = data.deadline[j] < np.inf
    begin = data.first_slot[j]
    stop = num_slots if leftover > 0.0 and not must else data.end_slot[j]
    row[:] = -1
    if stop <= begin:
        return
    need, whole = data.required[j], data.work[j]
    lo = data.mode_start[j]
    width = data.mode_start[j + 1] - lo
    num_sites = space.free.shape[0]
    states = width + num_sites + 1
    bins = space.value.shape[2]
    base = width + 1
    lossless = data.tie == 0.0 and max(data.restart_s[j], data.migration_s[j]) == 0.0
    lossless = lossless and (data.running_mode[j] < 0 or data.loss_left_s[j] == 0.0)
    _look_ahead(data, j, space, begin, data.end_slot[j] if timed else begin, limit)
    for s in range(begin, stop + 1):
        for i in range(states):
            space.value[s, i, :] = np.inf
    first = width + (data.last_site[j] if data.last_site[j] >= 0 else num_sites)
    space.work[begin, first, 0] = space.value[begin, first, 0] = 0.0
    space.came[begin, first, 0] = -1
    best = -np.inf if must else 0.0
    # The label before the last arc of the best plan, with that arc: its mode and its end.
    best_label = -1
    best_mode = -1
    best_end = 0
    for s in range(begin, stop + 1):
        early = data.boundaries[s] <= data.deadline[j]
        for i in range(states):
            least = np.inf
            some = False
            for b in range(bins - 1, -1, -1):
                v = space.value[s, i, b]
                if v == np.inf:
                    continue
                w = space.work[s, i, b]
                if not must:
                    here = (progress + leftover if early else leftover) * w - v
                    if here > best:
                        best = here
                        best_label = (s * states + i) * bins + b
                        best_mode = -1
                hope = -np.inf
                if not must:
                    hope = (progress + leftover if early else leftover) * whole - v
                if timed and early and w + space.ahead[0, s] >= need * (1.0 - 1e-12):
                    rest = (need - w) * space.ahead[1, s]
                    hope = max(hope, met_worth - v - rest * (1.0 - 1e-9))
                # More work for less is always better, whatever becomes of the job.
                if v >= least or hope <= best:
                    space.value[s, i, b] = np.inf
                else:
                    least = v
                    some = True
            if not some or s == stop:
                continue
            # To stop costs nothing and takes no time; to be idle takes a slot.
            origin = i - width if i < width + num_sites else _NOWHERE
            at, idle = (s, width + data.mode_site[lo + i]) if i < width else (s + 1, i)
            fixes = early and data.boundaries[at] > data.deadline[j]
            for b in range(bins):
                v = space.value[s, i, b]
                if v < np.inf:
                    w = space.work[s, i, b]
                    label = (s * states + i) * bins + b
                    _push(space, at, idle, w, v - progress * w if fixes else v, label * base, need)
            for m in range(lo, lo + width):
                if not data.mode_kept[m] or data.mode_units[m] > limit:
                    continue
                if i < width and m != lo + i:
                    continue
                # The arc goes on for one slot, or begins a run and pays its loss. Written out here as in
                # the polish: as a kernel of its own, or inlined by numba, it doubles the time of a move.
                loss = 0.0
                cost = 0.0
                if i >= width:
                    loss = loss_of(data, j, s, m, origin)
                    if origin >= 0 and not (s == 0 and m == data.running_mode[j]):
                        cost = data.tie
                k = data.mode_site[m]
                from_time = data.boundaries[s] + loss
                end = s
                while end < stop and (end == s or data.boundaries[end] <= from_time):
                    if data.mode_units[m] > space.free[k, end]:
                        break
                    price = data.mode_cost[m] + space.extra[k, end] * data.mode_units[m]
                    cost += price * (data.boundaries[end + 1] - data.boundaries[end])
                    end += 1
                if end == s or data.boundaries[end] <= from_time:
                    continue
                rate = data.mode_rate[m]
                gain = rate * (data.boundaries[end] - from_time)
                in_time = rate * max(0.0, min(data.boundaries[end], data.deadline[j]) - from_time)
                fixes = early and data.boundaries[end] > data.deadline[j]
                target = i if lossless else m - lo
                for b in range(bins):
                    v = space.value[s, i, b]
                    if v == np.inf:
                        continue
                    w = space.work[s, i, b]
                    label = (s * states + i) * bins + b
                    by_deadline = w + in_time
                    v += cost
                    if timed and early and by_deadline >= need:
                        here = met_worth - v
                    else:
                        if fixes or (early and w + gain >= need):
                            v -= progress * min(by_deadline, whole)
                        if w + gain < need:
                            came = label * base + m - lo + 1
                            _push(space, end, target, w + gain, v, came, need)
                            continue
                        if must:
                            continue
                        here = leftover * whole - v
                    if here > best:
                        best = here
                        best_label, best_mode, best_end = label, m, end
    if best_label < 0:
        return
    if best_mode >= 0:
        row[best_label // (states * bins) : best_end] = best_mode
    label = best_label
    while True:
        at = label // (states * bins)
        came = space.came[at, label // bins % states, label % bins]
        if came < 0:
            return
        label = came // base
        if came % base > 0:
            row[label // (states * bins) : at] = lo + came % base - 1


@kernel
def _moldable(data: Any, worth: Any, j: int, space: Any, limit: int, row: Any) -> None:
    """Do the same for a job that has one run in one mode."""
    num_slots = len(row)
    met_worth, progress, leftover = worth[j, 0], worth[j, 1], worth[j, 2]
    must = data.must_meet[j]
    begin = data.first_slot[j]
    stop = num_slots if leftover > 0.0 and not must else data.end_slot[j]
    row[:] = -1
    need, whole = data.required[j], data.work[j]
    running = data.running_mode[j]
    best = -np.inf if must else 0.0
    mode, first, last = -1, 0, 0
    for m in range(data.mode_start[j], data.mode_start[j + 1]):
        if not data.mode_kept[m] or data.mode_units[m] > limit or (running >= 0 and m != running):
            continue
        k = data.mode_site[m]
        rate = data.mode_rate[m]
        for a in range(begin, min(stop, 1) if running >= 0 else stop):
            from_time = data.boundaries[a] + loss_of(data, j, a, m, data.last_site[j])
            cost = data.tie if data.last_site[j] >= 0 and running < 0 else 0.0
            end = a
            done = 0.0
            while end < stop and done < need and data.mode_units[m] <= space.free[k, end]:
                price = data.mode_cost[m] + space.extra[k, end] * data.mode_units[m]
                cost += price * (data.boundaries[end + 1] - data.boundaries[end])
                end += 1
                until = data.boundaries[end]
                done = rate * max(0.0, until - from_time)
                by_deadline = rate * max(0.0, min(until, data.deadline[j]) - from_time)
                if data.deadline[j] < np.inf and by_deadline >= need:
                    here = met_worth - cost
                elif must:
                    continue
                else:
                    here = progress * min(by_deadline, whole) + leftover * min(done, whole) - cost
                if here > best:
                    best = here
                    mode, first, last = m, a, end
    row[first:last] = mode


@kernel
def _best_plan(data: Any, worth: Any, j: int, space: Any, limit: int, row: Any) -> None:
    if data.malleable[j]:
        _malleable(data, worth, j, space, limit, row)
    else:
        _moldable(data, worth, j, space, limit, row)


@entry
def improve_sum(
    data: Any, worth: Any, factors: Any, prices: Any, plan: Any, space: Any, jobs: Any, moves: int,
) -> float:  # fmt: skip
    """Take a few jobs out of the plan, plan them anew one after the other, keep what is no loss.

    Parameters
    ----------
    worth
        (n, 3) of a job: if it is met, of an iteration by the deadline, of one by the horizon.
    factors
        (5,) of the levels in the sum, all of which are larger where better.
    prices
        (K, T) worth of a unit for a second, by which some moves are guided.
    plan
        (n, T) the plan; changed in place.
    jobs
        Without `moves`: planned anew alone, in this order. Else jobs that have most to gain, with
        one of which half of the moves begin.
    moves
        How many sets of jobs to draw.

    Returns
    -------
    gain
        Rise of the sum.
    """
    num_slots = plan.shape[1]
    total = 0.0
    change = np.zeros(5)
    chosen = np.zeros(MOST_TOGETHER, dtype=np.int64)
    row = np.empty(num_slots, dtype=np.int64)
    space.extra[:] = 0.0
    for step in range(moves if moves > 0 else len(jobs)):
        count = 1
        limit = _MANY
        if moves > 0:
            count = choose(data, plan, space, jobs, chosen)
            factor = 0.0
            if draw(space, _KINDS) > 0:
                factor = _DEAREST * draw(space, _STEPS) / _STEPS
            for k in range(prices.shape[0]):
                for s in range(num_slots):
                    space.extra[k, s] = factor * prices[k, s]
        else:
            chosen[0] = jobs[step]
        change[:] = 0.0
        for a in range(count):
            j = chosen[a]
            row_value(data, j, plan[j], change, -1.0)
            hold(data, space.free, plan[j], _RELEASE)
            copy_row(plan[j], space.rows[a])
            plan[j] = -1
        feasible = True
        changed = False
        for a in range(count):
            j = chosen[a]
            if moves > 0 and draw(space, _KINDS) == 0:
                limit = 1 << draw(space, _LIMITS)
            else:
                limit = _MANY
            _best_plan(data, worth, j, space, limit, row)
            copy_row(row, plan[j])
            hold(data, space.free, row, _HOLD)
            met = row_value(data, j, row, change, 1.0)
            feasible = feasible and (met or not data.must_meet[j])
            for t in range(num_slots):
                changed = changed or row[t] != space.rows[a, t]
        gain = 0.0
        for level in range(5):
            gain += factors[level] * change[level]
        if feasible and changed and gain >= -space.tolerance[0]:
            total += gain
            continue
        for a in range(count):
            hold(data, space.free, plan[chosen[a]], _RELEASE)
            copy_row(space.rows[a], plan[chosen[a]])
            hold(data, space.free, space.rows[a], _HOLD)
    return total
