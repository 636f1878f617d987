"""Kernels of step 1: minimum shares for all jobs on the cloud, by deadline.

Source: Gu, Jin, Liu, Journal of Software 36(12), 2025, step 1; ElasticFlow (Gu et al., ASPLOS 2023),
Algorithm 1.
"""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.problem.arrays import IntArray
from edgeflow_opt.solvers.greedy.cloud import plan_late, plan_met
from edgeflow_opt.solvers.greedy.plans import replace
from edgeflow_opt.solvers.greedy.sketch import load
from edgeflow_opt.solvers.greedy.tables import NONE, Desk, kernel
from edgeflow_opt.solvers.greedy.timeline import cloud_free_now

# Codes of the option `late`, see CHOICES.
LATE_FIRST, LATE_LAST, LATE_NOTHING = 0, 1, 2

# When minimum shares may stop, see `minimum_shares`; numbers of numpy, as arguments of kernels.
ALWAYS, FULL, MISSED = np.int64(0), np.int64(1), np.int64(2)


@kernel
def minimum_shares(
    desk: Desk, order: IntArray, count: int, until: int, waiting: IntArray
) -> tuple[int, int]:
    """Give the first `count` jobs of `order` their least shares.

    A job that has a plan already goes on after its end, unless that completes it. A job that cannot
    be met gets the most that it can, in its turn or after all others or not at all, as
    `rules.late` says. `until` says when the rest is of no interest: a sum of :data:`FULL` (no cloud
    GPU is left now) and :data:`MISSED` (some job will miss); all that is in the sum must have
    happened, 0 = never. `waiting` is work space of the length of `order`.

    Returns
    -------
    misses, done
        How many jobs will miss, and how many of the first in `order` have been looked at.
    """
    misses = 0
    num_waiting = 0
    for i in range(count):
        if _enough(desk, until, misses):
            return misses, i
        j = order[i]
        if desk.plans.table[j].completion < math.inf:
            continue
        piece = load(desk, j)
        if desk.plans.table[j].segments > 0 and not desk.jobs[j].malleable:
            misses += 1
        elif plan_met(desk, j, piece, NONE):
            replace(desk, j)
        else:
            misses += 1
            if desk.rules.late == LATE_FIRST:
                plan_late(desk, j, piece)
                replace(desk, j)
            elif desk.rules.late == LATE_LAST:
                waiting[num_waiting] = j
                num_waiting += 1
    for i in range(num_waiting):
        if _enough(desk, until, misses):
            break
        piece = load(desk, waiting[i])
        plan_late(desk, waiting[i], piece)
        replace(desk, waiting[i])
    return misses, count


@kernel
def _enough(desk: Desk, until: int, misses: int) -> bool:
    """Whether all that `until` names has happened."""
    if until == 0:
        return False
    if until & MISSED != 0 and misses == 0:
        return False
    return until & FULL == 0 or not cloud_free_now(desk.timeline)
