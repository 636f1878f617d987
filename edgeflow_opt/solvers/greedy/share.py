"""Kernels of the minimum satisfactory share: the least level that meets a deadline on one site.

Source: Gu et al., "ElasticFlow", ASPLOS 2023, Algorithm 1, as its published code refines it. Step 1
of EdgeFlow (Gu, Jin, Liu, Journal of Software 36(12), 2025) plans the cloud by it.
"""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.solvers.greedy.sketch import CREDIT_TOLERANCE, extend, mark, rewind
from edgeflow_opt.solvers.greedy.tables import (
    NONE,
    Desk,
    Modes,
    Sketch,
    Timeline,
    kernel,
    written_out,
)
from edgeflow_opt.solvers.greedy.timeline import locate

#: How often a share that misses for its losses is planned again with more work.
RETRIES = 4


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
def survey(desk: Desk, j: int, site: int, first: int, last: int, limit: float) -> int:
    """Note for pieces ``first : last`` the highest level of job j that is free; return the levels.

    Also notes for each level for how many seconds before `limit` it is the highest.
    """
    modes, sketch = desk.modes, desk.sketch
    low, high = modes.level_start[j, site], modes.level_start[j, site + 1]
    levels = high - low
    for i in range(levels):
        mode = modes.level_mode[low + i]
        sketch.levels[i].rate = modes.table[mode].rate
        sketch.levels[i].units = modes.table[mode].units
        sketch.levels[i].span = 0.0
    if levels == 0:
        return 0
    times, free = desk.timeline.times, desk.timeline.free[site]
    i = levels - 1
    for s in range(first, last):
        # An unsigned index is known not to count from the end, which need not be checked.
        room = free[np.uintp(s)]
        while i >= 0 and sketch.levels[np.uintp(i)].units > room:
            i -= 1
        while i + 1 < levels and sketch.levels[np.uintp(i + 1)].units <= room:
            i += 1
        sketch.level[np.uintp(s)] = i
        if i >= 0:
            span = min(times[np.uintp(s + 1)], limit) - times[np.uintp(s)]
            sketch.levels[np.uintp(i)].span += max(0.0, span)
    return levels


@kernel
def capped_work(sketch: Sketch, levels: int, cap: int) -> float:
    """Return the iterations that all time surveyed yields with at most level `cap`."""
    total = 0.0
    for i in range(levels):
        total += sketch.levels[i].span * sketch.levels[min(i, cap)].rate
    return total


@written_out
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


@written_out
def run_levels(
    desk: Desk, j: int, site: int, first: int, split: float, low: int, high: int, limit: float
) -> bool:
    """Hold at most level `low` before `split` and at most level `high` from then on, until done.

    The pieces from `first` to `limit` have been surveyed. Returns whether it is done by `limit`.
    """
    timeline, sketch, modes = desk.timeline, desk.sketch, desk.modes
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
            if held >= 0 and extend(desk, j, modes.level_mode[base + held], since, now, limit):
                return True
            held, since = i, now
        if i < 0:
            sketch.plan.mode = -1
        now = until
        if now >= times[s + 1]:
            s += 1
    return held >= 0 and extend(desk, j, modes.level_mode[base + held], since, now, limit)


@written_out
def share(desk: Desk, j: int, site: int, first: int, deadline: float) -> bool:
    """Extend the sketch by the minimum satisfactory share on `site` from piece `first` on.

    The first level q with which the work fits before the deadline is the share, held until the
    work is done. With `rules.two_level` the next lower level is held until the latest time p from
    which level q does all the work, and level q from p on. Where losses make that miss, it is tried
    again with more work, then without anything before p, then with level q from the beginning; then
    it is the turn of the next level.

    Returns whether the job is met; if not, the sketch is as it was.
    """
    timeline, sketch, two_level = desk.timeline, desk.sketch, desk.rules.two_level
    size = timeline.state.size
    if first >= size or timeline.times[first] >= deadline:
        return False
    seconds = deadline - timeline.times[first]
    if not fits_window(best_rate(desk.modes, j, site), seconds, sketch.plan.left):
        return False
    last = locate(timeline, deadline)
    if last < size and timeline.times[last] < deadline:
        last += 1
    if not two_level:
        done, decided = _roomy_share(desk, j, site, first, last, deadline)
        if decided:
            return done
    levels = survey(desk, j, site, first, last, deadline)
    before = mark(sketch)
    left = before.left
    lossy = desk.jobs[j].restart_s > 0.0 or desk.jobs[j].migration_s > 0.0 or before.loss > 0.0
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
                if split <= timeline.times[first] + desk.rules.resolution_s:
                    split = timeline.times[first]
            if run_levels(desk, j, site, first, split, low, q, deadline):
                return True
            work += sketch.plan.left * (1.0 + 1e-6)
            rewind(sketch, before)
    return False


@written_out
def _roomy_share(
    desk: Desk, j: int, site: int, first: int, last: int, deadline: float
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
    timeline, modes, sketch = desk.timeline, desk.modes, desk.sketch
    times, free = timeline.times, timeline.free[site]
    room = free[first]
    for s in range(first + 1, last):
        # An unsigned index is known not to count from the end: the loop is vectorised.
        room = min(room, free[np.uintp(s)])
    before = mark(sketch)
    until = times[last] if timeline.state.snap else min(times[last], deadline)
    seconds = min(times[last], deadline) - times[first]
    for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
        level = modes.level_mode[at]
        if modes.table[level].units > room:
            return False, False
        if modes.table[level].rate * seconds < before.left * (1.0 - CREDIT_TOLERANCE):
            continue
        if extend(desk, j, level, times[first], until, deadline):
            return True, True
        # Losses: it is tried in other shapes before the next level.
        rewind(sketch, before)
        return False, False
    return False, True
