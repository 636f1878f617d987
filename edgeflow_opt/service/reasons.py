"""Why each job gets what it gets under a plan, and the bound that this implies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.service.decision import JobReason, ReasonCode

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule
    from edgeflow_opt.problem.arrays import BoolArray, ProblemArrays

#: Slack for rounding in the proof that a job is hopeless, relative to the work.
_SLACK = 1e-9


def hopeless_jobs(arrays: ProblemArrays) -> BoolArray:
    """Return (n,) which jobs cannot meet their deadlines even with all sites to themselves.

    Proven by a relaxation: in every slot the fastest mode that the sites have the units for, no
    losses but that of the present run or, for an idle job that has run before, the least of
    `restart_s` and `migration_s`.

    Returns
    -------
    hopeless
        False for best effort.
    """
    n, boundaries = arrays.num_jobs, arrays.boundaries
    hopeless = np.zeros(n, dtype=np.bool_)
    for j in np.flatnonzero(arrays.has_deadline).tolist():
        first, end = int(arrays.first_slot[j]), int(arrays.end_slot[j])
        modes = np.arange(arrays.mode_start[j], arrays.mode_start[j + 1])
        modes = modes[arrays.mode_usable[modes]]
        if first >= end or not len(modes):
            hopeless[j] = True
            continue
        units = arrays.mode_units[modes][:, None]
        fits = units <= arrays.capacity[arrays.mode_site[modes], first:end]
        rates = np.where(fits, arrays.mode_rate[modes][:, None], 0.0).max(axis=0)
        seconds = np.minimum(boundaries[first + 1 : end + 1], arrays.deadline[j])
        seconds = seconds - boundaries[first:end]
        credit = float(rates @ seconds)
        hopeless[j] = credit < arrays.required[j] * (1.0 - _SLACK)
    return hopeless


def trivial_bound(problem: EpochProblem, hopeless: BoolArray) -> float | None:
    """Return the weight of all jobs that are not hopeless; None for a weighted sum."""
    if problem.objective.mode == "weighted":
        return None
    weights = (
        job.weight
        for job, out in zip(problem.jobs, hopeless.tolist(), strict=True)
        if job.deadline is not None and not out
    )
    return float(sum(weights))


def reasons_of(
    problem: EpochProblem, schedule: Schedule, hopeless: BoolArray
) -> tuple[JobReason, ...]:
    """Return why each job gets what it gets under `schedule`, in the order of the jobs."""
    begins: dict[str, tuple[float, str, str]] = {}
    for allocation in schedule.allocations:
        if allocation.job not in begins:
            one = allocation.gpus == 1
            what = f"{allocation.gpus} GPU{'' if one else 's'} on '{allocation.site}'"
            begins[allocation.job] = (allocation.start, what, "is" if one else "are")
    reasons = []
    for job, outcome, out in zip(problem.jobs, schedule.outcomes, hopeless.tolist(), strict=True):
        start, what, verb = begins.get(job.id, (None, "", ""))
        runs = start == problem.now
        deadline = job.deadline
        by = "" if deadline is None else f"its deadline at {deadline:g} s"
        passed = deadline is not None and deadline <= problem.now
        done = f"{outcome.completion:g} s" if outcome.completion is not None else "after the plan"
        if job.arrival is not None and job.arrival > problem.now:
            code, text = ReasonCode.NOT_ARRIVED, f"arrives at {job.arrival:g} s"
            if outcome.met:
                text += f" and then meets {by}, done at {done}"
        elif outcome.met and runs:
            code, text = ReasonCode.MET, f"runs on {what} and meets {by}, done at {done}"
        elif outcome.met:
            code = ReasonCode.RESERVED
            text = (
                f"waits; {what} {verb} reserved from {start:g} s on, and it meets {by}, "
                f"done at {done}"
            )
        elif runs:
            code, text = (
                ReasonCode.LEFT_OVER,
                f"runs on {what} that {verb} left over, done at {done}",
            )
            if passed:
                text += f"; {by} has passed"
            elif deadline is not None:
                why = "cannot be met by it even alone" if out else "is given up under overload"
                text += f"; {by} {why}"
        elif deadline is None:
            code, text = ReasonCode.WAITS, "has no deadline and waits: no units are left over now"
        elif passed:
            code, text = ReasonCode.PASSED, f"{by} has passed, and no units are left over now"
        elif out:
            code = ReasonCode.HOPELESS
            text = f"cannot meet {by} even with all sites to itself, and no units are left over now"
        else:
            code = ReasonCode.OVERLOAD
            text = (
                f"is not among the jobs chosen under overload: {by} is given up, and no units are "
                "left over now"
            )
        reasons.append(
            JobReason(
                job=job.id,
                code=code,
                message=text,
                start=start,
                completion=outcome.completion,
                met=outcome.met,
            )
        )
    return tuple(reasons)
