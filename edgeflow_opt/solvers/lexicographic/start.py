"""Where the exact solvers begin: the warm start, the empty plan, and the greedy's plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.formulations.plans import empty_plan, plan_of

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.incumbent import Incumbent


def offer_start(
    problem: EpochProblem,
    arrays: ProblemArrays,
    options: SolveOptions,
    control: SolveControl,
    incumbent: Incumbent,
) -> None:
    """Offer the plans that cost nothing or next to nothing to `incumbent`.

    The greedy's comes first and always: no solver that begins here may fall below it.
    """
    from edgeflow_opt.solvers.greedy import SOLVER, GreedyOptions, heuristic_plan

    if options.warm_start is not None:
        incumbent.offer(plan_of(problem, arrays, options.warm_start), "warm start")
    if not arrays.must_meet.any():
        incumbent.offer(empty_plan(arrays), "empty plan")
    draft = SOLVER.solve(problem, arrays, _for_greedy(options), control)
    if draft.plan is not None:
        incumbent.offer(draft.plan, "greedy")
    if not control.stopped:
        selected = heuristic_plan(arrays, GreedyOptions(), select_jobs=True)
        incumbent.offer(selected, "edgeflow-select")


def _for_greedy(options: SolveOptions) -> SolveOptions:
    """Return the options without the parameters of another solver."""
    import dataclasses

    return dataclasses.replace(options, params={}, warm_start=None)
