"""Kernels on the timeline of free units and on the pool of plans."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from edgeflow_opt.solvers.greedy.tables import Modes, Plans, Sketch, Timeline, kernel

#: Points in time closer than this, relative to their magnitude (at least 1 s), are one.
TIME_TOLERANCE = 1e-10


@kernel
def locate(timeline: Timeline, time: float) -> int:
    """Return the last piece that begins at or before `time`; `size` at or after the end."""
    size = timeline.size[0]
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
    times, free, size = timeline.times, timeline.free, timeline.size[0]
    if at == size:
        return at
    tolerance = TIME_TOLERANCE * max(1.0, abs(time))
    if time - times[at] <= tolerance:
        return at
    if timeline.snap or times[at + 1] - time <= tolerance:
        return at + 1
    if size + 2 > len(times):
        timeline.overflow[0] = True
        return at
    for s in range(size + 1, at + 1, -1):
        times[s] = times[s - 1]
    times[at + 1] = time
    for k in range(free.shape[0]):
        for s in range(size, at, -1):
            free[k, s] = free[k, s - 1]
    timeline.size[0] = size + 1
    return at + 1


@kernel
def change(timeline: Timeline, site: int, start: float, end: float, units: int) -> None:
    """Add `units` to what is free on `site` from `start` to `end`, which are breakpoints."""
    for s in range(locate(timeline, start), locate(timeline, end)):
        timeline.free[site, s] += units


@kernel
def commit(
    timeline: Timeline, modes: Modes, plans: Plans, sketch: Sketch, j: int, by: float
) -> None:
    """Make the sketch the plan of job j, which has none: take the units and store the segments."""
    used = plans.used[0]
    count = sketch.segments[0]
    if used + count > len(plans.mode):
        timeline.overflow[0] = True
        count = 0
    plans.first[j] = used
    for i in range(count):
        first = cut(timeline, sketch.start[i])
        last = cut(timeline, sketch.end[i])
        if first >= last:
            continue
        mode = sketch.mode[i]
        site, units = modes.site[mode], modes.units[mode]
        for s in range(first, last):
            timeline.free[site, s] -= units
        plans.start[used] = timeline.times[first]
        plans.end[used] = timeline.times[last]
        plans.mode[used] = mode
        used += 1
    plans.segments[j] = used - plans.first[j]
    plans.used[0] = used
    plans.completion[j] = sketch.number[0]
    plans.gpu_s[j] = sketch.number[1]
    plans.met[j] = sketch.number[0] <= by + TIME_TOLERANCE * max(1.0, abs(by))


@kernel
def hold(timeline: Timeline, modes: Modes, plans: Plans, j: int, sign: int) -> None:
    """Give back (sign 1) or take again (sign -1) the units of the plan of job j."""
    for i in range(plans.first[j], plans.first[j] + plans.segments[j]):
        mode = plans.mode[i]
        change(timeline, modes.site[mode], plans.start[i], plans.end[i], sign * modes.units[mode])


@kernel
def drop(timeline: Timeline, modes: Modes, plans: Plans, j: int) -> None:
    """Give back the units of job j and forget its plan."""
    hold(timeline, modes, plans, j, 1)
    plans.segments[j] = 0
    plans.completion[j] = math.inf
    plans.met[j] = False
    plans.gpu_s[j] = 0.0


@kernel
def now_mode(timeline: Timeline, plans: Plans, j: int) -> int:
    """Return the mode that job j holds in the first piece, -1 = none."""
    first = plans.first[j]
    if plans.segments[j] > 0 and plans.start[first] == timeline.times[0]:
        return plans.mode[first]
    return -1


@kernel
def free_now(timeline: Timeline, cloud: bool) -> int:
    """Return the units free in the first piece on all cloud sites, or on all edge sites."""
    total = 0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k] == cloud:
            total += max(0, timeline.free[k, 0])
    return total


@njit(cache=True)
def restore(timeline: Timeline, plans: Plans, times: np.ndarray, free: np.ndarray) -> None:
    """Forget all plans and go back to the timeline as it was at first: `times` and `free`."""
    pieces = free.shape[1]
    timeline.size[0] = pieces
    timeline.times[: pieces + 1] = times
    timeline.free[:, :pieces] = free
    plans.used[0] = 0
    plans.segments[:] = 0
    plans.completion[:] = math.inf
    plans.met[:] = False
    plans.gpu_s[:] = 0.0
