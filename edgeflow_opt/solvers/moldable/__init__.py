"""Problems whose jobs have one run each: the capacity prices over enumerated (mode, start) options."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.solvers.moldable.dual import OptionDual, OptionTable, minimise, option_table
from edgeflow_opt.solvers.moldable.kernels import take
from edgeflow_opt.solvers.moldable.solver import OptionSearch, solve_options

__all__ = [
    "OptionDual",
    "OptionSearch",
    "OptionTable",
    "minimise",
    "option_table",
    "solve_options",
    "warm_up",
]


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    from edgeflow_opt.formulations.plans import warm_up_arrays

    table = option_table(warm_up_arrays())
    search = OptionSearch(table, minimise(table, None, 1), 0)
    search.construct()
    search.improve(1)
    available = table.arrays.capacity.copy()
    take(table.data, np.int64(0), available, np.int64(-1))
