"""Compiled kernels on options: pricing, construction, ruin and recreate.

The state of a search is the option that each job holds (-1 = none) and the units left (K, T);
kernels change it in place and keep it consistent. Costs of options come from prefix sums of the
prices: units * (P[site, stop] - P[site, start]).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgeflow_opt.solvers.price.search_kernels import random_unit

#: Most jobs taken out and put in by one move.
_MOST_REMOVED, _MOST_ADDED = 6, 3

#: Chance that an option that fits is passed over, so that moves differ.
_PASSED_OVER = 0.15


class OptionData(NamedTuple):
    """Options as the kernels take them; those of job j are ``first[j] : first[j + 1]``.

    ``site``, ``start``, ``stop`` and ``units`` are (N,), ``first`` is (n+1,).
    """

    first: Any
    site: Any
    start: Any
    stop: Any
    units: Any


@njit(cache=True, nogil=True)
def price_options(data: Any, prefix: Any, weight: Any, must: Any, cost: Any, best: Any,
                  change: Any) -> float:  # fmt: skip
    """Price all options at the prefix sums (K, T+1), and return the gain of all jobs together.

    Parameters
    ----------
    cost
        (N,) filled with the cost of each option.
    best
        (n,) filled with the cheapest option of each job, -1 where it has none.
    change
        (K, T+1) filled with the change of usage from slot to slot by the options that pay.
    """
    gain = 0.0
    change[:] = 0.0
    for j in range(len(weight)):
        cheapest, least = -1, np.inf
        for o in range(data.first[j], data.first[j + 1]):
            k = data.site[o]
            cost[o] = data.units[o] * (prefix[k, data.stop[o]] - prefix[k, data.start[o]])
            if cost[o] < least:
                cheapest, least = o, cost[o]
        best[j] = cheapest
        if cheapest >= 0 and (must[j] or least < weight[j]):
            gain += weight[j] - least
            k = data.site[cheapest]
            change[k, data.start[cheapest]] += data.units[cheapest]
            change[k, data.stop[cheapest]] -= data.units[cheapest]
    return gain


@njit(cache=True, nogil=True)
def fits(data: Any, o: int, available: Any) -> bool:
    """Whether option `o` fits in what is left."""
    k, units = data.site[o], data.units[o]
    for s in range(data.start[o], data.stop[o]):  # noqa: SIM110 - any() is not compiled
        if available[k, s] < units:
            return False
    return True


@njit(cache=True, nogil=True)
def take(data: Any, o: Any, available: Any, sign: Any) -> None:
    """Add `sign` times the units of option `o` to what is left."""
    k = data.site[o]
    for s in range(data.start[o], data.stop[o]):
        available[k, s] += sign * data.units[o]


@njit(cache=True, nogil=True)
def construct(data: Any, jobs: Any, order: Any, available: Any, held: Any) -> None:
    """Give each of `jobs` that holds none its first option in `order` that fits.

    Parameters
    ----------
    order
        (N,) the options of each job, the cheapest first.
    """
    for j in jobs:
        if held[j] >= 0:
            continue
        for place in range(data.first[j], data.first[j + 1]):
            o = order[place]
            if fits(data, o, available):
                held[j] = o
                take(data, o, available, -1)
                break


@njit(cache=True, nogil=True)
def ruin_and_recreate(
    data: Any, jobs: Any, order: Any, cost: Any, worth: Any, moves: int, temperature: float,
    random: Any, available: Any, held: Any,
) -> float:  # fmt: skip
    """Make `moves` moves and return the rise of the worth of the jobs met.

    A move takes out a few jobs that hold units in one random slot, draws a few idle ones, cheap
    ones rather (the better of two), and puts all of them back in random order. It stays where the
    worth rises, or is the same and the priced units held do not grow by more than a random slack.

    Parameters
    ----------
    jobs
        (J,) jobs with options, the cheapest per worth first.
    cost
        (N,) cost of each option at the dual prices.
    temperature
        Mean of the slack.
    """
    count = len(jobs)
    num_slots = available.shape[1]
    touched = np.empty(_MOST_REMOVED + _MOST_ADDED, dtype=np.int64)
    before = np.empty(_MOST_REMOVED + _MOST_ADDED, dtype=np.int64)
    gained = 0.0
    for _ in range(moves):
        slot = int(random_unit(random) * num_slots)
        wanted = 1 + int(random_unit(random) * _MOST_REMOVED)
        number = 0
        at = int(random_unit(random) * count)
        for _step in range(count):
            if number == wanted:
                break
            j = jobs[at]
            o = held[j]
            at = at + 1 if at + 1 < count else 0
            # Not all who hold the slot, and not always neighbours in the order.
            if o >= 0 and data.start[o] <= slot < data.stop[o] and random_unit(random) < 0.5:
                touched[number] = j
                number += 1
        removed = number
        for _step in range(1 + int(random_unit(random) * _MOST_ADDED)):
            at = min(int(random_unit(random) * count), int(random_unit(random) * count))
            for _look in range(20):
                if held[jobs[at]] < 0:
                    break
                at = at + 1 if at + 1 < count else 0
            j = jobs[at]
            if held[j] >= 0:
                continue
            known = False
            for i in range(removed, number):
                known = known or touched[i] == j
            if not known:
                touched[number] = j
                number += 1
        # Without a newcomer the move can only rearrange, which makes room for later ones.
        if number == 0:
            continue
        old_worth = old_cost = 0.0
        for i in range(number):
            o = held[touched[i]]
            before[i] = o
            if o >= 0:
                old_worth += worth[touched[i]]
                old_cost += cost[o]
                take(data, o, available, 1)
                held[touched[i]] = -1
        for i in range(number - 1, 0, -1):
            other = int(random_unit(random) * (i + 1))
            j, o = touched[i], before[i]
            touched[i], before[i] = touched[other], before[other]
            touched[other], before[other] = j, o
        new_worth = new_cost = 0.0
        for i in range(number):
            j = touched[i]
            for place in range(data.first[j], data.first[j + 1]):
                o = order[place]
                if fits(data, o, available) and random_unit(random) >= _PASSED_OVER:
                    held[j] = o
                    new_worth += worth[j]
                    new_cost += cost[o]
                    take(data, o, available, -1)
                    break
        slack = -temperature * np.log(random_unit(random) + 1e-300)
        better = new_worth > old_worth + 1e-9
        if better or (new_worth > old_worth - 1e-9 and new_cost <= old_cost + slack):
            gained += new_worth - old_worth
            continue
        for i in range(number):
            if held[touched[i]] >= 0:
                take(data, held[touched[i]], available, 1)
        for i in range(number):
            held[touched[i]] = before[i]
            if before[i] >= 0:
                take(data, before[i], available, -1)
    return gained
