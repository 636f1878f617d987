"""Kernels of the three steps: minimum shares, offloading, elastic scaling; and of left-overs.

Source: Gu, Jin, Liu, Journal of Software 36(12), 2025, which builds on ElasticFlow (Gu et al.,
ASPLOS 2023).
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numba import njit

from edgeflow_opt.problem.arrays import BoolArray, IntArray
from edgeflow_opt.solvers.greedy.share import (
    COMPLETION,
    GPU_S,
    LEFT,
    MODE,
    begin,
    extend,
    load,
    most,
    plan_late,
    plan_met,
    rigid,
    share,
    unbroken,
)
from edgeflow_opt.solvers.greedy.tables import Jobs, Modes, Plans, Rules, Sketch, Timeline, kernel
from edgeflow_opt.solvers.greedy.timeline import commit, drop, free_now, hold, now_mode

# Codes of the options, see CHOICES.
LATE_FIRST, LATE_LAST, LATE_NOTHING = 0, 1, 2
BY_MAX_GPUS, BY_FREE_GPUS, BY_PLAN = 0, 1, 2


@kernel
def demand(jobs: Jobs, modes: Modes, timeline: Timeline, j: int) -> float:
    """Return the GPU-seconds of job j at its least cloud level that would meet the deadline alone.

    At its least level where none would; +inf without a cloud level.
    """
    least = math.inf
    piece = jobs.first_piece[j]
    if piece >= timeline.size[0]:
        return math.inf
    window = jobs.deadline[j] - timeline.times[piece]
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k]:
            continue
        for at in range(jobs.level_start[j, k], jobs.level_start[j, k + 1]):
            mode = jobs.level_mode[at]
            seconds = jobs.work[j] / modes.rate[mode]
            if least == math.inf or seconds <= window:
                least = modes.gpus[mode] * seconds
            if seconds <= window:
                return least
    return least


@njit(cache=True)
def by_size(jobs: Jobs, modes: Modes, timeline: Timeline, chosen: IntArray) -> IntArray:
    """Return the jobs `chosen` by rising demand per weight; of equals, the first one first."""
    size = np.empty(len(chosen))
    for i, j in enumerate(chosen):
        weight = jobs.weight[j]
        size[i] = demand(jobs, modes, timeline, j) / weight if weight > 0.0 else math.inf
    return chosen[np.argsort(size, kind="mergesort")]


@njit(cache=True)
def minimum_shares(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    order: IntArray,
    skip: BoolArray,
) -> int:
    """Give the jobs of `order` their least shares (step 1); return how many of them will miss.

    A job that has a plan already goes on after its end, unless that completes it.
    """
    misses = 0
    waiting = np.empty(len(order), dtype=np.int64)
    num_waiting = 0
    for j in order:
        if skip[j] or plans.completion[j] < math.inf:
            continue
        piece = load(sketch, timeline, plans, jobs, modes, j)
        if plans.segments[j] > 0 and not jobs.malleable[j]:
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
        commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
    for j in waiting[:num_waiting]:
        piece = load(sketch, timeline, plans, jobs, modes, j)
        plan_late(sketch, timeline, jobs, modes, j, piece)
        drop(timeline, modes, plans, j)
        commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
    return misses


@kernel
def edge_mode(jobs: Jobs, j: int, site: int) -> int:
    """Return the mode of job j on an edge site, -1 = none."""
    at = jobs.level_start[j, site]
    return jobs.level_mode[at] if at < jobs.level_start[j, site + 1] else -1


@kernel
def edge_run(
    sketch: Sketch, timeline: Timeline, jobs: Jobs, modes: Modes, j: int, mode: int
) -> bool:
    """Begin the sketch of job j on the edge from its first piece on, while servers last.

    Returns whether it is done by its deadline.
    """
    begin(sketch, jobs, j)
    piece = jobs.first_piece[j]
    if mode < 0 or piece >= timeline.size[0]:
        return False
    unbroken(sketch, timeline, jobs, modes, j, mode, piece, math.inf)
    return sketch.number[COMPLETION] <= jobs.deadline[j]


@kernel
def stays_on_edge(timeline: Timeline, jobs: Jobs, modes: Modes, j: int) -> bool:
    """Whether job j runs on an edge site, that has a server left."""
    mode = jobs.run_mode[j]
    if mode < 0 or timeline.is_cloud[modes.site[mode]]:
        return False
    return timeline.free[modes.site[mode], 0] > 0


@njit(cache=True)
def offload(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    order: IntArray,
    misses: int,
) -> tuple[IntArray, IntArray]:
    """Choose the jobs for the edge (step 2, Algorithm 1); return them and their modes.

    The plans of the chosen jobs are those on the edge; their cloud units are not given back, since
    the cloud is planned anew.

    * Rule 1: a job on the edge stays, while servers last.
    * Rule 2, if cloud GPUs are left over now: a job that an edge server completes in time moves
      there, first fit.
    * Rule 3, if some job misses: late jobs that hold less than their most GPUs move there, the one
      with the least deadline minus estimated end first.
    """
    num_jobs = len(jobs.work)
    chosen = np.empty(num_jobs, dtype=np.int64)
    with_mode = np.empty(num_jobs, dtype=np.int64)
    taken = np.zeros(num_jobs, dtype=np.bool_)
    count = 0
    left_over = free_now(timeline, True) > 0
    if rules.rule_1:
        for j in order:
            if stays_on_edge(timeline, jobs, modes, j):
                edge_run(sketch, timeline, jobs, modes, j, jobs.run_mode[j])
                commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
                chosen[count], with_mode[count], taken[j] = j, jobs.run_mode[j], True
                count += 1
    if rules.rule_2 and left_over:
        for j in order:
            if taken[j] or not _may_move(jobs, j):
                continue
            for k in range(timeline.free.shape[0]):
                mode = -1 if timeline.is_cloud[k] else edge_mode(jobs, j, k)
                if mode < 0 or not edge_run(sketch, timeline, jobs, modes, j, mode):
                    continue
                commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
                chosen[count], with_mode[count], taken[j] = j, mode, True
                count += 1
                break
    if rules.rule_3 and misses > 0:
        for j in _hopeless_first(timeline, plans, jobs, modes, rules, order, taken):
            for k in range(timeline.free.shape[0]):
                mode = -1 if timeline.is_cloud[k] else edge_mode(jobs, j, k)
                piece = jobs.first_piece[j]
                if mode < 0 or piece >= timeline.size[0] or timeline.free[k, piece] <= 0:
                    continue
                edge_run(sketch, timeline, jobs, modes, j, mode)
                commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
                chosen[count], with_mode[count], taken[j] = j, mode, True
                count += 1
                break
    return chosen[:count], with_mode[:count]


@kernel
def _may_move(jobs: Jobs, j: int) -> bool:
    """Whether job j may begin a run on another site: a moldable job that runs may not."""
    return jobs.malleable[j] or jobs.run_mode[j] < 0


@njit(cache=True)
def _hopeless_first(
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    order: IntArray,
    taken: BoolArray,
) -> IntArray:
    """Return the candidates of rule 3 by rising deadline minus estimated end."""
    late = np.empty(len(order), dtype=np.int64)
    priority = np.empty(len(order))
    count = 0
    for j in order:
        if taken[j] or plans.met[j] or not _may_move(jobs, j):
            continue
        held = now_mode(timeline, plans, j)
        held_units = 0 if held < 0 else modes.units[held]
        held_site = -1 if held < 0 else modes.site[held]
        more, best_rate, free_rate = False, 0.0, 0.0
        for k in range(timeline.free.shape[0]):
            if not timeline.is_cloud[k]:
                continue
            room = timeline.free[k, 0] + (held_units if k == held_site else 0)
            for at in range(jobs.level_start[j, k], jobs.level_start[j, k + 1]):
                mode = jobs.level_mode[at]
                more = more or held < 0 or (k == held_site and modes.units[mode] > held_units)
                best_rate = max(best_rate, modes.rate[mode])
                if modes.units[mode] <= room:
                    free_rate = max(free_rate, modes.rate[mode])
        if held >= 0 and not more:
            continue
        rate = free_rate if rules.hopeless_by == BY_FREE_GPUS else best_rate
        end = math.inf
        if rules.hopeless_by == BY_PLAN:
            end = plans.completion[j]
        elif rate > 0.0:
            end = timeline.times[min(jobs.first_piece[j], timeline.size[0])] + jobs.work[j] / rate
        late[count], priority[count] = j, jobs.deadline[j] - end
        count += 1
    return late[np.argsort(priority[:count], kind="mergesort")]


@kernel
def _next_level(
    timeline: Timeline, plans: Plans, jobs: Jobs, modes: Modes, j: int, held: int
) -> int:
    """Return the next level that job j could hold now, given what is free, -1 = none."""
    if held >= 0:
        site, units = modes.site[held], modes.units[held]
        if not timeline.is_cloud[site]:
            return -1
        for at in range(jobs.level_start[j, site], jobs.level_start[j, site + 1]):
            mode = jobs.level_mode[at]
            if modes.units[mode] > units:
                return mode if modes.units[mode] - units <= timeline.free[site, 0] else -1
        return -1
    planned = modes.site[plans.mode[plans.first[j]]] if plans.segments[j] > 0 else -1
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k] or (planned >= 0 and k != planned):
            continue
        at = jobs.level_start[j, k]
        if at < jobs.level_start[j, k + 1]:
            mode = jobs.level_mode[at]
            if modes.units[mode] <= timeline.free[k, 0]:
                return mode
    return -1


@kernel
def more_now(
    sketch: Sketch, timeline: Timeline, plans: Plans, jobs: Jobs, modes: Modes, rules: Rules, j: int
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
    site, deadline = modes.site[mode], jobs.deadline[j]
    hold(timeline, modes, plans, j, 1)
    begin(sketch, jobs, j)
    start, end = timeline.times[0], timeline.times[1]
    if not extend(sketch, timeline, jobs, modes, j, mode, start, end, math.inf):
        done = rules.slack_s > 0.0 and share(
            sketch, timeline, jobs, modes, j, site, 1, deadline - rules.slack_s, rules.two_level
        )
        done = done or share(sketch, timeline, jobs, modes, j, site, 1, deadline, rules.two_level)
        if not done and not plans.met[j]:
            most(sketch, timeline, jobs, modes, j, site, 1, math.inf)
    hold(timeline, modes, plans, j, -1)
    if plans.met[j] and sketch.number[COMPLETION] > deadline:
        return -1, 0.0
    extra = modes.units[mode] - (modes.units[held] if held >= 0 else 0)
    score = (plans.gpu_s[j] - sketch.number[GPU_S]) / extra
    if not math.isfinite(score):
        score = -1e300
    return (0 if held < 0 else 1), score


@njit(cache=True)
def scale(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    order: IntArray,
) -> None:
    """Hand out the cloud GPUs left over now, one level at a time (step 3).

    Jobs that hold nothing now come first, then the best score. Scores are computed anew when a job
    comes to the front, and it goes back into the queue where it is no longer the best: what others
    were given in the meantime lowers scores and never raises them by much.
    """
    queue = [(0, 0.0, -1)]
    queue.pop()
    reserved_only = rules.select or rules.late == LATE_NOTHING
    for j in order:
        if free_now(timeline, True) <= 0:
            break
        if jobs.first_piece[j] > 0 or not jobs.malleable[j]:
            continue
        if reserved_only and not plans.met[j]:
            continue
        group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
        if group >= 0:
            heapq.heappush(queue, (group, -score, j))
    while len(queue) > 0 and free_now(timeline, True) > 0:
        j = heapq.heappop(queue)[2]
        group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
        if group < 0:
            continue
        if len(queue) > 0 and (group, -score, j) > queue[0]:
            heapq.heappush(queue, (group, -score, j))
            continue
        drop(timeline, modes, plans, j)
        commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
        group, score = more_now(sketch, timeline, plans, jobs, modes, rules, j)
        if group >= 0:
            heapq.heappush(queue, (group, -score, j))


@kernel
def _best_left_over(
    sketch: Sketch, timeline: Timeline, plans: Plans, jobs: Jobs, modes: Modes, j: int, limit: float
) -> bool:
    """Lengthen the plan of job j by what one site has left over until `limit`; return if it helps.

    The site that leaves least work undone, then the one that completes the job first.
    """
    sites = timeline.free.shape[0]
    best, best_left, best_end = -1, math.inf, math.inf
    drawn = -1
    # One more turn than there are sites draws the best one again.
    for turn in range(sites + 1):
        site = turn if turn < sites else best
        if site < 0:
            return False
        if turn == sites and drawn == best:
            break
        piece = load(sketch, timeline, plans, jobs, modes, j)
        before = sketch.number[LEFT]
        if not jobs.malleable[j]:
            if plans.segments[j] > 0 or not rigid(sketch, timeline, jobs, modes, j, site, limit):
                continue
        elif timeline.is_cloud[site]:
            most(sketch, timeline, jobs, modes, j, site, piece, limit)
        else:
            _edge_left_over(sketch, timeline, jobs, modes, j, site, piece, limit)
        drawn = site
        left, end = sketch.number[LEFT], sketch.number[COMPLETION]
        better = left < best_left or (left == best_left and end < best_end)
        if turn < sites and left < before and better:
            best, best_left, best_end = site, left, end
    drop(timeline, modes, plans, j)
    commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
    return True


@kernel
def _edge_left_over(
    sketch: Sketch,
    timeline: Timeline,
    jobs: Jobs,
    modes: Modes,
    j: int,
    site: int,
    piece: int,
    limit: float,
) -> None:
    """Extend the sketch by a run on an edge site from the first free server on."""
    mode = edge_mode(jobs, j, site)
    held = sketch.state[MODE]
    if held >= 0 and modes.site[held] == site:
        mode = held
    if mode < 0:
        return
    first = piece
    while first < timeline.size[0] and timeline.free[site, first] <= 0:
        first += 1
    if first > piece:
        sketch.state[MODE] = -1
    unbroken(sketch, timeline, jobs, modes, j, mode, first, limit)


@njit(cache=True)
def fill(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    order: IntArray,
    refused: BoolArray,
) -> None:
    """Give what is left over to jobs that are not done: first up to their deadlines, then beyond.

    The ones that need least per weight come first; best-effort jobs come last.
    """
    open_jobs = np.empty(len(jobs.work), dtype=np.int64)
    count = 0
    for j in order:
        if plans.completion[j] == math.inf and not refused[j]:
            open_jobs[count] = j
            count += 1
    unmet = by_size(jobs, modes, timeline, open_jobs[:count])
    for j in unmet:
        if plans.segments[j] == 0:
            _best_left_over(sketch, timeline, plans, jobs, modes, j, jobs.deadline[j])
    for j in unmet:
        if plans.completion[j] == math.inf:
            _best_left_over(sketch, timeline, plans, jobs, modes, j, math.inf)
    count = 0
    for j in range(len(jobs.work)):
        if jobs.deadline[j] == math.inf and not refused[j]:
            open_jobs[count] = j
            count += 1
    for j in by_size(jobs, modes, timeline, open_jobs[:count]):
        _best_left_over(sketch, timeline, plans, jobs, modes, j, math.inf)
