"""Problems of a single slot: one choice per job, few capacities, every level to the proof."""

from __future__ import annotations

from edgeflow_opt.solvers.single_slot.solver import settle_single_slot

__all__ = ["settle_single_slot"]
