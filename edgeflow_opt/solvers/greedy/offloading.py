"""Kernels of step 2: the jobs that go to the edge, by the rules of Algorithm 1.

Source: Gu, Jin, Liu, Journal of Software 36(12), 2025, Algorithm 1. What its text leaves open is an
option, see :class:`~edgeflow_opt.solvers.greedy.options.GreedyOptions`.
"""

from __future__ import annotations

import math

from edgeflow_opt.solvers.greedy.cloud import surely_late
from edgeflow_opt.solvers.greedy.edge import (
    edge_mode,
    edge_run,
    free_server_mode,
    may_move,
    place,
    stays_on_edge,
)
from edgeflow_opt.solvers.greedy.job_queue import length, pop, push
from edgeflow_opt.solvers.greedy.plans import commit, now_mode
from edgeflow_opt.solvers.greedy.tables import Desk, Lists, kernel
from edgeflow_opt.solvers.greedy.timeline import cloud_free_now

# Codes of the option `hopeless_by`, see CHOICES.
BY_MAX_GPUS, BY_FREE_GPUS, BY_PLAN = 0, 1, 2


@kernel
def offload(desk: Desk, lists: Lists, count: int, misses: int) -> int:
    """Choose the jobs for the edge among the first `count` that are listed; return how many.

    The first places of `lists.moved` are then the chosen jobs, and `lists.mode_of` tells their
    modes there. The plans of the chosen jobs are those on the edge; their cloud units are not given
    back, since the cloud is planned anew.

    * Rule 1: a job on the edge stays, while servers last: :func:`keep_on_edge`.
    * Rule 2, if cloud GPUs are left over now: a job that an edge server completes in time moves
      there, first fit.
    * Rule 3, if some job misses (`misses` > 0): late jobs that hold less than their most GPUs move
      there, the one with the least deadline minus estimated end first. Not here if it plans anew
      after each move.

    Jobs that are not `lists.known` have no plan yet. If the choice depends on what it would be, -1
    is returned, and the state is void.
    """
    rules, mode_of = desk.rules, lists.mode_of
    left_over = cloud_free_now(desk.timeline)
    num_moved = keep_on_edge(desk, lists, count)
    for turn in range(count if rules.rule_2 and left_over else 0):
        j = lists.listed[turn]
        if mode_of[j] >= 0 or not may_move(desk, j):
            continue
        for k in range(desk.timeline.free.shape[0]):
            mode = edge_mode(desk, j, k)
            if mode >= 0 and edge_run(desk, j, mode):
                commit(desk, j)
                num_moved = note_move(lists, num_moved, j, mode)
                break
    if rules.rule_3 and misses > 0 and not rules.one_by_one:
        join_late(desk, lists, count)
        while length(lists.queue) > 0:
            j = pop(lists.queue)
            mode = free_server_mode(desk, j)
            if mode < 0:
                continue
            if not lists.known[j] and not surely_late(desk, j):
                return -1
            place(desk, j, mode)
            num_moved = note_move(lists, num_moved, j, mode)
    return num_moved


@kernel
def note_move(lists: Lists, num_moved: int, j: int, mode: int) -> int:
    """Note that job j goes to the edge after `num_moved` others; return how many that makes."""
    lists.moved[num_moved] = j
    lists.mode_of[j] = mode
    return num_moved + 1


@kernel
def keep_on_edge(desk: Desk, lists: Lists, count: int) -> int:
    """Let the listed jobs on the edge stay there, while servers last (rule 1); return how many do."""
    num_moved = 0
    for turn in range(count if desk.rules.rule_1 else 0):
        j = lists.listed[turn]
        if stays_on_edge(desk, j):
            place(desk, j, desk.jobs[j].run_mode)
            num_moved = note_move(lists, num_moved, j, desk.jobs[j].run_mode)
    return num_moved


@kernel
def place_on_edge(desk: Desk, lists: Lists, num_moved: int) -> None:
    """Plan the first jobs that were moved on the edge again, in the same order and modes."""
    for i in range(num_moved):
        place(desk, lists.moved[i], lists.mode_of[lists.moved[i]])


@kernel
def join_late(desk: Desk, lists: Lists, count: int) -> None:
    """Put the listed jobs of rule 3 in the queue, the most hopeless first, see :func:`offload`.

    The key is the cloud-resource-usage priority of Algorithm 1, deadline minus estimated end.
    """
    for turn in range(count):
        j = lists.listed[turn]
        if lists.mode_of[j] >= 0 or desk.plans.table[j].met or not may_move(desk, j):
            continue
        wants_more, end = _prospect(desk, j)
        if wants_more:
            push(lists.queue, desk.jobs[j].deadline - end, float(turn), j)


@kernel
def _prospect(desk: Desk, j: int) -> tuple[bool, float]:
    """Return whether job j holds less than its most GPUs, and its end as `hopeless_by` guesses."""
    jobs, modes, timeline = desk.jobs, desk.modes, desk.timeline
    held = now_mode(desk, j)
    held_units = 0 if held < 0 else modes.table[held].units
    held_site = -1 if held < 0 else modes.table[held].site
    more, most_rate, free_rate = held < 0, 0.0, 0.0
    for k in range(timeline.free.shape[0]):
        if not timeline.is_cloud[k]:
            continue
        room = timeline.free[k, 0] + (held_units if k == held_site else 0)
        for at in range(modes.level_start[j, k], modes.level_start[j, k + 1]):
            mode = modes.level_mode[at]
            more = more or (k == held_site and modes.table[mode].units > held_units)
            most_rate = max(most_rate, modes.table[mode].rate)
            if modes.table[mode].units <= room:
                free_rate = max(free_rate, modes.table[mode].rate)
    rate = free_rate if desk.rules.hopeless_by == BY_FREE_GPUS else most_rate
    end = math.inf
    if desk.rules.hopeless_by == BY_PLAN:
        end = desk.plans.table[j].completion
    elif rate > 0.0:
        end = timeline.times[min(jobs[j].first_piece, timeline.state.size)] + jobs[j].work / rate
    return more, end
