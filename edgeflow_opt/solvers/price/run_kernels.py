"""Compiled kernels on single runs: all that a moldable job may have."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import kernel


@kernel
def first_loss(data: Any, j: int, s: int, m: int) -> float:
    """Return the seconds lost by a run of mode `m` that is the first since now and begins in `s`."""
    if s == 0 and m == data.jobs[j].running:
        return data.jobs[j].loss_left_s
    if data.jobs[j].last_site < 0:
        return 0.0
    if data.jobs[j].last_site != data.modes[m].site:
        return data.jobs[j].migration_s
    return data.jobs[j].restart_s


@kernel
def cheapest_run(
    data: Any, j: int, prices: Any, available: Any, work: float
) -> tuple[float, int, int, int]:
    """Return the cheapest single run that does `work` by the deadline, its losses included.

    Returns
    -------
    cost, mode, first, end
        The run holds `mode` in slots ``first : end``; cost = +inf where there is none.
    """
    best = np.inf
    best_mode = -1
    best_first = 0
    best_end = 0
    begin, stop = data.jobs[j].first, data.jobs[j].end
    for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
        k = data.modes[m].site
        units = data.modes[m].units
        # The running job of a moldable kind goes on from slot 0 or not at all.
        fixed = data.jobs[j].running >= 0 and not data.jobs[j].malleable
        last_start = min(stop, 1) if fixed else stop
        end = begin
        spent = 0.0
        for a in range(begin, last_start):
            if end < a:
                end = a
                spent = 0.0
            if data.modes[m].units > available[k, a]:
                end = a + 1
                spent = 0.0
                continue
            loss = first_loss(data, j, a, m)
            done = False
            while True:
                if end > a:
                    until = min(data.boundaries[end], data.jobs[j].deadline)
                    # The operations of the run-and-loss rule: a start plus a loss would be rounded
                    # to what the clock can tell.
                    if data.modes[m].rate * (until - data.boundaries[a] - loss) >= work:
                        done = True
                        break
                if end >= stop or units > available[k, end]:
                    break
                spent += prices[k, end] * units
                end += 1
            if done and spent < best:
                best, best_mode, best_first, best_end = spent, m, a, end
            if not done and end >= stop:
                break
            # The next start gives this slot back; ends never move to the left, unless losses
            # differ by start, which only makes a run one slot longer than it need be.
            spent = max(0.0, spent - prices[k, a] * units)
    return best, best_mode, best_first, best_end
