"""The multiple-choice multidimensional knapsack (MMKP) in the layout of Khan's instances.

``classes items resources``, the capacities, then for each class its number and its items, a line
each: value, and what it takes of each resource. What follows in words is not read. One item of each
class is chosen, and the sum of values maximised.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.third_party.instance import (
    FormatError,
    GivenPlans,
    Numbers,
    numbers_of,
    whole_scale,
)
from edgeflow_opt.formulations.plan_columns import PlanColumns


def read_knapsack(path: Path) -> GivenPlans:
    """Return the problem of a file.

    Raises
    ------
    FormatError
        If the file has too few or too many numbers, or its classes are out of order.
    """
    numbers = Numbers(path, numbers_of(path))
    classes = numbers.count("number of classes")
    items = numbers.count("number of items of a class")
    resources = numbers.count("number of resources")
    capacity = numbers.take(resources, "capacities")
    rows: list[list[float]] = []
    for number in range(1, classes + 1):
        found = numbers.count(f"number of class {number}")
        if found != number:
            raise FormatError(f"{path}: class {number}: must follow in order, got {found}")
        rows += [numbers.take(1 + resources, f"item of class {number}") for _ in range(items)]
    if numbers.left:
        raise FormatError(f"{path}: {numbers.left} numbers are left over")
    table = np.array(rows)
    scale = whole_scale([row[0] for row in rows])
    plan, resource = np.nonzero(table[:, 1:])
    taken = np.bincount(plan, minlength=len(rows))
    return GivenPlans(
        name=path.name,
        columns=PlanColumns(
            group=np.repeat(np.arange(classes), items),
            starts=np.concatenate([[0], np.cumsum(taken)]),
            resource=resource,
            amount=table[plan, 1 + resource],
        ),
        value=np.rint(table[:, 0] * scale),
        scale=scale,
        capacity=np.array(capacity),
        num_groups=classes,
        minimise=False,
    )
