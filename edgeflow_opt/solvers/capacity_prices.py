"""What one more unit of a site is worth at what time: prices kept from one solve for the next."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import is_number, make_plain, shown

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import FloatArray

#: Name and version of the JSON form.
FORMAT = "edgeflow-prices/1"
_KEYS = ("format", "boundaries", "sites")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPrices:
    """The worth of one more unit for one second, by site and time; dual prices of the capacity.

    They belong to times, not to slots, so that they serve on any later grid: a solve that begins
    from those of the epoch before needs a small part of the work of a first one. Any prices give a
    valid bound; good ones give a tight bound.

    Parameters
    ----------
    sites
        Names of the sites.
    boundaries
        T+1 rising times in seconds: entry s of a price list holds from ``boundaries[s]`` to
        ``boundaries[s + 1]``.
    per_unit_second
        For each site T prices, at least 0: rise of the weighted number of jobs met for one more
        unit over one second.

    Raises
    ------
    UsageError
        If one is of another type, sizes do not fit together, boundaries do not rise, or a number is
        negative or not finite.
    """

    sites: tuple[str, ...]
    boundaries: tuple[float, ...]
    per_unit_second: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)
        sites, rows = self.sites, self.per_unit_second
        if not isinstance(sites, tuple) or not all(isinstance(site, str) for site in sites):
            raise UsageError(f"prices: sites must be a list of names, got {shown(sites)}")
        if not _are_numbers(self.boundaries):
            raise UsageError(
                f"prices: boundaries must be a list of numbers, got {shown(self.boundaries)}"
            )
        if not isinstance(rows, tuple) or not all(map(_are_numbers, rows)):
            raise UsageError(
                f"prices: per_unit_second must be a list of numbers for each site, got {shown(rows)}"
            )
        slots = len(self.boundaries) - 1
        rising = all(a < b for a, b in itertools.pairwise(self.boundaries))
        if slots < 1 or not rising or not all(map(math.isfinite, self.boundaries)):
            raise UsageError("prices: boundaries must be two or more finite times that rise")
        if len(set(sites)) != len(sites) or len(rows) != len(sites):
            raise UsageError(
                "prices: per_unit_second must have one list for each of sites, and no site twice"
            )
        for site, row in zip(sites, rows, strict=True):
            if len(row) != slots:
                raise UsageError(
                    f"prices of site '{site}': must be one for each of the {slots} pieces of time, "
                    f"got {len(row)}"
                )
            for price in row:
                if not 0.0 <= price < math.inf:
                    raise UsageError(
                        f"prices of site '{site}': must be finite and at least 0, got {shown(price)}"
                    )

    @classmethod
    def of_slots(cls, problem: EpochProblem, prices: FloatArray) -> CapacityPrices:
        """Return prices from those of a unit for whole slots of `problem`, (K, T)."""
        boundaries = problem.grid.boundaries
        lengths = [b - a for a, b in itertools.pairwise(boundaries)]
        return cls(
            sites=tuple(site.name for site in problem.sites),
            boundaries=tuple(float(time) for time in boundaries),
            per_unit_second=tuple(
                tuple(float(p) / length for p, length in zip(row, lengths, strict=True))
                for row in prices
            ),
        )

    def on_slots(self, problem: EpochProblem) -> FloatArray:
        """Return (K, T) prices of a unit for whole slots of `problem`, shifted by time.

        Before the first and after the last boundary the price next to it holds. A site that is not
        known here gets the mean of those that are.
        """
        import numpy as np

        old = np.array(self.boundaries, dtype=np.float64)
        new = np.array(problem.grid.boundaries, dtype=np.float64)
        rows = np.array(self.per_unit_second, dtype=np.float64).reshape(len(self.sites), -1)
        result = np.zeros((len(problem.sites), len(new) - 1))
        inside = np.clip(new, old[0], old[-1])
        known = {name: index for index, name in enumerate(self.sites)}
        mean = rows.mean(axis=0) if len(rows) else np.zeros(len(old) - 1)
        for k, site in enumerate(problem.sites):
            row = rows[known[site.name]] if site.name in known else mean
            added = np.concatenate([[0.0], np.cumsum(row * np.diff(old))])
            until = np.interp(inside, old, added)
            until = until + row[-1] * np.maximum(0.0, new - old[-1])
            until = until - row[0] * np.maximum(0.0, old[0] - new)
            result[k] = np.maximum(0.0, np.diff(until))
        return result

    def scaled(self, factor: float) -> CapacityPrices:
        """Return these prices times `factor`, above 0: in another unit of the weights."""
        return CapacityPrices(
            sites=self.sites,
            boundaries=self.boundaries,
            per_unit_second=tuple(tuple(p * factor for p in row) for row in self.per_unit_second),
        )

    def to_json(self) -> str:
        """Return the JSON document; :meth:`from_json` reads it back without loss."""
        sites = dict(zip(self.sites, self.per_unit_second, strict=True))
        document = {"format": FORMAT, "boundaries": self.boundaries, "sites": sites}
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> CapacityPrices:
        """Read a JSON document.

        Raises
        ------
        UsageError
            If it is not one of the format ``edgeflow-prices/1``.
        """
        try:
            found = json.loads(text)
        except ValueError as problem:
            raise UsageError(f"prices: must be a JSON document ({problem})") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT or set(found) != {*_KEYS}:
            raise UsageError(
                f"prices: must be a JSON object with the keys {', '.join(_KEYS)}, the format "
                f"being '{FORMAT}'; to_json() writes one"
            )
        sites = found["sites"]
        if not isinstance(sites, Mapping):
            raise UsageError("prices: sites must be an object of lists by site")
        return cls(
            sites=tuple(sites),
            boundaries=found["boundaries"],
            per_unit_second=tuple(sites.values()),
        )


def _are_numbers(values: Any) -> bool:
    """Whether `values` is a tuple of numbers that a double can hold, infinity and NaN among them."""
    return isinstance(values, tuple) and all(
        type(value) is float or (is_number(value) and abs(value) <= sys.float_info.max)
        for value in values
    )
