"""Compiled kernel that plans many jobs one by one, each as if it had all that is left for itself."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.solvers.compiled import entry
from edgeflow_opt.solvers.price.insertion_kernels import insert
from edgeflow_opt.solvers.price.row_kernels import copy_row


@entry
def cheapest_plans(
    data: Any, jobs: Any, prices: Any, available: Any, space: Any, cost: Any, rows: Any
) -> None:
    """Find a cheap plan that meets the deadline for each of `jobs` (N,), within `available`.

    Parameters
    ----------
    prices, available
        (K, T) price of a unit; units that each job may take.
    space
        Work arrays of one thread.
    cost
        (N,) output: priced cost of the plan; +inf where none was found.
    rows
        (N, T) output in the slots of each job: its plan.
    """
    for i in range(len(jobs)):
        j = jobs[i]
        cost[i] = insert(data, j, prices, available, space)
        copy_row(space.row, rows[i], data.jobs[j].first, data.jobs[j].end)
