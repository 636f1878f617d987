"""What a proven bound on level 1 may be rounded to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.problem.arrays import FloatArray

#: Relative slack added to a bound that was computed in floating point before it is rounded down.
FLOAT_SLACK = 1e-7


def attainable_step(weights: Sequence[float] | FloatArray) -> float | None:
    """Return the largest g such that all weights are whole multiples of it; None if there is none.

    Only steps that are exact in floating point are found: g = 2^-k times a whole number, k <= 10.
    Every attainable value of level 1 is then a multiple of g.
    """
    scaled = []
    for weight in weights:
        value = float(weight) * 1024.0
        if value != int(value) or abs(value) > 2**52:
            return None
        scaled.append(int(value))
    step = math.gcd(*scaled) if scaled else 0
    return step / 1024.0 if step else None


def rounded_down(bound: float, weights: Sequence[float] | FloatArray, slack: float = 0.0) -> float:
    """Return `bound` rounded down to the next attainable value of level 1, where steps are known.

    Parameters
    ----------
    bound
        A proven bound, or one computed in floating point.
    weights
        Weights of the jobs that have a deadline.
    slack
        Relative amount added first, for bounds computed in floating point: :data:`FLOAT_SLACK`.

    Returns
    -------
    rounded
        At most the total weight, at least 0.
    """
    total = float(sum(weights))
    safe = min(total, bound + slack * max(1.0, abs(bound)))
    step = attainable_step(weights)
    if step is not None:
        safe = math.floor(safe / step + 1e-9) * step
    return max(0.0, safe)
