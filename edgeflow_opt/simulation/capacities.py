"""The usable units of the sites as time goes on, and what a policy sees of them."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from edgeflow_opt.problem import Site


class Capacities:
    """The capacities of a simulation, changed step by step.

    Parameters
    ----------
    sites
        The sites by the capacity that outages leave, over the whole time.
    strikes
        (seconds, site) of the moments at which units go, though the capacity may stay or even rise
        then since others come back.
    start
        When the first job arrives, seconds; +inf = none does, and no unit counts.
    reveal_future
        Whether the policy sees the capacity of times to come; else the present one seems to last.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        strikes: Set[tuple[float, str]],
        start: float,
        reveal_future: bool,
    ) -> None:
        self.sites = {site.name: site for site in sites}
        self._strikes = strikes
        self._reveal_future = reveal_future
        steps = {
            (t, site.name): units
            for site in sites
            for (_, before), (t, units) in pairwise(site.capacity)
            if t > start and units != before
        }
        steps |= {(t, name): self.sites[name].capacity_at(t) for t, name in strikes}
        # The next one at the end.
        self._coming = sorted(
            ((t, name, units) for (t, name), units in steps.items()), reverse=True
        )
        self.next_change = self._coming[-1][0] if self._coming else math.inf
        """When the next change comes, seconds; +inf = there is none."""
        self.usable = {
            site.name: site.capacity_at(start) if start < math.inf else 0 for site in sites
        }
        """The usable units now, by site."""
        self.seen = [self._as_seen(site, start) for site in sites]
        """The sites as the policy sees them now."""

    def change(self) -> bool:
        """Carry out the next change; return whether units go, which cannot wait."""
        time, name, units = self._coming.pop()
        self.next_change = self._coming[-1][0] if self._coming else math.inf
        falls = units < self.usable[name] or (time, name) in self._strikes
        self.usable[name] = units
        if not self._reveal_future:
            site = self.sites[name]
            self.seen = [
                self._as_seen(site, time) if seen.name == name else seen for seen in self.seen
            ]
        return falls

    def _as_seen(self, site: Site, time: float) -> Site:
        """Return `site` as the policy may know it from `time` on."""
        if self._reveal_future or time == math.inf:
            return site
        return dataclasses.replace(site, capacity=((time, site.capacity_at(time)),))
