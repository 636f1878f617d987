"""What a plan matrix is worth, computed on arrays."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.problem import ObjectiveValue
from edgeflow_opt.problem.arrays import FloatArray, IntArray
from edgeflow_opt.solvers.greedy.tables import entry

if TYPE_CHECKING:
    from edgeflow_opt.formulations.plans import PlanWalk
    from edgeflow_opt.problem import Objective
    from edgeflow_opt.problem.arrays import ProblemArrays


def value_of(
    arrays: ProblemArrays, plan: IntArray, walked: PlanWalk, objective: Objective
) -> ObjectiveValue:
    """Return the levels of the objective that `plan` reaches.

    Parameters
    ----------
    arrays
        The instance.
    plan
        (n, T) plan matrix.
    walked
        What the plan does for each job: ``walk(arrays, plan)``.
    objective
        Says whether the levels are also summed by weight.
    """
    weight, met = arrays.weight, walked.met
    late = arrays.has_deadline & ~met
    by_deadline = np.minimum(1.0, walked.credit_by_deadline / arrays.work)
    by_horizon = np.minimum(1.0, walked.credit_by_horizon / arrays.work)
    value = ObjectiveValue(
        met_weight=float(weight[met].sum()),
        progress=float((weight * by_deadline)[late].sum()),
        leftover=float((weight * by_horizon)[~met].sum()),
        cost=_cost(plan, arrays.lengths, arrays.mode_cost),
        reconfigurations=int(walked.reconfigurations.sum()),
    )
    if objective.weights is None:
        return value
    return dataclasses.replace(value, weighted=value.weighted_sum(objective.weights))


@entry
def _cost(plan: IntArray, lengths: FloatArray, mode_cost: FloatArray) -> float:
    """Return the cost of all that `plan` holds."""
    total = 0.0
    for j in range(plan.shape[0]):
        for s in range(plan.shape[1]):
            if plan[j, s] >= 0:
                total += mode_cost[plan[j, s]] * lengths[s]
    return total
