"""A proven bound on level 1 as a row of the weighted dual.

No schedule meets more weight than B, which rounding down and branching have made sharper than prices
can. So the row sum_j w_j z_j <= B is dualised too, with a toll y >= 0 on the weight that is met:

    value <= y B + L_y(p),    L_y the dual in which meeting job j earns (met - y) w_j.

The least over p is convex in y. Where B binds, the best y lies a little below met - progress - leftover:
there meeting a job is worth hardly more than working on it, so that fractions of jobs gain nothing;
above it nobody is met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.solvers.price.dual import minimise
from edgeflow_opt.solvers.price.exact_dual import BINS, MOST_REACH, ExactDual

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.solvers.price.dual import DualResult
    from edgeflow_opt.solvers.weighted.dual import WeightedDual

#: Tolls that are tried while the bound falls, as shares of the largest that is of use.
_TOLLS = (0.75, 0.875, 0.94, 0.97, 0.985)

#: Evaluations of the hull dual at each toll, and of the exact one at the best.
_ITERATIONS, _EXACT_ITERATIONS = 40, 25


def with_most_met(
    function: WeightedDual, start: DualResult, most: float, stopped: Callable[[], bool]
) -> tuple[WeightedDual, DualResult]:
    """Return the dual function with the best toll found, and its best prices and bound.

    Parameters
    ----------
    function, start
        The dual without the row, and its best prices.
    most
        The proven bound on the met weight.
    stopped
        Ends the search.

    Returns
    -------
    function, found
        Those given, where the row proves no more.
    """
    best, best_function = start, function
    most_toll, worth = function.largest_toll, function.largest_worth
    prices, toll_before = start.prices, 0.0
    for share in _TOLLS if most_toll > 0.0 else ():
        if stopped():
            break
        toll = share * most_toll
        tolled = function.with_toll(toll, most)
        # Prices fall with what is earned.
        prices = prices * ((worth - toll) / (worth - toll_before))
        hull = minimise(tolled, prices, _ITERATIONS, stopped)
        found, _ = tolled.evaluate_exactly(hull.prices, BINS, stopped)
        if found.bound < best.bound:
            best, best_function = found, tolled
        elif best_function is not function:
            break
        prices, toll_before = found.prices, toll
    if best_function is not function:
        exact = ExactDual(best_function, best, stopped, MOST_REACH)
        while not exact.finished and not stopped():
            if exact.evaluations >= _EXACT_ITERATIONS:
                exact.refine_next()
            exact.step()
        best = exact.best
    return best_function, best
