"""Compiled kernels of the polish: the best plan of one job in the capacity that the others leave.

A label is a way to reach a state at a boundary: steady in a mode whose loss is paid, or idle after
a run on some site. It carries the work credited, cost and progress exactly; labels of a state are
kept by bins of work, one in each, so that only what a bin may hold apart is lost. A run that begins
is one arc to the first boundary at which it has earned credit. Runs that end before that are left
out: they earn nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.polish.data import MOST_TOGETHER

#: Relative rounding of sums of credits.
_ROOM = 1e-12

#: More units than any mode takes.
_MANY = 2**40

#: By how much a met job that is planned anew together with others may become dearer.
_DEARER = 1.5

# Arguments of kernels, typed: a literal would have them compiled once for each value.
_HOLD, _RELEASE = np.int64(-1), np.int64(1)
_NOWHERE = np.int64(-1)
_FIRST_SLOT: Any = np.int64(0)
_TWO, _LIMITS, _PRICE_STEPS = np.int64(2), np.int64(8), np.int64(2000)


@kernel
def loss_of(data: Any, j: int, s: int, m: int, site: int) -> float:
    """Return the loss of a run of mode `m` that begins in slot `s` after one on `site` (or -1)."""
    if s == 0 and m == data.running_mode[j]:
        return data.loss_left_s[j]
    if site < 0:
        return 0.0
    return data.restart_s[j] if site == data.mode_site[m] else data.migration_s[j]


@kernel
def _due(data: Any, j: int, meet: bool) -> float:
    """Return by when work counts as progress; for best effort it never does."""
    deadline = data.deadline[j]
    return -np.inf if deadline == np.inf and not meet else deadline


@kernel
def row_value(data: Any, j: int, row: Any, total: Any, sign: float) -> bool:
    """Add what `row` is worth, times `sign`, to the five levels in `total`; tell if it meets.

    By the run-and-loss rule, in the operations of :mod:`edgeflow_opt.problem.runs`. All levels are
    larger where better.
    """
    num_slots = len(row)
    by_deadline = 0.0
    by_horizon = 0.0
    cost = 0.0
    changes = 0
    site = data.last_site[j]
    s = _FIRST_SLOT
    while s < num_slots:
        m = row[s]
        if m < 0:
            s += 1
            continue
        loss = loss_of(data, j, s, m, site)
        if site >= 0 and not (s == 0 and m == data.running_mode[j]):
            changes += 1
        site = data.mode_site[m]
        start = data.boundaries[s]
        while s < num_slots and row[s] == m:
            s += 1
        end = data.boundaries[s]
        rate = data.mode_rate[m]
        by_horizon += rate * max(0.0, end - start - loss)
        by_deadline += rate * max(0.0, min(end, data.deadline[j]) - start - loss)
        cost += data.mode_cost[m] * (end - start)
    weight = data.weight[j]
    timed = data.deadline[j] < np.inf
    met = timed and by_deadline >= data.required[j]
    if met:
        total[0] += sign * weight
    else:
        if timed:
            total[1] += sign * weight * min(1.0, by_deadline / data.work[j])
        total[2] += sign * weight * min(1.0, by_horizon / data.work[j])
    total[3] -= sign * cost
    total[4] -= sign * changes
    return met


@kernel
def _price_of(data: Any, space: Any, row: Any) -> float:
    """Return what `row` costs at the present prices."""
    total = 0.0
    for s in range(len(row)):
        m = row[s]
        if m >= 0:
            price = data.mode_cost[m] + space.extra[data.mode_site[m], s] * data.mode_units[m]
            total += price * (data.boundaries[s + 1] - data.boundaries[s])
    return total


@kernel
def hold(data: Any, free: Any, row: Any, sign: int) -> None:
    """Give the units of `row` back (1), or take them (-1)."""
    for s in range(len(row)):
        if row[s] >= 0:
            free[data.mode_site[row[s]], s] += sign * data.mode_units[row[s]]


@kernel
def copy_row(source: Any, target: Any) -> None:
    """Copy a plan row."""
    for s in range(len(source)):
        target[s] = source[s]


@kernel
def _look_ahead(
    data: Any, j: int, space: Any, begin: int, stop: int, meet: bool, limit: int
) -> None:
    """Fill in what can be earned from each boundary on, and at what least cost."""
    work, unit, progress = space.ahead[0], space.ahead[1], space.ahead[2]
    work[stop] = progress[stop] = 0.0
    unit[stop] = np.inf
    due = _due(data, j, meet)
    for s in range(stop - 1, begin - 1, -1):
        length = data.boundaries[s + 1] - data.boundaries[s]
        useful = max(0.0, min(data.boundaries[s + 1], due) - data.boundaries[s])
        fastest = 0.0
        least = np.inf
        for m in range(data.mode_start[j], data.mode_start[j + 1]):
            k = data.mode_site[m]
            if data.mode_kept[m] and data.mode_units[m] <= min(limit, space.free[k, s]):
                fastest = max(fastest, data.mode_rate[m])
                price = data.mode_cost[m] + space.extra[k, s] * data.mode_units[m]
                least = min(least, price / data.mode_rate[m])
        work[s] = work[s + 1] + fastest * (useful if meet else length)
        progress[s] = progress[s + 1] + fastest * useful
        unit[s] = min(unit[s + 1], least)


@kernel
def _prune(space: Any, s: int, i: int, need: float, meet: bool, best: Any) -> None:
    """Drop the labels of a state that another one, or a bound, shows to be of no use."""
    work, value, progress = space.work[s, i], space.value[s, i], space.progress[s, i]
    ahead, unit = space.ahead[0, s], space.ahead[1, s]
    bins = len(value)
    least = np.inf
    if meet:
        for b in range(bins - 1, -1, -1):
            if value[b] == np.inf:
                continue
            bound = value[b] + (need - work[b]) * unit * (1.0 - 1e-9)
            if value[b] >= least or bound >= best[1]:
                value[b] = np.inf
            else:
                least = value[b]
        return
    top = best[0] - space.ahead[2, s]
    most = 0.0
    for b in range(bins):
        if value[b] < np.inf:
            top = max(top, progress[b])
    for b in range(bins):
        if value[b] < np.inf and progress[b] >= top - _ROOM * need:
            most = max(most, work[b])
    for b in range(bins - 1, -1, -1):
        if value[b] == np.inf:
            continue
        # Without hope of completion only the most work counts.
        hopeless = work[b] + ahead < need * (1.0 - _ROOM) and work[b] < most - _ROOM * need
        if progress[b] < top - _ROOM * need or value[b] >= least or hopeless:
            value[b] = np.inf
        else:
            least = value[b]


@kernel
def _push(
    space: Any, at: int, i: int, w: float, v: float, p: float, came: int, need: float, meet: bool
) -> None:
    """Enter a label that is not complete, if the one in its bin is not better."""
    ahead = space.ahead[0, at]
    hopeless = w + ahead < need * (1.0 - _ROOM)
    if meet and hopeless:
        return
    bins = space.value.shape[2]
    b = int(min(bins - 1.0, w * (bins / need)))
    old_v, old_w, old_p = space.value[at, i, b], space.work[at, i, b], space.progress[at, i, b]
    if old_v < np.inf:
        if meet:
            if v > old_v or (v == old_v and w <= old_w):
                return
        else:
            room = _ROOM * need
            if p < old_p - room:
                return
            if p <= old_p + room:
                if hopeless and abs(w - old_w) > room:
                    if w < old_w:
                        return
                elif v > old_v or (v == old_v and w <= old_w):
                    return
    space.work[at, i, b] = w
    space.value[at, i, b] = v
    space.progress[at, i, b] = p
    space.came[at, i, b] = came


@kernel
def _malleable(
    data: Any, j: int, space: Any, meet: bool, upper: float, limit: int, row: Any
) -> bool:
    """Find the best plan of job `j` in the free capacity; tell whether `row` holds one.

    Parameters
    ----------
    meet
        Whether the plan must do the work by the deadline, at least cost, below `upper`; else it
        makes the most progress, then does the most by the horizon, then costs least.
    limit
        Most units that it may hold at a time.
    """
    num_slots = len(row)
    begin = data.first_slot[j]
    stop = data.end_slot[j] if meet else num_slots
    row[:] = -1
    if stop <= begin:
        return not meet
    need = data.required[j]
    due = _due(data, j, meet)
    lo = data.mode_start[j]
    width = data.mode_start[j + 1] - lo
    num_sites = space.free.shape[0]
    states = width + num_sites + 1
    bins = space.value.shape[2]
    _look_ahead(data, j, space, begin, stop, meet, limit)
    if meet and space.ahead[0, begin] < need * (1.0 - _ROOM):
        return False
    for s in range(begin, stop + 1):
        space.value[s, :states] = np.inf
    first = width + (data.last_site[j] if data.last_site[j] >= 0 else num_sites)
    space.work[begin, first, 0] = space.value[begin, first, 0] = 0.0
    space.progress[begin, first, 0] = 0.0
    space.came[begin, first, 0] = -1
    # Progress and value of the best complete label, the label before its last arc, and that arc.
    best = np.array([-1.0, upper if meet else np.inf])
    best_came = -1
    best_mode = -1
    best_end = 0
    for s in range(begin, stop):
        for i in range(states):
            _prune(space, s, i, need, meet, best)
            # To stop costs nothing and takes no time; to be idle takes a slot.
            origin = i - width if i < width + num_sites else _NOWHERE
            at, idle = (s, width + data.mode_site[lo + i]) if i < width else (s + 1, i)
            some = False
            for b in range(bins):
                v = space.value[s, i, b]
                if v < np.inf:
                    some = True
                    w, p = space.work[s, i, b], space.progress[s, i, b]
                    _push(space, at, idle, w, v, p, (s * states + i) * bins + b, need, meet)
            if not some:
                continue
            for m in range(lo, lo + width):
                if not data.mode_kept[m] or data.mode_units[m] > limit:
                    continue
                if i < width and m != lo + i:
                    continue
                # The arc goes on for one slot, or begins a run and pays its loss.
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
                    length = data.boundaries[end + 1] - data.boundaries[end]
                    price = data.mode_cost[m] + space.extra[k, end] * data.mode_units[m]
                    cost += price * length
                    end += 1
                if end == s or data.boundaries[end] <= from_time:
                    continue
                rate = data.mode_rate[m]
                in_time = rate * max(0.0, min(data.boundaries[end], due) - from_time)
                gain = in_time if meet else rate * (data.boundaries[end] - from_time)
                if gain <= 0.0:
                    continue
                for b in range(bins):
                    v = space.value[s, i, b]
                    if v == np.inf:
                        continue
                    w = space.work[s, i, b] + gain
                    p = space.progress[s, i, b] + in_time
                    v += cost
                    came = (s * states + i) * bins + b
                    if w < need:
                        _push(space, end, m - lo, w, v, p, came, need, meet)
                        continue
                    room = _ROOM * need
                    if meet:
                        better = v < best[1]
                    else:
                        better = p > best[0] + room or (p >= best[0] - room and v < best[1])
                    if better:
                        best[0], best[1] = p, v
                        best_came, best_mode, best_end = came, m, end
    if not meet:
        # The best label at the horizon, unless one that is complete is as good in progress.
        most = best[0]
        done = need if best_came >= 0 else -1.0
        value = best[1]
        room = _ROOM * need
        for i in range(states):
            for b in range(bins):
                v = space.value[stop, i, b]
                if v == np.inf:
                    continue
                p, w = space.progress[stop, i, b], space.work[stop, i, b]
                better = p > most + room
                if not better and p >= most - room:
                    better = w > done + room or (w >= done - room and v < value)
                if better:
                    most, done, value = p, w, v
                    best_came, best_mode = (stop * states + i) * bins + b, -1
    if best_came < 0:
        return False
    at = best_came // (states * bins)
    if best_mode >= 0:
        row[at:best_end] = best_mode
    label = best_came
    while True:
        at = label // (states * bins)
        i = label // bins % states
        label = space.came[at, i, label % bins]
        if label < 0:
            return True
        if i < width:
            row[label // (states * bins) : at] = lo + i


@kernel
def _moldable(data: Any, j: int, space: Any, meet: bool, upper: float, row: Any) -> bool:
    """Do the same for a job that has one run in one mode."""
    num_slots = len(row)
    begin = data.first_slot[j]
    stop = data.end_slot[j] if meet else num_slots
    row[:] = -1
    need = data.required[j]
    due = _due(data, j, meet)
    running = data.running_mode[j]
    room = _ROOM * need
    most = 0.0
    done = 0.0
    best = upper if meet else 0.0
    found, mode, first, last = not meet, -1, 0, 0
    for m in range(data.mode_start[j], data.mode_start[j + 1]):
        if not data.mode_kept[m] or (running >= 0 and m != running):
            continue
        k = data.mode_site[m]
        rate = data.mode_rate[m]
        for a in range(begin, min(stop, 1) if running >= 0 else stop):
            from_time = data.boundaries[a] + loss_of(data, j, a, m, data.last_site[j])
            value = 0.0
            if data.last_site[j] >= 0 and running < 0:
                value = data.tie
            p = w = 0.0
            end = a
            while end < stop and w < need and data.mode_units[m] <= space.free[k, end]:
                length = data.boundaries[end + 1] - data.boundaries[end]
                price = data.mode_cost[m] + space.extra[k, end] * data.mode_units[m]
                value += price * length
                end += 1
                p = rate * max(0.0, min(data.boundaries[end], due) - from_time)
                w = p if meet else rate * max(0.0, data.boundaries[end] - from_time)
            if meet:
                better = w >= need and value < best
            else:
                w = min(w, need)
                better = p > most + room
                if not better and p >= most - room:
                    better = w > done + room or (w >= done - room and value < best)
            if better:
                most, done, best = p, w, value
                found, mode, first, last = True, m, a, end
    row[first:last] = mode
    return found


@kernel
def _replan(
    data: Any, j: int, space: Any, was_met: bool, upper: float, limit: int, spare: bool, row: Any
) -> None:
    """Write the best plan of job `j` in the free capacity into `row`.

    Where the job was met before, a plan below the cost `upper` that keeps it so; where there is
    none, idle, unless the job is `spare`. Else the plan of most progress, or the cheapest that
    meets if one does.
    """
    row[:] = -1
    if data.weight[j] == 0.0 and not data.must_meet[j]:
        return
    done = np.zeros(5)
    other = np.empty_like(row)
    meet = was_met
    for attempt in range(2):
        if data.malleable[j]:
            found = _malleable(data, j, space, meet, upper, limit, other)
        else:
            found = _moldable(data, j, space, meet, upper, other)
        if found:
            copy_row(other, row)
        if attempt == 1 or (was_met and (found or not spare)):
            return
        if not was_met:
            if not row_value(data, j, row, done, 1.0):
                return
            # It can be met: at what cost?
            meet = True
        else:
            meet = False


@kernel
def _compare(change: Any, tolerance: Any) -> int:
    """Return 1 where a change of the levels is a gain, 0 where it is none, -1 where it is a loss.

    A gain must be worth counting, while any loss beyond rounding is one: so many small losses
    cannot add up.
    """
    for level in range(5):
        if change[level] > tolerance[level]:
            return 1
        if change[level] < -1e-4 * tolerance[level]:
            return -1
    return 0


@kernel
def draw(space: Any, count: int) -> int:
    """Return a random number in ``0 : count``."""
    space.random[0] = (space.random[0] * 25214903917 + 11) & 0xFFFFFFFFFFFF
    return (space.random[0] >> 16) % count


@kernel
def choose(data: Any, plan: Any, space: Any, wanted: Any, chosen: Any) -> int:
    """Choose jobs that compete, in random order, and prices at random; return how many jobs.

    One job, half of the time one of `wanted`, and some that run in a slot of its window.
    """
    num_jobs, num_slots = plan.shape
    if len(wanted) > 0 and draw(space, _TWO) == 0:
        j = wanted[draw(space, len(wanted))]
    else:
        j = draw(space, num_jobs)
    begin, stop = data.first_slot[j], data.end_slot[j]
    if stop <= begin:
        stop = num_slots
    space.extra[:] = 0.0
    if begin >= stop:
        return 0
    s = begin + draw(space, stop - begin)
    count = 1
    seen = 0
    most = 2 + draw(space, MOST_TOGETHER - 1)
    chosen[0] = j
    for other in range(num_jobs):
        if other != j and plan[other, s] >= 0:
            seen += 1
            if count < most:
                chosen[count] = other
                count += 1
            else:
                place = draw(space, seen)
                if place < most - 1:
                    chosen[1 + place] = other
    for a in range(count - 1, 0, -1):
        b = draw(space, a + 1)
        chosen[a], chosen[b] = chosen[b], chosen[a]
    # Prices turn plans that meet away from slots where others could use the units.
    if draw(space, _TWO) == 0:
        for k in range(space.extra.shape[0]):
            for t in range(begin, stop):
                space.extra[k, t] = 0.001 * draw(space, _PRICE_STEPS)
    return count


@entry
def improve(data: Any, plan: Any, space: Any, jobs: Any, moves: int) -> int:
    """Take a few jobs out of the plan, plan them anew one after the other, keep what is no loss.

    Parameters
    ----------
    plan
        (n, T) the plan; changed in place.
    jobs
        Without `moves`: planned anew alone, in this order. Else jobs that have most to gain, with
        one of which half of the moves begin.
    moves
        How many sets of jobs to draw.

    Returns
    -------
    gains
        Number of changes for the better; changes that are neither better nor worse are kept too.
    """
    num_slots = plan.shape[1]
    gains = 0
    change = np.zeros(5)
    chosen = np.zeros(MOST_TOGETHER, dtype=np.int64)
    was_met = np.zeros(MOST_TOGETHER, dtype=np.bool_)
    row = np.empty(num_slots, dtype=np.int64)
    space.extra[:] = 0.0
    for step in range(moves if moves > 0 else len(jobs)):
        count = 1
        if moves > 0:
            count = choose(data, plan, space, jobs, chosen)
        else:
            chosen[0] = jobs[step]
        change[:] = 0.0
        for a in range(count):
            j = chosen[a]
            was_met[a] = row_value(data, j, plan[j], change, -1.0)
            hold(data, space.free, plan[j], _RELEASE)
            copy_row(plan[j], space.rows[a])
            plan[j] = -1
        met_before = change[0]
        at_stake = 0.0
        for a in range(count):
            if data.deadline[chosen[a]] < np.inf:
                at_stake += data.weight[chosen[a]]
        placed = 0
        feasible = True
        changed = False
        for a in range(count):
            j = chosen[a]
            upper = np.inf
            limit = _MANY
            if moves == 0 and was_met[a]:
                # Better by more than rounding.
                upper = change[3] + data.tie * (change[4] - 0.5)
            elif was_met[a]:
                upper = _DEARER * _price_of(data, space, space.rows[a]) + data.tie * num_slots
            elif moves > 0:
                limit = 1 << draw(space, _LIMITS)
            spare = moves > 0 and at_stake - data.weight[j] + met_before > -1e-9
            _replan(data, j, space, was_met[a], upper, limit, spare, row)
            placed += 1
            copy_row(row, plan[j])
            hold(data, space.free, row, _HOLD)
            met = row_value(data, j, row, change, 1.0)
            for t in range(num_slots):
                changed = changed or row[t] != space.rows[a, t]
            if not met and data.deadline[j] < np.inf:
                # Is there any hope left of as much met weight as before?
                at_stake -= data.weight[j]
                feasible = not data.must_meet[j] and at_stake + met_before > -1e-9
                if not feasible:
                    break
        verdict = _compare(change, space.tolerance) if feasible else -1
        if verdict > 0:
            gains += 1
        elif verdict < 0 or not changed:
            for a in range(count):
                if a < placed:
                    hold(data, space.free, plan[chosen[a]], _RELEASE)
                copy_row(space.rows[a], plan[chosen[a]])
                hold(data, space.free, space.rows[a], _HOLD)
    return gains
