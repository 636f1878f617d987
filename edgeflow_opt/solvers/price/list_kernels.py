"""Compiled kernel of the exact pricing without bins: the states of the core as lists.

With the multiplier of the hull every state (work done, cost) of the dynamic program over the core
has a least cost at which it can be completed. Where that exceeds the cost of a plan that is known,
the state is dropped, as is one that does no more work than another and costs no less (Dudzinski and
Walukiewicz, 1987). At 1000 jobs and 96 slots some thousand states a job are left, in all slots
together, so that pricing without bins takes less time than with 12,800 of them, and is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import shared
from edgeflow_opt.solvers.price.knapsack_kernels import core_of

#: Units in which work is counted, rounded up: those of the work that is left to the core. Sums of
#: whole numbers of them are exact in floating point.
_UNITS = 2.0**40
#: Relative room for rounding of the ratios work : unit, far above eps.
_ROOM = 1e-12


@shared
def list_knapsack(
    data: Any,
    j: int,
    prices: Any,
    available: Any,
    beyond: Any,
    work: float,
    q: float,
    hull_cost: float,
    upper: float,
    start: Any,
    mode: Any,
    gain: Any,
    cost: Any,
    plan: Any,
    amounts: Any,
    origins: Any,
    rest: Any,
    first: Any,
) -> float:
    """Solve the exact pricing of job `j` for plans that cost `upper` or less.

    Parameters
    ----------
    prices, available, beyond, work, q, hull_cost, upper, start, mode, gain, cost, plan
        As in :func:`~edgeflow_opt.solvers.price.knapsack_kernels.knapsack`.
    amounts, origins
        Work arrays: (2, L) work done and cost of each state, (2, L) int32 the state before it and
        the option that leads to it.
    rest, first
        Work arrays: (2, slots + 1) most work and least reduced cost of the free slots to come,
        (slots + 2,) int64 the first state after each free slot.

    Returns
    -------
    cost
        At most the cost of every plan, and at most `upper`, where `plan` may be meaningless; -inf
        where L states are not enough.
    """
    tolerance = 1e-9 * (upper + q * work)
    free, base_work, base_cost = core_of(
        data, j, prices, available, beyond, q, upper - hull_cost + tolerance,
        start, mode, gain, cost, plan,
    )  # fmt: skip
    left = work - base_work - 1e-11 * work
    if left <= 0.0:
        return min(upper, base_cost)
    room = upper - base_cost + tolerance
    if free == 0 or room <= 0.0:
        return upper
    unit_cost = q * left / _UNITS
    for i in range(start[0, free]):
        gain[i] = min(np.ceil(gain[i] / left * _UNITS * (1.0 + _ROOM)), _UNITS)
    rest[0, free] = 0.0
    rest[1, free] = 0.0
    for f in range(free - 1, -1, -1):
        least = 0.0
        for i in range(start[0, f], start[0, f + 1]):
            least = min(least, cost[i] - unit_cost * gain[i])
        rest[0, f] = rest[0, f + 1] + gain[start[0, f + 1] - 1]
        rest[1, f] = rest[1, f + 1] + least
    if rest[0, 0] < _UNITS:
        return upper
    done, spent = amounts[0], amounts[1]
    before, option = origins[0], origins[1]
    place = np.empty(data.most_modes + 1, np.int64)
    done[0], spent[0] = 0.0, 0.0
    first[0], first[1] = 0, 1
    for f in range(free):
        begin, stop = first[f], first[f + 1]
        new = stop
        lo, width = start[0, f], start[0, f + 1] - start[0, f] + 1
        if new + width * (stop - begin) > len(done):
            return -np.inf
        for i in range(width):
            place[i] = begin
        cheapest = np.inf
        # Along every list work and cost fall. Option 0 is the first of the slot, without gain.
        while True:
            chosen, most, least = -1, -1.0, np.inf
            for i in range(width):
                if place[i] == stop:
                    continue
                w, c = done[place[i]], spent[place[i]]
                if i > 0:
                    w, c = min(_UNITS, w + gain[lo + i - 1]), c + cost[lo + i - 1]
                if w > most or (w == most and c < least):
                    chosen, most, least = i, w, c
            if chosen < 0:
                break
            state = place[chosen]
            place[chosen] += 1
            if least >= cheapest or most + rest[0, f + 1] < _UNITS:
                continue
            if least + rest[1, f + 1] + unit_cost * (_UNITS - most) > room:
                continue
            cheapest = least
            if new > stop and done[new - 1] == most:
                # More than enough is cut off, so that a cheaper state of the same work may follow.
                new -= 1
            done[new], spent[new] = most, least
            before[new] = state
            option[new] = lo + chosen - 1 if chosen > 0 else -1
            new += 1
        if new == stop:
            return upper
        first[f + 2] = new
    state = first[free]
    if done[state] < _UNITS:
        return upper
    found = base_cost + spent[state] - tolerance
    for f in range(free - 1, -1, -1):
        if option[state] >= 0:
            plan[start[1, f]] = mode[option[state]]
        state = before[state]
    return min(upper, found)
