"""What can be measured on an instance: a solve, a solve after an arrival, a heuristic alone."""

from __future__ import annotations

import dataclasses
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from benchmarks.answers import Answer
from benchmarks.contenders import CONTENDERS, of_the_package
from benchmarks.instances import Instance, digest
from benchmarks.records import Record

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule
    from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices

#: Seconds that the solve before an arrival is given, as a multiple of the limit of that after it.
_FIRST_SOLVE_LIMITS = 10.0

_OWN_AND_CHILDREN = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)

#: Runs of a heuristic, of which the median counts.
_REPEATS = 7


def run_task(
    task: str, target: str, instance: Instance, solver: str, limit_s: float, *, cold: bool = False
) -> Record:
    """Run a task in this process and return its record; a failure is a record too.

    Parameters
    ----------
    task
        Name in :data:`TASKS`.
    target
        Name of the target, for the record.
    instance
        The instance.
    solver
        Name of the contender.
    limit_s
        Limit, seconds.
    cold
        Whether kernels are loaded on the clock of the run.
    """
    from edgeflow_opt.solvers.front import versions
    from edgeflow_opt.solvers.kernels import warm_up

    load_average = os.getloadavg()[0]
    problem = instance.problem()
    if not cold:
        warm_up()
    begin = time.perf_counter()
    try:
        problem, answer = TASKS[task](problem, solver, limit_s)
    except Exception as fault:
        answer = Answer(status="failed", note=f"{type(fault).__name__}: {fault}")
    seconds = time.perf_counter() - begin
    return Record(
        target=target,
        instance=dataclasses.asdict(instance),
        digest=digest(problem),
        solver=solver,
        limit_s=limit_s,
        seconds=seconds if answer.seconds is None else answer.seconds,
        status=answer.status,
        value=answer.value,
        bound=answer.bound,
        # CBC is a process of its own.
        peak_mb=max(resource.getrusage(who).ru_maxrss for who in _OWN_AND_CHILDREN) / 1024.0,
        load_average=load_average,
        figures=dict(answer.figures),
        versions={**versions(), **answer.versions},
        note=answer.note,
    )


def _solve(problem: EpochProblem, solver: str, limit_s: float) -> tuple[EpochProblem, Answer]:
    return problem, CONTENDERS[solver](problem, limit_s)


def _solve_after_arrival(
    problem: EpochProblem, solver: str, limit_s: float
) -> tuple[EpochProblem, Answer]:
    """Solve the instance without its last job, let that job arrive at now, and solve again."""
    from edgeflow_opt.problem import check, evaluate
    from edgeflow_opt.solvers import solve

    before = problem.replace(jobs=problem.jobs[:-1])
    first = solve(before, "auto", time_limit_s=_FIRST_SOLVE_LIMITS * limit_s)
    plan = first.schedule
    value, outcomes = evaluate(problem, plan.allocations)
    # The bound was that of another instance.
    plan = dataclasses.replace(plan, objective=value, outcomes=outcomes, bound=None)
    plan = dataclasses.replace(plan, status=type(plan.status).FEASIBLE)
    assert check(problem, plan).valid
    old = _Old(before, plan, first.prices)
    begin = time.perf_counter()
    answer = AFTER_ARRIVAL[solver](problem, old, limit_s)
    seconds = time.perf_counter() - begin if answer.seconds is None else answer.seconds
    open_before = None
    if first.value is not None and first.bound is not None:
        open_before = max(0.0, first.bound - first.value)
    figures = {**answer.figures, "open_before": open_before, "gap_before": first.gap}
    return problem, dataclasses.replace(answer, seconds=seconds, figures=figures)


@dataclasses.dataclass(frozen=True, slots=True)
class _Old:
    """What is known from before an arrival: the instance, its schedule on the new one, prices."""

    problem: EpochProblem
    schedule: Schedule
    found: CapacityPrices | None

    def prices(self) -> FloatArray:
        """Return its capacity prices."""
        from edgeflow_opt.problem.arrays import arrays_of
        from edgeflow_opt.solvers.price import dual_bound

        return dual_bound(arrays_of(self.problem), exact_iterations=42, workers=2).prices


def _auto_cold(problem: EpochProblem, old: _Old, limit_s: float) -> Answer:
    return of_the_package("auto")(problem, limit_s)


def _auto_warm(problem: EpochProblem, old: _Old, limit_s: float) -> Answer:
    return of_the_package("auto", warm_start=old.schedule)(problem, limit_s)


def _auto_prices(problem: EpochProblem, old: _Old, limit_s: float) -> Answer:
    """Begin from the plan and from the prices of the solve before, as a scheduler would."""
    warm = of_the_package("auto", warm_start=old.schedule, prices=old.found)
    return warm(problem, limit_s)


def _price_warm(problem: EpochProblem, old: _Old, limit_s: float) -> Answer:
    return of_the_package("price", warm_start=old.schedule)(problem, limit_s)


def _old_prices(problem: EpochProblem, old: _Old, limit_s: float) -> Answer:
    """Keep the old plan, and bound it with the old prices: one evaluation of both duals."""
    from edgeflow_opt.problem.arrays import arrays_of
    from edgeflow_opt.solvers.bounds import rounded_down
    from edgeflow_opt.solvers.price import dual_bound

    prices = old.prices()
    begin = time.perf_counter()
    arrays: ProblemArrays = arrays_of(problem)
    found = dual_bound(arrays, prices, 1, exact_iterations=1, workers=2)
    seconds = time.perf_counter() - begin
    value = old.schedule.objective.level_1 if old.schedule.objective is not None else None
    return Answer(
        status="feasible",
        value=value,
        bound=rounded_down(found.bound, arrays.weight[arrays.has_deadline]),
        # The prices are known from before.
        seconds=seconds,
    )


#: Ways to answer an arrival, by name.
AFTER_ARRIVAL: Mapping[str, Callable[[EpochProblem, _Old, float], Answer]] = {
    "auto-prices": _auto_prices,
    "auto-warm": _auto_warm,
    "auto-cold": _auto_cold,
    "price-warm": _price_warm,
    "old-prices": _old_prices,
}


def _heuristic(problem: EpochProblem, solver: str, limit_s: float) -> tuple[EpochProblem, Answer]:
    """Time a heuristic on arrays that are built, without the checks of the front door."""
    from edgeflow_opt.formulations.plans import allocations_of
    from edgeflow_opt.problem import evaluate
    from edgeflow_opt.problem.arrays import arrays_of
    from edgeflow_opt.solvers import SOLVERS, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl

    begin = time.perf_counter()
    arrays = arrays_of(problem)
    arrays_s = time.perf_counter() - begin
    chosen = SOLVERS.get(solver)
    taken = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        draft = chosen.solve(problem, arrays, SolveOptions(), SolveControl(None))
        taken.append(time.perf_counter() - begin)
    value = None
    if draft.plan is not None:
        value = evaluate(problem, allocations_of(problem, arrays, draft.plan))[0].level_1
    median_s = statistics.median(taken)
    return problem, Answer(
        status=str(draft.status),
        value=value,
        seconds=median_s,
        figures={
            "milliseconds": 1000.0 * median_s,
            "least_milliseconds": 1000.0 * min(taken),
            "arrays_s": arrays_s,
        },
        note=f"{1000.0 * min(taken):.0f} to {1000.0 * max(taken):.0f} ms; "
        f"arrays {1000.0 * arrays_s:.0f} ms",
    )


#: By name: takes instance, contender and limit, returns the instance solved and the answer.
TASKS: Mapping[str, Callable[[EpochProblem, str, float], tuple[EpochProblem, Answer]]] = {
    "solve": _solve,
    "after arrival": _solve_after_arrival,
    "heuristic": _heuristic,
}
