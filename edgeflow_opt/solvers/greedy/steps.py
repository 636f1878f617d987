"""Kernels of the three steps: minimum shares, offloading, elastic scaling; and of left-overs.

Source: Gu, Jin, Liu, Journal of Software 36(12), 2025, which builds on ElasticFlow (Gu et al.,
ASPLOS 2023).
"""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, IntArray
from edgeflow_opt.solvers.greedy.job_queue import FRONT, drain, length, pop, precedes, push
from edgeflow_opt.solvers.greedy.share import (
    begin,
    best_rate,
    extend,
    fits_window,
    load,
    most,
    plan_late,
    plan_met,
    rigid,
    share,
    unbroken,
)
from edgeflow_opt.solvers.greedy.tables import (
    GIVE_BACK,
    NONE,
    SECOND_PIECE,
    TAKE_AGAIN,
    Modes,
    Plans,
    Record,
    Records,
    Sketch,
    Timeline,
    kernel,
)
from edgeflow_opt.solvers.greedy.timeline import (
    commit,
    drop,
    free_now,
    hold,
    none_free_now,
    now_mode,
)

# Codes of the options, see CHOICES.
LATE_FIRST, LATE_LAST, LATE_NOTHING = 0, 1, 2
BY_MAX_GPUS, BY_FREE_GPUS, BY_PLAN = 0, 1, 2

# When minimum shares may stop, see `minimum_shares`; numbers of numpy, as arguments of kernels.
ALWAYS, FULL, MISSED = np.int64(0), np.int64(1), np.int64(2)


@kernel
def demand(jobs: Records, modes: Modes, timeline: Timeline, j: int) -> float:
    """Return the GPU-seconds of job j at its least cloud level that would meet the deadline alone.

    At its least level where none would; +inf without a cloud level.
    """
    least = math.inf
    piece = jobs[j].first_piece
    if piece >= timeline.state.size:
        return math.inf
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
                return least
    return least


@kernel
def size_of(jobs: Records, modes: Modes, timeline: Timeline, j: int) -> float:
    """Return the demand of job j per weight."""
    weight = jobs[j].weight
    return demand(jobs, modes, timeline, j) / weight if weight > 0.0 else math.inf


@kernel
def minimum_shares(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    order: IntArray,
    count: int,
    until: int,
    waiting: IntArray,
) -> tuple[int, int]:
    """Give the first `count` jobs of `order` their least shares (step 1).

    A job that has a plan already goes on after its end, unless that completes it. `until` says
    when the rest is of no interest: a sum of :data:`FULL` (no cloud GPU is left now) and
    :data:`MISSED` (some job will miss); all that is in the sum must have happened, 0 = never.
    `waiting` is work space of the length of `order`.

    Returns
    -------
    misses, done
        How many jobs will miss, and how many of the first in `order` have been looked at.
    """
    misses = 0
    num_waiting = 0
    for i in range(count):
        if _enough(timeline, until, misses):
            return misses, i
        j = order[i]
        if plans.table[j].completion < math.inf:
            continue
        piece = load(sketch, timeline, plans, jobs, modes, j)
        if plans.table[j].segments > 0 and not jobs[j].malleable:
            misses += 1
            continue
        met = plan_met(sketch, timeline, jobs, modes, j, piece, rules)
        if not met:
            misses += 1
            if rules.late == LATE_LAST:
                waiting[num_waiting] = j
                num_waiting += 1
            if rules.late != LATE_FIRST:
                continue
            plan_late(sketch, timeline, jobs, modes, j, piece)
        drop(timeline, modes, plans, j)
        commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    for i in range(num_waiting):
        if _enough(timeline, until, misses):
            break
        j = waiting[i]
        piece = load(sketch, timeline, plans, jobs, modes, j)
        plan_late(sketch, timeline, jobs, modes, j, piece)
        drop(timeline, modes, plans, j)
        commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    return misses, count


@kernel
def _enough(timeline: Timeline, until: int, misses: int) -> bool:
    """Whether all that `until` names has happened."""
    if until == 0:
        return False
    if until & MISSED != 0 and misses == 0:
        return False
    return until & FULL == 0 or free_now(timeline) <= 0


@kernel
def edge_mode(modes: Modes, j: int, site: int) -> int:
    """Return the mode of job j on an edge site, -1 = none."""
    at = modes.level_start[j, site]
    return modes.level_mode[at] if at < modes.level_start[j, site + 1] else -1


@kernel
def edge_run(
    sketch: Sketch, timeline: Timeline, jobs: Records, modes: Modes, j: int, mode: int
) -> bool:
    """Begin the sketch of job j on the edge from its first piece on, while servers last.

    Returns whether it is done by its deadline.
    """
    begin(sketch, jobs, j)
    piece = jobs[j].first_piece
    if mode < 0 or piece >= timeline.state.size:
        return False
    unbroken(sketch, timeline, jobs, modes, j, mode, piece, math.inf)
    return sketch.plan.completion <= jobs[j].deadline


@kernel
def stays_on_edge(timeline: Timeline, jobs: Records, modes: Modes, j: int) -> bool:
    """Whether job j runs on an edge site, that has a server left."""
    mode = jobs[j].run_mode
    if mode < 0 or timeline.is_cloud[modes.table[mode].site]:
        return False
    return timeline.free[modes.table[mode].site, 0] > 0


@kernel
def keep_on_edge(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    listed: IntArray,
    count: int,
    moved: IntArray,
    mode_of: IntArray,
) -> int:
    """Let the jobs on the edge stay there, while servers last (rule 1); return how many do.

    See :func:`offload`.
    """
    num_moved = 0
    for turn in range(count):
        j = listed[turn]
        if stays_on_edge(timeline, jobs, modes, j):
            mode_of[j] = jobs[j].run_mode
            place(sketch, timeline, plans, jobs, modes, j, mode_of[j])
            moved[num_moved] = j
            num_moved += 1
    return num_moved


@kernel
def offload(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    listed: IntArray,
    count: int,
    misses: int,
    known: BoolArray,
    queue: Records,
    moved: IntArray,
    num_moved: int,
    mode_of: IntArray,
) -> int:
    """Choose the jobs for the edge (step 2, Algorithm 1); return how many.

    The first places of `moved` are the chosen jobs, and `mode_of[j]` is the mode of job j there,
    -1 = it was not chosen; the first `num_moved` have been chosen by rule 1. The plans of the
    chosen jobs are those on the edge; their cloud units are not given back, since the cloud is
    planned anew.

    * Rule 1: a job on the edge stays, while servers last: :func:`keep_on_edge`.
    * Rule 2, if cloud GPUs are left over now: a job that an edge server completes in time moves
      there, first fit.
    * Rule 3, if some job misses: late jobs that hold less than their most GPUs move there, the one
      with the least deadline minus estimated end first. Not here if it plans anew after each move.

    Jobs that are not `known` have no plan yet. If the choice depends on what it would be, -1 is
    returned, and the state is void.
    """
    left_over = free_now(timeline) > 0
    for turn in range(count if rules.rule_2 and left_over else 0):
        j = listed[turn]
        if mode_of[j] >= 0 or not _may_move(jobs, j):
            continue
        for k in range(timeline.free.shape[0]):
            mode = -1 if timeline.is_cloud[k] else edge_mode(modes, j, k)
            if mode < 0 or not edge_run(sketch, timeline, jobs, modes, j, mode):
                continue
            commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
            mode_of[j] = mode
            moved[num_moved] = j
            num_moved += 1
            break
    if rules.rule_3 and misses > 0 and not rules.one_by_one:
        join_late(timeline, plans, jobs, modes, rules, listed, count, mode_of, queue)
        while length(queue) > 0:
            j = pop(queue)
            for k in range(timeline.free.shape[0]):
                mode = -1 if timeline.is_cloud[k] else edge_mode(modes, j, k)
                piece = jobs[j].first_piece
                if mode < 0 or piece >= timeline.state.size or timeline.free[k, piece] <= 0:
                    continue
                if not known[j] and not _surely_late(timeline, jobs, modes, j):
                    return -1
                place(sketch, timeline, plans, jobs, modes, j, mode)
                mode_of[j] = mode
                moved[num_moved] = j
                num_moved += 1
                break
    return num_moved


@kernel
def join_late(
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    listed: IntArray,
    count: int,
    mode_of: IntArray,
    queue: Records,
) -> None:
    """Put the jobs of rule 3 in the queue, the most hopeless first, see :func:`offload`."""
    for turn in range(count):
        j = listed[turn]
        if mode_of[j] >= 0 or plans.table[j].met or not _may_move(jobs, j):
            continue
        _join_hopeless(timeline, plans, jobs, modes, rules, j, float(turn), queue)


@kernel
def _surely_late(timeline: Timeline, jobs: Records, modes: Modes, j: int) -> bool:
    """Whether job j misses even if it has the whole cloud from now on, by far more than rounding."""
    window = jobs[j].deadline - timeline.times[0]
    window += 1e-6 * max(1.0, abs(window))
    best = 0.0
    for k in range(timeline.free.shape[0]):
        if timeline.is_cloud[k]:
            best = max(best, best_rate(modes, j, k))
    return window <= 0.0 or not fits_window(best, window, jobs[j].work)


@kernel
def place(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    j: int,
    mode: int,
) -> None:
    """Make the run of job j in the edge mode `mode`, while servers last, its plan."""
    edge_run(sketch, timeline, jobs, modes, j, mode)
    commit(timeline, modes, plans, sketch, j, jobs[j].deadline)


@kernel
def place_on_edge(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    moved: IntArray,
    num_moved: int,
    mode_of: IntArray,
) -> None:
    """Plan the first jobs of `moved` on the edge, in their order, each in its ``mode_of[j]``."""
    for i in range(num_moved):
        place(sketch, timeline, plans, jobs, modes, moved[i], mode_of[moved[i]])


@kernel
def _may_move(jobs: Records, j: int) -> bool:
    """Whether job j may begin a run on another site: a moldable job that runs may not."""
    return jobs[j].malleable or jobs[j].run_mode < 0


@kernel
def _join_hopeless(
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    j: int,
    turn: float,
    queue: Records,
) -> None:
    """Put job j in the queue of rule 3, by rising deadline minus estimated end and then `turn`."""
    held = now_mode(timeline, plans, j)
    held_units = 0 if held < 0 else modes.table[held].units
    held_site = -1 if held < 0 else modes.table[held].site
    more, best_rate, free_rate = False, 0.0, 0.0
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k]:
            continue
        room = timeline.free[k, 0] + (held_units if k == held_site else 0)
        for at in range(modes.level_start[j, k], modes.level_start[j, k + 1]):
            mode = modes.level_mode[at]
            more = more or held < 0 or (k == held_site and modes.table[mode].units > held_units)
            best_rate = max(best_rate, modes.table[mode].rate)
            if modes.table[mode].units <= room:
                free_rate = max(free_rate, modes.table[mode].rate)
    if held >= 0 and not more:
        return
    rate = free_rate if rules.hopeless_by == BY_FREE_GPUS else best_rate
    end = math.inf
    if rules.hopeless_by == BY_PLAN:
        end = plans.table[j].completion
    elif rate > 0.0:
        end = timeline.times[min(jobs[j].first_piece, timeline.state.size)] + jobs[j].work / rate
    push(queue, jobs[j].deadline - end, turn, j)


@kernel
def _next_level(
    timeline: Timeline, plans: Plans, jobs: Records, modes: Modes, j: int, held: int
) -> int:
    """Return the next level that job j could hold now, given what is free, -1 = none."""
    if held >= 0:
        site, units = modes.table[held].site, modes.table[held].units
        if not timeline.is_cloud[site]:
            return -1
        for at in range(modes.level_start[j, site], modes.level_start[j, site + 1]):
            mode = modes.level_mode[at]
            if modes.table[mode].units > units:
                return mode if modes.table[mode].units - units <= timeline.free[site, 0] else -1
        return -1
    planned = (
        modes.table[plans.pool[plans.table[j].first].mode].site
        if plans.table[j].segments > 0
        else -1
    )
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k] or (planned >= 0 and k != planned):
            continue
        at = modes.level_start[j, k]
        if at < modes.level_start[j, k + 1]:
            mode = modes.level_mode[at]
            if modes.table[mode].units <= timeline.free[k, 0]:
                return mode
    return -1


@kernel
def more_now(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    j: int,
) -> tuple[int, float]:
    """Draw the plan in which job j holds its next level in the first piece and its share later.

    Returns
    -------
    group, score
        Group 0 = holds nothing now, 1 = holds something, -1 = there is no such plan. Score = GPU
        time saved per GPU added (ElasticFlow, Algorithm 2). A job that is met stays met.
    """
    held = now_mode(timeline, plans, j)
    mode = _next_level(timeline, plans, jobs, modes, j, held)
    if mode < 0:
        return -1, 0.0
    site, deadline = modes.table[mode].site, jobs[j].deadline
    hold(timeline, modes, plans, j, GIVE_BACK)
    begin(sketch, jobs, j)
    start, end = timeline.times[0], timeline.times[1]
    if not extend(sketch, timeline, jobs, modes, j, mode, start, end, math.inf):
        done = rules.slack_s > 0.0 and share(
            sketch,
            timeline,
            jobs,
            modes,
            j,
            site,
            SECOND_PIECE,
            deadline - rules.slack_s,
            rules.two_level,
        )
        done = done or share(
            sketch, timeline, jobs, modes, j, site, SECOND_PIECE, deadline, rules.two_level
        )
        if not done and not plans.table[j].met:
            most(sketch, timeline, jobs, modes, j, site, SECOND_PIECE, math.inf)
    hold(timeline, modes, plans, j, TAKE_AGAIN)
    if plans.table[j].met and sketch.plan.completion > deadline:
        return -1, 0.0
    extra = modes.table[mode].units - (modes.table[held].units if held >= 0 else 0)
    score = (plans.table[j].gpu_s - sketch.plan.gpu_s) / extra
    if not math.isfinite(score):
        score = -1e300
    return (0 if held < 0 else 1), score


@kernel
def scale(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    order: IntArray,
    count: int,
    queue: Records,
) -> None:
    """Hand out the cloud GPUs left over now, one level at a time (step 3).

    Jobs that hold nothing now come first, then the best score. Scores are computed anew when a job
    comes to the front, and it goes back into the queue where it is no longer the best: what others
    were given in the meantime lowers scores and never raises them by much.
    """
    for i in range(count):
        j = order[i]
        if free_now(timeline) <= 0:
            break
        if jobs[j].first_piece > 0 or not jobs[j].malleable:
            continue
        if rules.reserved_only and not plans.table[j].met:
            continue
        group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
        if group >= 0:
            push(queue, float(group), -score, j)
    # The job whose sketch is drawn, on the timeline as it is; -1 = none.
    drawn, group, score = -1, 0, 0.0
    while length(queue) > 0 and free_now(timeline) > 0:
        j = pop(queue)
        held = now_mode(timeline, plans, j)
        if j != drawn:
            group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
            drawn = j
        if group < 0:
            continue
        if length(queue) > 0 and precedes(queue, FRONT, float(group), -score, j):
            push(queue, float(group), -score, j)
            continue
        drop(timeline, modes, plans, j)
        commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
        drawn = -1
        if now_mode(timeline, plans, j) == held:
            # Too short to be kept: it would be offered the same level for ever.
            continue
        group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
        drawn = j
        if group >= 0:
            push(queue, float(group), -score, j)


@kernel
def _best_left_over(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    j: int,
    limit: float,
) -> bool:
    """Lengthen the plan of job j by what one site has left over until `limit`; return if it helps.

    The site that leaves least work undone, then the one that completes the job first.
    """
    sites = timeline.free.shape[0]
    best, best_left, best_end = NONE, math.inf, math.inf
    drawn = -1
    # One more turn than there are sites draws the best one again.
    for turn in range(sites + 1):
        site = turn if turn < sites else best
        if site < 0:
            return False
        if turn == sites and drawn == best:
            break
        piece = load(sketch, timeline, plans, jobs, modes, j)
        before = sketch.plan.left
        if not jobs[j].malleable:
            if plans.table[j].segments > 0 or not rigid(
                sketch, timeline, jobs, modes, j, site, limit
            ):
                continue
        elif timeline.is_cloud[site]:
            most(sketch, timeline, jobs, modes, j, site, piece, limit)
        else:
            _edge_left_over(sketch, timeline, jobs, modes, j, site, piece, limit)
        drawn = site
        left, end = sketch.plan.left, sketch.plan.completion
        better = left < best_left or (left == best_left and end < best_end)
        if turn < sites and left < before and better:
            best, best_left, best_end = site, left, end
    drop(timeline, modes, plans, j)
    commit(timeline, modes, plans, sketch, j, jobs[j].deadline)
    return True


@kernel
def _edge_left_over(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Records,
    modes: Modes,
    j: int,
    site: int,
    piece: int,
    limit: float,
) -> None:
    """Extend the sketch by a run on an edge site from the first free server on."""
    mode = edge_mode(modes, j, site)
    held = sketch.plan.mode
    if held >= 0 and modes.table[held].site == site:
        mode = held
    if mode < 0:
        return
    first = piece
    while first < timeline.state.size and timeline.free[site, first] <= 0:
        first += 1
    if first > piece:
        sketch.plan.mode = -1
    unbroken(sketch, timeline, jobs, modes, j, mode, first, limit)


@kernel
def fill(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Records,
    modes: Modes,
    rules: Record,
    order: IntArray,
    num_jobs: int,
    refused: BoolArray,
    queue: Records,
    unmet: IntArray,
) -> None:
    """Give what is left over to jobs that are not done: first up to their deadlines, then beyond.

    Of the first `num_jobs` of `order` those that need least per weight come first; then the
    best-effort jobs that are not refused, in the same way. `unmet` is work space of the length of
    `order`. Where only what is held now is asked for, it ends when no unit is left now.
    """
    if rules.now_only and none_free_now(timeline):
        return
    for i in range(num_jobs):
        j = order[i]
        if plans.table[j].completion == math.inf:
            push(queue, size_of(jobs, modes, timeline, j), float(i), j)
    count = drain(queue, unmet)
    for turn in range(2 * count):
        j = unmet[turn % count]
        if turn < count:
            if plans.table[j].segments > 0:
                continue
            _best_left_over(sketch, timeline, plans, jobs, modes, j, jobs[j].deadline)
        elif plans.table[j].completion == math.inf:
            _best_left_over(sketch, timeline, plans, jobs, modes, j, math.inf)
        else:
            continue
        if rules.now_only and none_free_now(timeline):
            return
    for j in range(len(jobs)):
        if jobs[j].deadline == math.inf and not refused[j]:
            push(queue, size_of(jobs, modes, timeline, j), float(j), j)
    while length(queue) > 0:
        if rules.now_only and none_free_now(timeline):
            return
        _best_left_over(sketch, timeline, plans, jobs, modes, pop(queue), math.inf)
