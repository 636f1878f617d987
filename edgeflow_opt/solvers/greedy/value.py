"""What a plan matrix is worth, computed on arrays."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.problem import ObjectiveValue

if TYPE_CHECKING:
    from edgeflow_opt.formulations.plans import PlanWalk
    from edgeflow_opt.problem import Objective
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays


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
    cost_per_s = np.append(arrays.mode_cost, 0.0)  # the last one is that of being idle
    value = ObjectiveValue(
        met_weight=float(weight[met].sum()),
        progress=float((weight * by_deadline)[late].sum()),
        leftover=float((weight * by_horizon)[~met].sum()),
        cost=float((cost_per_s[plan] @ arrays.lengths).sum()),
        reconfigurations=int(walked.reconfigurations.sum()),
    )
    if objective.weights is None:
        return value
    return dataclasses.replace(value, weighted=value.weighted_sum(objective.weights))
