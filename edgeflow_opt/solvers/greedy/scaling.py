"""Kernels of step 3: elastic scaling, which hands out the cloud GPUs that are left over now.

Source: Gu et al., "ElasticFlow", ASPLOS 2023, Algorithm 2; step 3 of EdgeFlow (Gu, Jin, Liu, Journal
of Software 36(12), 2025).
"""

from __future__ import annotations

import math

from edgeflow_opt.solvers.greedy.cloud import most, plan_met
from edgeflow_opt.solvers.greedy.job_queue import FRONT, length, pop, precedes, push
from edgeflow_opt.solvers.greedy.plans import hold, now_mode, planned_site, replace
from edgeflow_opt.solvers.greedy.sketch import begin, extend
from edgeflow_opt.solvers.greedy.tables import (
    GIVE_BACK,
    SECOND_PIECE,
    TAKE_AGAIN,
    Desk,
    Lists,
    kernel,
)
from edgeflow_opt.solvers.greedy.timeline import cloud_free_now

#: Adding and taking away this rounds to multiples of 2^-10 GPU-seconds.
_COARSE = 1.5 * 2.0**42

#: Veltkamp's factor: leaves 21 of the 53 bits of a number.
_SPLIT = 2.0**32 + 1.0


@kernel
def _rounded(score: float) -> float:
    """Return `score` without what rounding may have made of it.

    Jobs of one model save the same time by the same step, whatever their work: the two sums of
    which a score is the difference are not the same, and their last digits would decide who is
    served, by the hour at which the clock began. To a thousandth of a GPU-second, or a part in two
    millions where that is more, scores are equal, and the order of the jobs decides.
    """
    score = (score + _COARSE) - _COARSE
    return _SPLIT * score - (_SPLIT * score - score)


@kernel
def _next_level(desk: Desk, j: int, held: int) -> int:
    """Return the next level that job j could hold now, given what is free, -1 = none."""
    modes, timeline = desk.modes, desk.timeline
    if held >= 0:
        site, units = modes.table[held].site, modes.table[held].units
        if not timeline.is_cloud[site]:
            return -1
        for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
            mode = modes.level_mode[at]
            if modes.table[mode].units > units:
                return mode if modes.table[mode].units - units <= timeline.free[site, 0] else -1
        return -1
    planned = planned_site(desk, j)
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k] or (planned >= 0 and k != planned):
            continue
        at = modes.level_start[j, k]
        if at < modes.level_start[j, k + 1]:
            mode = modes.level_mode[at]
            if modes.table[mode].units <= timeline.free[k, 0]:
                return mode
    return -1


@kernel
def more_now(desk: Desk, j: int) -> tuple[int, float]:
    """Draw the plan in which job j holds its next level in the first piece and its share later.

    Returns
    -------
    group, score
        Group 0 = holds nothing now, 1 = holds something, -1 = there is no such plan. Score = GPU
        time saved per GPU added (ElasticFlow, Algorithm 2). A job that is met stays met.
    """
    modes, timeline, plans, sketch = desk.modes, desk.timeline, desk.plans, desk.sketch
    held = now_mode(desk, j)
    mode = _next_level(desk, j, held)
    if mode < 0:
        return -1, 0.0
    site = modes.table[mode].site
    hold(desk, j, GIVE_BACK)
    begin(desk, j)
    if not extend(desk, j, mode, timeline.times[0], timeline.times[1], math.inf):
        done = plan_met(desk, j, SECOND_PIECE, site)
        if not done and not plans.table[j].met:
            most(desk, j, site, SECOND_PIECE, math.inf)
    hold(desk, j, TAKE_AGAIN)
    if plans.table[j].met and sketch.plan.completion > desk.jobs[j].deadline:
        return -1, 0.0
    extra = modes.table[mode].units - (modes.table[held].units if held >= 0 else 0)
    score = (plans.table[j].gpu_s - sketch.plan.gpu_s) / extra
    return (0 if held < 0 else 1), (_rounded(score) if math.isfinite(score) else -1e300)


@kernel
def scale(desk: Desk, lists: Lists, count: int) -> None:
    """Hand out the cloud GPUs left over now, one level at a time, to the first `count` in order.

    Jobs that hold nothing now come first, then the best score. Scores are computed anew when a job
    comes to the front, and it goes back into the queue where it is no longer the best: what others
    were given in the meantime lowers scores and never raises them by much.
    """
    jobs, queue, timeline = desk.jobs, lists.queue, desk.timeline
    for i in range(count):
        j = lists.order[i]
        if not cloud_free_now(timeline):
            break
        if jobs[j].first_piece > 0 or not jobs[j].malleable:
            continue
        if desk.rules.reserved_only and not desk.plans.table[j].met:
            continue
        group, score = more_now(desk, j)
        if group >= 0:
            push(queue, float(group), -score, j)
    # The job whose sketch is drawn, on the timeline as it is; -1 = none.
    drawn, group, score = -1, 0, 0.0
    while length(queue) > 0 and cloud_free_now(timeline):
        j = pop(queue)
        held = now_mode(desk, j)
        if j != drawn:
            group, score = more_now(desk, j)
            drawn = j
        if group < 0:
            continue
        if length(queue) > 0 and precedes(queue, FRONT, float(group), -score, j):
            push(queue, float(group), -score, j)
            continue
        replace(desk, j)
        drawn = -1
        if now_mode(desk, j) == held:
            # Too short to be kept: it would be offered the same level for ever.
            continue
        group, score = more_now(desk, j)
        drawn = j
        if group >= 0:
            push(queue, float(group), -score, j)
    queue[0].job = 0
