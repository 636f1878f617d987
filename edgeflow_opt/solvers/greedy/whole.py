"""The whole heuristic as one kernel: the order of its steps, and what may be left out."""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.greedy.job_queue import length, pop, push
from edgeflow_opt.solvers.greedy.selection import select
from edgeflow_opt.solvers.greedy.steps import (
    ALWAYS,
    BY_PLAN,
    FULL,
    MISSED,
    edge_mode,
    fill,
    join_late,
    keep_on_edge,
    minimum_shares,
    offload,
    place_on_edge,
    scale,
)
from edgeflow_opt.solvers.greedy.tables import (
    Modes,
    Plans,
    Record,
    Records,
    Sketch,
    Timeline,
    entry,
    kernel,
    written_out,
)
from edgeflow_opt.solvers.greedy.timeline import none_free_on_edge

# Codes of the option `admission`, see CHOICES.
ADMIT_ALL, ADMIT_TOGETHER, ADMIT_ONE_BY_ONE = 0, 1, 2

#: Rows of the work space, see :func:`plan_all`.
WORK_ROWS = 8


#: Rows of it that tell who holds what now.
HOLDERS, HELD = 6, 7

# Arguments of kernels, see `tables`.
MUST, MAY, NOBODY = np.bool_(True), np.bool_(False), np.int64(0)


@kernel
def start_again(timeline: Timeline, plans: Plans, times: FloatArray, free: IntArray) -> None:
    """Forget all plans and go back to the timeline as it was at first."""
    pieces = free.shape[1]
    timeline.state.size = pieces
    for s in range(pieces):
        timeline.times[s] = times[s]
        for k in range(free.shape[0]):
            timeline.free[k, s] = free[k, s]
    timeline.times[pieces] = times[pieces]
    plans.state.used = 0
    for j in range(len(plans.table)):
        plans.table[j].completion = math.inf
        plans.table[j].gpu_s = 0.0
        plans.table[j].first = 0
        plans.table[j].segments = 0
        plans.table[j].met = False


@kernel
def _keep(order: IntArray, count: int, refused: BoolArray) -> int:
    """Take the refused jobs out of the first `count` of `order`; return how many are left."""
    kept = 0
    for i in range(count):
        if not refused[order[i]]:
            order[kept] = order[i]
            kept += 1
    return kept


@kernel
def _append(jobs: Records, must: bool, queue: Records, order: IntArray, count: int) -> int:
    """Append the jobs with deadlines that must, or need not, be met; return the new length."""
    for j in range(len(jobs)):
        if jobs[j].deadline < math.inf and jobs[j].must == must:
            push(queue, jobs[j].deadline, -jobs[j].weight, j)
    while length(queue) > 0:
        order[count] = pop(queue)
        count += 1
    return count


@written_out
def _admit(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    times: FloatArray,
    free: IntArray,
    order: IntArray,
    num_jobs: int,
    refused: BoolArray,
    kept: IntArray,
    waiting: IntArray,
) -> None:
    """Note which of the fresh jobs admission control refuses, looked at in order of the list.

    Of the plans nothing remains that anyone may use.
    """
    some = False
    for j in range(len(jobs)):
        some = some or jobs[j].fresh
    if rules.admission == ADMIT_ALL or not some:
        return
    together = rules.admission == ADMIT_TOGETHER
    for j in range(len(jobs)):
        refused[j] = jobs[j].fresh and not together
    until = MISSED if together else ALWAYS
    misses = 0
    # First all that are not refused, then one more at a time.
    for turn in range(1 if together else len(jobs) + 1):
        j = turn - 1
        if j >= 0 and not jobs[j].fresh:
            continue
        if j >= 0:
            refused[j] = False
        for i in range(num_jobs):
            kept[i] = order[i]
        count = _keep(kept, num_jobs, refused)
        start_again(timeline, plans, times, free)
        now_late, _ = minimum_shares(
            sketch, timeline, plans, jobs, modes, rules, kept, count, until, waiting
        )
        if j >= 0:
            refused[j] = now_late > misses
        else:
            misses = now_late
    if together and misses > 0:
        for j in range(len(jobs)):
            refused[j] = jobs[j].fresh


@kernel
def _move_one_by_one(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    times: FloatArray,
    free: IntArray,
    order: IntArray,
    listed: IntArray,
    count: int,
    queue: Records,
    moved: IntArray,
    num_moved: int,
    mode_of: IntArray,
    waiting: IntArray,
) -> None:
    """Plan the cloud around the jobs on the edge; while jobs are late, move the most hopeless there.

    See :func:`~edgeflow_opt.solvers.greedy.steps.offload`; the queue is empty before and after.
    """
    found = True
    while found:
        start_again(timeline, plans, times, free)
        place_on_edge(sketch, timeline, plans, jobs, modes, moved, num_moved, mode_of)
        misses, _ = minimum_shares(
            sketch, timeline, plans, jobs, modes, rules, order, count, ALWAYS, waiting
        )
        found = False
        if misses > 0:
            join_late(timeline, plans, jobs, modes, rules, listed, count, mode_of, queue)
        while length(queue) > 0 and not found:
            j = pop(queue)
            piece = jobs[j].first_piece
            for k in range(timeline.free.shape[0]):
                mode = -1 if timeline.is_cloud[k] else edge_mode(modes, j, k)
                if mode < 0 or piece >= timeline.state.size or timeline.free[k, piece] <= 0:
                    continue
                mode_of[j] = mode
                moved[num_moved] = j
                num_moved += 1
                found = True
                break
        queue[0].job = 0


@written_out
def _as_published(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    times: FloatArray,
    free: IntArray,
    order: IntArray,
    count: int,
    queue: Records,
    known: BoolArray,
    work: IntArray,
) -> None:
    """Plan steps 1 and 2, and step 1 again around the jobs on the edge.

    Where only what is held now is asked for: jobs that stay on the edge, and these alone, decide
    whether rules 2 and 3 find a server there; if not, the first plans are of no use. Once the cloud
    is full now, no plan can add anything to what is held, but for the edge, see :func:`offload`.
    """
    listed, moved, waiting, mode_of = work[0], work[1], work[2], work[3]
    if rules.by_deadline:
        for i in range(count):
            listed[i] = order[i]
    else:
        for j in range(len(jobs)):
            known[j] = False
        for i in range(count):
            known[order[i]] = True
        num_listed = 0
        for j in range(len(jobs)):
            if known[j]:
                listed[num_listed] = j
                num_listed += 1
    for j in range(len(jobs)):
        mode_of[j] = -1
    start_again(timeline, plans, times, free)
    stay = 0
    until = ALWAYS
    if rules.now_only:
        if rules.rule_1:
            stay = keep_on_edge(sketch, timeline, plans, jobs, modes, listed, count, moved, mode_of)
        if none_free_on_edge(timeline):
            minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, count, FULL, waiting)
            return
        if rules.hopeless_by != BY_PLAN and not rules.one_by_one:
            until = FULL | MISSED
    num_moved = -1
    while num_moved < 0:
        start_again(timeline, plans, times, free)
        for j in range(len(jobs)):
            mode_of[j] = -1
            known[j] = False
        misses, done = minimum_shares(
            sketch, timeline, plans, jobs, modes, rules, order, count, until, waiting
        )
        for i in range(done):
            known[order[i]] = True
        stay = 0
        if rules.rule_1:
            stay = keep_on_edge(sketch, timeline, plans, jobs, modes, listed, count, moved, mode_of)
        num_moved = offload(
            sketch, timeline, plans, jobs, modes, rules, listed, count, misses, known, queue,
            moved, stay, mode_of,
        )  # fmt: skip
        # If it cannot be told, all plans have to be made.
        queue[0].job = 0
        until = ALWAYS
    if rules.rule_3 and rules.one_by_one:
        _move_one_by_one(
            sketch, timeline, plans, jobs, modes, rules, times, free, order, listed, count, queue,
            moved, num_moved, mode_of, waiting,
        )  # fmt: skip
        return
    if num_moved == 0 and done == count:
        return
    until = FULL if rules.now_only and none_free_on_edge(timeline) else ALWAYS
    start_again(timeline, plans, times, free)
    place_on_edge(sketch, timeline, plans, jobs, modes, moved, num_moved, mode_of)
    minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, count, until, waiting)


@entry
def plan_all(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    times: FloatArray,
    free: IntArray,
    chosen: BoolArray,
    queue: Records,
    refused: BoolArray,
    known: BoolArray,
    work: IntArray,
) -> int:
    """Plan all jobs, on the free units as they are at first: ``free[k, s]`` from ``times[s]`` on.

    `chosen` are the jobs that job selection looks at. `refused` (false before) notes whom admission
    control refuses. `known` is work space of the length of the jobs, `work` the same in
    :data:`WORK_ROWS` rows, the queue room for all jobs.

    Returns
    -------
    holders
        How many jobs hold a mode at time 0; these are the first in row :data:`HOLDERS` of `work`,
        the modes in row :data:`HELD`.
    """
    queue[0].job = 0
    order, ranked = work[4], work[5]
    # In deadline order, those that must be met first; of equal deadlines the larger weight.
    count = _append(jobs, MUST, queue, order, NOBODY)
    count = _append(jobs, MAY, queue, order, count)
    _admit(
        sketch, timeline, plans, jobs, modes, rules, times, free, order, count, refused,
        work[0], work[2],
    )  # fmt: skip
    count = _keep(order, count, refused)
    if rules.select_jobs:
        num_chosen = 0
        for i in range(count):
            if chosen[order[i]]:
                ranked[num_chosen] = order[i]
                num_chosen += 1
        kept = num_chosen
        for i in range(count):
            if not chosen[order[i]]:
                ranked[kept] = order[i]
                kept += 1
        start_again(timeline, plans, times, free)
        select(
            sketch, timeline, plans, jobs, modes, rules, ranked, count, num_chosen, queue, work[2]
        )
    else:
        _as_published(
            sketch, timeline, plans, jobs, modes, rules, times, free, order, count, queue,
            known, work,
        )  # fmt: skip
    if rules.elastic:
        scale(sketch, timeline, plans, jobs, modes, rules, order, count, queue)
    queue[0].job = 0
    if rules.fill:
        fill(sketch, timeline, plans, jobs, modes, rules, order, count, refused, queue, work[2])
    holders = 0
    for j in range(len(jobs)):
        if plans.table[j].segments > 0 and plans.pool[plans.table[j].first].start <= 0.0:
            work[HOLDERS, holders] = j
            work[HELD, holders] = plans.pool[plans.table[j].first].mode
            holders += 1
    return holders
