"""The linear relaxation of the plan master with prices that stay near given ones.

Column generation swings between prices far apart as long as it knows few plans. The boxstep method
(Marsten, Hogan and Blankenship, 1975) lets them leave good prices by a certain reach only: in the
relaxation units may be bought at the highest price of the box and sold at the lowest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.plan.relaxation import add_plans

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import FloatArray, IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.price.pricing_data import PricingData


@dataclass(frozen=True, slots=True, eq=False)
class BoxRelaxed:
    """A solution of the relaxation in a box.

    Parameters
    ----------
    value
        Objective: at least the best value of plans known, at most that of their dual in the box.
    share
        (N,) how much of each plan is chosen.
    met
        (n,) sum of the shares of each job.
    prices
        (K, T) dual prices of the capacities, in the box.
    """

    value: float
    share: FloatArray
    met: FloatArray
    prices: FloatArray


class BoxedRelaxation:
    """The restricted master as a linear program in a box of prices, warm started by HiGHS.

    Rows are capacities, by site and slot, then jobs; columns are units bought, units sold, then
    plans. A job that must be met needs a plan before the first solve.

    Parameters
    ----------
    data
        The instance.
    control
        Its time left is the limit of every solve.
    """

    def __init__(self, data: PricingData, control: SolveControl) -> None:
        import highspy

        from edgeflow_opt.solvers.mip.highs import quiet_highs

        self._data, self._control = data, control
        self._native = native = quiet_highs()
        native.setOptionValue("output_flag", False)
        native.setOptionValue("threads", 1)
        native.setOptionValue("presolve", "off")
        native.setOptionValue("solver", "simplex")
        n, size = len(data.weight), data.capacity.size
        self._size = size
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = 2 * size, size + n
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.zeros(2 * size)
        lp.col_lower_, lp.col_upper_ = np.zeros(2 * size), np.full(2 * size, math.inf)
        must = np.where(data.must_meet & data.priced, 1.0, 0.0)
        lp.row_lower_ = np.concatenate([np.full(size, -math.inf), must])
        lp.row_upper_ = np.concatenate([data.capacity.ravel().astype(np.float64), np.ones(n)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.arange(2 * size + 1, dtype=np.int32)
        lp.a_matrix_.index_ = np.tile(np.arange(size, dtype=np.int32), 2)
        lp.a_matrix_.value_ = np.repeat([-1.0, 1.0], size)
        native.passModel(lp)

    def add(self, job: IntArray, rows: IntArray) -> None:
        """Add plans: `job` (N,) and `rows` (N, T) in kept modes, each worth the job's weight."""
        add_plans(self._native, self._data, job, rows, 0, self._size)

    def solve(self, prices: FloatArray, reach: float) -> BoxRelaxed | None:
        """Return the optimum where prices are within `reach` of `prices` (K, T), and at least 0.

        None where time is up or HiGHS gives up.
        """
        import highspy

        native, size, left = self._native, self._size, self._control.left_s
        if self._control.stopped:
            return None
        middle = prices.ravel()
        cost = np.concatenate([-(middle + reach), np.maximum(0.0, middle - reach)])
        native.changeColsCost(2 * size, np.arange(2 * size, dtype=np.int32), cost)
        # The limit of HiGHS counts the runs before.
        limit = native.getRunTime() + left if math.isfinite(left) else math.inf
        native.setOptionValue("time_limit", limit)
        native.run()
        if native.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = native.getSolution()
        found = np.maximum(0.0, np.array(solution.row_dual)[:size]).reshape(prices.shape)
        return BoxRelaxed(
            value=float(native.getInfo().objective_function_value),
            share=np.array(solution.col_value)[2 * size :],
            met=np.array(solution.row_value)[size:],
            prices=np.ascontiguousarray(found),
        )
