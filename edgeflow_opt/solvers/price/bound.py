"""The bound of the price engine alone: prices, and what they prove, without any schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.solvers.price.dual import COLD_ITERATIONS, HullDual, checked_prices, minimise
from edgeflow_opt.solvers.price.exact_dual import ExactDual
from edgeflow_opt.solvers.price.pricing_data import pricing_data

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.price.dual import DualResult


def dual_bound(
    arrays: ProblemArrays,
    prices: FloatArray | None = None,
    iterations: int = COLD_ITERATIONS,
    control: SolveControl | None = None,
    *,
    exact_iterations: int = 0,
    workers: int = 1,
) -> DualResult:
    """Return prices and a proven upper bound on the weighted number of jobs met.

    Parameters
    ----------
    arrays
        The instance.
    prices
        (K, T) prices to begin from; None = a cold start. Those of the last epoch, shifted by the
        slots that have passed, are nearly optimal after one evaluation.
    iterations
        Evaluations of the hull dual (the linear program of the compact model), at least 1.
    control
        Ends the search early, never before the first evaluation; None = no limit.
    exact_iterations
        Evaluations of the stronger dual with integer plans that follow; 0 = none. The first
        brings most; after 40 nothing more comes.
    workers
        Threads, at least 1; the result does not depend on it.

    Raises
    ------
    UsageError
        If `prices` have another shape than (K, T), are negative or not finite.
    """
    data = pricing_data(arrays)
    dual = HullDual(data, workers)

    def stopped() -> bool:
        return control is not None and control.stopped

    result = minimise(dual, checked_prices(data, prices), iterations, stopped)
    if exact_iterations <= 0 or result.bound < 0.0:
        return result

    exact = ExactDual(dual, result, stopped)
    for _ in range(exact_iterations):
        if stopped() or exact.finished:
            break
        exact.step()
    return exact.best
