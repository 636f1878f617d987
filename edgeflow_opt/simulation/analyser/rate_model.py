"""A model of how the rate of a job grows with its GPUs, fitted to a few measured points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from edgeflow_opt.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RateModel:
    """Seconds an iteration of the global batch takes on g GPUs: ``a / g + b + c log2 g``.

    Amdahl's law with a price of communication: of the work of an iteration `a` is shared, `b` is
    not, and the gradients are summed up over a tree of depth log2 g. So the rate may fall beyond a
    knee, as measured rates do.

    Parameters
    ----------
    shared_s
        a, seconds, at least 0.
    serial_s
        b, seconds, at least 0.
    exchange_s
        c, seconds for each doubling of the GPUs, at least 0.
    """

    shared_s: float
    serial_s: float
    exchange_s: float

    def rate(self, gpus: int) -> float:
        """Return iterations/s on `gpus` GPUs, at least 1."""
        return 1.0 / (self.shared_s / gpus + self.serial_s + self.exchange_s * math.log2(gpus))


#: Sum of squared relative errors by which a fit must be better to count: beyond rounding, but not so
#: much that a small coefficient is lost which decides the rate on one GPU.
_AS_GOOD = 1e-24


def fit_rates(measured: Mapping[int, float]) -> RateModel:
    """Return the model that is closest to measured rates.

    It minimises the sum of squares of the relative errors of the seconds an iteration takes, over
    coefficients of at least 0: with three of them every set that may be positive is tried, which
    is exact. Of equally good sets the one with fewer coefficients counts, so that one point gives
    perfect scaling (``b = c = 0``) and two points Amdahl's law. Sets without a and b, by which one
    GPU would take no time, are left out, even where they would be closer to strange points.

    Parameters
    ----------
    measured
        Iterations/s by number of GPUs (at least 1), positive, at least one point.

    Raises
    ------
    UsageError
        If there is no point, or one is out of its range.
    """
    if not measured:
        raise UsageError("rate model: at least one measured rate is needed")
    for gpus, rate in measured.items():
        if gpus < 1 or not 0.0 < rate < math.inf:
            raise UsageError(
                f"rate model: {rate!r} iterations/s on {gpus!r} GPUs; rates must be finite and "
                "above 0, on at least 1 GPU"
            )
    counts = np.array(list(measured), dtype=float)
    rates = np.array(list(measured.values()))
    # Relative to the seconds measured: (terms * rate) x = 1.
    terms = np.stack([1.0 / counts, np.ones_like(counts), np.log2(counts)], axis=1)
    terms *= rates[:, None]
    best, least = np.zeros(3), math.inf
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(3), size):
            columns = terms[:, chosen]
            found = np.linalg.lstsq(columns, np.ones(len(counts)), rcond=None)[0]
            error = float(((columns @ found - 1.0) ** 2).sum())
            # A model without the first two terms would take no time on one GPU.
            if (found >= 0.0).all() and (0 in chosen or 1 in chosen) and error < least - _AS_GOOD:
                best, least = np.zeros(3), error
                best[list(chosen)] = found
    return RateModel(shared_s=float(best[0]), serial_s=float(best[1]), exchange_s=float(best[2]))


def left_out_errors(rates: Mapping[int, float], measured: Collection[int]) -> dict[int, float]:
    """Return the relative errors of the fit to some points of a table at the points left out.

    Parameters
    ----------
    rates
        Iterations/s by number of GPUs.
    measured
        The counts that the fit may see; such as the table does not have are passed over.

    Returns
    -------
    errors
        ``predicted / true - 1`` by number of GPUs, for all counts of the table not in `measured`.
    """
    model = fit_rates({gpus: rate for gpus, rate in rates.items() if gpus in measured})
    return {
        gpus: model.rate(gpus) / rate - 1.0 for gpus, rate in rates.items() if gpus not in measured
    }
