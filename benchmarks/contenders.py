"""Who takes part: the solvers of the package, and peers on its own tight model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.answers import Answer, Contender

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem


def of_the_package(solver: str, **changes: Any) -> Contender:
    """Return a solver of the package, with changes to its options."""

    def run(problem: EpochProblem, limit_s: float) -> Answer:
        from edgeflow_opt.errors import SolverUnavailableError
        from edgeflow_opt.solvers import solve

        try:
            result = solve(problem, solver, time_limit_s=limit_s, **changes)
        except SolverUnavailableError as missing:
            return Answer(status="not installed", note=str(missing))
        statistics = {**result.statistics, **result.statistics.get("prices", {})}
        numbers = {
            key: value for key, value in statistics.items() if isinstance(value, (int, float, str))
        }
        return Answer(
            status=str(result.status),
            value=result.value,
            bound=result.bound,
            figures={
                "stopped_by": result.limit and str(result.limit),
                # What comes later are the levels below, or nothing.
                "settled_s": result.trace[-1].seconds if result.trace else None,
                **numbers,
            },
            versions=result.versions,
            note=str(result.statistics.get("skipped", "")),
        )

    return run


def dual(problem: EpochProblem, limit_s: float) -> Answer:
    """Bound by capacity prices alone: the hull dual, then the exact one until it is finished."""
    from edgeflow_opt.problem.arrays import arrays_of
    from edgeflow_opt.solvers.bounds import rounded_down
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.price import dual_bound

    control = SolveControl(limit_s)
    arrays = arrays_of(problem)
    hull = dual_bound(arrays, control=control, workers=2)
    hull_s = control.elapsed_s
    exact = dual_bound(arrays, hull.prices, 1, control, exact_iterations=42, workers=2)
    weights = arrays.weight[arrays.has_deadline]
    return Answer(
        status="bound only",
        bound=rounded_down(min(hull.bound, exact.bound), weights),
        figures={"hull_bound": hull.bound, "hull_s": hull_s, "exact_bound": exact.bound},
    )


def _cbc(problem: EpochProblem, limit_s: float) -> Answer:
    from benchmarks.peers import cbc

    return cbc(problem, limit_s)


def _scip(problem: EpochProblem, limit_s: float) -> Answer:
    from benchmarks.peers import scip

    return scip(problem, limit_s)


#: By name. Those that only have the model to go by are asked for level 1 alone, which is all that
#: is compared: the levels below would take a part of their time.
CONTENDERS: dict[str, Contender] = {
    "auto": of_the_package("auto"),
    "price": of_the_package("price"),
    "cpsat": of_the_package("cpsat"),
    "cpsat-compact": of_the_package("cpsat", params={"prices": False}, levels=1),
    "highs": of_the_package("highs", levels=1),
    "cbc": _cbc,
    "scip": _scip,
    "dual": dual,
}

#: Own solvers and peers that every gap is measured with, in the order of the tables.
SIDE_BY_SIDE = ("auto", "price", "cpsat", "cpsat-compact", "highs", "cbc", "scip")
