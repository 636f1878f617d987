"""Solvers small enough to foresee, for the tests of the rolling horizon."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.problem import EpochProblem, SolveStatus
from edgeflow_opt.problem.arrays import ProblemArrays
from edgeflow_opt.solvers import Capabilities, Draft, SolveControl, SolveOptions
from edgeflow_opt.solvers.base import FEATURES

#: What the solvers below were asked, newest last; tests empty it.
CALLS: list[tuple[EpochProblem, SolveOptions]] = []


class JustInTime:
    """Each job in its first mode, as late as it may be for the deadline; no job before it must.

    Jobs without a deadline, or too late for it, are idle.
    """

    name = "just-in-time"
    capabilities = Capabilities(
        summary="as late as possible", exact=False, features=frozenset(FEATURES)
    )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Return the plan."""
        CALLS.append((problem, options))
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        free = arrays.capacity.copy()
        useful = arrays.useful_lengths()
        for j in np.argsort(arrays.deadline, kind="stable"):
            mode = arrays.mode_start[j]
            site, left = arrays.mode_site[mode], arrays.required[j] / arrays.mode_rate[mode]
            row = plan[j].copy()
            for s in reversed(range(arrays.num_slots)):
                fits = np.isfinite(arrays.deadline[j]) and arrays.boundaries[s] < arrays.deadline[j]
                if left > 1e-9 and fits and free[site, s] >= arrays.mode_units[mode]:
                    row[s] = mode
                    left -= useful[j, s]
            if left <= 1e-9:
                plan[j] = row
                free[site, row >= 0] -= arrays.mode_units[mode]
        return Draft(status=SolveStatus.FEASIBLE, plan=plan)


class Fails(JustInTime):
    """Finds nothing."""

    name = "fails"

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Return no plan."""
        CALLS.append((problem, options))
        return Draft(status=SolveStatus.NO_SOLUTION)


class Interrupted(JustInTime):
    """Is interrupted."""

    name = "interrupted"

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Behave as if Ctrl-C had been pressed."""
        raise KeyboardInterrupt("stop")


JUST_IN_TIME = JustInTime()
FAILS = Fails()
INTERRUPTED = Interrupted()
