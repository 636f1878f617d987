"""Plans of a session: checked, compared, carried over to another time, and handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.carry_over import carried_over
from edgeflow_opt.formulations.plans import allocations_of, plan_of, trim, walk
from edgeflow_opt.problem import Allocation, Schedule, SolveStatus, check, evaluate
from edgeflow_opt.solvers.greedy import GreedyOptions
from edgeflow_opt.solvers.greedy.solver import heuristic_plan
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
        """Return what is left of it as a checked schedule of another problem; None = it cannot be."""
        allocations = (
            Allocation(job=job, start=start, end=end, site=site, gpus=gpus)
            for job, spans in self.runs.items()
            for start, end, site, gpus in spans
        )
        matrix = carried_over(problem, arrays, allocations)
        return schedule_of(problem, arrays, trim(arrays, matrix), "plan")


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


def until_the_next_event(
    problem: EpochProblem, arrays: ProblemArrays, name: str, wanted: Schedule | None = None
) -> Schedule | None:
    """Return the plan that the selecting heuristic makes where it is asked again at every event.

    As in the policy ``edgeflow-select``: minimum shares are constant, not late-heavy, so that jobs
    get ahead of what they need and leave room for those to come.

    Parameters
    ----------
    problem, arrays
        The instance.
    name
        Of the solver, for the schedule.
    wanted
        A schedule whose met jobs are to be met if they can be; None = the heuristic selects.

    Returns
    -------
    found
        None where it misses a hard deadline.
    """
    chosen = None
    if wanted is not None:
        chosen = np.array([outcome.met is True for outcome in wanted.outcomes], dtype=np.bool_)
    matrix = heuristic_plan(arrays, GreedyOptions(share="constant"), True, chosen)
    return schedule_of(problem, arrays, trim(arrays, matrix), name)


def with_leftovers(
    problem: EpochProblem, arrays: ProblemArrays, schedule: Schedule, floor: Schedule | None
) -> Schedule:
    """Return `schedule` with the units left over now handed on, if that does not fall below `floor`.

    Jobs that complete early leave room for those to come, at a price: it may cost more GPU-time
    and reconfigurations. So the plan meets as much as before, and is no worse in the whole order of
    the objective than whichever of `floor` and `schedule` is the lesser.
    """
    matrix = plan_of(problem, arrays, schedule)
    for to_running in (False, True):
        changed = trim(arrays, hand_on_leftovers(arrays, matrix, to_running=to_running))
        found = _no_worse(problem, arrays, changed, matrix, schedule, floor)
        if found is not None:
            return found
    return schedule


def _no_worse(
    problem: EpochProblem,
    arrays: ProblemArrays,
    changed: IntArray,
    matrix: IntArray,
    schedule: Schedule,
    floor: Schedule | None,
) -> Schedule | None:
    """Return the plan `changed` as a schedule; None where it gives up what it must not."""
    if np.array_equal(changed, matrix):
        return None
    if not walk(arrays, changed).met[walk(arrays, matrix).met].all():
        return None
    found = schedule_of(problem, arrays, changed, schedule.solver, schedule.bound)
    if found is None:
        return None
    assert found.objective is not None
    assert schedule.objective is not None
    lost = schedule.objective.better_than(found.objective)
    if problem.objective.mode == "weighted" and lost:
        return None
    least = None if floor is None else floor.objective
    if lost and least is not None and least.better_than(found.objective):
        return None
    return found
