"""Kernels that draw the plan of one job into the sketch, segment by segment.

`begin` the sketch, or `load` what the job has already, and `extend` it; then make it the plan of the
job (:mod:`~edgeflow_opt.solvers.greedy.plans`). Drawing reads the timeline and never changes it.
Credit follows the run-and-loss rule: a run earns nothing for its loss, then its rate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from edgeflow_opt.solvers.greedy.tables import Desk, Sketch, kernel
from edgeflow_opt.solvers.greedy.timeline import locate

#: Credit that may be missing at completion, relative to the work; far below the planning margin.
CREDIT_TOLERANCE = 1e-10


class Mark(NamedTuple):
    """Where a sketch stands: `segments` of which the last one ends at `end`, and its draft."""

    segments: int
    end: float
    gpu_s: float
    left: float
    loss: float
    mode: int
    site: int


@kernel
def mark(sketch: Sketch) -> Mark:
    """Return where the sketch stands, for :func:`rewind`."""
    plan = sketch.plan
    end = sketch.pool[plan.segments - 1].end if plan.segments > 0 else 0.0
    return Mark(plan.segments, end, plan.gpu_s, plan.left, plan.loss, plan.mode, plan.site)


@kernel
def rewind(sketch: Sketch, to: Mark) -> None:
    """Take the sketch, which has not been completed, back to where it was marked."""
    sketch.plan.segments = to.segments
    if to.segments > 0:
        sketch.pool[to.segments - 1].end = to.end
    sketch.plan.gpu_s = to.gpu_s
    sketch.plan.left = to.left
    sketch.plan.loss = to.loss
    sketch.plan.mode = to.mode
    sketch.plan.site = to.site


@kernel
def begin(desk: Desk, j: int) -> None:
    """Start an empty sketch for job j as it stands now."""
    plan = desk.sketch.plan
    plan.segments = 0
    plan.completion = math.inf
    plan.gpu_s = 0.0
    plan.left = desk.jobs[j].work
    plan.loss = desk.jobs[j].loss_left_s
    plan.mode = desk.jobs[j].run_mode
    plan.site = desk.jobs[j].last_site


@kernel
def load(desk: Desk, j: int) -> int:
    """Start the sketch of job j with the segments of its plan; return the piece after them."""
    plans, sketch, timeline = desk.plans, desk.sketch, desk.timeline
    begin(desk, j)
    end = timeline.times[0]
    for i in range(plans.table[j].first, plans.table[j].first + plans.table[j].segments):
        if end < plans.pool[i].start:
            sketch.plan.mode = -1
        end = plans.pool[i].end
        if extend(desk, j, plans.pool[i].mode, plans.pool[i].start, end, math.inf):
            break
    if plans.table[j].segments == 0:
        return desk.jobs[j].first_piece
    return locate(timeline, end)


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
def extend(desk: Desk, j: int, mode: int, start: float, end: float, limit: float) -> bool:
    """Let job j hold `mode` from `start` to `end`; return whether that completes it by `limit`.

    The segment then ends with the completion, with `snap` at the end of that slot.
    """
    jobs, sketch, timeline = desk.jobs, desk.sketch, desk.timeline
    held = desk.modes.table[mode]
    site, rate, gpus = held.site, held.rate, held.gpus
    if mode != sketch.plan.mode:
        if sketch.plan.site < 0:
            sketch.plan.loss = 0.0
        elif sketch.plan.site != site:
            sketch.plan.loss = jobs[j].migration_s
        else:
            sketch.plan.loss = jobs[j].restart_s
        sketch.plan.mode = mode
        sketch.plan.site = site
    loss, left = sketch.plan.loss, sketch.plan.left
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
        sketch.plan.gpu_s += gpus * (finish - start)
        sketch.plan.left = 0.0
        return True
    if useful > 0.0:
        sketch.plan.left = left - rate * useful
    sketch.plan.loss = max(0.0, loss - (end - start))
    sketch.plan.gpu_s += gpus * (end - start)
    emit(sketch, mode, start, end)
    return False


@kernel
def unbroken(desk: Desk, j: int, mode: int, first: int, limit: float) -> bool:
    """Extend the sketch by one run in `mode` from piece `first` until done, blocked or `limit`.

    Returns whether it is done by `limit`.
    """
    timeline = desk.timeline
    times, free = timeline.times, timeline.free[desk.modes.table[mode].site]
    units, size = desk.modes.table[mode].units, timeline.state.size
    last = first
    while last < size and free[last] >= units and times[last] < limit:
        last += 1
    if last == first:
        return False
    end = times[last] if timeline.state.snap else min(times[last], limit)
    return extend(desk, j, mode, times[first], end, limit)


@kernel
def earliest_run(desk: Desk, j: int, mode: int, limit: float) -> bool:
    """Draw the earliest run of job j in `mode`, without a break, that is done by `limit`.

    Returns whether there is one; if not, the sketch is void.
    """
    timeline = desk.timeline
    site, units = desk.modes.table[mode].site, desk.modes.table[mode].units
    piece, size = desk.jobs[j].first_piece, timeline.state.size
    while piece < size and timeline.times[piece] < limit:
        if timeline.free[site, piece] < units:
            piece += 1
            continue
        begin(desk, j)
        if piece > 0:
            desk.sketch.plan.mode = -1
        if unbroken(desk, j, mode, piece, limit):
            return True
        # The stretch is too short: go on behind it.
        while piece < size and timeline.free[site, piece] >= units:
            piece += 1
    return False
