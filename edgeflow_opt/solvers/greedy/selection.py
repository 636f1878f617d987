"""Kernel of job selection under overload, in the manner of Moore and Hodgson.

Moore (Management Science 15(1), 1968) minimises the number of late jobs of one machine: in deadline
order, whenever a job does not fit, the largest accepted so far goes. Here a job takes a plan of
least GPUs instead of the machine, its size is its GPU time per weight, and the one that goes may
find an edge server that completes it.
"""

from __future__ import annotations

from edgeflow_opt.problem.arrays import IntArray
from edgeflow_opt.solvers.greedy.cloud import plan_met, size_of, to_cloud, too_late
from edgeflow_opt.solvers.greedy.edge import edge_run, stays_on_edge, to_edge
from edgeflow_opt.solvers.greedy.job_queue import length, pop, push
from edgeflow_opt.solvers.greedy.plans import commit, drop, hold, planned_site
from edgeflow_opt.solvers.greedy.sketch import begin
from edgeflow_opt.solvers.greedy.tables import GIVE_BACK, NONE, TAKE_AGAIN, Desk, Lists, kernel


@kernel
def select(desk: Desk, lists: Lists, ranked: IntArray, num_jobs: int, num_chosen: int) -> None:
    """Plan the jobs of `ranked` that can be met together; the others reserve nothing.

    Only its first `num_jobs` places count, of which the first `num_chosen`, by deadline, are
    selected from; the others are out from the start.

    A job on the edge stays there if that completes it in time. When a job does not fit the cloud,
    a larger one goes to an edge server that completes it; else the job itself does; else the
    larger one is out if that makes room; else the job is out. If any is out at the end, edge
    servers take from the cloud whom they complete in time, the largest first, and those that are
    out are tried once more, the smallest first. Jobs whose time is over are out without all that.
    """
    jobs, queue, out = desk.jobs, lists.queue, lists.spare
    num_out, some_out = 0, num_jobs > num_chosen
    for i in range(num_chosen if desk.rules.rule_1 else 0):
        j = ranked[i]
        if stays_on_edge(desk, j) and edge_run(desk, j, jobs[j].run_mode):
            commit(desk, j)
    # The queue has the jobs in the cloud that may have to go, the largest first.
    for i in range(num_chosen):
        j = ranked[i]
        if desk.plans.table[j].segments > 0:
            continue
        if too_late(desk, j):
            some_out = True
            continue
        size = size_of(desk, j)
        in_cloud = to_cloud(desk, j)
        if not in_cloud:
            largest = -1
            if length(queue) > 0 and (jobs[j].must or -queue[1].first > size):
                largest = queue[1].job
            loser = _make_room(desk, j, largest)
            if largest >= 0 and not _in_cloud(desk, largest):
                pop(queue)
            if loser >= 0:
                out[num_out] = loser
                num_out += 1
                some_out = True
            in_cloud = _in_cloud(desk, j)
        if in_cloud and not jobs[j].must:
            push(queue, -size, 0.0, j)
    for i in range(num_chosen, num_jobs):
        if not too_late(desk, ranked[i]):
            out[num_out] = ranked[i]
            num_out += 1
    # Whoever an edge server completes makes room in the cloud.
    while some_out and length(queue) > 0:
        to_edge(desk, pop(queue))
    queue[0].job = 0
    for i in range(num_out):
        push(queue, size_of(desk, out[i]), float(i), out[i])
    while length(queue) > 0:
        j = pop(queue)
        if not to_cloud(desk, j):
            to_edge(desk, j)


@kernel
def _make_room(desk: Desk, j: int, largest: int) -> int:
    """Find a place for job j, which does not fit the cloud, maybe in that of the `largest` job.

    Returns the job that is out: -1 = none, `j`, or `largest`.
    """
    if largest >= 0:
        hold(desk, largest, GIVE_BACK)
        begin(desk, j)
        fits = plan_met(desk, j, desk.jobs[j].first_piece, NONE)
        hold(desk, largest, TAKE_AGAIN)
        if not fits:
            largest = -1
    if largest < 0:
        return -1 if to_edge(desk, j) else j
    drop(desk, largest)
    moved = to_edge(desk, largest)
    if not moved and to_edge(desk, j):
        # Nobody has to go: the largest gets its place back.
        moved = to_cloud(desk, largest)
        return -1 if moved else largest
    to_cloud(desk, j)
    # What j leaves of the place may still do for the largest.
    if moved or to_cloud(desk, largest):
        return -1
    return largest


@kernel
def _in_cloud(desk: Desk, j: int) -> bool:
    """Whether job j has a plan on a cloud site."""
    site = planned_site(desk, j)
    return site >= 0 and desk.timeline.is_cloud[site]
