"""Kernels that plan one job on an edge server: one server, one mode, one run.

The edge mode of a job is its one level there, see :class:`~edgeflow_opt.solvers.greedy.tables.Modes`.
"""

from __future__ import annotations

import math

from edgeflow_opt.solvers.greedy.plans import commit, replace
from edgeflow_opt.solvers.greedy.sketch import begin, earliest_run, unbroken
from edgeflow_opt.solvers.greedy.tables import Desk, kernel


@kernel
def edge_mode(desk: Desk, j: int, site: int) -> int:
    """Return the mode of job j on `site`, -1 = none, or it is no edge site."""
    modes = desk.modes
    at = modes.level_start[j, site]
    if desk.timeline.is_cloud[site] or at >= modes.level_start[j, site + 1]:
        return -1
    return modes.level_mode[at]


@kernel
def may_move(desk: Desk, j: int) -> bool:
    """Whether job j may begin a run on another site: a moldable job that runs may not."""
    return desk.jobs[j].malleable or desk.jobs[j].run_mode < 0


@kernel
def stays_on_edge(desk: Desk, j: int) -> bool:
    """Whether job j runs on an edge site that has a server left."""
    mode, timeline = desk.jobs[j].run_mode, desk.timeline
    if mode < 0 or timeline.is_cloud[desk.modes.table[mode].site]:
        return False
    return timeline.free[desk.modes.table[mode].site, 0] > 0


@kernel
def edge_run(desk: Desk, j: int, mode: int) -> bool:
    """Draw the run of job j in the edge mode `mode` from its first piece on, while servers last.

    Returns whether it is done by its deadline.
    """
    begin(desk, j)
    piece = desk.jobs[j].first_piece
    if piece >= desk.timeline.state.size:
        return False
    unbroken(desk, j, mode, piece, math.inf)
    return desk.sketch.plan.completion <= desk.jobs[j].deadline


@kernel
def place(desk: Desk, j: int, mode: int) -> None:
    """Make the run of job j in the edge mode `mode`, while servers last, its plan."""
    edge_run(desk, j, mode)
    commit(desk, j)


@kernel
def free_server_mode(desk: Desk, j: int) -> int:
    """Return the mode of job j on the first edge site that has a server when it may begin, -1 = none."""
    piece, timeline = desk.jobs[j].first_piece, desk.timeline
    if piece >= timeline.state.size:
        return -1
    for k in range(timeline.free.shape[0]):
        mode = edge_mode(desk, j, k)
        if mode >= 0 and timeline.free[k, piece] > 0:
            return mode
    return -1


@kernel
def to_edge(desk: Desk, j: int) -> bool:
    """Plan job j on an edge site that completes it in time, in place of a plan that it has.

    It takes the first such site, and there the earliest free stretch of a server that is long
    enough. Returns whether there is one; if not, its plan stays.
    """
    if not may_move(desk, j):
        return False
    for k in range(desk.timeline.free.shape[0]):
        mode = edge_mode(desk, j, k)
        if mode >= 0 and earliest_run(desk, j, mode, desk.jobs[j].deadline):
            replace(desk, j)
            return True
    return False
