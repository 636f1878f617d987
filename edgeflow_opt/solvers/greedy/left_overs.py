"""Kernels that give what is left over at the end to jobs that are not done.

The paper knows no such jobs (best effort, or nothing reserved): the option `fill`, see
:class:`~edgeflow_opt.solvers.greedy.options.GreedyOptions`.
"""

from __future__ import annotations

import math

from edgeflow_opt.solvers.greedy.cloud import most, rigid, size_of, too_late
from edgeflow_opt.solvers.greedy.edge import edge_mode
from edgeflow_opt.solvers.greedy.job_queue import length, pop, push
from edgeflow_opt.solvers.greedy.plans import replace
from edgeflow_opt.solvers.greedy.sketch import load, unbroken
from edgeflow_opt.solvers.greedy.tables import NONE, Desk, Lists, kernel
from edgeflow_opt.solvers.greedy.timeline import cloud_free_now, edge_free_now


@kernel
def fill(desk: Desk, lists: Lists, count: int) -> None:
    """Give what is left over to jobs that are not done: first up to their deadlines, then beyond.

    Of the first `count` in order those that need least per weight come first; then the best-effort
    jobs that are not refused, in the same way. Where only what is held now is asked for, it ends
    when no unit is left now.
    """
    table, jobs, queue = desk.plans.table, desk.jobs, lists.queue
    if _nothing_to_give(desk):
        return
    for turn in range(2):
        by_deadline = turn == 0
        for i in range(count):
            j = lists.order[i]
            if table[j].completion < math.inf:
                continue
            if not by_deadline or (table[j].segments == 0 and not too_late(desk, j)):
                push(queue, size_of(desk, j), float(i), j)
        while length(queue) > 0:
            j = pop(queue)
            _best_left_over(desk, j, jobs[j].deadline if by_deadline else math.inf)
            if _nothing_to_give(desk):
                return
    for j in range(len(jobs)):
        if jobs[j].deadline == math.inf and not lists.refused[j]:
            push(queue, size_of(desk, j), float(j), j)
    while length(queue) > 0 and not _nothing_to_give(desk):
        _best_left_over(desk, pop(queue), math.inf)


@kernel
def _nothing_to_give(desk: Desk) -> bool:
    """Whether only what is held now is asked for, and no unit of any site is left now."""
    return desk.rules.now_only and not (
        cloud_free_now(desk.timeline) or edge_free_now(desk.timeline)
    )


@kernel
def _best_left_over(desk: Desk, j: int, limit: float) -> None:
    """Lengthen the plan of job j by what one site has left over until `limit`, if that helps.

    The site that leaves least work undone, then the one that completes the job first.
    """
    sites, plan = desk.timeline.free.shape[0], desk.sketch.plan
    best, best_left, best_end = NONE, math.inf, math.inf
    drawn = -1
    # One more turn than there are sites draws the best one again.
    for turn in range(sites + 1):
        site = turn if turn < sites else best
        if site < 0:
            return
        if turn == sites and drawn == best:
            break
        drawn = site
        piece = load(desk, j)
        before = plan.left
        if not desk.jobs[j].malleable:
            if desk.plans.table[j].segments > 0 or not rigid(desk, j, site, limit):
                continue
        elif desk.timeline.is_cloud[site]:
            most(desk, j, site, piece, limit)
        else:
            _edge_left_over(desk, j, site, piece, limit)
        left, end = plan.left, plan.completion
        better = left < best_left or (left == best_left and end < best_end)
        if turn < sites and left < before and better:
            best, best_left, best_end = site, left, end
    replace(desk, j)


@kernel
def _edge_left_over(desk: Desk, j: int, site: int, piece: int, limit: float) -> None:
    """Extend the sketch by a run on an edge site from the first free server on."""
    timeline, plan = desk.timeline, desk.sketch.plan
    mode = edge_mode(desk, j, site)
    if plan.mode >= 0 and desk.modes.table[plan.mode].site == site:
        mode = plan.mode
    if mode < 0:
        return
    first = piece
    while first < timeline.state.size and timeline.free[site, first] <= 0:
        first += 1
    if first > piece:
        plan.mode = -1
    unbroken(desk, j, mode, first, limit)
