"""Compiled kernels that put one job into the capacity that is left, as cheaply as prices tell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edgeflow_opt.solvers.compiled import kernel, shared
from edgeflow_opt.solvers.price.hull_kernels import segments_of, select_segments, useful_length
from edgeflow_opt.solvers.price.knapsack_kernels import knapsack
from edgeflow_opt.solvers.price.lossy_kernels import lossy_knapsack
from edgeflow_opt.solvers.price.row_kernels import cost_beyond, credit_of, row_cost
from edgeflow_opt.solvers.price.run_kernels import cheapest_run

#: Bins of work per job with losses when a plan is looked for.
LOSSY_BINS = 1280
#: Not a literal: the knapsacks are compiled once for either rounding.
_OPTIMISTIC = np.bool_(False)


class Workspace(NamedTuple):
    """Work arrays of one thread; S = most segments, B = bins, X = states of a path.

    ``beyond`` is +inf throughout: no unit may be taken beyond those that are left.
    """

    slots: Any
    floats: Any
    order: Any
    table: Any
    start: Any
    mode: Any
    gain: Any
    cost: Any
    steps: Any
    lossy_table: Any
    best: Any
    row: Any
    beyond: Any


def workspace(data: Any, bins: int) -> Workspace:
    """Return work arrays for :func:`insert` with `bins` bins of work for jobs without losses."""
    size, num_slots = data.most_segments, data.capacity.shape[1]
    num_sites = data.capacity.shape[0]
    states = data.most_modes + num_sites
    deep = num_slots + 1 if (data.lossy & data.malleable).any() else 1
    return Workspace(
        slots=np.empty((3, size), np.int64),
        floats=np.empty((3, size)),
        order=np.empty(size, np.int64),
        table=np.empty((num_slots + 1, bins + 1), np.int32),
        start=np.empty((2, num_slots + 1), np.int64),
        mode=np.empty(size, np.int64),
        gain=np.empty(size),
        cost=np.empty(size),
        steps=np.empty((2, size), np.int32),
        lossy_table=np.empty((deep, states, 2 * LOSSY_BINS + 1), np.int32),
        best=np.empty((num_sites, 2 * LOSSY_BINS + 1), np.int32),
        row=np.empty(num_slots, np.int64),
        beyond=np.full((num_sites, num_slots), np.inf),
    )


@shared
def insert(data: Any, j: int, prices: Any, available: Any, space: Any) -> float:
    """Find a cheap plan that meets the deadline of job `j` within `available`.

    Parameters
    ----------
    prices
        (K, T) prices at which plans are compared.
    available
        (K, T) units left.
    space
        Work arrays; the plan is in ``space.row[first : end]``.

    Returns
    -------
    cost
        Priced cost of the plan; +inf where none was found.
    """
    begin, stop = data.jobs[j].first, data.jobs[j].end
    row = space.row
    for s in range(begin, stop):
        row[s] = -1
    if not data.jobs[j].malleable:
        cost, m, a, b = cheapest_run(data, j, prices, available, data.jobs[j].target)
        if m >= 0:
            row[a:b] = m
        return cost
    if data.jobs[j].lossy:
        cost, m, a, b = cheapest_run(data, j, prices, available, data.jobs[j].target)
        upper = cost
        if cost == np.inf:
            if not _enough(data, j, available):
                return cost
            upper = _dearest(data, j, prices)
        found = lossy_knapsack(
            data, j, prices, available, data.jobs[j].target, upper, (space.best.shape[1] - 1) // 2, _OPTIMISTIC,
            space.lossy_table, space.gain, space.best, row,
        )  # fmt: skip
        if found < upper and credit_of(data, j, row, begin, stop) >= data.jobs[j].target:
            return row_cost(data, row, prices, begin, stop)
        if cost == np.inf:
            return cost
        row[begin:stop] = -1
        row[a:b] = m
        return cost
    return insert_without_losses(data, j, prices, available, space.beyond, space)


@shared
def insert_without_losses(
    data: Any, j: int, prices: Any, available: Any, beyond: Any, space: Any
) -> float:
    """Round the hull's plan up, then look for a cheaper one by the knapsack over its core.

    As :func:`insert`, for a malleable job without losses. More than `available` may be taken where
    `beyond` (K, T), the price of a unit beyond, is finite.
    """
    begin, stop = data.jobs[j].first, data.jobs[j].end
    row = space.row
    target = data.jobs[j].target
    count = segments_of(data, j, prices, available, beyond, space.slots, space.floats)
    taken, left = select_segments(space.floats, count, target, space.order)
    if taken < 0:
        return np.inf
    spent = 0.0
    for i in range(taken):
        spent += space.floats[2, space.order[i]]
    last = space.order[taken]
    whole = spent + space.floats[2, last]
    hull = spent + left / space.floats[1, last] * space.floats[2, last]
    if whole > hull * (1.0 + 1e-9):
        bins = space.table.shape[1] - 1
        found = knapsack(
            data, j, prices, available, beyond, target, space.floats[0, last], hull, whole, bins,
            _OPTIMISTIC, space.table, space.start, space.mode, space.gain, space.cost, space.steps, row,
        )  # fmt: skip
        if found < whole and credit_of(data, j, row, begin, stop) >= target:
            return cost_beyond(data, row, prices, available, beyond, begin, stop)
        for s in range(begin, stop):
            row[s] = -1
    for i in range(taken + 1):
        segment = space.order[i]
        s, above = space.slots[0, segment], space.slots[2, segment]
        if row[s] < 0 or data.modes[row[s]].rate < data.modes[above].rate:
            row[s] = above
    if credit_of(data, j, row, begin, stop) < target:
        return np.inf
    return cost_beyond(data, row, prices, available, beyond, begin, stop)


@kernel
def _enough(data: Any, j: int, available: Any) -> bool:
    """Whether job `j` could do its work in what is left, were there no losses."""
    most = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        fastest = 0.0
        for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
            if data.modes[m].units <= available[data.modes[m].site, s]:
                fastest = max(fastest, data.modes[m].rate)
        most += fastest * useful_length(data, j, s)
    return most >= data.jobs[j].target


@kernel
def _dearest(data: Any, j: int, prices: Any) -> float:
    """Return more than what any plan of job `j` costs."""
    total = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        dearest = 0.0
        for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
            dearest = max(dearest, prices[data.modes[m].site, s] * data.modes[m].units)
        total += dearest
    return total * 1.001 + 1e-300
