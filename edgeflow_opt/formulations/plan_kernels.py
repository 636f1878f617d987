"""Compiled kernels on plan matrices."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def walk_plans(
    plan: Any,
    boundaries: Any,
    mode_rate: Any,
    mode_site: Any,
    required: Any,
    deadline: Any,
    restart_s: Any,
    migration_s: Any,
    running_mode: Any,
    loss_left_s: Any,
    last_site: Any,
    met: Any,
    last_slot: Any,
    credit_by_deadline: Any,
    credit_by_horizon: Any,
    reconfigurations: Any,
) -> None:
    """Apply the run-and-loss rule to every row of a plan matrix; the last five arrays are output.

    The operations and their order are those of :mod:`edgeflow_opt.problem.runs`, so that both give
    the same floating-point numbers.
    """
    num_jobs, num_slots = plan.shape
    for j in range(num_jobs):
        before_deadline = 0.0  # credit by the deadline of the runs that have ended
        before_horizon = 0.0
        site = last_site[j]
        count = 0
        done_slot = num_slots
        s = 0
        while s < num_slots:
            mode = plan[j, s]
            if mode < 0:
                s += 1
                continue
            if s == 0 and mode == running_mode[j]:
                loss = loss_left_s[j]
            elif site < 0:
                loss = 0.0
            elif site != mode_site[mode]:
                loss = migration_s[j]
                count += 1
            else:
                loss = restart_s[j]
                count += 1
            site = mode_site[mode]
            start = boundaries[s]
            rate = mode_rate[mode]
            while s < num_slots and plan[j, s] == mode:
                if done_slot == num_slots:
                    earned = rate * max(0.0, boundaries[s + 1] - start - loss)
                    if earned > 0.0 and before_horizon + earned >= required[j]:
                        done_slot = s
                s += 1
            end = boundaries[s]
            before_horizon += rate * max(0.0, end - start - loss)
            if start < deadline[j]:
                before_deadline += rate * max(0.0, min(end, deadline[j]) - start - loss)
        last_slot[j] = done_slot
        credit_by_horizon[j] = before_horizon
        reconfigurations[j] = count
        if deadline[j] < 1e300:
            credit_by_deadline[j] = before_deadline
            met[j] = before_deadline >= required[j]
        else:
            credit_by_deadline[j] = 0.0
            met[j] = False
