"""Compiled kernels of the primal search: construction, ruin and recreate, use of what is left.

The state of a search is a plan matrix of kept modes (n, T), the units left (K, T), the priced cost
of each job's plan, and who is met; kernels change it in place and keep it consistent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.price.insertion_kernels import insert
from edgeflow_opt.solvers.price.row_kernels import copy_row, row_cost

#: Most jobs taken out and put in by one move.
_MOST_REMOVED = 10
_MOST_ADDED = 3
#: Signs of units taken and given back, typed so that `take` is compiled once.
_HOLD, _RELEASE = np.int64(-1), np.int64(1)


@kernel
def random_unit(state: Any) -> float:
    """Return a number uniform on [0, 1) and advance `state`, (1,) uint64, not 0 (xorshift64)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return float(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def take(data: Any, j: int, row: Any, available: Any, sign: int) -> None:
    """Add `sign` times the units of `row` to `available`."""
    for s in range(data.jobs[j].first, data.jobs[j].end):
        m = row[s]
        if m >= 0:
            available[data.modes[m].site, s] += sign * data.modes[m].units


@entry
def search(
    data: Any,
    prices: Any,
    guide: Any,
    worth: Any,
    ratio: Any,
    candidates: Any,
    order: Any,
    moves: int,
    noise: float,
    temperature: float,
    random: Any,
    plan: Any,
    available: Any,
    plan_cost: Any,
    met: Any,
    space: Any,
) -> float:
    """Insert the jobs of `order`, then ruin and recreate: a plan is built and improved in one kernel.

    A move takes out a few neighbouring jobs and puts them and some others back in another order.

    A move is kept if the worth of the jobs met rises, or stays while the priced worth of the
    capacity left does not fall by more than a random amount of the order of `temperature`.

    Parameters
    ----------
    prices, guide
        (K, T) dual prices, by which plans are valued, and the prices by which they are chosen.
    worth
        (n,) what meeting a job counts.
    ratio
        (n,) priced cost over worth; rejected jobs with a small one are tried more often.
    candidates
        Jobs that can be met at all.
    order
        Jobs to insert first, where they are not met yet.
    moves
        Number of moves.
    noise
        Most relative noise on `guide`, drawn anew for each move.
    random
        (1,) uint64, state of the random numbers.

    Returns
    -------
    gained
        Rise of the worth of the jobs met by the moves.
    """
    for j in order:
        if met[j]:
            continue
        if insert(data, j, guide, available, space) < np.inf:
            begin, stop = data.jobs[j].first, data.jobs[j].end
            copy_row(space.row, plan[j], begin, stop)
            take(data, j, space.row, available, _HOLD)
            plan_cost[j] = row_cost(data, space.row, prices, begin, stop)
            met[j] = True
    num_sites, num_slots = prices.shape
    inside = np.empty(len(candidates), np.int64)
    outside = np.empty(len(candidates), np.int64)
    num_in = 0
    num_out = 0
    for j in candidates:
        if met[j]:
            inside[num_in] = j
            num_in += 1
        else:
            outside[num_out] = j
            num_out += 1
    most = _MOST_REMOVED + _MOST_ADDED
    removed = np.empty(most, np.int64)
    removed_at = np.empty(most, np.int64)
    queue = np.empty(most, np.int64)
    old_cost = np.empty(most)
    saved = np.empty((most, num_slots), np.int64)
    noisy = np.empty_like(prices)
    gained = 0.0
    if num_out == 0:
        return gained
    for _ in range(moves):
        if num_out == 0:
            break
        # Who comes in: winners of small tournaments; the first one decides where to ruin.
        wanted = 1 + int(random_unit(random) * random_unit(random) * _MOST_ADDED)
        added = 0
        for _try in range(3 * wanted):
            if added == wanted:
                break
            pick = outside[int(random_unit(random) * num_out)]
            for _round in range(2):
                rival = outside[int(random_unit(random) * num_out)]
                if ratio[rival] < ratio[pick]:
                    pick = rival
            fresh = True
            for i in range(added):
                fresh = fresh and queue[i] != pick
            if fresh and added > 0:
                lead = queue[0]
                fresh = (
                    data.jobs[pick].first < data.jobs[lead].end
                    and data.jobs[lead].first < data.jobs[pick].end
                )
            if fresh:
                queue[added] = pick
                added += 1
        lead = queue[0]
        span = data.jobs[lead].end - data.jobs[lead].first
        # Narrow windows set capacity free that lies close together, wide ones give more choice.
        share = random_unit(random)
        if random_unit(random) < 0.5:
            share = share**3
        width = 1 + int(share * span)
        low = data.jobs[lead].first + int(random_unit(random) * (span - width + 1))
        high = low + width
        # Who goes out: met jobs that hold something in the window.
        wanted = 1 + int(random_unit(random) * _MOST_REMOVED)
        gone = 0
        old_worth = 0.0
        old_priced = 0.0
        for _try in range(12 * wanted):
            if gone == wanted or num_in == 0:
                break
            at = int(random_unit(random) * num_in)
            j = inside[at]
            if data.jobs[j].first >= high or data.jobs[j].end <= low or not met[j]:
                continue
            holds = False
            for s in range(max(low, data.jobs[j].first), min(high, data.jobs[j].end)):
                holds = holds or plan[j, s] >= 0
            if not holds:
                continue
            met[j] = False
            removed[gone] = j
            removed_at[gone] = at
            copy_row(plan[j], saved[gone], data.jobs[j].first, data.jobs[j].end)
            old_cost[gone] = plan_cost[j]
            old_worth += worth[j]
            old_priced += plan_cost[j]
            take(data, j, saved[gone], available, _RELEASE)
            queue[added + gone] = j
            gone += 1
        total = added + gone
        for i in range(total - 1, 0, -1):
            other = int(random_unit(random) * (i + 1))
            queue[i], queue[other] = queue[other], queue[i]
        # Mostly hardly any noise, now and then a lot: it leads out of dead ends.
        swing = noise * random_unit(random) ** 3
        for k in range(num_sites):
            for s in range(num_slots):
                noisy[k, s] = guide[k, s] * (1.0 + swing * (2.0 * random_unit(random) - 1.0))
        ahead = 0.0
        for i in range(total):
            ahead += worth[queue[i]]
        new_worth = 0.0
        new_priced = 0.0
        failed = False
        for i in range(total):
            j = queue[i]
            begin, stop = data.jobs[j].first, data.jobs[j].end
            ahead -= worth[j]
            if insert(data, j, noisy, available, space) < np.inf:
                copy_row(space.row, plan[j], begin, stop)
                take(data, j, space.row, available, _HOLD)
                plan_cost[j] = row_cost(data, space.row, prices, begin, stop)
                met[j] = True
                new_worth += worth[j]
                new_priced += plan_cost[j]
            elif new_worth + ahead < old_worth - 1e-9:
                failed = True
                break
        accepted = False
        if not failed:
            rise = new_worth - old_worth
            if rise > 1e-9:
                accepted = True
            elif rise > -1e-9:
                allowed = -temperature * np.log(1.0 - random_unit(random))
                accepted = new_priced - old_priced <= allowed
        if not accepted:
            for i in range(total):
                j = queue[i]
                if met[j]:
                    take(data, j, plan[j], available, _RELEASE)
                    met[j] = False
                    plan[j, data.jobs[j].first : data.jobs[j].end] = -1
            for i in range(gone):
                j = removed[i]
                copy_row(saved[i], plan[j], data.jobs[j].first, data.jobs[j].end)
                plan_cost[j] = old_cost[i]
                take(data, j, plan[j], available, _HOLD)
                met[j] = True
            continue
        gained += new_worth - old_worth
        # The two lists: those that lost their place leave, the newly met ones enter.
        for i in range(gone):
            j = removed[i]
            if not met[j]:
                plan[j, data.jobs[j].first : data.jobs[j].end] = -1
        changed = False
        for i in range(total):
            j = queue[i]
            was_in = False
            for r in range(gone):
                was_in = was_in or removed[r] == j
            changed = changed or was_in != met[j]
        if changed:
            num_in = 0
            num_out = 0
            for j in candidates:
                if met[j]:
                    inside[num_in] = j
                    num_in += 1
                else:
                    outside[num_out] = j
                    num_out += 1
    return gained


@entry
def fill_left_over(
    data: Any, order: Any, to_deadline: bool, plan: Any, available: Any, met: Any, need: Any
) -> None:
    """Give units that are left to jobs that are not met, without touching the others.

    Each job of `order` takes in every slot, from its first on, the fastest mode that fits (the one
    it holds, if that fits and the job has losses) until its work is done.

    Parameters
    ----------
    to_deadline
        Whether slots from the deadline on are left alone.
    need
        (n,) iterations left to do, lowered by what is given.
    """
    num_slots = plan.shape[1]
    for j in order:
        if met[j]:
            continue
        if not data.jobs[j].malleable:
            _fill_run(data, j, to_deadline, plan, available, need)
            continue
        stop = data.jobs[j].end if to_deadline else num_slots
        for s in range(data.jobs[j].first, stop):
            if need[j] <= 0.0:
                break
            if plan[j, s] >= 0:
                continue
            length = data.boundaries[s + 1] - data.boundaries[s]
            held = plan[j, s - 1] if s > 0 else data.jobs[j].running
            best = -1
            for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
                if data.modes[m].units > available[data.modes[m].site, s]:
                    continue
                if m == held and data.jobs[j].lossy:
                    best = m
                    break
                if best < 0 or data.modes[m].rate > data.modes[best].rate:
                    best = m
            if best < 0:
                continue
            plan[j, s] = best
            available[data.modes[best].site, s] -= data.modes[best].units
            need[j] -= data.modes[best].rate * length


@kernel
def _fill_run(data: Any, j: int, to_deadline: bool, plan: Any, available: Any, need: Any) -> None:
    """Give a moldable job that has no run yet the one run that does most of its work."""
    num_slots = plan.shape[1]
    for s in range(num_slots):
        if plan[j, s] >= 0:
            return
    stop = data.jobs[j].end if to_deadline else num_slots
    best_work = 0.0
    best_mode, best_begin, best_end = -1, 0, 0
    fixed = data.jobs[j].running >= 0
    for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
        k = data.modes[m].site
        s = data.jobs[j].first
        while s < stop:
            if fixed and s > 0:
                break
            if data.modes[m].units > available[k, s]:
                s += 1
                continue
            a = s
            work = 0.0
            while s < stop and data.modes[m].units <= available[k, s] and work < need[j]:
                s += 1
                work = data.modes[m].rate * (data.boundaries[s] - data.boundaries[a])
            if min(work, need[j]) > best_work:
                best_work = min(work, need[j])
                best_mode, best_begin, best_end = m, a, s
    if best_mode < 0:
        return
    for s in range(best_begin, best_end):
        plan[j, s] = best_mode
        available[data.modes[best_mode].site, s] -= data.modes[best_mode].units
    need[j] -= best_work
