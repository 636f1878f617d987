"""The solvers ``pulp`` and ``pulp:NAME``: the formulations on any solver that PuLP knows."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from edgeflow_opt.solvers.base import FEATURES, Capabilities
from edgeflow_opt.solvers.kernels import BY_LEVELS

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl

_SUMMARY = "PuLP's {} on the same time-indexed model; exact within tolerances"


class PulpSolver:
    """The formulations on one solver of PuLP, level by level.

    Parameters
    ----------
    native
        Its name in PuLP.
    """

    def __init__(self, native: str) -> None:
        self.native = native
        self.name = f"pulp:{native}"

    @property
    def capabilities(self) -> Capabilities:
        """All features; the arguments of PuLP's solver as parameters."""
        from edgeflow_opt.solvers.pulp.known import free_parameters

        return Capabilities(
            summary=_SUMMARY.format(self.native),
            exact=True,
            features=frozenset(FEATURES),
            requires=("pulp",),
            kernels=BY_LEVELS,
            params=dict.fromkeys(free_parameters(self.native), "see PuLP"),
        )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """See :meth:`edgeflow_opt.solvers.base.Solver.solve`."""
        from edgeflow_opt.solvers.lexicographic.by_levels import solve_by_levels
        from edgeflow_opt.solvers.pulp.engine import PulpEngine

        engine = PulpEngine(self.native)
        draft = solve_by_levels(problem, arrays, options, control, engine, prices=False)
        draft.statistics["pulp_solver"] = self.native
        return draft


class PulpFamily:
    """The solver ``pulp``, which takes the best solver available, and its members by name."""

    name = "pulp"

    @property
    def capabilities(self) -> Capabilities:
        """All features; which solvers are available is told in the summary."""
        summary = "any solver that PuLP knows, as pulp:NAME (extra [pulp])"
        if importlib.util.find_spec("pulp") is not None:
            from edgeflow_opt.solvers.pulp.known import available_solvers

            names = ", ".join(f"pulp:{name}" for name in available_solvers())
            summary = f"any solver that PuLP knows; here: {names or 'none'}"
        return Capabilities(
            summary=summary,
            exact=True,
            features=frozenset(FEATURES),
            requires=("pulp",),
            kernels=BY_LEVELS,
        )

    def member(self, name: str) -> PulpSolver:
        """Return the solver ``pulp:NAME``.

        Raises
        ------
        UsageError
            If PuLP knows none of that name, or it is not available.
        """
        from edgeflow_opt.solvers.pulp.known import resolved

        return PulpSolver(resolved(name))

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """See :meth:`edgeflow_opt.solvers.base.Solver.solve`."""
        from edgeflow_opt.solvers.pulp.known import default_solver

        return PulpSolver(default_solver()).solve(problem, arrays, options, control)


FAMILY = PulpFamily()
