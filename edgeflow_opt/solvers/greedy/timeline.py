"""Kernels on the timeline of free units and on the pool of plans."""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.solvers.greedy.tables import GIVE_BACK, Modes, Plans, Sketch, Timeline, kernel

#: Points in time closer than this, relative to their magnitude (at least 1 s), are one.
TIME_TOLERANCE = 1e-10


@kernel
def locate(timeline: Timeline, time: float) -> int:
    """Return the last piece that begins at or before `time`; `size` at or after the end."""
    size = timeline.state.size
    if time >= timeline.times[size]:
        return size
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if timeline.times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def cut(timeline: Timeline, time: float) -> int:
    """Return the piece that begins at `time`, splitting one if need be (never with `snap`)."""
    at = locate(timeline, time)
    times, free, size = timeline.times, timeline.free, timeline.state.size
    if at == size:
        return at
    tolerance = TIME_TOLERANCE * max(1.0, abs(time))
    if time - times[at] <= tolerance:
        return at
    if timeline.state.snap or times[at + 1] - time <= tolerance:
        return at + 1
    if size + 2 > len(times):
        timeline.state.overflow = True
        return at
    # Unsigned indices are known not to count from the end: the loops are vectorised.
    for s in range(size + 1, at + 1, -1):
        times[np.uintp(s)] = times[np.uintp(s - 1)]
    times[at + 1] = time
    for k in range(free.shape[0]):
        row = free[k]
        for s in range(size, at, -1):
            row[np.uintp(s)] = row[np.uintp(s - 1)]
    timeline.state.size = size + 1
    return at + 1


@kernel
def change(timeline: Timeline, site: int, start: float, end: float, units: int) -> None:
    """Add `units` to what is free on `site` from `start` to `end`, which are breakpoints."""
    row = timeline.free[site]
    for s in range(locate(timeline, start), locate(timeline, end)):
        row[np.uintp(s)] += units


@kernel
def commit(
    timeline: Timeline, modes: Modes, plans: Plans, sketch: Sketch, j: int, by: float
) -> None:
    """Make the sketch the plan of job j, which has none: take the units and store the segments."""
    used = plans.state.used
    count = sketch.plan.segments
    if used + count > len(plans.pool):
        timeline.state.overflow = True
        count = 0
    plans.table[j].first = used
    for i in range(count):
        first = cut(timeline, sketch.pool[i].start)
        last = cut(timeline, sketch.pool[i].end)
        mode = sketch.pool[i].mode
        site, units = modes.table[mode].site, modes.table[mode].units
        if first >= last:
            # Too short to be told apart from its start; a job that is nearly done has to run too.
            if first >= timeline.state.size or timeline.free[site, first] < units:
                continue
            start = timeline.times[first]
            shortest = start + 2.0 * TIME_TOLERANCE * max(1.0, abs(start))
            cut(timeline, min(shortest, timeline.times[first + 1]))
            last = first + 1
        row = timeline.free[site]
        for s in range(first, last):
            row[np.uintp(s)] -= units
        plans.pool[used].start = timeline.times[first]
        plans.pool[used].end = timeline.times[last]
        plans.pool[used].mode = mode
        used += 1
    plans.table[j].segments = used - plans.table[j].first
    plans.state.used = used
    plans.table[j].completion = sketch.plan.completion
    plans.table[j].gpu_s = sketch.plan.gpu_s
    plans.table[j].met = sketch.plan.completion <= by + TIME_TOLERANCE * max(1.0, abs(by))


@kernel
def hold(timeline: Timeline, modes: Modes, plans: Plans, j: int, sign: int) -> None:
    """Give back (sign 1) or take again (sign -1) the units of the plan of job j."""
    for i in range(plans.table[j].first, plans.table[j].first + plans.table[j].segments):
        mode = plans.pool[i].mode
        change(
            timeline,
            modes.table[mode].site,
            plans.pool[i].start,
            plans.pool[i].end,
            sign * modes.table[mode].units,
        )


@kernel
def drop(timeline: Timeline, modes: Modes, plans: Plans, j: int) -> None:
    """Give back the units of job j and forget its plan."""
    hold(timeline, modes, plans, j, GIVE_BACK)
    plans.table[j].segments = 0
    plans.table[j].completion = math.inf
    plans.table[j].met = False
    plans.table[j].gpu_s = 0.0


@kernel
def now_mode(timeline: Timeline, plans: Plans, j: int) -> int:
    """Return the mode that job j holds in the first piece, -1 = none."""
    first = plans.table[j].first
    if plans.table[j].segments > 0 and plans.pool[first].start == timeline.times[0]:
        return plans.pool[first].mode
    return -1


@kernel
def free_now(timeline: Timeline) -> int:
    """Return the units free in the first piece on all cloud sites."""
    total = 0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k]:
            total += max(0, timeline.free[k, 0])
    return total


@kernel
def none_free_now(timeline: Timeline) -> bool:
    """Whether no unit of any site is free in the first piece."""
    most = 0
    for k in range(timeline.free.shape[0]):
        most = max(most, timeline.free[k, 0])
    return most == 0


@kernel
def none_free_on_edge(timeline: Timeline) -> bool:
    """Whether no edge server is free in the first piece."""
    most = 0
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k]:
            most = max(most, timeline.free[k, 0])
    return most == 0
