"""Kernels on the plans of all jobs: what they hold on the timeline, given, taken and forgotten."""

from __future__ import annotations

import math

from edgeflow_opt.problem.arrays import FloatArray, IntArray
from edgeflow_opt.solvers.greedy.tables import GIVE_BACK, Desk, kernel
from edgeflow_opt.solvers.greedy.timeline import change, cut, locate, tolerance_at


@kernel
def start_again(desk: Desk, times: FloatArray, free: IntArray) -> None:
    """Forget all plans and go back to the timeline as it was at first."""
    timeline, plans = desk.timeline, desk.plans
    pieces = free.shape[1]
    timeline.state.size = pieces
    for s in range(pieces):
        timeline.times[s] = times[s]
        for k in range(free.shape[0]):
            timeline.free[k, s] = free[k, s]
    timeline.times[pieces] = times[pieces]
    plans.state.used = 0
    for j in range(len(plans.table)):
        plans.table[j].first = 0
        _empty(desk, j)


@kernel
def _empty(desk: Desk, j: int) -> None:
    """Make the plan of job j an empty one; its units are not given back."""
    table = desk.plans.table
    table[j].segments = 0
    table[j].completion = math.inf
    table[j].met = False
    table[j].gpu_s = 0.0


@kernel
def commit(desk: Desk, j: int) -> None:
    """Make the sketch the plan of job j: take the units and store the segments.

    Units of a plan that it may have had are not given back, see :func:`replace`.
    """
    timeline, plans, sketch = desk.timeline, desk.plans, desk.sketch
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
        site, units = desk.modes.table[mode].site, desk.modes.table[mode].units
        if first >= last:
            # Too short to be told apart from its start; a job that is nearly done has to run too.
            if first >= timeline.state.size or timeline.free[site, first] < units:
                continue
            start = timeline.times[first]
            shortest = start + 2.0 * tolerance_at(start)
            cut(timeline, min(shortest, timeline.times[first + 1]))
            last = first + 1
        change(timeline, site, first, last, -units)
        plans.pool[used].start = timeline.times[first]
        plans.pool[used].end = timeline.times[last]
        plans.pool[used].mode = mode
        used += 1
    plans.table[j].segments = used - plans.table[j].first
    plans.state.used = used
    plans.table[j].completion = sketch.plan.completion
    plans.table[j].gpu_s = sketch.plan.gpu_s
    deadline = desk.jobs[j].deadline
    plans.table[j].met = sketch.plan.completion <= deadline + tolerance_at(deadline)


@kernel
def hold(desk: Desk, j: int, sign: int) -> None:
    """Give back (sign 1) or take again (sign -1) the units of the plan of job j."""
    timeline, plans = desk.timeline, desk.plans
    for i in range(plans.table[j].first, plans.table[j].first + plans.table[j].segments):
        mode = desk.modes.table[plans.pool[i].mode]
        first, last = locate(timeline, plans.pool[i].start), locate(timeline, plans.pool[i].end)
        change(timeline, mode.site, first, last, sign * mode.units)


@kernel
def drop(desk: Desk, j: int) -> None:
    """Give back the units of job j and forget its plan."""
    hold(desk, j, GIVE_BACK)
    _empty(desk, j)


@kernel
def replace(desk: Desk, j: int) -> None:
    """Make the sketch the plan of job j, in place of the one that it has."""
    drop(desk, j)
    commit(desk, j)


@kernel
def now_mode(desk: Desk, j: int) -> int:
    """Return the mode that job j holds in the first piece, -1 = none."""
    plans = desk.plans
    first = plans.table[j].first
    if plans.table[j].segments > 0 and plans.pool[first].start == desk.timeline.times[0]:
        return plans.pool[first].mode
    return -1


@kernel
def planned_site(desk: Desk, j: int) -> int:
    """Return the site on which the plan of job j begins, -1 = it has none."""
    plans = desk.plans
    if plans.table[j].segments == 0:
        return -1
    return desk.modes.table[plans.pool[plans.table[j].first].mode].site
