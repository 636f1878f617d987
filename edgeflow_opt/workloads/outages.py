"""Outages: cloud nodes that fail and are repaired, edge servers that are withdrawn and come back.

Units of a site are numbered from 0; where it has c usable units by its own capacity, these are the
units ``0 : c``. An outage takes a range of units away for a time, so that the units usable at t are
those of ``0 : c(t)`` that no outage holds at t. What runs on a unit that goes is interrupted: the
simulator keeps its work up to then and asks the policy at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.workloads.draws import Draws
from edgeflow_opt.workloads.tides import MAX_STEPS, joined

if TYPE_CHECKING:
    from edgeflow_opt.problem import Site


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Outage:
    """A range of units of a site that is away for a time.

    Parameters
    ----------
    start, end
        Seconds, start < end: away during ``[start, end)``.
    site
        Name of the site.
    first_unit
        The first unit, from 0.
    units
        How many, at least 1.
    """

    start: float
    end: float
    site: str
    first_unit: int
    units: int


def draw_outages(
    sites: Sequence[Site],
    kind: str,
    mean_up_s: float,
    mean_down_s: float,
    *,
    start_s: float,
    end_s: float,
    seed: int,
) -> tuple[Outage, ...]:
    """Return random outages of the nodes of the cloud, or of edge servers.

    A node of a cloud site has its `gpus_per_node` GPUs (the last one may have fewer), one of an edge
    site is a server. Each is up and down by turns, for exponential times; all are up at `start_s`.
    The draws of a node depend on the seed and its place alone, so that a larger cluster has the
    outages of a smaller one and more.

    Parameters
    ----------
    sites
        The cluster.
    kind
        ``"cloud"`` or ``"edge"``: which sites.
    mean_up_s, mean_down_s
        Mean time between repair and failure, and of repair, seconds, above 0.
    start_s, end_s
        Outages begin in ``[start_s, end_s)``; the last may end later.
    seed
        Of the draws.

    Returns
    -------
    outages
        By start.

    Raises
    ------
    UsageError
        If a time makes no sense, or more than a million outages would be drawn.
    """
    for name, value in (("mean_up_s", mean_up_s), ("mean_down_s", mean_down_s)):
        if not (0.0 < value < math.inf):
            raise UsageError(f"outages: {name} must be a finite number above 0, got {value!r}")
    outages: list[Outage] = []
    for position, site in enumerate(sites):
        if site.kind != kind:
            continue
        most = max((units for _, units in site.capacity), default=0)
        size = max(1, site.gpus_per_node or 1) if kind == "cloud" else 1
        nodes = math.ceil(most / size)
        if nodes * max(0.0, end_s - start_s) / (mean_up_s + mean_down_s) > MAX_STEPS:
            raise UsageError(
                f"outages: about {nodes * (end_s - start_s) / (mean_up_s + mean_down_s):.0f} on "
                f"site '{site.name}' are too many; give a longer mean time between them"
            )
        for node in range(nodes):
            draws = Draws(np.random.default_rng([seed, position, node]))
            first = node * size
            time = start_s + mean_up_s * draws.exponential()
            while time < end_s:
                back = time + mean_down_s * draws.exponential()
                if back > time:
                    outages.append(
                        Outage(
                            start=time,
                            end=back,
                            site=site.name,
                            first_unit=first,
                            units=min(size, most - first),
                        )
                    )
                time = back + mean_up_s * draws.exponential()
    return tuple(sorted(outages))


def with_outages(sites: Sequence[Site], outages: Iterable[Outage]) -> tuple[Site, ...]:
    """Return `sites` with the capacity that `outages` leave.

    Raises
    ------
    UsageError
        If an outage is of no site, takes no unit, or does not end after its start.
    """
    by_site: dict[str, list[Outage]] = {site.name: [] for site in sites}
    for outage in outages:
        if outage.site not in by_site:
            raise UsageError(
                f"outage at {outage.start!r} s: no site is called {outage.site!r}; known are "
                f"{', '.join(by_site)}"
            )
        if not (-math.inf < outage.start < outage.end < math.inf):
            raise UsageError(
                f"outage of site '{outage.site}': must have a finite start before a finite end, got "
                f"{outage.start!r} and {outage.end!r}"
            )
        if outage.units < 1 or outage.first_unit < 0:
            raise UsageError(
                f"outage of site '{outage.site}' at {outage.start!r} s: must take at least 1 unit "
                f"from first_unit 0 on, got {outage.units} from {outage.first_unit}"
            )
        by_site[outage.site].append(outage)
    return tuple(
        replace(site, capacity=_left(site.capacity, by_site[site.name]))
        if by_site[site.name]
        else site
        for site in sites
    )


def _left(
    capacity: Sequence[tuple[float, int]], outages: Sequence[Outage]
) -> tuple[tuple[float, int], ...]:
    """Return the steps of the capacity that is left."""
    changes = [(time, 0, units) for time, units in capacity]
    for index, outage in enumerate(outages):
        changes += [(outage.start, 1, index), (outage.end, 2, index)]
    changes.sort()
    usable = 0
    away: dict[int, tuple[int, int]] = {}
    steps: list[tuple[float, int]] = []
    first = capacity[0][0]
    for time, what, value in changes:
        if what == 0:
            usable = value
        elif what == 1:
            away[value] = range_of(outages[value])
        else:
            away.pop(value, None)
        if time < first:
            continue
        gone = overlap_of(away.values(), usable)
        if steps and steps[-1][0] == time:
            steps.pop()
        steps.append((time, usable - gone))
    return joined(steps)


def range_of(outage: Outage) -> tuple[int, int]:
    """Return the units that `outage` takes, from the first up to the one after the last."""
    return outage.first_unit, outage.first_unit + outage.units


def overlap_of(ranges: Iterable[tuple[int, int]], usable: int) -> int:
    """Return how many of the units ``0 : usable`` lie in the union of `ranges`."""
    total, reached = 0, 0
    for first, end in sorted(ranges):
        left, right = max(first, reached), min(end, usable)
        total += max(0, right - left)
        reached = max(reached, end)
    return total
