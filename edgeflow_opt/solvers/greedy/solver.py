"""The EdgeFlow heuristic as a solver of epoch problems, with and without job selection."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from edgeflow_opt.formulations.linear_rows import brought_within_rows, obeys_rows
from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.base import FEATURES, Capabilities, Draft
from edgeflow_opt.solvers.greedy.heuristic import Heuristic
from edgeflow_opt.solvers.greedy.options import MEANINGS, GreedyOptions, options_from
from edgeflow_opt.solvers.greedy.tables import (
    JOB,
    MODE,
    WORK_MARGIN,
    Modes,
    Records,
    entry,
    level_table,
    table,
)
from edgeflow_opt.solvers.greedy.value import value_of
from edgeflow_opt.solvers.kernels import GREEDY

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem import EpochProblem, ObjectiveValue
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl

#: Jobs from which on a thread for the other variant costs less than it saves.
_MANY_JOBS = 1000

#: Plan of a variant and, where it is asked for, its value; None where it breaks a deadline that
#: must be met, or a constraint.
_Answer: TypeAlias = "tuple[IntArray, ObjectiveValue | None] | None"


def heuristic_plan(
    arrays: ProblemArrays,
    options: GreedyOptions,
    select_jobs: bool = False,
    chosen: BoolArray | None = None,
) -> IntArray:
    """Return the plan matrix of the heuristic.

    Parameters
    ----------
    arrays
        The instance.
    options
        How open points are read.
    select_jobs
        Whether jobs are selected under overload, instead of steps 1 and 2 as published.
    chosen
        (n,) with job selection: the jobs to be met if they can be; the others get what these
        leave. None = the rule selects among all.

    Returns
    -------
    plan
        (n, T) plan matrix that keeps capacities, memories, arrivals and the rules of moldable
        jobs; deadlines that must be met may be missed.
    """
    return _plan(arrays, options, select_jobs, _tables(arrays, options), chosen)


def _tables(arrays: ProblemArrays, options: GreedyOptions) -> tuple[Records, Modes]:
    """Return jobs and modes as the kernels read them; they do not write into them."""
    modes = table(
        MODE,
        site=arrays.mode_site,
        units=arrays.mode_units,
        gpus=arrays.mode_gpus,
        rate=arrays.mode_rate,
    )
    levels = level_table(
        arrays.mode_start, modes, arrays.mode_usable, arrays.is_cloud, options.knee_cap
    )
    # A running mode that may not be used is left at once; a moldable job then never runs again.
    stuck = (arrays.running_mode >= 0) & ~arrays.mode_usable[arrays.running_mode]
    charged = 1.0 if options.charge_losses else 0.0
    jobs = table(
        JOB,
        work=arrays.required * (1.0 + WORK_MARGIN),
        deadline=arrays.deadline - arrays.boundaries[0],
        weight=arrays.weight,
        first_piece=np.where(stuck & ~arrays.malleable, arrays.num_slots, arrays.first_slot),
        must=arrays.must_meet,
        malleable=arrays.malleable,
        fresh=(arrays.last_site < 0) & arrays.has_deadline,
        restart_s=charged * arrays.restart_s,
        migration_s=charged * arrays.migration_s,
        run_mode=np.where(stuck, -1, arrays.running_mode),
        loss_left_s=charged * arrays.loss_left_s,
        last_site=arrays.last_site,
    )
    return jobs, Modes(modes, *levels)


def _plan(
    arrays: ProblemArrays,
    options: GreedyOptions,
    select_jobs: bool,
    tables: tuple[Records, Modes],
    chosen: BoolArray | None = None,
) -> IntArray:
    """Return the plan matrix of :func:`heuristic_plan`."""
    # Seconds from the start of the grid: clocks may be at 1e9 s and more.
    boundaries = arrays.boundaries - arrays.boundaries[0]
    planned = Heuristic(options, select_jobs, carried_out=True).plan(
        boundaries, arrays.capacity, arrays.is_cloud, True, *tables, chosen
    )
    plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
    plans = planned.plans
    _paint(plan, plans.table, plans.pool, boundaries)
    return plan


@entry
def _paint(plan: IntArray, plans: Records, pool: Records, boundaries: FloatArray) -> None:
    """Write the segments of all plans, whose ends are boundaries, into an empty plan matrix."""
    for j in range(plan.shape[0]):
        s = 0
        for i in range(plans[j].first, plans[j].first + plans[j].segments):
            while boundaries[s] < pool[i].start:
                s += 1
            while s < plan.shape[1] and boundaries[s] < pool[i].end:
                plan[j, s] = pool[i].mode
                s += 1


@entry
def _trim(plan: IntArray, last_slot: IntArray) -> None:
    """Take out the slots of `plan` after `last_slot`, in which jobs complete."""
    for j in range(plan.shape[0]):
        for s in range(last_slot[j] + 1, plan.shape[1]):
            plan[j, s] = -1


def _side_by_side(variant: Callable[[bool], _Answer], control: SolveControl) -> list[_Answer]:
    """Return what both variants find, the published one in a thread beside that which selects.

    If time is up once the latter has a plan, the former is left to itself.
    """
    beside = ThreadPoolExecutor(1, "edgeflow-greedy")
    try:
        published = beside.submit(variant, False)
        selecting = variant(True)
        if selecting is not None and control.stopped:
            return [selecting]
        return [selecting, published.result()]
    finally:
        beside.shutdown(wait=False)


class GreedySolver:
    """The three steps of EdgeFlow as an epoch plan.

    Source: Gu, Jin, Liu, "Cloud-edge Coordinated Scheduling Method for Deep Learning Jobs", Journal
    of Software 36(12), 2025. Plans begin and end at slot boundaries.

    Parameters
    ----------
    name
        Name in the registry.
    select_jobs
        Whether a variant that selects jobs under overload is tried as well, and the better of the
        two plans, by the objective of the instance, is taken.
    """

    def __init__(self, name: str, select_jobs: bool) -> None:
        self.name = name
        self._select_jobs = select_jobs
        summary = "EdgeFlow heuristic: minimum shares, offloading, elastic scaling"
        if select_jobs:
            summary = "EdgeFlow heuristic with job selection under overload (Moore-Hodgson)"
        self.capabilities = Capabilities(
            summary=summary,
            exact=False,
            features=frozenset(FEATURES),
            params=MEANINGS,
            kernels=(GREEDY,),
        )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Return the plan; ``no_solution`` where it misses a deadline or a constraint."""
        greedy_options = options_from(options.params)
        begun = time.perf_counter()
        tables = _tables(arrays, greedy_options)

        def variant(select_jobs: bool) -> _Answer:
            plan = _plan(arrays, greedy_options, select_jobs, tables)
            # The rules know capacities only: what breaks a constraint goes to others.
            plan = brought_within_rows(arrays, plan)
            walked = walk(arrays, plan)
            if not obeys_rows(arrays, plan) or np.any(arrays.must_meet & ~walked.met):
                return None
            _trim(plan, walked.last_slot)
            # With one variant there is nothing to compare.
            worth = value_of(arrays, plan, walked, problem.objective) if self._select_jobs else None
            return plan, worth

        if not self._select_jobs:
            answers = [variant(False)]
        elif options.workers >= 2 and not options.deterministic and arrays.num_jobs >= _MANY_JOBS:
            answers = _side_by_side(variant, control)
        else:
            answers = [variant(True)]
            if answers[0] is None or not control.stopped:
                answers.append(variant(False))
        best: IntArray | None = None
        best_value: ObjectiveValue | None = None
        for plan, value in filter(None, answers):
            if best_value is None or (value is not None and value.better_than(best_value)):
                best, best_value = plan, value
        statistics = {"solve_s": time.perf_counter() - begun}
        if best is None:
            return Draft(status=SolveStatus.NO_SOLUTION, limit=control.limit, statistics=statistics)
        return Draft(status=SolveStatus.FEASIBLE, plan=best, statistics=statistics)
