r"""The plan master: one binary per job and plan (Dantzig-Wolfe of the malleable model).

A plan p of job j is a sequence of modes, slot by slot, that meets the job's deadline, losses
included. With :math:`a_{pks}` the units that it takes of site k in slot s:

.. math::

    \max \sum_p w_{j(p)} \lambda_p, \quad
    \sum_{p \text{ of } j} \lambda_p \le 1 \;\; \forall j \;\; (= 1 \text{ where it must be met}),
    \quad \sum_p a_{pks} \lambda_p \le C_{ks} \;\; \forall k, s.

All plans of small instances are enumerated here, or those of a pool are taken, which makes the model a
restriction: its solutions are schedules, its optimum is no bound. Of enumerated plans that take no fewer units of any site in
any slot than another of the same job, only that other is kept, which changes no optimum of level 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.formulations.plan_columns import JobPlans, build_master

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Sequences of modes that are looked at for one job at most.
MOST_SEQUENCES = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class PlanMaster:
    """The model of level 1, and the way between its columns and plan matrices.

    Parameters
    ----------
    model
        Rows and columns: one column per plan.
    objectives
        The objective of level 1.
    job
        (N,) job of each plan.
    plans
        (N, T) the mode held in each slot, -1 = idle.
    """

    model: SparseModel
    objectives: dict[Level, FloatArray]
    job: IntArray
    plans: IntArray
    _arrays: ProblemArrays

    def decode(self, x: FloatArray) -> IntArray:
        """Return the plan matrix of a solution."""
        arrays = self._arrays
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        chosen = x > 0.5
        plan[self.job[chosen]] = self.plans[chosen]
        return plan


def build_plan_master(arrays: ProblemArrays, pool: JobPlans | None = None) -> PlanMaster:
    """Build the plan master of level 1.

    Parameters
    ----------
    arrays
        The instance.
    pool
        The plans to choose from, of which those that meet their deadline are taken; None = all that
        matter, enumerated.

    Raises
    ------
    TooManyPlansError
        Without a pool, if a job has so many sequences of modes that they cannot be enumerated.
    """
    plans = pool if pool is not None else _all_plans(arrays)
    gain = plans.values(arrays)["met"]
    must = arrays.must_meet[plans.job]
    useful = (gain > 0.0) | must | (pool is None)
    plans = JobPlans(plans.job[useful], plans.rows[useful])
    return PlanMaster(
        model=build_master(plans.columns(arrays), arrays.capacity.ravel(), arrays.must_meet),
        objectives={"met": arrays.weight[plans.job]},
        job=plans.job,
        plans=plans.rows,
        _arrays=arrays,
    )


def _all_plans(arrays: ProblemArrays) -> JobPlans:
    """Enumerate the plans of all jobs that have a deadline."""
    job_of: list[int] = []
    rows: list[list[int]] = []
    for job in np.nonzero(arrays.has_deadline)[0].tolist():
        found = _plans_of(arrays, job)
        job_of += [job] * len(found)
        rows += found
    matrix = np.array(rows, dtype=np.int64).reshape(len(rows), arrays.num_slots)
    return JobPlans(np.array(job_of, dtype=np.int64), matrix)


class TooManyPlansError(UsageError):
    """The plans of an instance are too many to be enumerated (exit code 2)."""


def _plans_of(arrays: ProblemArrays, job: int) -> list[list[int]]:
    """Return the plans of `job` that meet its deadline, in an order that does not change."""
    first, end = int(arrays.first_slot[job]), int(arrays.end_slot[job])
    modes = [
        m
        for m in range(int(arrays.mode_start[job]), int(arrays.mode_start[job + 1]))
        if arrays.mode_kept[m]
    ]
    choices = []
    for slot in range(first, end):
        fit = [
            m for m in modes if arrays.mode_units[m] <= arrays.capacity[arrays.mode_site[m], slot]
        ]
        choices.append([-1, *fit])
    count = math.prod(len(fit) for fit in choices)
    if count > MOST_SEQUENCES:
        raise TooManyPlansError(
            f"formulation plan: job number {job} has {count:.2g} sequences of modes, and at most "
            f"{MOST_SEQUENCES} can be enumerated; coarsen the grid, or take formulation malleable"
        )
    if end <= first:
        return []
    sequences = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(count, end - first)
    if not arrays.malleable[job]:
        sequences = sequences[_one_run(arrays, job, sequences)]
    met = _met_by(arrays, job, sequences)
    sequences = sequences[met]
    usage = np.zeros((len(sequences), arrays.num_sites * (end - first)), dtype=np.int64)
    row, offset = np.nonzero(sequences >= 0)
    mode = sequences[row, offset]
    usage[row, arrays.mode_site[mode] * (end - first) + offset] = arrays.mode_units[mode]
    kept: list[int] = []
    smallest = np.zeros((0, usage.shape[1]), dtype=np.int64)
    for index in np.lexsort((*usage.T[::-1], usage.sum(axis=1))).tolist():
        if not (smallest <= usage[index]).all(axis=1).any():
            kept.append(index)
            smallest = np.concatenate([smallest, usage[index : index + 1]])
    plans = np.full((len(kept), arrays.num_slots), -1, dtype=np.int64)
    plans[:, first:end] = sequences[kept]
    result: list[list[int]] = plans.tolist()
    return result


def _one_run(arrays: ProblemArrays, job: int, sequences: IntArray) -> BoolArray:
    """Return which sequences are one run in one mode: the running one, where there is one."""
    runs = sequences >= 0
    idle = np.zeros((len(sequences), 1), dtype=np.bool_)
    begins = (np.concatenate([idle, runs], axis=1)[:, :-1] < runs).sum(axis=1)
    highest = sequences.max(axis=1)
    same = (~runs | (sequences == highest[:, None])).all(axis=1)
    single = (begins <= 1) & same
    running = int(arrays.running_mode[job])
    if running >= 0:
        single &= (sequences[:, 0] == running) | ~runs.any(axis=1)
    result: BoolArray = single
    return result


def _met_by(arrays: ProblemArrays, job: int, sequences: IntArray) -> BoolArray:
    """Return which sequences meet the deadline, by the run-and-loss rule."""
    from edgeflow_opt.formulations.plan_kernels import walk_plans

    count, first = len(sequences), int(arrays.first_slot[job])
    plans = np.full((count, arrays.num_slots), -1, dtype=np.int64)
    plans[:, first : first + sequences.shape[1]] = sequences
    copies = np.full(count, job)
    met = np.zeros(count, dtype=np.bool_)
    numbers = np.zeros((2, count), dtype=np.int64)
    credit = np.zeros((2, count))
    walk_plans(
        plans,
        arrays.boundaries,
        arrays.mode_rate,
        arrays.mode_site,
        arrays.required[copies],
        arrays.deadline[copies],
        arrays.restart_s[copies],
        arrays.migration_s[copies],
        arrays.running_mode[copies],
        arrays.loss_left_s[copies],
        arrays.last_site[copies],
        met,
        numbers[0],
        credit[0],
        credit[1],
        numbers[1],
    )
    return met
