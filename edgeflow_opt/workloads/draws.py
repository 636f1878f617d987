"""Random draws that come out the same on every platform and with every numpy.

Only :meth:`numpy.random.Generator.random` is used, one number for each draw; everything else is an
inverse distribution function of it, and results are rounded far above the last bits in which
mathematical libraries differ.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist

import numpy as np

from edgeflow_opt.errors import UsageError

_NORMAL = NormalDist()


class Draws:
    """Draws of the distributions that the generators need.

    Parameters
    ----------
    seed
        A seed, or a numpy Generator to go on drawing from.
    """

    def __init__(self, seed: int | np.random.Generator) -> None:
        self._generator = np.random.default_rng(seed)

    def unit(self) -> float:
        """Return a number uniform on [0, 1)."""
        return float(self._generator.random())

    def uniform(self, low: float, high: float) -> float:
        """Return a number uniform on [low, high)."""
        return low + (high - low) * self.unit()

    def whole(self, low: int, high: int) -> int:
        """Return a whole number uniform on low, ..., high."""
        return low + min(high - low, int(self.unit() * (high - low + 1)))

    def log_normal(self, median: float, sigma: float) -> float:
        """Return exp(N(ln median, sigma^2))."""
        # The middle of the cell of the draw: never 0, where the normal quantile is infinite.
        return median * math.exp(sigma * _NORMAL.inv_cdf(self.unit() + 2.0**-54))

    def exponential(self) -> float:
        """Return an exponential number of mean 1."""
        return -math.log1p(-self.unit())

    def choice(self, weights: Mapping[int, float]) -> int:
        """Return a key, with probability in proportion to its weight."""
        keys = list(weights)
        cumulated = list(itertools.accumulate(weights.values()))
        spot = self.unit() * cumulated[-1]
        return keys[min(bisect.bisect_right(cumulated, spot), len(keys) - 1)]

    def sample(self, items: Iterable[int], share: float) -> set[int]:
        """Return round(share * number) of `items`, every such subset as likely as another."""
        ranked = sorted((self.unit(), item) for item in items)
        return {item for _, item in ranked[: round(share * len(ranked))]}


def significant(value: float, digits: int = 6) -> float:
    """Return `value` rounded to significant digits."""
    return float(f"{value:.{digits}g}")


def check_share(name: str, value: float) -> None:
    """Refuse a share that is not from 0 to 1.

    Raises
    ------
    UsageError
        Naming the option.
    """
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{name}: must be a share from 0 to 1, got {value}")


def check_range(name: str, low: float, high: float) -> None:
    """Refuse a range that is not 0 <= low <= high.

    Raises
    ------
    UsageError
        Naming the option.
    """
    if not (0.0 <= low <= high and math.isfinite(high)):
        raise UsageError(f"{name}: must be a range 0 <= low <= high, got {low}, {high}")


def check_positive(name: str, value: float) -> None:
    """Refuse what is not a positive number.

    Raises
    ------
    UsageError
        Naming the option.
    """
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: must be a number above 0, got {value}")
