"""Kernels that plan one job: the least share, the most it can get, one rigid run, an edge run.

Every plan is drawn into the sketch: `begin` it, let one or more of the planners extend it, and
commit it. The planners read the timeline and never change it. Credit follows the run-and-loss rule.
"""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.solvers.greedy.tables import (
    FIRST_PIECE,
    NONE,
    Modes,
    Plans,
    Record,
    Records,
    Sketch,
    Timeline,
    kernel,
)
from edgeflow_opt.solvers.greedy.timeline import locate

#: Credit that may be missing at completion, relative to the work; far below the planning margin.
CREDIT_TOLERANCE = 1e-10

#: How often a share that misses for its losses is planned again with more work.
RETRIES = 4


@kernel
def begin(sketch: Sketch, jobs: Records, j: int) -> None:
    """Start an empty sketch for job j as it stands now."""
    sketch.plan.segments = 0
    sketch.plan.completion = math.inf
    sketch.plan.gpu_s = 0.0
    sketch.plan.left = jobs[j].work
    sketch.plan.loss = jobs[j].loss_left_s
    sketch.plan.mode = jobs[j].run_mode
    sketch.plan.site = jobs[j].last_site


@kernel
def emit(sketch: Sketch, mode: int, start: float, end: float) -> None:
    """Append a segment, or lengthen the last one where it goes on."""
    last = sketch.plan.segments - 1
    if last >= 0 and sketch.pool[last].mode == mode and sketch.pool[last].end == start:
        sketch.pool[last].end = end
        return
    sketch.pool[last + 1].start = start
    sketch.pool[last + 1].end = end
    sketch.pool[last + 1].mode = mode
    sketch.plan.segments = last + 2


@kernel
def extend(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    mode: int,
    start: float,
    end: float,
    limit: float,
) -> bool:
    """Let job j hold `mode` from `start` to `end`; return whether that completes it by `limit`.

    The segment then ends with the completion, with `snap` at the end of that slot.
    """
    if mode != sketch.plan.mode:
        if sketch.plan.site < 0:
            sketch.plan.loss = 0.0
        elif sketch.plan.site != modes.table[mode].site:
            sketch.plan.loss = jobs[j].migration_s
        else:
            sketch.plan.loss = jobs[j].restart_s
        sketch.plan.mode = mode
        sketch.plan.site = modes.table[mode].site
    rate, loss, left = modes.table[mode].rate, sketch.plan.loss, sketch.plan.left
    stop = min(end, limit)
    useful = stop - start - loss
    if useful > 0.0 and rate * useful >= left - CREDIT_TOLERANCE * jobs[j].work:
        finish = min(stop, start + loss + left / rate)
        end = finish
        if timeline.state.snap:
            piece = locate(timeline, finish)
            end = timeline.times[piece]
            if end < finish:
                end = timeline.times[piece + 1]
        emit(sketch, mode, start, end)
        sketch.plan.completion = finish
        sketch.plan.gpu_s += modes.table[mode].gpus * (finish - start)
        sketch.plan.left = 0.0
        return True
    if useful > 0.0:
        sketch.plan.left = left - rate * useful
    sketch.plan.loss = max(0.0, loss - (end - start))
    sketch.plan.gpu_s += modes.table[mode].gpus * (end - start)
    emit(sketch, mode, start, end)
    return False


@kernel
def survey(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    first: int,
    last: int,
    limit: float,
) -> int:
    """Note for pieces ``first : last`` the highest level of job j that is free; return the levels.

    Also notes for each level for how many seconds before `limit` it is the highest.
    """
    low, high = modes.level_start[j, site], modes.level_start[j, site + 1]
    levels = high - low
    for i in range(levels):
        mode = modes.level_mode[low + i]
        sketch.levels[i].rate = modes.table[mode].rate
        sketch.levels[i].units = modes.table[mode].units
        sketch.levels[i].span = 0.0
    if levels == 0:
        return 0
    times, free = timeline.times, timeline.free[site]
    i = levels - 1
    for s in range(first, last):
        while i >= 0 and sketch.levels[i].units > free[s]:
            i -= 1
        while i + 1 < levels and sketch.levels[i + 1].units <= free[s]:
            i += 1
        sketch.level[s] = i
        if i >= 0:
            sketch.levels[i].span += max(0.0, min(times[s + 1], limit) - times[s])
    return levels


@kernel
def capped_work(sketch: Sketch, levels: int, cap: int) -> float:
    """Return the iterations that all time surveyed yields with at most level `cap`."""
    total = 0.0
    for i in range(levels):
        total += sketch.levels[i].span * sketch.levels[min(i, cap)].rate
    return total


@kernel
def best_rate(modes: Modes, j: int, site: int) -> float:
    """Return the highest rate of the levels of job j on `site`, 0 = there is none."""
    best = 0.0
    for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
        best = max(best, modes.table[modes.level_mode[at]].rate)
    return best


@kernel
def fits_window(rate: float, seconds: float, work: float) -> bool:
    """Whether `rate` could do `work` in `seconds`; no where no rounding can make it so."""
    return rate * seconds * (1.0 + 1e-9) >= work * (1.0 - CREDIT_TOLERANCE)


@kernel
def latest_start(
    sketch: Sketch, timeline: Timeline, first: int, last: int, cap: int, work: float, limit: float
) -> float:
    """Return the latest time from which at most level `cap` does `work` by `limit`.

    -inf if there is none. With `snap` it is moved forward to the beginning of its slot.
    """
    times = timeline.times
    for s in range(last - 1, first - 1, -1):
        i = min(cap, sketch.level[s])
        if i < 0:
            continue
        length = min(times[s + 1], limit) - times[s]
        work_here = sketch.levels[i].rate * length
        if work_here >= work:
            if timeline.state.snap:
                return times[s]
            return max(times[s], times[s] + length - work / sketch.levels[i].rate)
        work -= work_here
    return -math.inf


@kernel
def run_levels(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    first: int,
    split: float,
    low: int,
    high: int,
    limit: float,
) -> bool:
    """Hold at most level `low` before `split` and at most level `high` from then on, until done.

    The pieces from `first` to `limit` have been surveyed. Returns whether it is done by `limit`.
    """
    times, size = timeline.times, timeline.state.size
    base = modes.level_start[j, site]
    s, now = first, times[first]
    held, since = -1, now
    while s < size and now < limit:
        until, cap = times[s + 1], high
        if now < split:
            cap = low
            until = min(until, split)
        if not timeline.state.snap:
            until = min(until, limit)
        i = min(cap, sketch.level[s])
        if i != held:
            if held >= 0:
                mode = modes.level_mode[base + held]
                if extend(sketch, timeline, jobs, modes, j, mode, since, now, limit):
                    return True
            held, since = i, now
        if i < 0:
            sketch.plan.mode = -1
        now = until
        if now >= times[s + 1]:
            s += 1
    if held < 0:
        return False
    mode = modes.level_mode[base + held]
    return extend(sketch, timeline, jobs, modes, j, mode, since, now, limit)


@kernel
def share(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    first: int,
    deadline: float,
    two_level: bool,
) -> bool:
    """Extend the sketch by the minimum satisfactory share on `site` from piece `first` on.

    The first level q with which the work fits before the deadline is the share, held until the
    work is done. `two_level` plans hold the next lower level until the latest time p from which
    level q does all the work, and level q from p on. Where losses make that miss, it is tried again
    with more work, then without anything before p, then with level q from the beginning; then it
    is the turn of the next level.

    Returns whether the job is met; if not, the sketch is as it was.
    """
    size = timeline.state.size
    if first >= size or timeline.times[first] >= deadline:
        return False
    if not fits_window(
        best_rate(modes, j, site), deadline - timeline.times[first], sketch.plan.left
    ):
        return False
    last = locate(timeline, deadline)
    if last < size and timeline.times[last] < deadline:
        last += 1
    if not two_level:
        done, decided = _roomy_share(sketch, timeline, jobs, modes, j, site, first, last, deadline)
        if decided:
            return done
    levels = survey(sketch, timeline, jobs, modes, j, site, first, last, deadline)
    count, gpu_s = sketch.plan.segments, sketch.plan.gpu_s
    left, loss = sketch.plan.left, sketch.plan.loss
    mode, last_site = sketch.plan.mode, sketch.plan.site
    last_end = sketch.pool[count - 1].end if count > 0 else 0.0
    lossy = jobs[j].restart_s > 0.0 or jobs[j].migration_s > 0.0 or loss > 0.0
    for q in range(levels):
        if capped_work(sketch, levels, q) < left * (1.0 - CREDIT_TOLERANCE):
            continue
        work = left
        low = q - 1 if two_level else q
        for attempt in range(2 * RETRIES + 1):
            if attempt == RETRIES or (low == q and attempt == 1):
                # What comes before p may cost a restart: do without.
                work, low = left, NONE
            split = timeline.times[first]
            if low < q and attempt < 2 * RETRIES:
                split = latest_start(sketch, timeline, first, last, q, work, deadline)
                if split == -math.inf:
                    if not lossy:
                        break
                    continue
            if run_levels(sketch, timeline, jobs, modes, j, site, first, split, low, q, deadline):
                return True
            missing = sketch.plan.left
            sketch.plan.segments = count
            if count > 0:
                sketch.pool[count - 1].end = last_end
            sketch.plan.gpu_s = gpu_s
            sketch.plan.left, sketch.plan.loss = left, loss
            sketch.plan.mode, sketch.plan.site = mode, last_site
            work += missing * (1.0 + 1e-6)
    return False


@kernel
def _roomy_share(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    first: int,
    last: int,
    deadline: float,
) -> tuple[bool, bool]:
    """Try the levels for which there is room all the time, without a look at every piece.

    Such a level is the highest that is held all the time, and its plan one run: what :func:`share`
    would find with the survey, in its order of levels.

    Returns
    -------
    done, decided
        Whether the sketch has been extended by the share, and whether :func:`share` has nothing left
        to try. Where that is open, the sketch is as it was.
    """
    times, free = timeline.times, timeline.free[site]
    room = free[first]
    for s in range(first + 1, last):
        # An unsigned index is known not to count from the end: the loop is vectorised.
        room = min(room, free[np.uintp(s)])
    count, gpu_s = sketch.plan.segments, sketch.plan.gpu_s
    left, loss = sketch.plan.left, sketch.plan.loss
    mode, last_site = sketch.plan.mode, sketch.plan.site
    last_end = sketch.pool[count - 1].end if count > 0 else 0.0
    until = times[last] if timeline.state.snap else min(times[last], deadline)
    seconds = min(times[last], deadline) - times[first]
    for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
        level = modes.level_mode[at]
        if modes.table[level].units > room:
            return False, False
        if modes.table[level].rate * seconds < left * (1.0 - CREDIT_TOLERANCE):
            continue
        if extend(sketch, timeline, jobs, modes, j, level, times[first], until, deadline):
            return True, True
        # Losses: it is tried in other shapes before the next level.
        sketch.plan.segments = count
        if count > 0:
            sketch.pool[count - 1].end = last_end
        sketch.plan.gpu_s = gpu_s
        sketch.plan.left, sketch.plan.loss = left, loss
        sketch.plan.mode, sketch.plan.site = mode, last_site
        return False, False
    return False, True


@kernel
def most(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    first: int,
    limit: float,
) -> bool:
    """Extend the sketch by the most GPUs that are free on `site` until done or `limit`.

    Returns whether it is done.
    """
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
    while s < size and now < limit:
        while i >= 0 and modes.table[modes.level_mode[low + i]].units > free[s]:
            i -= 1
        while i + 1 < levels and modes.table[modes.level_mode[low + i + 1]].units <= free[s]:
            i += 1
        if i != held:
            if held >= 0:
                mode = modes.level_mode[low + held]
                if extend(sketch, timeline, jobs, modes, j, mode, since, now, limit):
                    return True
            held, since = i, now
        if i < 0:
            sketch.plan.mode = -1
        elif _lasts(sketch, timeline, jobs, modes, j, modes.level_mode[low + i], since, s, limit):
            # It is done within this piece; what is beyond need not be looked at.
            now = times[s + 1] if timeline.state.snap else min(times[s + 1], limit)
            break
        now = times[s + 1] if timeline.state.snap else min(times[s + 1], limit)
        s += 1
    if held < 0:
        return False
    return extend(sketch, timeline, jobs, modes, j, modes.level_mode[low + held], since, now, limit)


@kernel
def _lasts(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    mode: int,
    since: float,
    piece: int,
    limit: float,
) -> bool:
    """Whether job j is done before the end of `piece` if it holds `mode` from `since` on.

    May be false where it is true. Where it is true the end of the piece has no influence.
    """
    loss = 0.0
    if mode == sketch.plan.mode:
        loss = sketch.plan.loss
    elif sketch.plan.site >= 0:
        loss = max(jobs[j].restart_s, jobs[j].migration_s)
    rate, left = modes.table[mode].rate, sketch.plan.left
    stop = min(timeline.times[piece + 1], limit)
    return since + loss + left / rate < stop and rate * (stop - since - loss) >= left


@kernel
def unbroken(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    mode: int,
    first: int,
    limit: float,
) -> bool:
    """Extend the sketch by one run in `mode` from piece `first` until done, blocked or `limit`.

    Returns whether it is done by `limit`.
    """
    times, free = timeline.times, timeline.free[modes.table[mode].site]
    last = first
    while (
        last < timeline.state.size and free[last] >= modes.table[mode].units and times[last] < limit
    ):
        last += 1
    if last == first:
        return False
    end = times[last] if timeline.state.snap else min(times[last], limit)
    return extend(sketch, timeline, jobs, modes, j, mode, times[first], end, limit)


@kernel
def rigid(
    sketch: Sketch, timeline: Timeline, jobs: Records, modes: Modes, j: int, site: int, limit: float
) -> bool:
    """Begin the sketch of a moldable job with its one run on `site`, done by `limit`.

    The least level that can be done in time, at its earliest start; if it runs already, only its
    own mode from now on. Returns whether it is done; if not, the sketch is void.
    """
    first, size = jobs[j].first_piece, timeline.state.size
    running = jobs[j].run_mode
    begin(sketch, jobs, j)
    if running >= 0:
        if modes.table[running].site != site:
            return False
        return unbroken(sketch, timeline, jobs, modes, j, running, FIRST_PIECE, limit)
    for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
        mode = modes.level_mode[at]
        s = first
        while s < size and timeline.times[s] < limit:
            if timeline.free[site, s] < modes.table[mode].units:
                s += 1
                continue
            begin(sketch, jobs, j)
            if s > 0:
                sketch.plan.mode = -1
            if unbroken(sketch, timeline, jobs, modes, j, mode, s, limit):
                return True
            # The stretch is too short: go on behind it.
            while s < size and timeline.free[site, s] >= modes.table[mode].units:
                s += 1
    return False


@kernel
def cloud_site(timeline: Timeline, sketch: Sketch, turn: int) -> int:
    """Return the cloud site to be tried in a given turn, -1 = none in this turn.

    First the site where the job was last, then all others in their order.
    """
    own = sketch.plan.site
    if own >= 0 and not timeline.is_cloud[own]:
        own = -1
    if turn == 0:
        return own
    site = turn - 1
    return site if timeline.is_cloud[site] and site != own else -1


@kernel
def plan_met(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    first: int,
    rules: Record,
) -> bool:
    """Extend the sketch by the least cloud share that meets the deadline, on the first site with one.

    Aims the slack before the deadline, then at the deadline. Returns whether it is met; if not,
    the sketch of a malleable job is as it was, that of a moldable one void.
    """
    deadline = jobs[j].deadline
    for aim in range(2):
        if aim == 0 and rules.slack_s <= 0.0:
            continue
        target = deadline - rules.slack_s if aim == 0 else deadline
        for turn in range(timeline.free.shape[0] + 1):
            site = cloud_site(timeline, sketch, turn)
            if site < 0:
                continue
            if not jobs[j].malleable:
                if rigid(sketch, timeline, jobs, modes, j, site, target):
                    return True
                begin(sketch, jobs, j)
            elif share(sketch, timeline, jobs, modes, j, site, first, target, rules.two_level):
                return True
    return False


@kernel
def plan_late(
    sketch: Sketch, timeline: Timeline, jobs: Records, modes: Modes, j: int, first: int
) -> None:
    """Extend the sketch by the most that a job which cannot be met can get of one cloud site.

    The site that does most of the work by the deadline; of equals, the first with GPUs free at
    once. A moldable job gets the run that ends first.
    """
    size = timeline.state.size
    if not jobs[j].malleable:
        _rigid_late(sketch, timeline, jobs, modes, j)
        return
    if first >= size:
        return
    best, best_work, best_now = NONE, -1.0, False
    deadline = jobs[j].deadline
    candidates = 0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k] and modes.level_start[j, k] < modes.level_start[j, k + 1]:
            candidates += 1
            best = k
    if candidates == 1:
        # There is nothing to compare.
        most(sketch, timeline, jobs, modes, j, best, first, math.inf)
        return
    best = NONE
    for turn in range(timeline.free.shape[0] + 1):
        site = cloud_site(timeline, sketch, turn)
        if site < 0:
            continue
        levels = survey(sketch, timeline, jobs, modes, j, site, first, size, deadline)
        if levels == 0:
            continue
        work = capped_work(sketch, levels, levels - 1)
        now = sketch.level[first] >= 0
        if work > best_work or (work == best_work and now and not best_now):
            best, best_work, best_now = site, work, now
    if best >= 0:
        most(sketch, timeline, jobs, modes, j, best, first, math.inf)


@kernel
def _rigid_late(sketch: Sketch, timeline: Timeline, jobs: Records, modes: Modes, j: int) -> None:
    """Begin the sketch of a moldable job with the run on the first cloud site that completes it.

    If it runs already, it goes on for as long as it can.
    """
    begin(sketch, jobs, j)
    running = jobs[j].run_mode
    if running >= 0:
        unbroken(sketch, timeline, jobs, modes, j, running, FIRST_PIECE, math.inf)
        return
    for turn in range(timeline.free.shape[0] + 1):
        site = cloud_site(timeline, sketch, turn)
        if site >= 0 and rigid(sketch, timeline, jobs, modes, j, site, math.inf):
            return
    begin(sketch, jobs, j)


@kernel
def load(
    sketch: Sketch, timeline: Timeline, plans: Plans, jobs: Records, modes: Modes, j: int
) -> int:
    """Start the sketch of job j with the segments of its plan; return the piece after them."""
    begin(sketch, jobs, j)
    end = timeline.times[0]
    for i in range(plans.table[j].first, plans.table[j].first + plans.table[j].segments):
        if end < plans.pool[i].start:
            sketch.plan.mode = -1
        end = plans.pool[i].end
        if extend(
            sketch, timeline, jobs, modes, j, plans.pool[i].mode, plans.pool[i].start, end, math.inf
        ):
            break
    if plans.table[j].segments == 0:
        return jobs[j].first_piece
    return locate(timeline, end)
