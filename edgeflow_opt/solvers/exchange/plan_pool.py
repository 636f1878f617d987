"""The plans that column generation needs: a plan master of instances of any size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plan_columns import JobPlans, plans_of
from edgeflow_opt.formulations.plans import plan_of
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.front import solve
from edgeflow_opt.solvers.kernels import PLAN, PRICE, warm_up

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem

#: Steps down the dual function that bring the first plans, and seconds at most for all.
_STEPS, _SECONDS = 40, 60.0


def generated_plans(problem: EpochProblem, seconds: float = _SECONDS) -> JobPlans:
    """Return plans that close the relaxation of the plan master, and those of a good schedule.

    Parameters
    ----------
    problem
        The instance; its objective must not be a weighted sum.
    seconds
        Wall seconds at most; with less than needed the relaxation is not closed.
    """
    from edgeflow_opt.solvers.plan.branch import Branch
    from edgeflow_opt.solvers.plan.generation import Generation
    from edgeflow_opt.solvers.price.dual import COLD_ITERATIONS, HullDual, minimise
    from edgeflow_opt.solvers.price.pricing_data import pricing_data

    arrays = arrays_of(problem)
    schedule = solve(problem, "edgeflow-select", levels=1).schedule
    warm_up(PRICE, PLAN)
    control = SolveControl(seconds)
    data = pricing_data(arrays)
    generation = Generation(data, 1, control)
    dual = minimise(HullDual(data, 1), None, COLD_ITERATIONS, lambda: control.stopped)
    if dual.bound >= 0.0:
        dual = generation.descend(dual, _STEPS, lambda: control.stopped)
        generation.node(dual, Branch.root(data), -math.inf, to_the_end=True)
    found = generation.plans()
    rows = np.where(found.rows >= 0, data.mode_id[found.rows], -1)
    known = plans_of([plan_of(problem, arrays, schedule)] if schedule.allocations else [])
    if not len(known.job):
        return JobPlans(found.job, rows)
    job = np.concatenate([found.job, known.job])
    rows = np.concatenate([rows, known.rows])
    _, first = np.unique(np.column_stack([job, rows]), axis=0, return_index=True)
    return JobPlans(job[first], rows[first])
