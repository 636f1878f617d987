"""Jobs whose fate is certain in every schedule better than the one at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.bounds import FLOAT_SLACK, attainable_step

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, ProblemArrays
    from edgeflow_opt.solvers.price.dual import DualResult


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fixings:
    """What every schedule better than the incumbent has in common.

    Parameters
    ----------
    met
        (n,) jobs that it must meet.
    unmet
        (n,) jobs that it does not meet, so that they may be left out of the proof.
    """

    met: BoolArray
    unmet: BoolArray


def fixings(arrays: ProblemArrays, dual: DualResult, incumbent: float) -> Fixings:
    """Return the jobs that reduced costs fix in any schedule worth more than `incumbent`.

    With the prices behind `dual`, a job whose meeting gains w - c > 0 loses that much of the bound
    when it is left unmet, and one with w - c < 0 loses as much when it is met. If the rest falls
    short of the next attainable value above `incumbent` (the next whole number for unit weights;
    any value above it where no step is known), the job's fate is decided. This concerns the proof
    of level 1 only: a schedule that is equally good may decide otherwise.

    Parameters
    ----------
    dual
        Bound and job costs from the same prices and the same pricing, as they come out of
        :func:`~edgeflow_opt.solvers.price.dual_bound`.
    incumbent
        Value of the best schedule known.

    Notes
    -----
    Architecture, section "Fixing a job by its reduced cost"; Fisher, The Lagrangian relaxation
    method for solving integer programming problems, 1981.
    """
    known = arrays.has_deadline
    step = attainable_step(arrays.weight[known])
    if step is None:
        aim = incumbent
    else:
        aim = (math.floor(incumbent / step + 1e-9) + 1) * step
    cost = np.where(known, dual.job_costs, np.inf)
    possible = np.isfinite(cost)
    gain = np.where(possible, arrays.weight - cost, -np.inf)
    # The bound may be what all jobs are worth, which is not what these prices prove.
    earning = np.where(arrays.must_meet, gain, np.maximum(0.0, gain))[possible]
    proven = float((arrays.capacity * dual.prices).sum() + earning.sum())
    proven = max(proven, dual.bound)
    spare = proven - aim + FLOAT_SLACK * max(1.0, abs(proven), abs(aim))
    met = known & (arrays.must_meet | (gain > max(0.0, spare)))
    # A job without weight is priced at +inf though it may be met: its fate decides nothing, but where a
    # constraint asks for it.
    free = arrays.must_meet | ((arrays.weight == 0.0) & (arrays.rows.num_rows > 0))
    unmet = known & ~free & (-gain > max(0.0, spare))
    return Fixings(met=met, unmet=unmet)
