"""Plans of a session: checked, compared, carried over to another time, and handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import allocations_of, empty_plan, plan_of, trim, usage, walk
from edgeflow_opt.problem import Schedule, SolveStatus, check, evaluate
from edgeflow_opt.solvers.leftovers import hand_on_leftovers

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPlan:
    """A plan on the clock, whatever becomes of the jobs.

    Parameters
    ----------
    boundaries
        Slot boundaries, seconds.
    runs
        By job: (start, end, site, gpus), in order of time.
    """

    boundaries: tuple[float, ...]
    runs: dict[str, tuple[tuple[float, float, str, int], ...]]

    @classmethod
    def of(cls, problem: EpochProblem, schedule: Schedule) -> KeptPlan:
        """Return what is to be remembered of a schedule."""
        runs: dict[str, list[tuple[float, float, str, int]]] = {}
        for a in schedule.allocations:
            runs.setdefault(a.job, []).append((a.start, a.end, a.site, a.gpus))
        return cls(
            boundaries=problem.grid.boundaries,
            runs={job: tuple(sorted(spans)) for job, spans in runs.items()},
        )

    def on(self, problem: EpochProblem, arrays: ProblemArrays) -> Schedule | None:
        """Return the plan as a checked schedule of another problem; None where it cannot be.

        A job does in a slot what the plan does at its start. Where capacity has gone, jobs lose
        their place, those with the latest deadlines first.
        """
        matrix = empty_plan(arrays)
        starts = arrays.boundaries[:-1]
        for index, job in enumerate(problem.jobs):
            modes = {(m.site, m.gpus): k for k, m in enumerate(job.modes)}
            for start, end, site, gpus in self.runs.get(job.id, ()):
                mode = modes.get((site, gpus))
                if mode is None or end <= problem.now:
                    continue
                mode += int(arrays.mode_start[index])
                if not arrays.mode_usable[mode]:
                    continue
                a, b = np.searchsorted(starts, (max(start, problem.now), end), side="left")
                matrix[index, max(a, arrays.first_slot[index]) : b] = mode
        _fit(arrays, matrix)
        return schedule_of(problem, arrays, trim(arrays, matrix), "plan")


def _fit(arrays: ProblemArrays, matrix: IntArray) -> None:
    """Take jobs out where a plan needs more units than there are."""
    excess = usage(arrays, matrix) - arrays.capacity
    if not (excess > 0).any():
        return
    by_deadline = np.argsort(-arrays.deadline, kind="stable")
    for site, s in zip(*np.nonzero(excess > 0), strict=True):
        for index in by_deadline:
            mode = matrix[index, s]
            if excess[site, s] > 0 and mode >= 0 and arrays.mode_site[mode] == site:
                matrix[index, s] = -1
                excess[site, s] -= arrays.mode_units[mode]


def schedule_of(
    problem: EpochProblem,
    arrays: ProblemArrays,
    matrix: IntArray,
    name: str,
    bound: float | None = None,
) -> Schedule | None:
    """Return a plan matrix as a schedule that the checker has passed; None where it fails."""
    allocations = allocations_of(problem, arrays, matrix)
    value, outcomes = evaluate(problem, allocations)
    schedule = Schedule(
        solver=name,
        status=SolveStatus.FEASIBLE,
        objective=value,
        bound=bound,
        allocations=allocations,
        outcomes=outcomes,
    )
    return schedule if check(problem, schedule).valid else None


def with_leftovers(
    problem: EpochProblem, arrays: ProblemArrays, schedule: Schedule, floor: Schedule | None
) -> Schedule:
    """Return `schedule` with the units left over now handed on, if that is not below `floor`.

    Jobs that complete early leave room for those to come, at a price: it may cost more GPU-time
    and reconfigurations. So the plan meets as much as before, and is no worse than `floor` in the
    whole order of the objective.
    """
    matrix = plan_of(problem, arrays, schedule)
    changed = trim(arrays, hand_on_leftovers(arrays, matrix))
    if np.array_equal(changed, matrix):
        return schedule
    if not walk(arrays, changed).met[walk(arrays, matrix).met].all():
        return schedule
    found = schedule_of(problem, arrays, changed, schedule.solver, schedule.bound)
    if found is None:
        return schedule
    assert found.objective is not None
    assert schedule.objective is not None
    if problem.objective.mode == "weighted" and schedule.objective.better_than(found.objective):
        return schedule
    least = None if floor is None else floor.objective
    if least is not None and least.better_than(found.objective):
        return schedule
    return found
