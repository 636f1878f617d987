"""Kernels that plan one job on the cloud: its size, the least it needs, the most it can get.

What meets a deadline is the minimum satisfactory share, of the first site that has one; a moldable
job gets one run in one mode instead.
"""

from __future__ import annotations

import math

from edgeflow_opt.solvers.greedy.plans import commit
from edgeflow_opt.solvers.greedy.share import (
    best_rate,
    capped_work,
    fits_window,
    share,
    survey,
)
from edgeflow_opt.solvers.greedy.sketch import begin, earliest_run, extend, unbroken
from edgeflow_opt.solvers.greedy.tables import FIRST_PIECE, NONE, Desk, kernel


@kernel
def size_of(desk: Desk, j: int) -> float:
    """Return the GPU-seconds of job j per weight, at its least cloud level that would do alone.

    That is the least one that meets the deadline, or the very least where none does; +inf without a
    cloud level, or without weight.
    """
    jobs, modes, timeline = desk.jobs, desk.modes, desk.timeline
    piece = jobs[j].first_piece
    if piece >= timeline.state.size or jobs[j].weight <= 0.0:
        return math.inf
    least = math.inf
    window = jobs[j].deadline - timeline.times[piece]
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k]:
            continue
        for at in range(modes.level_start[j, k], modes.level_start[j, k + 1]):
            mode = modes.level_mode[at]
            seconds = jobs[j].work / modes.table[mode].rate
            if least == math.inf or seconds <= window:
                least = modes.table[mode].gpus * seconds
            if seconds <= window:
                return least / jobs[j].weight
    return least / jobs[j].weight


@kernel
def too_late(desk: Desk, j: int) -> bool:
    """Whether the deadline of job j is over before it may begin: nothing can be planned by it."""
    piece = desk.jobs[j].first_piece
    return piece >= desk.timeline.state.size or desk.jobs[j].deadline <= desk.timeline.times[piece]


@kernel
def surely_late(desk: Desk, j: int) -> bool:
    """Whether job j misses even if it has the whole cloud from now on, by far more than rounding."""
    timeline = desk.timeline
    window = desk.jobs[j].deadline - timeline.times[0]
    window += 1e-6 * max(1.0, abs(window))
    best = 0.0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k]:
            best = max(best, best_rate(desk.modes, j, k))
    return window <= 0.0 or not fits_window(best, window, desk.jobs[j].work)


@kernel
def cloud_site(desk: Desk, turn: int) -> int:
    """Return the cloud site to be tried for the sketch in a given turn, -1 = none in this turn.

    First the site where the job was last, then all others in their order.
    """
    own, is_cloud = desk.sketch.plan.site, desk.timeline.is_cloud
    if own >= 0 and not is_cloud[own]:
        own = -1
    if turn == 0:
        return own
    site = turn - 1
    return site if is_cloud[site] and site != own else -1


@kernel
def plan_met(desk: Desk, j: int, first: int, only: int) -> bool:
    """Extend the sketch by the least cloud share that meets the deadline, on the first site with one.

    Aims the slack before the deadline, then at the deadline. The one site `only` is tried; -1 = all.
    Returns whether it is met; if not, the sketch of a malleable job is as it was, that of a moldable
    one empty.
    """
    deadline, slack_s = desk.jobs[j].deadline, desk.rules.slack_s
    for aim in range(2):
        if aim == 0 and slack_s <= 0.0:
            continue
        target = deadline - slack_s if aim == 0 else deadline
        for turn in range(desk.timeline.free.shape[0] + 1):
            site = cloud_site(desk, turn)
            if site < 0 or (only >= 0 and site != only):
                continue
            if not desk.jobs[j].malleable:
                if rigid(desk, j, site, target):
                    return True
                begin(desk, j)
            elif share(desk, j, site, first, target):
                return True
    return False


@kernel
def to_cloud(desk: Desk, j: int) -> bool:
    """Plan job j, which has no plan, on the cloud if it can be met there; return whether."""
    begin(desk, j)
    if not plan_met(desk, j, desk.jobs[j].first_piece, NONE):
        return False
    commit(desk, j)
    return True


@kernel
def plan_late(desk: Desk, j: int, first: int) -> None:
    """Extend the sketch by the most that a job which cannot be met can get of one cloud site.

    The site that does most of the work by the deadline; of equals, the first with GPUs free at
    once. A moldable job gets the run that ends first.
    """
    modes, timeline, sketch = desk.modes, desk.timeline, desk.sketch
    if not desk.jobs[j].malleable:
        _rigid_late(desk, j)
        return
    size, sites = timeline.state.size, timeline.free.shape[0]
    if first >= size:
        return
    best, best_work, best_now = NONE, -1.0, False
    candidates = 0
    for k in range(sites):
        if timeline.is_cloud[k] and modes.level_start[j, k] < modes.level_start[j, k + 1]:
            candidates += 1
            best = k
    # With one candidate there is nothing to compare.
    for turn in range(sites + 1 if candidates > 1 else 0):
        site = cloud_site(desk, turn)
        if site < 0:
            continue
        levels = survey(desk, j, site, first, size, desk.jobs[j].deadline)
        if levels == 0:
            continue
        work = capped_work(sketch, levels, levels - 1)
        now = sketch.level[first] >= 0
        if work > best_work or (work == best_work and now and not best_now):
            best, best_work, best_now = site, work, now
    if best >= 0:
        most(desk, j, best, first, math.inf)


@kernel
def most(desk: Desk, j: int, site: int, first: int, limit: float) -> bool:
    """Extend the sketch by the most GPUs that are free on `site` until done or `limit`.

    Returns whether it is done.
    """
    modes, timeline = desk.modes, desk.timeline
    size = timeline.state.size
    if first >= size or timeline.times[first] >= limit:
        return False
    low = modes.level_start[j, site]
    levels = modes.level_start[j, site + 1] - low
    if levels == 0:
        return False
    times, free = timeline.times, timeline.free[site]
    held, since, now = -1, times[first], times[first]
    s, i = first, levels - 1
    done = False
    while s < size and now < limit and not done:
        while i >= 0 and modes.table[modes.level_mode[low + i]].units > free[s]:
            i -= 1
        while i + 1 < levels and modes.table[modes.level_mode[low + i + 1]].units <= free[s]:
            i += 1
        if i != held:
            if held >= 0 and extend(desk, j, modes.level_mode[low + held], since, now, limit):
                return True
            held, since = i, now
        if i < 0:
            desk.sketch.plan.mode = -1
        else:
            # If it is done within this piece, what is beyond need not be looked at.
            done = _lasts(desk, j, modes.level_mode[low + i], since, s, limit)
        now = times[s + 1] if timeline.state.snap else min(times[s + 1], limit)
        s += 1
    return held >= 0 and extend(desk, j, modes.level_mode[low + held], since, now, limit)


@kernel
def _lasts(desk: Desk, j: int, mode: int, since: float, piece: int, limit: float) -> bool:
    """Whether job j is done before the end of `piece` if it holds `mode` from `since` on.

    May be false where it is true. Where it is true the end of the piece has no influence.
    """
    plan = desk.sketch.plan
    loss = 0.0
    if mode == plan.mode:
        loss = plan.loss
    elif plan.site >= 0:
        loss = max(desk.jobs[j].restart_s, desk.jobs[j].migration_s)
    rate, left = desk.modes.table[mode].rate, plan.left
    stop = min(desk.timeline.times[piece + 1], limit)
    return since + loss + left / rate < stop and rate * (stop - since - loss) >= left


@kernel
def rigid(desk: Desk, j: int, site: int, limit: float) -> bool:
    """Begin the sketch of a moldable job with its one run on `site`, done by `limit`.

    The least level that can be done in time, at its earliest start; if it runs already, only its
    own mode from now on. Returns whether it is done; if not, the sketch is void.
    """
    modes, running = desk.modes, desk.jobs[j].run_mode
    if running >= 0:
        begin(desk, j)
        return modes.table[running].site == site and unbroken(desk, j, running, FIRST_PIECE, limit)
    for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
        if earliest_run(desk, j, modes.level_mode[at], limit):
            return True
    return False


@kernel
def _rigid_late(desk: Desk, j: int) -> None:
    """Begin the sketch of a moldable job with the run on the first cloud site that completes it.

    If it runs already, it goes on for as long as it can.
    """
    begin(desk, j)
    running = desk.jobs[j].run_mode
    if running >= 0:
        unbroken(desk, j, running, FIRST_PIECE, math.inf)
        return
    for turn in range(desk.timeline.free.shape[0] + 1):
        site = cloud_site(desk, turn)
        if site >= 0 and rigid(desk, j, site, math.inf):
            return
    begin(desk, j)
