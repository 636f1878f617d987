"""Generalised assignment in its two layouts.

Both begin with ``agents items``. The layout ``orlibrary`` (Beasley, 1990) goes on with the costs of
all items for each agent in turn, the same of the resource that they take, and the capacities; the
layout ``standard`` with the capacities, and then for each item a pair of resource taken and cost for
each agent. Every item is a group, a plan is an agent; costs are minimised (the OR-Library also quotes
values of its first collections as maximisation problems: they are not those here).
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

#: The layouts by their names.
LAYOUTS = ("orlibrary", "standard")


def read_assignment(path: Path, layout: str = LAYOUTS[0]) -> GivenPlans:
    """Return the problem of a file in one of the :data:`LAYOUTS`.

    Raises
    ------
    FormatError
        If the layout is not known, or the file has too few or too many numbers, or sizes that are
        none.
    """
    if layout not in LAYOUTS:
        raise FormatError(f"{path}: layout {layout!r} is not known; known are {', '.join(LAYOUTS)}")
    numbers = Numbers(path, numbers_of(path))
    agents, items = numbers.count("number of agents"), numbers.count("number of items")
    if layout == "orlibrary":
        costs = np.array(numbers.take(agents * items, "costs")).reshape(agents, items).T
        amounts = np.array(numbers.take(agents * items, "resources taken"))
        amounts = amounts.reshape(agents, items).T
        capacity = numbers.take(agents, "capacities")
    else:
        capacity = numbers.take(agents, "capacities")
        pairs = np.array(numbers.take(2 * agents * items, "resources taken and costs"))
        amounts, costs = (pairs.reshape(items, agents, 2)[:, :, part] for part in (0, 1))
    if numbers.left:
        raise FormatError(f"{path}: {numbers.left} numbers are left over")
    scale = whole_scale(costs.ravel().tolist())
    # Columns item by item, in the order of the agents.
    item, agent = np.divmod(np.arange(agents * items), agents)
    return GivenPlans(
        name=path.name,
        columns=PlanColumns(
            group=item,
            starts=np.arange(agents * items + 1),
            resource=agent,
            amount=amounts.ravel(),
        ),
        value=-np.rint(costs.ravel() * scale),
        scale=scale,
        capacity=np.array(capacity),
        num_groups=items,
        minimise=True,
    )
