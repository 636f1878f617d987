"""A plan under improvement in the weighted sum: a few jobs at a time, some guided by prices.

Two kinds of moves, as in :mod:`edgeflow_opt.solvers.polish`: a *sweep* plans one job after the other
anew in the capacity that the others leave, a *shake* takes a few jobs that compete out of the plan and
plans them anew in random order, most of the time at a random multiple of the prices of the dual
(large-neighbourhood search by ruin and recreate: Shaw, 1998; Schrimpf et al., 2000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgeflow_opt.formulations.plans import trim, walk
from edgeflow_opt.solvers.polish.data import costly_first, polish_data, work_arrays
from edgeflow_opt.solvers.weighted.plan_kernels import improve_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem import Weights
    from edgeflow_opt.problem.arrays import FloatArray, IntArray, ProblemArrays

#: Loss of a move that counts as none, relative to the worth of all jobs.
_ROUNDING = 1e-13


class PlanSpace(NamedTuple):
    """Work arrays of the kernels, for S states of a job and B bins.

    Parameters
    ----------
    work, value, came
        (T+1, S, B) of the labels: credit, cost less what is earned for certain (+inf = no label),
        and the arc and label it came from, packed; -1 = none.
    ahead
        (2, T+1) from each boundary on: most work by the deadline, least cost per iteration.
    extra
        (K, T) what a unit costs per second beside its price.
    free
        (K, T) units that nobody holds.
    rows
        (MOST_TOGETHER, T) plans put aside.
    random
        (1,) state of the random numbers.
    tolerance
        (1,) loss of a move that counts as none.
    """

    work: FloatArray
    value: FloatArray
    came: IntArray
    ahead: FloatArray
    extra: FloatArray
    free: IntArray
    rows: IntArray
    random: IntArray
    tolerance: FloatArray


class WeightedSearch:
    """A plan under improvement.

    Parameters
    ----------
    arrays, weights
        The instance and the sum.
    plan
        (n, T) a plan that obeys the capacities and meets what must be met.
    prices
        (K, T) prices of a unit for a whole slot by which moves are guided.
    seed
        Of the shakes.
    """

    def __init__(
        self, arrays: ProblemArrays, weights: Weights, plan: IntArray, prices: FloatArray, seed: int
    ) -> None:
        self.plan = np.ascontiguousarray(trim(arrays, plan), dtype=np.int64)
        """The plan as it is now."""
        self._arrays = arrays
        # Cost and changes in units of the sum, so that plans of one job are compared by it.
        self._data = polish_data(
            arrays, weights.cost * arrays.mode_cost, tie=weights.reconfigurations
        )
        timed = arrays.has_deadline
        share = arrays.weight / arrays.work
        self._worth = np.column_stack(
            [
                weights.met * arrays.weight,
                weights.progress * share * timed,
                weights.leftover * share,
            ]
        )
        self._factors = np.array(
            [weights.met, weights.progress, weights.leftover, 1.0, weights.reconfigurations]
        )
        self._prices = np.ascontiguousarray(prices / arrays.lengths)
        self._space = PlanSpace(
            **work_arrays(arrays, self.plan, seed, num_ahead=2),
            tolerance=np.array([_ROUNDING * float(self._worth[:, 0].sum())]),
        )

    def sweep(self, stopped: Callable[[], bool] = lambda: False) -> float:
        """Plan every job anew once, unless `stopped` says so before; return the gain."""
        order = costly_first(self._arrays, self.plan)
        step = max(1, len(order) // 50)
        gain = 0.0
        for begin in range(0, len(order), step):
            if stopped():
                break
            gain += self._improve(order[begin : begin + step], 0)
        return gain

    def shake(self, moves: int) -> float:
        """Try so many moves of a few jobs together; return the gain."""
        arrays = self._arrays
        met = walk(arrays, self.plan).met
        wanted = ~met & (arrays.weight > 0) & (arrays.first_slot < arrays.num_slots)
        return self._improve(np.nonzero(wanted)[0], moves)

    def _improve(self, jobs: IntArray, moves: int) -> float:
        return float(
            improve_sum(
                self._data, self._worth, self._factors, self._prices, self.plan, self._space,
                jobs, moves,
            )
        )  # fmt: skip
