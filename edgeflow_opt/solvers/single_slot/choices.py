"""What each job can do in a single slot, and what that is worth on every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.objectives import LEVELS

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The choices of all jobs, grouped by job: to idle, unless it must be met, or to hold a mode.

    Parameters
    ----------
    job
        (N,) job, ascending.
    mode
        (N,) mode, -1 = idle.
    site, units
        (N,) what is held; site 0 and no units where idle.
    values
        (N,) by level; cost and reconfigurations are negated.
    impossible
        Whether a job that must be met has no choice that meets it.
    """

    job: IntArray
    mode: IntArray
    site: IntArray
    units: IntArray
    values: dict[Level, FloatArray]
    impossible: bool


def choices_of(arrays: ProblemArrays) -> Choices:
    """Enumerate the choices of an instance of one slot.

    By the run-and-loss rule a run from t_0 = now with loss L earns
    ``rate * max(0, min(t_1, t) - t_0 - L)`` by a time t.
    """
    assert arrays.num_slots == 1
    mode = np.nonzero(arrays.mode_kept)[0]
    job = arrays.mode_job[mode]
    running = arrays.running_mode[job]
    site, units = arrays.mode_site[mode], arrays.mode_units[mode]
    possible = (arrays.first_slot[job] == 0) & (units <= arrays.capacity[site, 0])
    # A moldable job that runs may only go on.
    possible &= arrays.malleable[job] | (running < 0) | (running == mode)
    goes_on = running == mode
    last_site = arrays.last_site[job]
    loss = np.where(last_site == site, arrays.restart_s[job], arrays.migration_s[job])
    loss = np.where(last_site < 0, 0.0, np.where(goes_on, arrays.loss_left_s[job], loss))
    begin, end = arrays.boundaries
    rate = arrays.mode_rate[mode]
    by_deadline = rate * np.maximum(0.0, np.minimum(end, arrays.deadline[job]) - begin - loss)
    by_horizon = rate * np.maximum(0.0, end - begin - loss)
    known = arrays.has_deadline[job]
    met = known & (by_deadline >= arrays.required[job])
    possible &= met | ~arrays.must_meet[job]
    weight, work = arrays.weight[job], arrays.work[job]
    late = np.where(met, 0.0, weight)
    values: dict[Level, FloatArray] = {
        "met": np.where(met, weight, 0.0),
        "progress": np.where(known, late * np.minimum(1.0, by_deadline / work), 0.0),
        "leftover": late * np.minimum(1.0, by_horizon / work),
        "cost": -arrays.mode_cost[mode] * (end - begin),
        "reconfigurations": -((last_site >= 0) & ~goes_on).astype(np.float64),
    }
    idle = np.nonzero(~arrays.must_meet)[0]
    order = np.argsort(np.concatenate([idle, job[possible]]), kind="stable")

    def joined(of_idle: int, of_modes: IntArray) -> IntArray:
        column = np.concatenate([np.full(len(idle), of_idle), of_modes[possible]])
        result: IntArray = column[order]
        return result

    return Choices(
        job=np.concatenate([idle, job[possible]])[order],
        mode=joined(-1, mode),
        site=joined(0, site),
        units=joined(0, units),
        values={
            level: np.concatenate([np.zeros(len(idle)), values[level][possible]])[order]
            for level in LEVELS
        },
        impossible=bool(_without_choice(arrays, job[possible]).any()),
    )


def _without_choice(arrays: ProblemArrays, job: IntArray) -> BoolArray:
    """Return (n,) the jobs that must be met and are not among `job`."""
    has_choice = np.zeros(arrays.num_jobs, dtype=np.bool_)
    has_choice[job] = True
    result: BoolArray = arrays.must_meet & ~has_choice
    return result
