"""The linear relaxation of the restricted plan master on HiGHS, warm started as columns come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.plan.branch import Branch
    from edgeflow_opt.solvers.price.pricing_data import PricingData


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """A solution of the linear relaxation.

    Parameters
    ----------
    value
        Objective, penalties included.
    share
        (N,) how much of each plan is chosen.
    met
        (n,) sum of the shares of each job.
    worth
        (n,) dual prices of the rows of the jobs.
    prices
        (K, T) dual prices of the capacities, at least 0.
    lacking
        Jobs that must be met and are not, in sum.
    """

    value: float
    share: FloatArray
    met: FloatArray
    worth: FloatArray
    prices: FloatArray
    lacking: float


def add_plans(
    native: Any, data: PricingData, job: IntArray, rows: IntArray, first_site: int, first_job: int
) -> None:
    """Add plans as columns: `job` (N,) and `rows` (N, T) in kept modes, each worth the job's weight.

    Parameters
    ----------
    native
        The model of HiGHS.
    first_site, first_job
        Its first rows of capacities, by site and slot, and of jobs.
    """
    count = len(job)
    if not count:
        return
    plan, slot = np.nonzero(rows >= 0)
    mode = rows[plan, slot]
    # The entry of the job's own row comes first.
    length = np.bincount(plan, minlength=count) + 1
    starts = np.concatenate([[0], np.cumsum(length)])
    index = np.empty(starts[-1], dtype=np.int32)
    value = np.ones(starts[-1])
    own = starts[:-1]
    others = np.ones(starts[-1], dtype=np.bool_)
    others[own] = False
    index[own] = first_job + job
    index[others] = first_site + data.site[mode] * data.capacity.shape[1] + slot
    value[others] = data.units[mode]
    native.addCols(
        count, data.weight[job], np.zeros(count), np.full(count, math.inf),
        int(starts[-1]), starts[:-1].astype(np.int32), index, value,
    )  # fmt: skip


class Relaxation:
    """The restricted master as a linear program; rows are those of the plan master.

    Every job has one artificial column, at a penalty, for nodes in which it must be met.

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
        n, self._shape = len(data.weight), data.capacity.shape
        self._native = native = quiet_highs()
        native.setOptionValue("output_flag", False)
        native.setOptionValue("threads", 1)
        native.setOptionValue("presolve", "off")
        native.setOptionValue("solver", "simplex")
        self._penalty = 10.0 * (1.0 + float(data.weight[data.priced].sum()))
        lp = highspy.HighsLp()
        rows = n + data.capacity.size
        lp.num_col_, lp.num_row_ = n, rows
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.full(n, -self._penalty)
        lp.col_lower_, lp.col_upper_ = np.zeros(n), np.zeros(n)
        lp.row_lower_ = np.concatenate([np.zeros(n), np.full(data.capacity.size, -math.inf)])
        lp.row_upper_ = np.concatenate([np.ones(n), data.capacity.ravel().astype(np.float64)])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.arange(n + 1, dtype=np.int32)
        lp.a_matrix_.index_ = np.arange(n, dtype=np.int32)
        lp.a_matrix_.value_ = np.ones(n)
        native.passModel(lp)
        self._num_jobs = n
        self._num_plans = 0

    def add(self, job: IntArray, rows: IntArray) -> None:
        """Add plans: `job` (N,) and `rows` (N, T) in kept modes, each worth the job's weight."""
        add_plans(self._native, self._data, job, rows, self._num_jobs, 0)
        self._num_plans += len(job)

    def restrict(self, branch: Branch, admitted: BoolArray, chosen: IntArray | None = None) -> None:
        """Relax the schedules of `branch`, with the plans `admitted` (N,) of those added so far.

        The plans of the numbers `chosen` are part of all of them; None = no plan is.
        """
        n = self._num_jobs
        every = np.arange(n + self._num_plans, dtype=np.int32)
        met = branch.met | (self._data.must_meet & self._data.priced)
        upper = np.concatenate([np.where(met, 1.0, 0.0), np.where(admitted, math.inf, 0.0)])
        lower = np.zeros(len(every))
        if chosen is not None:
            lower[n + chosen] = 1.0
        self._native.changeColsBounds(len(every), every, lower, upper)
        most = np.where(branch.unmet, 0.0, 1.0)
        self._native.changeRowsBounds(n, every[:n], np.where(met, 1.0, 0.0), most)

    def solve(self) -> Relaxed | None:
        """Return the optimum; None where time is up or HiGHS gives up."""
        import highspy

        native, left = self._native, self._control.left_s
        if self._control.stopped:
            return None
        # The limit of HiGHS counts the runs before.
        limit = native.getRunTime() + left if math.isfinite(left) else math.inf
        native.setOptionValue("time_limit", limit)
        native.run()
        if native.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution, n = native.getSolution(), self._num_jobs
        columns = np.array(solution.col_value)
        dual = np.array(solution.row_dual)
        prices = np.maximum(0.0, dual[n:].reshape(self._shape))
        activity = np.array(solution.row_value)[:n]
        return Relaxed(
            value=float(native.getInfo().objective_function_value),
            share=columns[n:],
            met=activity - columns[:n],
            worth=dual[:n],
            prices=np.ascontiguousarray(prices),
            lacking=float(columns[:n].sum()),
        )
