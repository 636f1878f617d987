"""Compiled kernels on the plan of one job: what it earns and what it costs."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.solvers.compiled import kernel
from edgeflow_opt.solvers.price.hull_kernels import mode_cost


@kernel
def credit_of(data: Any, j: int, row: Any, begin: int, stop: int) -> float:
    """Return the iterations that `row` earns job `j` by its deadline, by the run-and-loss rule."""
    total = 0.0
    site = data.jobs[j].last_site
    s = begin
    while s < stop:
        m = row[s]
        if m < 0:
            s += 1
            continue
        if s == 0 and m == data.jobs[j].running:
            loss = data.jobs[j].loss_left_s
        elif site < 0:
            loss = 0.0
        elif site != data.modes[m].site:
            loss = data.jobs[j].migration_s
        else:
            loss = data.jobs[j].restart_s
        site = data.modes[m].site
        start = data.boundaries[s]
        while s < stop and row[s] == m:
            s += 1
        end = min(data.boundaries[s], data.jobs[j].deadline)
        total += data.modes[m].rate * max(0.0, end - start - loss)
    return total


@kernel
def copy_row(source: Any, target: Any, begin: int, stop: int) -> None:
    """Copy the modes in slots ``begin : stop``."""
    for s in range(begin, stop):
        target[s] = source[s]


@kernel
def row_cost(data: Any, row: Any, prices: Any, begin: int, stop: int) -> float:
    """Return the priced cost of `row`."""
    total = 0.0
    for s in range(begin, stop):
        m = row[s]
        if m >= 0:
            total += prices[data.modes[m].site, s] * data.modes[m].units
    return total


@kernel
def cost_beyond(
    data: Any, row: Any, prices: Any, available: Any, beyond: Any, begin: int, stop: int
) -> float:
    """Return the priced cost of `row` where units beyond those left have a price of their own."""
    total = 0.0
    for s in range(begin, stop):
        if row[s] >= 0:
            total += mode_cost(data, row[s], s, prices, available, beyond)
    return total
