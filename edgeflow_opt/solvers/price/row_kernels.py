"""Compiled kernels on the plan of one job: what it earns and what it costs."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.solvers.compiled import kernel


@kernel
def credit_of(data: Any, j: int, row: Any, begin: int, stop: int) -> float:
    """Return the iterations that `row` earns job `j` by its deadline, by the run-and-loss rule."""
    total = 0.0
    site = data.last_site[j]
    s = begin
    while s < stop:
        m = row[s]
        if m < 0:
            s += 1
            continue
        if s == 0 and m == data.running[j]:
            loss = data.loss_left_s[j]
        elif site < 0:
            loss = 0.0
        elif site != data.site[m]:
            loss = data.migration_s[j]
        else:
            loss = data.restart_s[j]
        site = data.site[m]
        start = data.boundaries[s]
        while s < stop and row[s] == m:
            s += 1
        end = min(data.boundaries[s], data.deadline[j])
        total += data.rate[m] * max(0.0, end - start - loss)
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
            total += prices[data.site[m], s] * data.units[m]
    return total
