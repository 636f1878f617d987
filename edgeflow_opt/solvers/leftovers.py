"""Hand on the units that a plan leaves over, without ever hurting the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.formulations.plan_kernels import walk_plans
from edgeflow_opt.formulations.plans import usage, walk
from edgeflow_opt.solvers.compiled import entry

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays

#: Gains below this share of the work of a job are rounding.
_LEAST_GAIN = 1e-9


def hand_on_leftovers(
    arrays: ProblemArrays, plan: IntArray, *, to_running: bool = False
) -> IntArray:
    """Return `plan` with the units that are left over from now on handed on.

    One job at a time gets another mode from the first slot on, for as long as the units for it are
    left over, or until its own plan takes up if that is better: first a job that becomes met by
    it, then jobs that the plan meets (they complete earlier, which leaves room for those to come),
    then unmet ones whose deadline lies ahead, last late and best-effort ones; within a class that
    with the most gain, as a share of its work, per unit-second. A change has to gain work over the
    whole plan, all losses included, and may not make a met job miss; so a just-in-time plan moves
    forward where that is worth its restarts, and runs are joined where a pause costs one. The step
    is modelled on elastic scaling (Gu et al., ElasticFlow, ASPLOS 2023, Algorithm 2), but gains
    are not taken as concave, and losses count.

    Parameters
    ----------
    arrays
        The instance.
    plan
        (n, T) a valid plan matrix.
    to_running
        Whether only jobs that run may have some, and only in the modes in which they run: nothing is
        stopped for nothing then, and nothing else changes.

    Returns
    -------
    plan
        (n, T) a valid plan matrix that meets every job that `plan` meets.
    """
    free = arrays.capacity - usage(arrays, plan)
    candidates = np.flatnonzero(arrays.mode_usable & (arrays.first_slot[arrays.mode_job] == 0))
    if to_running:
        candidates = candidates[arrays.running_mode[arrays.mode_job[candidates]] == candidates]
    if not len(candidates) or not free[:, 0].any():
        return plan
    before = walk(arrays, plan)
    ahead = arrays.has_deadline & (arrays.deadline > arrays.boundaries[0])
    changed = np.ascontiguousarray(plan).copy()
    _hand_on(
        changed,
        free,
        candidates,
        np.where(ahead, 1, 2),
        before.met.copy(),
        before.credit_by_horizon.copy(),
        before.last_slot.copy(),
        arrays.boundaries,
        arrays.mode_job,
        arrays.mode_site,
        arrays.mode_units,
        arrays.mode_rate,
        arrays.required,
        arrays.deadline,
        arrays.restart_s,
        arrays.migration_s,
        arrays.running_mode,
        arrays.loss_left_s,
        arrays.last_site,
    )
    return changed


@entry
def _hand_on(
    plan: Any,
    free: Any,
    candidates: Any,
    rank: Any,
    met: Any,
    credit: Any,
    last_slot: Any,
    boundaries: Any,
    mode_job: Any,
    mode_site: Any,
    mode_units: Any,
    mode_rate: Any,
    required: Any,
    deadline: Any,
    restart_s: Any,
    migration_s: Any,
    running_mode: Any,
    loss_left_s: Any,
    last_site: Any,
) -> None:
    """Change `plan` in place, job by job, until nothing gains; so are the five arrays beside it."""
    num_slots = plan.shape[1]
    # Credit is compared on rows that are not trimmed at completion: so every change makes it grow,
    # and there is an end. Capacity is that of the trimmed rows.
    full = plan.copy()
    count = len(candidates)
    # What is known of each candidate and variant holds until its stretch or its job changes.
    stretch = np.full(count, -1, dtype=np.int64)
    until = np.zeros((count, 2), dtype=np.int64)
    new_met = np.zeros((count, 2), dtype=np.bool_)
    new_credit = np.zeros((count, 2))
    new_last = np.zeros((count, 2), dtype=np.int64)
    extra = np.zeros((count, 2))
    row = np.empty((1, num_slots), dtype=np.int64)
    row_met = np.zeros(1, dtype=np.bool_)
    row_last = np.zeros(1, dtype=np.int64)
    row_by_deadline = np.zeros(1)
    row_credit = np.zeros(1)
    row_reconfigurations = np.zeros(1, dtype=np.int64)
    while True:
        best, best_variant, best_class, best_score = -1, 0, 9, 0.0
        for c in range(count):
            mode = candidates[c]
            j, site, units = mode_job[mode], mode_site[mode], mode_units[mode]
            end, taken_up = 0, -1
            while end < num_slots:
                held = plan[j, end]
                own = mode_units[held] if held >= 0 and mode_site[held] == site else 0
                if units - own > free[site, end]:
                    break
                if taken_up < 0 and full[j, end] != full[j, 0]:
                    taken_up = end
                end += 1
            if end == 0:
                continue
            if end != stretch[c]:
                stretch[c] = end
                for variant in range(2):
                    stop = end if variant == 0 or taken_up < 0 else taken_up
                    for s in range(num_slots):
                        row[0, s] = mode if s < stop else full[j, s]
                    walk_plans(
                        row, boundaries, mode_rate, mode_site, required[j : j + 1],
                        deadline[j : j + 1], restart_s[j : j + 1], migration_s[j : j + 1],
                        running_mode[j : j + 1], loss_left_s[j : j + 1], last_site[j : j + 1],
                        row_met, row_last, row_by_deadline, row_credit, row_reconfigurations,
                    )  # fmt: skip
                    until[c, variant] = stop
                    new_met[c, variant] = row_met[0]
                    new_credit[c, variant] = row_credit[0]
                    new_last[c, variant] = row_last[0]
                    more = 0.0
                    for s in range(min(stop, row_last[0] + 1)):
                        held = plan[j, s]
                        own = mode_units[held] if held >= 0 and mode_site[held] == site else 0
                        more += max(0, units - own) * (boundaries[s + 1] - boundaries[s])
                    extra[c, variant] = more
            for variant in range(2):
                gain = (new_credit[c, variant] - credit[j]) / required[j]
                becomes_met = new_met[c, variant] and not met[j]
                if not (gain > _LEAST_GAIN or (becomes_met and gain >= 0.0)):
                    continue
                # Slots after the present completion may be others' by now.
                if new_last[c, variant] > last_slot[j] or (met[j] and not new_met[c, variant]):
                    continue
                group = -1 if becomes_met else (0 if met[j] else rank[j])
                # Less held for more gain is best of all; the floor keeps the score finite.
                score = gain / max(extra[c, variant], 1e-6)
                if group < best_class or (group == best_class and score > best_score):
                    best, best_variant, best_class, best_score = c, variant, group, score
        if best < 0:
            return
        mode = candidates[best]
        j = mode_job[mode]
        for s in range(num_slots):
            if plan[j, s] >= 0:
                free[mode_site[plan[j, s]], s] += mode_units[plan[j, s]]
        for s in range(until[best, best_variant]):
            full[j, s] = mode
        met[j], credit[j] = new_met[best, best_variant], new_credit[best, best_variant]
        last_slot[j] = new_last[best, best_variant]
        for s in range(num_slots):
            plan[j, s] = full[j, s] if s <= last_slot[j] else -1
            if plan[j, s] >= 0:
                free[mode_site[plan[j, s]], s] -= mode_units[plan[j, s]]
        for c in range(count):
            if mode_job[candidates[c]] == j:
                stretch[c] = -1


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    from edgeflow_opt.formulations.plans import empty_plan, warm_up_arrays

    arrays = warm_up_arrays()
    hand_on_leftovers(arrays, empty_plan(arrays))
