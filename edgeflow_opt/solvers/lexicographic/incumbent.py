"""The best plan so far, judged by the run-and-loss rule and the whole objective."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.linear_rows import brought_within_rows, obeys_rows
from edgeflow_opt.formulations.plans import allocations_of, trim, usage, walk
from edgeflow_opt.problem import evaluate

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, ObjectiveValue
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.solvers.control import SolveControl

#: A met weight that is smaller by this share is so whatever the rounding.
_CLEARLY_LESS = 1e-6

#: Relative amount by which level 1 may miss its bound and count as optimal: half of what the checker
#: allows, whose value is that of the whole plan in the caller's unit.
CLOSED = 5e-7


class Incumbent:
    """Keeps the best of the plans offered to it, from any thread.

    Parameters
    ----------
    problem, arrays
        The instance and its flat view.
    control
        Told of every improvement.
    """

    def __init__(self, problem: EpochProblem, arrays: ProblemArrays, control: SolveControl) -> None:
        self._problem = problem
        self._arrays = arrays
        self._control = control
        self._lock = threading.Lock()
        self.plan: IntArray | None = None
        """The best plan; None = none yet."""
        self.value: ObjectiveValue | None = None
        """Its value."""
        self.rejected = 0
        """Plans offered that break a rule: what a solver returns within its tolerances."""

    @property
    def level_1(self) -> float | None:
        """Level 1 of the best plan; None = no plan yet."""
        return None if self.value is None else self.value.level_1

    def offer(self, plan: IntArray, source: str) -> bool:
        """Take `plan` if it obeys capacities and hard deadlines and is better; tell whether so.

        A plan that breaks a constraint of the instance is brought within it first.
        """
        arrays = self._arrays
        plan = trim(arrays, brought_within_rows(arrays, plan))
        met = walk(arrays, plan).met
        if (usage(arrays, plan) > arrays.capacity).any() or (arrays.must_meet & ~met).any():
            self.rejected += 1
            return False
        if not obeys_rows(arrays, plan):
            self.rejected += 1
            return False
        known = self.value
        if known is not None and self._problem.objective.mode == "lexicographic":
            # The whole objective takes time in plain Python: not for a plan that meets less.
            weight = float(arrays.weight[met & arrays.has_deadline].sum())
            if weight < known.met_weight - _CLEARLY_LESS * max(1.0, known.met_weight):
                return False
        value, _ = evaluate(self._problem, allocations_of(self._problem, arrays, plan))
        with self._lock:
            if self.value is not None and not value.better_than(self.value):
                return False
            self.plan, self.value = plan, value
        self._control.keep(plan, value)
        self._control.report(source, value=value.level_1)
        return True

    def met(self) -> IntArray:
        """Return (n,) which jobs the best plan meets."""
        if self.plan is None:
            return np.zeros(self._arrays.num_jobs, dtype=np.int64)
        return walk(self._arrays, self.plan).met.astype(np.int64)
