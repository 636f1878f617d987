"""Carry a plan over to another epoch: other boundaries, other jobs, other capacities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import empty_plan, usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgeflow_opt.problem import Allocation, EpochProblem
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays


def carried_over(
    problem: EpochProblem, arrays: ProblemArrays, allocations: Iterable[Allocation]
) -> IntArray:
    """Return what is left of `allocations` as a plan of `problem`.

    In each slot a job does what the allocations say of the start of the slot. Jobs and modes that
    the problem does not have are left out, and so is what comes before an arrival. Where capacity
    has gone, jobs lose their place, those with the latest deadlines first. A moldable job keeps
    its run whole or not at all.

    Parameters
    ----------
    problem, arrays
        The instance.
    allocations
        A plan for any time and any jobs, those of a job without overlaps.

    Returns
    -------
    plan
        (n, T) plan matrix that keeps all rules but ``must_meet``.
    """
    plan = empty_plan(arrays)
    starts = arrays.boundaries[:-1]
    for allocation in allocations:
        if allocation.job not in problem.job_index:
            continue
        j = problem.job_index[allocation.job]
        modes = problem.jobs[j].modes
        where = (allocation.site, allocation.gpus)
        mode = next((k for k, m in enumerate(modes) if (m.site, m.gpus) == where), None)
        if mode is None or not arrays.mode_usable[arrays.mode_start[j] + mode]:
            continue
        first, last = np.searchsorted(starts, (allocation.start, allocation.end), side="left")
        plan[j, max(first, arrays.first_slot[j]) : last] = arrays.mode_start[j] + mode
    whole = plan.copy()
    _fit(arrays, plan)
    for j in np.flatnonzero(~arrays.malleable).tolist():
        if not _is_one_run(arrays, j, plan[j]) or (plan[j] != whole[j]).any():
            plan[j] = -1
    return plan


def _fit(arrays: ProblemArrays, plan: IntArray) -> None:
    """Take jobs out of slots in which a plan needs more units than there are."""
    excess = usage(arrays, plan) - arrays.capacity
    by_deadline = np.argsort(-arrays.deadline, kind="stable")
    for site, s in zip(*np.nonzero(excess > 0), strict=True):
        for j in by_deadline:
            mode = plan[j, s]
            if excess[site, s] > 0 and mode >= 0 and arrays.mode_site[mode] == site:
                plan[j, s] = -1
                excess[site, s] -= arrays.mode_units[mode]


def _is_one_run(arrays: ProblemArrays, j: int, row: IntArray) -> bool:
    """Whether the plan of job j is one run in one mode, that in which it runs already if any."""
    held = np.flatnonzero(row >= 0)
    if not len(held):
        return True
    running = arrays.running_mode[j]
    if running >= 0 and (held[0] > 0 or row[0] != running):
        return False
    return held[-1] - held[0] + 1 == len(held) and bool((row[held] == row[held[0]]).all())
