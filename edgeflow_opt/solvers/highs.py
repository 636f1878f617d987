"""The solver ``highs``: the formulations on HiGHS, on its own unless told otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.solvers.base import FEATURES, Capabilities, take_flag
from edgeflow_opt.solvers.kernels import BY_LEVELS

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl


class HighsSolver:
    """The solver ``highs``: the formulations on HiGHS, level by level."""

    name = "highs"
    capabilities = Capabilities(
        summary="HiGHS MILP on the same time-indexed model; exact within tolerances",
        exact=True,
        features=frozenset(FEATURES),
        requires=("highspy",),
        kernels=BY_LEVELS,
        params={
            "prices": "true: begin from plan, bound and reduced costs of the price engine "
            "(default false: an independent opinion)",
            "threads": "threads (default 1; fixed by the first solve of a process)",
            "presolve": "'on', 'off' or 'choose'",
            "parallel": "'on', 'off' or 'choose'",
            "mip_rel_gap": "stop at this relative gap (default 0)",
            "mip_heuristic_effort": "0 to 1",
            "mip_max_nodes": "limit on nodes",
        },
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
        from edgeflow_opt.solvers.mip.highs import HighsEngine, refuse_wrong_parameters

        prices = take_flag(options, "prices", default=False, solver=self.name)
        refuse_wrong_parameters(options)
        return solve_by_levels(problem, arrays, options, control, HighsEngine(), prices=prices)


SOLVER = HighsSolver()
