"""Kernels on the timeline of free units: find a piece, cut one, take and give units, look at now."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.solvers.greedy.tables import CLOUD, EDGE, Timeline, kernel

#: Points in time closer than this, relative to their magnitude (at least 1 s), are one.
TIME_TOLERANCE = 1e-10


@kernel
def tolerance_at(time: float) -> float:
    """Return how far apart points in time near `time` may be and still be one, seconds."""
    return TIME_TOLERANCE * max(1.0, abs(time))


@kernel
def locate(timeline: Timeline, time: float) -> int:
    """Return the last piece that begins at or before `time`; `size` at or after the end."""
    size, times = timeline.state.size, timeline.times
    if time >= times[size]:
        return size
    # Most plans begin now.
    if time < times[1]:
        return 0
    low, count = 0, size
    while count > 1:
        half = count // 2
        # Which half it is cannot be foreseen: written so that there is nothing to be foreseen.
        low += half if times[np.uintp(low + half)] <= time else 0
        count -= half
    return low


@kernel
def cut(timeline: Timeline, time: float) -> int:
    """Return the piece that begins at `time`, splitting one if need be (never with `snap`)."""
    at = locate(timeline, time)
    times, free, size = timeline.times, timeline.free, timeline.state.size
    if at == size:
        return at
    tolerance = tolerance_at(time)
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
def change(timeline: Timeline, site: int, first: int, last: int, units: int) -> None:
    """Add `units` to what is free on `site` in the pieces ``first : last``."""
    row = timeline.free[site]
    for s in range(first, last):
        row[np.uintp(s)] += units


@kernel
def _some_free_now(timeline: Timeline, cloud: bool) -> bool:
    """Whether a unit is free in the first piece on a cloud site, or else on an edge site."""
    most = 0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k] == cloud:
            most = max(most, timeline.free[k, 0])
    return most > 0


@kernel
def cloud_free_now(timeline: Timeline) -> bool:
    """Whether a cloud GPU is left over now."""
    return _some_free_now(timeline, CLOUD)


@kernel
def edge_free_now(timeline: Timeline) -> bool:
    """Whether an edge server is free now."""
    return _some_free_now(timeline, EDGE)
