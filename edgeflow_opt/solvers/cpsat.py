"""The solver ``cpsat``: the formulations on CP-SAT, with help of the capacity prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.solvers.base import FEATURES, Capabilities, take_flag
from edgeflow_opt.solvers.kernels import BY_LEVELS, PRICE

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl


#: Parameters of CP-SAT that may be set by name; see its documentation of SatParameters.
_PARAMETERS = {
    "prices": "false: without plan, bound and reduced costs of the price engine (default true)",
    "num_workers": "threads (default: the option workers)",
    "linearization_level": "0, 1 or 2 (default 2: the LP relaxation decides here)",
    "cp_model_probing_level": "0 to 3",
    "cp_model_presolve": "false switches presolve off",
    "presolve_inclusion_work_limit": "0 avoids costly clique work in presolve",
    "symmetry_level": "0 to 4",
    "interleave_search": "true makes several workers repeatable, and slow",
    "max_deterministic_time": "limit in deterministic seconds",
    "relative_gap_limit": "stop at this relative gap",
    "use_lns_only": "true searches neighbourhoods only",
    "repair_hint": "true repairs an infeasible hint",
}


class CpSatSolver:
    """The solver ``cpsat``: the formulations on CP-SAT, level by level."""

    name = "cpsat"
    capabilities = Capabilities(
        summary="OR-Tools CP-SAT on the time-indexed model; exact, whole numbers",
        exact=True,
        features=frozenset(FEATURES),
        requires=("ortools",),
        kernels=(*BY_LEVELS, PRICE),
        params=_PARAMETERS,
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
        from edgeflow_opt.solvers.mip.cpsat import CpSatEngine, refuse_wrong_parameters

        prices = take_flag(options, "prices", default=True, solver=self.name)
        refuse_wrong_parameters(options)
        return solve_by_levels(problem, arrays, options, control, CpSatEngine(), prices=prices)


SOLVER = CpSatSolver()
