"""Kernel of job selection under overload, in the manner of Moore and Hodgson.

Moore (Management Science 15(1), 1968) minimises the number of late jobs of one machine: in deadline
order, whenever a job does not fit, the largest accepted so far goes. Here a job takes a plan of
least GPUs instead of the machine, its size is its GPU time per weight, and the one that goes may
find an edge server that completes it.
"""

from __future__ import annotations

from edgeflow_opt.problem.arrays import IntArray
from edgeflow_opt.solvers.greedy.job_queue import length, pop, push
from edgeflow_opt.solvers.greedy.share import begin, plan_met, unbroken
from edgeflow_opt.solvers.greedy.steps import edge_mode, edge_run, size_of, stays_on_edge
from edgeflow_opt.solvers.greedy.tables import (
    GIVE_BACK,
    TAKE_AGAIN,
    Modes,
    Plans,
    Record,
    Records,
    Sketch,
    Timeline,
    kernel,
)
from edgeflow_opt.solvers.greedy.timeline import commit, drop, hold


@kernel
def to_cloud(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    j: int,
) -> bool:
    """Plan job j, which has no plan, on the cloud if it can be met there; return whether."""
    begin(sketch, jobs, j)
    if not plan_met(sketch, timeline, jobs, modes, j, jobs[j].first_piece, rules):
        return False
    commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    return True


@kernel
def draw_on_edge(sketch: Sketch, timeline: Timeline, jobs: Records, modes: Modes, j: int) -> bool:
    """Draw the run of job j on the first edge site that completes it in time; return whether.

    It takes the earliest free stretch of a server that is long enough.
    """
    deadline, running = jobs[j].deadline, jobs[j].run_mode
    if running >= 0 and not jobs[j].malleable:
        return False
    for k in range(timeline.free.shape[0]):
        mode = -1 if timeline.is_cloud[k] else edge_mode(modes, j, k)
        if mode < 0:
            continue
        piece, size = jobs[j].first_piece, timeline.state.size
        while piece < size and timeline.times[piece] < deadline:
            if timeline.free[k, piece] <= 0:
                piece += 1
                continue
            begin(sketch, jobs, j)
            if piece > 0:
                sketch.plan.mode = -1
            if unbroken(sketch, timeline, jobs, modes, j, mode, piece, deadline):
                return True
            # The stretch is too short: go on behind it.
            while piece < size and timeline.free[k, piece] > 0:
                piece += 1
    return False


@kernel
def to_edge(
    sketch: Sketch, timeline: Timeline, plans: Plans, jobs: Records, modes: Modes, j: int
) -> bool:
    """Plan job j on an edge site that completes it in time, in place of a plan that it has.

    Returns whether there is one; if not, its plan stays.
    """
    if not draw_on_edge(sketch, timeline, jobs, modes, j):
        return False
    drop(timeline, modes, plans, j)
    commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    return True


@kernel
def stay_on_edge(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    j: int,
) -> bool:
    """Let job j go on where it runs on the edge, if that completes it in time; return whether."""
    if not stays_on_edge(timeline, jobs, modes, j):
        return False
    if not edge_run(sketch, timeline, jobs, modes, j, jobs[j].run_mode):
        return False
    commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    return True


@kernel
def _make_room(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    j: int,
    largest: int,
) -> int:
    """Find a place for job j, which does not fit the cloud, maybe in that of the `largest` job.

    Returns the job that is out: -1 = none, `j`, or `largest`.
    """
    if largest >= 0:
        hold(timeline, modes, plans, largest, GIVE_BACK)
        begin(sketch, jobs, j)
        fits = plan_met(sketch, timeline, jobs, modes, j, jobs[j].first_piece, rules)
        hold(timeline, modes, plans, largest, TAKE_AGAIN)
        if not fits:
            largest = -1
    if largest < 0:
        return -1 if to_edge(sketch, timeline, plans, jobs, modes, j) else j
    drop(timeline, modes, plans, largest)
    moved = to_edge(sketch, timeline, plans, jobs, modes, largest)
    if not moved and to_edge(sketch, timeline, plans, jobs, modes, j):
        # Nobody has to go: the largest gets its place back.
        moved = to_cloud(sketch, timeline, plans, jobs, modes, rules, largest)
        return -1 if moved else largest
    to_cloud(sketch, timeline, plans, jobs, modes, rules, j)
    # What j leaves of the place may still do for the largest.
    if moved or to_cloud(sketch, timeline, plans, jobs, modes, rules, largest):
        return -1
    return largest


@kernel
def select(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    order: IntArray,
    num_jobs: int,
    num_chosen: int,
    queue: Records,
    out: IntArray,
) -> None:
    """Plan the jobs of `order` (by deadline) that can be met together; the others reserve nothing.

    Only its first `num_jobs` places count, and only the first `num_chosen` are selected from in this way; the others are out from the start.

    A job on the edge stays there if that completes it in time. When a job does not fit the cloud,
    a larger one goes to an edge server that completes it; else the job itself does; else the
    larger one is out if that makes room; else the job is out. If any is out at the end, edge
    servers take from the cloud whom they complete in time, the largest first, and those that are
    out are tried once more, the smallest first. `out` is work space of the length of `order`.
    """
    num_out = 0
    for i in range(num_chosen if rules.rule_1 else 0):
        stay_on_edge(sketch, timeline, plans, jobs, modes, order[i])
    # The queue has the jobs in the cloud that may have to go, the largest first.
    for i in range(num_chosen):
        j = order[i]
        if plans.table[j].segments > 0:
            continue
        size = size_of(jobs, modes, timeline, j)
        in_cloud = to_cloud(sketch, timeline, plans, jobs, modes, rules, j)
        if not in_cloud:
            largest = -1
            if length(queue) > 0 and (jobs[j].must or -queue[1].first > size):
                largest = queue[1].job
            loser = _make_room(sketch, timeline, plans, jobs, modes, rules, j, largest)
            if largest >= 0 and not _in_cloud(timeline, plans, modes, largest):
                pop(queue)
            if loser >= 0:
                out[num_out] = loser
                num_out += 1
            in_cloud = _in_cloud(timeline, plans, modes, j)
        if in_cloud and not jobs[j].must:
            push(queue, -size, 0.0, j)
    for i in range(num_chosen, num_jobs):
        out[num_out] = order[i]
        num_out += 1
    # Whoever an edge server completes makes room in the cloud.
    while num_out > 0 and length(queue) > 0:
        to_edge(sketch, timeline, plans, jobs, modes, pop(queue))
    queue[0].job = 0
    for i in range(num_out):
        push(queue, size_of(jobs, modes, timeline, out[i]), float(i), out[i])
    while length(queue) > 0:
        j = pop(queue)
        if not to_cloud(sketch, timeline, plans, jobs, modes, rules, j):
            to_edge(sketch, timeline, plans, jobs, modes, j)


@kernel
def _in_cloud(timeline: Timeline, plans: Plans, modes: Modes, j: int) -> bool:
    """Whether job j has a plan on a cloud site."""
    return (
        plans.table[j].segments > 0
        and timeline.is_cloud[modes.table[plans.pool[plans.table[j].first].mode].site]
    )
