r"""Plans as columns, and the master that chooses among them (Dantzig and Wolfe, 1960).

Every column is a *plan* of one group: of a job, the mode it holds in every slot; of an item, the
agent it is given to. With P(g) the plans of group g, v_p the value of a plan and u_rp what it takes
of resource r (a site in a slot),

.. math::

    \max \sum_g \sum_{p \in P(g)} v_p \lambda_p, \quad
    l_g \le \sum_{p \in P(g)} \lambda_p \le 1 \;\; \forall g, \quad
    \sum_p u_{rp} \lambda_p \le C_r \;\; \forall r, \quad \lambda_p \in \{0, 1\},

with l_g = 1 where a plan must be chosen and 0 elsewhere. All that makes a plan feasible, losses
included, is inside the columns, so that the linear relaxation is at least as strong as that of the
malleable model, and much stronger where losses bite.

With all plans given as data this is generalised assignment (a plan is an agent, l = 1) and the
multiple-choice multidimensional knapsack (MMKP: groups are classes, l = 1). For an epoch problem
the plans are far too many: those of tiny instances are enumerated in
:mod:`edgeflow_opt.formulations.plan_master`, all others priced in :mod:`edgeflow_opt.solvers.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plan_kernels import walk_plans
from edgeflow_opt.formulations.sparse import ModelBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays


@dataclass(frozen=True, slots=True, eq=False)
class PlanColumns:
    """Plans as columns: to which group they belong and what they take.

    Parameters
    ----------
    group
        (N,) group of each plan.
    starts, resource, amount
        What the plans take, by plan (CSC): entries of plan p are ``starts[p] : starts[p+1]``.
    """

    group: IntArray
    starts: IntArray
    resource: IntArray
    amount: FloatArray

    @property
    def num_columns(self) -> int:
        """Number of plans N."""
        return len(self.group)

    def priced(self, prices: FloatArray) -> FloatArray:
        """Return (N,) what the plans cost at `prices` (R,) of the resources."""
        spent = np.concatenate([[0.0], np.cumsum(self.amount * prices[self.resource])])
        cost: FloatArray = spent[self.starts[1:]] - spent[self.starts[:-1]]
        return cost


def build_master(
    columns: PlanColumns, capacity: FloatArray | IntArray, obliged: BoolArray
) -> SparseModel:
    """Return the plan master of `columns`, its objective all zero.

    Rows are the groups in their order, then the resources; columns are the plans in theirs.

    Parameters
    ----------
    columns
        The plans.
    capacity
        (R,) what there is of each resource.
    obliged
        (G,) whether a plan of the group must be chosen.
    """
    builder = ModelBuilder()
    plans = builder.add_columns("plan", columns.num_columns)
    groups = builder.add_rows("one_plan", len(obliged), lower=obliged.astype(np.float64), upper=1.0)
    builder.add_entries(groups[columns.group], plans, 1.0)
    resources = builder.add_rows("capacity", len(capacity), upper=capacity)
    plan_of_entry = np.repeat(plans, np.diff(columns.starts))
    builder.add_entries(resources[columns.resource], plan_of_entry, columns.amount)
    return builder.build()


@dataclass(frozen=True, slots=True, eq=False)
class JobPlans:
    """Plans of the jobs of an epoch problem, a row each.

    Parameters
    ----------
    job
        (N,) whose plan it is.
    rows
        (N, T) mode held in each slot, -1 = idle, as in a plan matrix.
    """

    job: IntArray
    rows: IntArray

    def columns(self, arrays: ProblemArrays) -> PlanColumns:
        """Return the plans as columns; resource k T + s is site k in slot s."""
        plan, slot = np.nonzero(self.rows >= 0)
        mode = self.rows[plan, slot]
        starts = np.concatenate([[0], np.cumsum(np.bincount(plan, minlength=len(self.job)))])
        return PlanColumns(
            group=self.job,
            starts=starts.astype(np.int64),
            resource=arrays.mode_site[mode] * arrays.num_slots + slot,
            amount=arrays.mode_units[mode].astype(np.float64),
        )

    def values(self, arrays: ProblemArrays) -> dict[Level, FloatArray]:
        """Return what each plan adds to the levels of the objective; larger is better.

        By the run-and-loss rule itself. A plan that meets its deadline adds w to ``met``; another
        one w min(1, credit by the deadline / work) to ``progress`` (no best effort) and the same by
        the horizon to ``leftover``; ``cost`` and ``reconfigurations`` count for all, negated.
        """
        job, count = self.job, len(self.job)
        met = np.zeros(count, dtype=np.bool_)
        last_slot, changes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        by_deadline, by_horizon = np.zeros(count), np.zeros(count)
        walk_plans(
            np.ascontiguousarray(self.rows, dtype=np.int64),
            arrays.boundaries,
            arrays.mode_rate,
            arrays.mode_site,
            arrays.required[job],
            arrays.deadline[job],
            arrays.restart_s[job],
            arrays.migration_s[job],
            arrays.running_mode[job],
            arrays.loss_left_s[job],
            arrays.last_site[job],
            met,
            last_slot,
            by_deadline,
            by_horizon,
            changes,
        )
        weight, work = arrays.weight[job], arrays.work[job]
        held = np.where(self.rows >= 0, arrays.mode_cost[self.rows] * arrays.lengths, 0.0)
        return {
            "met": weight * met,
            "progress": np.where(met, 0.0, weight * np.minimum(1.0, by_deadline / work)),
            "leftover": np.where(met, 0.0, weight * np.minimum(1.0, by_horizon / work)),
            "cost": -held.sum(axis=1),
            "reconfigurations": -changes.astype(np.float64),
        }

    def chosen(self, arrays: ProblemArrays, x: FloatArray) -> IntArray:
        """Return the plan matrix of a solution of the master."""
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1, dtype=np.int64)
        on = x > 0.5
        plan[self.job[on]] = self.rows[on]
        return plan

    def encode(self, plan: IntArray) -> FloatArray:
        """Return the columns that stand for a plan matrix; jobs whose row is no column are left out."""
        same = (self.rows == plan[self.job]).all(axis=1) & (self.rows >= 0).any(axis=1)
        x = np.zeros(len(self.job))
        found = np.nonzero(same)[0]
        # Of equal columns of a job the first stands for its row.
        _, first = np.unique(self.job[found], return_index=True)
        x[found[first]] = 1.0
        return x


def plans_of(matrices: Sequence[IntArray]) -> JobPlans:
    """Return every row of some plan matrices in which the job runs, once each."""
    jobs, rows = [], []
    for matrix in matrices:
        runs = np.nonzero((matrix >= 0).any(axis=1))[0]
        jobs.append(runs)
        rows.append(matrix[runs])
    if not jobs:
        return JobPlans(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64))
    job, row = np.concatenate(jobs), np.concatenate(rows)
    if not len(job):
        return JobPlans(job, row)
    _, first = np.unique(np.column_stack([job, row]), axis=0, return_index=True)
    return JobPlans(job[first], row[first])
