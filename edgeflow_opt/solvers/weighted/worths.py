"""What jobs are worth and modes cost in a weighted sum, as the compiled kernels read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgeflow_opt.solvers.price.pricing_data import pricing_data

if TYPE_CHECKING:
    from edgeflow_opt.problem import Weights
    from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: A job of :class:`Worths`: `weight` = its weight, 0 for best effort; `met` = worth of meeting the deadline; `progress` and `leftover` = worth
#: of one iteration by the deadline and by the horizon, while the job is not met; `work` =
#: iterations that can be worth anything; `rounding` = worth of what the checker's own sums may be off
#: by; `change` = what any run costs because it is certain to be a reconfiguration.
WORTH = np.dtype(
    [
        *((name, np.float64) for name in ("weight", "met", "progress", "leftover", "work")),
        *((name, np.float64) for name in ("rounding", "change")),
    ],
    align=True,
)


class Worths(NamedTuple):
    """The terms of a weighted sum, for n jobs and M kept modes.

    Parameters
    ----------
    jobs
        (n,) records :data:`WORTH`.
    mode_cost
        (M,) cost of a second in the mode, in units of the sum.
    """

    jobs: np.ndarray[Any, Any]
    mode_cost: FloatArray


def weighted_data(arrays: ProblemArrays, weights: Weights) -> tuple[PricingData, Worths]:
    """Return the kernels' view of the instance and of the sum.

    In it the jobs that are priced are all that can be worth anything or must be met, and the weight
    of a job is the most that it can be worth.
    """
    data = pricing_data(arrays)
    timed = arrays.has_deadline
    jobs = np.zeros(arrays.num_jobs, WORTH)
    jobs["weight"] = arrays.weight * timed
    jobs["met"] = weights.met * arrays.weight * timed
    jobs["progress"] = weights.progress * arrays.weight / arrays.work * timed
    jobs["leftover"] = weights.leftover * arrays.weight / arrays.work
    jobs["work"] = arrays.work
    jobs["rounding"] = (jobs["progress"] + jobs["leftover"]) * (data.target - arrays.required)
    jobs["change"] = weights.reconfigurations * _always_changes(arrays)
    most = np.maximum(jobs["met"], (jobs["progress"] + jobs["leftover"]) * arrays.work)
    # A job does nothing that costs twice that, nor if it costs more. Larger numbers would only add to
    # the slack of the bound, which is relative to the terms of its sums.
    bearable = np.where(arrays.must_meet, np.inf, 2.0 * most.max(initial=0.0))
    jobs["change"] = np.minimum(jobs["change"], bearable)
    data = data._replace(weight=most)
    data = data.with_fates(arrays.must_meet, (most > 0.0) | arrays.must_meet)
    mode_cost = weights.cost * arrays.mode_cost[data.mode_id]
    shortest = float(np.diff(arrays.boundaries).min())
    mode_cost = np.minimum(mode_cost, bearable[arrays.mode_job[data.mode_id]] / shortest)
    return data, Worths(jobs=jobs, mode_cost=mode_cost)


def _always_changes(arrays: ProblemArrays) -> FloatArray:
    """Return (n,) 1 for a job whose first run is a reconfiguration for certain, else 0.

    It ran before, and does not run now.
    """
    ran = (arrays.last_site >= 0) & (arrays.running_mode < 0)
    return ran.astype(np.float64)
