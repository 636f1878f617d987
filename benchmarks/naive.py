"""The model that a newcomer would write: CP-SAT on the plain time-indexed program, nothing more.

One Boolean for each job, slot and mode, at most one mode a slot, the work as one row, rates scaled
to whole numbers (down, and the work up, so that what it finds is a schedule). Without losses.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Any

from benchmarks.answers import Answer

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem

#: Credit of a slot is counted in so many parts of an iteration.
_PARTS = 1000


def naive_model(problem: EpochProblem) -> tuple[Any, dict[tuple[int, int, int], Any]]:
    """Return the model and its variables by job, slot and mode.

    Raises
    ------
    ValueError
        If a job has losses, which this model does not know.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    slots = list(itertools.pairwise(problem.grid.boundaries))
    held: dict[tuple[int, int, int], Any] = {}
    met = []
    load: dict[tuple[str, int], list[Any]] = {}
    sites = {site.name: site for site in problem.sites}
    for j, job in enumerate(problem.jobs):
        if job.restart_s or job.migration_s:
            raise ValueError(f"job '{job.id}': the naive model knows no losses")
        if job.deadline is None:
            continue
        done = model.new_bool_var("")
        met.append((job.weight, done))
        credit = []
        for s, (begin, end) in enumerate(slots):
            useful = min(end, job.deadline) - begin
            if useful <= 0 or (job.arrival or 0.0) > begin:
                continue
            for m, mode in enumerate(job.modes):
                variable = held[j, s, m] = model.new_bool_var("")
                credit.append(math.floor(_PARTS * mode.rate * useful) * variable)
                units = sites[mode.site].units(mode)
                load.setdefault((mode.site, s), []).append(units * variable)
            model.add_at_most_one(held[j, s, m] for m in range(len(job.modes)))
        model.add(sum(credit) >= math.ceil(_PARTS * job.work * (1 - 1e-6)) * done)
    for (name, s), terms in load.items():
        begin, end = slots[s]
        least = min(
            [sites[name].capacity_at(begin)]
            + [units for time, units in sites[name].capacity if begin < time < end]
        )
        model.add(sum(terms) <= least)
    model.maximize(sum(weight * done for weight, done in met))
    return model, held


def naive(problem: EpochProblem, limit_s: float) -> Answer:
    """Solve the naive model with two workers; the value is that of the checked schedule."""
    import ortools
    from ortools.sat.python import cp_model

    from edgeflow_opt.problem import Allocation, evaluate
    from edgeflow_opt.solvers.bounds import rounded_down

    begin = time.perf_counter()
    model, held = naive_model(problem)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.01, limit_s - (time.perf_counter() - begin))
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    seconds = time.perf_counter() - begin
    versions = {"ortools": ortools.__version__}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(status="no_solution", seconds=seconds, versions=versions)
    bounds = problem.grid.boundaries
    allocations = tuple(
        Allocation(
            job=problem.jobs[j].id, start=bounds[s], end=bounds[s + 1],
            site=problem.jobs[j].modes[m].site, gpus=problem.jobs[j].modes[m].gpus,
        )
        for (j, s, m), variable in held.items()
        if solver.boolean_value(variable)
    )  # fmt: skip
    value = evaluate(problem, allocations)[0].level_1
    weights = [job.weight for job in problem.jobs if job.deadline is not None]
    # Its bound is one for rates rounded down: near enough to be shown, no proof for the instance.
    bound = rounded_down(solver.best_objective_bound, weights)
    optimal = status == cp_model.OPTIMAL
    return Answer(
        status="optimal" if optimal else "feasible", value=value, bound=bound, seconds=seconds,
        versions=versions, note="its bound is one for rates rounded down",
    )  # fmt: skip
