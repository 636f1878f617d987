"""Compiled kernels that put one job more into a full plan, then shift away what is too much.

Negotiated congestion (McMurchie and Ebeling, PathFinder, 1995, for the wires of a circuit): a job is
put in at its cheapest plan though capacities are exceeded. Then one job after the other that holds
units in an exceeded slot is planned anew, at the dual prices plus a price of units beyond the
capacity, which rises where they stay. Each of these plans is the cheapest of its job, so that what
is too much moves to where little is wasted, until it is gone or the attempt is given up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry
from edgeflow_opt.solvers.price.insertion_kernels import insert_without_losses
from edgeflow_opt.solvers.price.row_kernels import copy_row, cost_beyond, row_cost
from edgeflow_opt.solvers.price.search_kernels import random_unit, take

#: Jobs of which the one that is cheapest to put in is taken.
_TRIED = 6
#: Share of the steps that try another job in place of one that is planned anew.
_SWAPS = 0.3
#: Signs of units taken and given back, typed so that `take` is compiled once.
_HOLD, _RELEASE = np.int64(-1), np.int64(1)


@entry
def overfill(
    data: Any,
    guide: Any,
    beyond: Any,
    ratio: Any,
    outside: Any,
    random: Any,
    plan: Any,
    available: Any,
    met: Any,
    space: Any,
) -> int:
    """Put one of the jobs `outside` in, whether or not it fits; return its number, -1 = none.

    Parameters
    ----------
    guide, beyond
        (K, T) price of a unit, and of one beyond the capacity on top of it.
    ratio
        (n,) priced cost over worth; jobs with a small one are tried more often.
    outside
        Jobs that are not met.
    """
    cheapest, chosen = np.inf, -1
    for _ in range(_TRIED):
        j = outside[int(random_unit(random) * len(outside))]
        for _round in range(2):
            rival = outside[int(random_unit(random) * len(outside))]
            if ratio[rival] < ratio[j]:
                j = rival
        cost = insert_without_losses(data, j, guide, available, beyond, space)
        if cost < cheapest:
            cheapest, chosen = cost, j
    if chosen >= 0:
        insert_without_losses(data, chosen, guide, available, beyond, space)
        copy_row(space.row, plan[chosen], data.jobs[chosen].first, data.jobs[chosen].end)
        take(data, chosen, plan[chosen], available, _HOLD)
        met[chosen] = True
    return chosen


@entry
def shift(
    data: Any,
    prices: Any,
    guide: Any,
    beyond: Any,
    rise: float,
    noise: float,
    worth: Any,
    ratio: Any,
    movable: Any,
    steps: int,
    random: Any,
    plan: Any,
    available: Any,
    plan_cost: Any,
    met: Any,
    space: Any,
) -> int:
    """Plan jobs anew that hold units in exceeded slots; return how many units are too many then.

    A job may give way to one that is not met, where that is cheaper and worth no less.

    Parameters
    ----------
    prices, guide
        (K, T) prices by which plans are valued, and by which they are chosen.
    beyond
        (K, T) price of a unit beyond the capacity, on top of `guide`; raised in place.
    rise
        By how much it rises in each step, in one slot.
    noise
        Most relative noise on `guide`, drawn anew for each step.
    worth
        (n,) what meeting a job counts.
    movable
        Jobs that may be planned anew, in any order, met or not.
    steps
        Most steps; it ends before where nothing is too much.
    """
    num_sites, num_slots = guide.shape
    noisy = np.empty_like(guide)
    users = np.empty(len(movable), np.int64)
    outside = np.empty(len(movable), np.int64)
    row = np.empty(num_slots, np.int64)
    num_out = 0
    for j in movable:
        if not met[j]:
            outside[num_out] = j
            num_out += 1
    excess = 0
    for step in range(steps + 1):
        # One of the exceeded slots, each as likely.
        excess = 0
        slots = 0
        k, at = 0, 0
        for site in range(num_sites):
            for s in range(num_slots):
                if available[site, s] < 0:
                    excess -= available[site, s]
                    slots += 1
                    if random_unit(random) * slots < 1.0:
                        k, at = site, s
        if excess == 0 or step == steps:
            break
        beyond[k, at] += rise
        count = 0
        for j in movable:
            if met[j] and plan[j, at] >= 0 and data.modes[plan[j, at]].site == k:
                users[count] = j
                count += 1
        if count == 0:
            break
        j = users[int(random_unit(random) * count)]
        swing = noise * random_unit(random) ** 3
        for site in range(num_sites):
            for s in range(num_slots):
                noisy[site, s] = guide[site, s] * (1.0 + swing * (2.0 * random_unit(random) - 1.0))
        begin, stop = data.jobs[j].first, data.jobs[j].end
        take(data, j, plan[j], available, _RELEASE)
        copy_row(plan[j], row, begin, stop)
        cost = cost_beyond(data, row, noisy, available, beyond, begin, stop)
        found = insert_without_losses(data, j, noisy, available, beyond, space)
        if found < cost:
            cost = found
            copy_row(space.row, row, begin, stop)
        if num_out > 0 and random_unit(random) < _SWAPS:
            place = int(random_unit(random) * num_out)
            rival = int(random_unit(random) * num_out)
            if ratio[outside[rival]] < ratio[outside[place]]:
                place = rival
            i = outside[place]
            if (
                worth[i] >= worth[j]
                and insert_without_losses(data, i, noisy, available, beyond, space) < cost
            ):
                plan[j, begin:stop] = -1
                plan_cost[j] = 0.0
                met[j], met[i] = False, True
                outside[place] = j
                j = i
                begin, stop = data.jobs[j].first, data.jobs[j].end
                copy_row(space.row, row, begin, stop)
        copy_row(row, plan[j], begin, stop)
        plan_cost[j] = row_cost(data, row, prices, begin, stop)
        take(data, j, plan[j], available, _HOLD)
    return excess
