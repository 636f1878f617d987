"""Plan matrices: the common currency of the solvers.

A *plan matrix* is an (n, T) integer array: the mode (numbered through over all jobs, see
:class:`~edgeflow_opt.problem.arrays.ProblemArrays`) that job j holds in slot s, or -1 where it is
idle. Equal modes in neighbouring slots are one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plan_kernels import walk_plans
from edgeflow_opt.problem.schedule import Allocation

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays


@dataclass(frozen=True, slots=True, eq=False)
class PlanWalk:
    """What a plan matrix does for each job, by the run-and-loss rule.

    Parameters
    ----------
    met
        (n,) whether the credit by the deadline suffices; False for best effort.
    last_slot
        (n,) slot in which the job completes, T if it does not by the horizon.
    credit_by_deadline, credit_by_horizon
        (n,) iterations; the former is 0 for best effort.
    reconfigurations
        (n,) number of runs that begin after the job has run before.
    """

    met: BoolArray
    last_slot: IntArray
    credit_by_deadline: FloatArray
    credit_by_horizon: FloatArray
    reconfigurations: IntArray


def empty_plan(arrays: ProblemArrays) -> IntArray:
    """Return the plan matrix in which every job is idle."""
    return np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)


def walk(arrays: ProblemArrays, plan: IntArray) -> PlanWalk:
    """Return what `plan` does for each job."""
    n = arrays.num_jobs
    result = PlanWalk(
        met=np.zeros(n, dtype=np.bool_),
        last_slot=np.zeros(n, dtype=np.int64),
        credit_by_deadline=np.zeros(n),
        credit_by_horizon=np.zeros(n),
        reconfigurations=np.zeros(n, dtype=np.int64),
    )
    walk_plans(
        np.ascontiguousarray(plan, dtype=np.int64),
        arrays.boundaries,
        arrays.mode_rate,
        arrays.mode_site,
        arrays.required,
        arrays.deadline,
        arrays.restart_s,
        arrays.migration_s,
        arrays.running_mode,
        arrays.loss_left_s,
        arrays.last_site,
        result.met,
        result.last_slot,
        result.credit_by_deadline,
        result.credit_by_horizon,
        result.reconfigurations,
    )
    return result


def trim(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return `plan` without the slots that come after a job has completed."""
    last_slot = walk(arrays, plan).last_slot
    after = np.arange(arrays.num_slots)[None, :] > last_slot[:, None]
    return np.where(after, -1, plan)


def usage(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return (K, T) the units that `plan` takes of each site in each slot."""
    used = np.zeros((arrays.num_sites, arrays.num_slots), dtype=np.int64)
    job, slot = np.nonzero(plan >= 0)
    mode = plan[job, slot]
    np.add.at(used, (arrays.mode_site[mode], slot), arrays.mode_units[mode])
    return used


def allocations_of(
    problem: EpochProblem, arrays: ProblemArrays, plan: IntArray
) -> tuple[Allocation, ...]:
    """Return `plan` as the allocations of a schedule: one per run, in the order of the format."""
    n, num_slots = plan.shape
    if n == 0:
        return ()
    idle = np.full((n, 1), -1, dtype=plan.dtype)
    padded = np.concatenate([idle, plan, idle], axis=1)
    change = padded[:, 1:] != padded[:, :-1]
    # A run begins where the mode changes to one, and ends at the next change.
    begin_job, begin_slot = np.nonzero(change[:, :num_slots] & (plan >= 0))
    end_job, end_slot = np.nonzero(change[:, 1:] & (plan >= 0))
    assert np.array_equal(begin_job, end_job)
    order = np.lexsort((begin_job, begin_slot))
    boundaries = problem.grid.boundaries
    result = []
    for index in order:
        job = problem.jobs[begin_job[index]]
        mode_index = plan[begin_job[index], begin_slot[index]]
        mode = job.modes[mode_index - arrays.mode_start[begin_job[index]]]
        result.append(
            Allocation(
                job=job.id,
                start=boundaries[begin_slot[index]],
                end=boundaries[end_slot[index] + 1],
                site=mode.site,
                gpus=mode.gpus,
            )
        )
    return tuple(result)


def plan_of(problem: EpochProblem, arrays: ProblemArrays, schedule: Schedule) -> IntArray:
    """Return a valid `schedule` of `problem` as a plan matrix."""
    plan = empty_plan(arrays)
    slot_of = {time: index for index, time in enumerate(problem.grid.boundaries)}
    for allocation in schedule.allocations:
        job = problem.job_index[allocation.job]
        mode = next(
            index
            for index, mode in enumerate(problem.jobs[job].modes)
            if mode.gpus == allocation.gpus and mode.site == allocation.site
        )
        plan[job, slot_of[allocation.start] : slot_of[allocation.end]] = (
            arrays.mode_start[job] + mode
        )
    return plan


def warm_up_arrays() -> ProblemArrays:
    """Return a tiny instance on which kernels are compiled."""
    from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
    from edgeflow_opt.problem.arrays import arrays_of

    job = Job(id="j", deadline=2.0, work=1.0, modes=(Mode(site="cloud", gpus=1, rate=1.0),))
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    return arrays_of(EpochProblem(grid=Grid((0.0, 1.0, 2.0)), sites=(site,), jobs=(job,)))


def warm_up() -> None:
    """Compile the kernels on plan matrices, or load them from the cache."""
    arrays = warm_up_arrays()
    walk(arrays, empty_plan(arrays))
