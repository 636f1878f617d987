"""What a session knows between two calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.service.plans import KeptPlan
    from edgeflow_opt.service.state import ClusterView
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What a session knows; replaced as a whole, never changed.

    Parameters
    ----------
    view
        The cluster.
    plan
        The last plan; None = none yet.
    bound
        Its proven bound on level 1.
    prices
        Capacity prices of the last solve, from which the next one begins; None = none yet.
    settled
        Whether nothing has happened since the last plan, and all its rungs came to their ends.
    sequence
        Events taken so far.
    decisions
        Decisions made so far.
    """

    view: ClusterView
    plan: KeptPlan | None = None
    bound: float | None = None
    prices: CapacityPrices | None = None
    settled: bool = False
    sequence: int = 0
    decisions: int = 0
