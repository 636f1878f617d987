"""Kernel that lets jobs run on edge servers while they wait for their share of the cloud.

An edge server seldom completes a job in time that many GPUs were asked for, so that selection by
itself hardly uses the edge. What is done there meanwhile need not be done in the cloud.
"""

from __future__ import annotations

from edgeflow_opt.solvers.greedy.cloud import plan_met
from edgeflow_opt.solvers.greedy.edge import edge_mode
from edgeflow_opt.solvers.greedy.plans import hold, now_mode, replace
from edgeflow_opt.solvers.greedy.sketch import begin, unbroken
from edgeflow_opt.solvers.greedy.tables import (
    FIRST_PIECE,
    GIVE_BACK,
    NONE,
    TAKE_AGAIN,
    Desk,
    Lists,
    kernel,
)
from edgeflow_opt.solvers.greedy.timeline import edge_free_now, locate


@kernel
def wait_on_edge(desk: Desk, lists: Lists, count: int) -> None:
    """Let those of the first `count` jobs in order that are met, but hold nothing now, run on the edge.

    A job takes the first site with a free server on which what it does until its share begins
    leaves less GPU time for the cloud, losses included; it stays met.
    """
    jobs, table, timeline = desk.jobs, desk.plans.table, desk.timeline
    for i in range(count):
        if not edge_free_now(timeline):
            return
        j = lists.order[i]
        if not table[j].met or not jobs[j].malleable or jobs[j].first_piece > FIRST_PIECE:
            continue
        if table[j].segments == 0:
            # No room was left to write its plan down; all is planned again with more.
            continue
        if now_mode(desk, j) >= 0:
            continue
        for k in range(timeline.free.shape[0]):
            mode = edge_mode(desk, j, k)
            if mode >= 0 and timeline.free[k, FIRST_PIECE] > 0 and _saves(desk, j, mode):
                replace(desk, j)
                break


@kernel
def _saves(desk: Desk, j: int, mode: int) -> bool:
    """Draw the plan of job j with a run in the edge mode `mode` before it; return whether it saves."""
    plan, before = desk.sketch.plan, desk.plans.table[j].gpu_s
    start = desk.plans.pool[desk.plans.table[j].first].start
    hold(desk, j, GIVE_BACK)
    begin(desk, j)
    done = unbroken(desk, j, mode, FIRST_PIECE, start)
    on_edge = plan.gpu_s
    if not done:
        end = desk.sketch.pool[plan.segments - 1].end
        done = plan_met(desk, j, locate(desk.timeline, end), NONE)
    hold(desk, j, TAKE_AGAIN)
    return done and plan.completion <= desk.jobs[j].deadline and plan.gpu_s - on_edge < before
