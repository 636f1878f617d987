"""Compilation ahead of time, so that it never eats a caller's time limit."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.formulations.plans import empty_plan, warm_up_arrays
from edgeflow_opt.problem import Weights


def warm_up() -> None:
    """Compile (or load from the cache on disk) the kernels of the weighted sum."""
    from edgeflow_opt.solvers.weighted.dual import WeightedDual
    from edgeflow_opt.solvers.weighted.search import WeightedSearch
    from edgeflow_opt.solvers.weighted.worths import weighted_data

    arrays, weights = warm_up_arrays(), Weights(progress=0.5, cost=0.01)
    dual = WeightedDual(*weighted_data(arrays, weights))
    prices = np.full(arrays.capacity.shape, 0.1)
    dual.evaluate(prices)
    dual.certify(prices, dual.multiplier)
    search = WeightedSearch(arrays, weights, empty_plan(arrays), prices, 0)
    search.sweep()
    search.shake(1)
