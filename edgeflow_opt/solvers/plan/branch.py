"""What a node of the tree decides: which jobs are met, and modes held or not held in single slots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, IntArray
    from edgeflow_opt.solvers.price.pricing_data import PricingData


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """The schedules of a node; modes are the kept ones of the pricing data.

    Parameters
    ----------
    met, unmet
        (n,) jobs that are met, and that are not, beyond what the instance says.
    allowed
        (T, M) whether the mode may be held in the slot.
    may_idle
        (n, T) whether the job may be idle in the slot.
    """

    met: BoolArray
    unmet: BoolArray
    allowed: BoolArray
    may_idle: BoolArray

    @classmethod
    def root(cls, data: PricingData) -> Branch:
        """Return the branch that decides nothing."""
        n, num_slots = len(data.weight), data.capacity.shape[1]
        return cls(
            met=np.zeros(n, dtype=np.bool_),
            unmet=np.zeros(n, dtype=np.bool_),
            allowed=np.ones((num_slots, len(data.site)), dtype=np.bool_),
            may_idle=np.ones((n, num_slots), dtype=np.bool_),
        )

    def fixing(self, met: BoolArray, unmet: BoolArray) -> Branch:
        """Return the branch in which these jobs (n,) are met, and those not, too."""
        return replace(self, met=self.met | met, unmet=self.unmet | unmet)

    def without(self, slot: int, mode: int) -> Branch:
        """Return the branch in which `mode` is not held in `slot`."""
        allowed = self.allowed.copy()
        allowed[slot, mode] = False
        return replace(self, allowed=allowed)

    def holding(self, data: PricingData, job: int, slot: int, mode: int) -> Branch:
        """Return the branch in which `job` holds `mode` in `slot` if it is met at all."""
        allowed, may_idle = self.allowed.copy(), self.may_idle.copy()
        others = np.arange(data.mode_start[job], data.mode_start[job + 1])
        allowed[slot, others[others != mode]] = False
        may_idle[job, slot] = False
        return replace(self, allowed=allowed, may_idle=may_idle)

    def admits(self, job: IntArray, rows: IntArray) -> BoolArray:
        """Return (N,) which plans `rows` (N, T) of the jobs `job` (N,) the branch allows.

        That a job is met or unmet is left to the rows of the master.
        """
        slots = np.arange(rows.shape[1])
        fine = np.where(rows >= 0, self.allowed[slots, rows], self.may_idle[job])
        return np.asarray(fine.all(axis=1))
