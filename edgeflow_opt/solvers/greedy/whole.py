"""The whole heuristic as one kernel: the order of its steps, and what may be left out."""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, IntArray
from edgeflow_opt.solvers.greedy.edge import free_server_mode
from edgeflow_opt.solvers.greedy.job_queue import length, pop
from edgeflow_opt.solvers.greedy.left_overs import fill
from edgeflow_opt.solvers.greedy.minimum_shares import ALWAYS, FULL, MISSED, minimum_shares
from edgeflow_opt.solvers.greedy.offloading import (
    BY_PLAN,
    join_late,
    keep_on_edge,
    note_move,
    offload,
    place_on_edge,
)
from edgeflow_opt.solvers.greedy.plans import start_again
from edgeflow_opt.solvers.greedy.scaling import scale
from edgeflow_opt.solvers.greedy.selection import select
from edgeflow_opt.solvers.greedy.tables import (
    Capacity,
    Desk,
    Lists,
    Records,
    entry,
    kernel,
    written_out,
)
from edgeflow_opt.solvers.greedy.timeline import edge_free_now
from edgeflow_opt.solvers.greedy.waiting import wait_on_edge

#: Rows of the work space of :func:`plan_all`, and those that tell who holds what now.
WORK_ROWS, HOLDERS, HELD = 7, 5, 6

# Codes of the option `admission`, see CHOICES.
ADMIT_ALL, ADMIT_TOGETHER, ADMIT_ONE_BY_ONE = 0, 1, 2

# Arguments of kernels, see `tables`.
YES, NO, NOBODY = np.bool_(True), np.bool_(False), np.int64(0)


@kernel
def _before(jobs: Records, one: int, other: int) -> bool:
    """Whether job `one` is planned before job `other`, which stands before it in the list.

    Jobs that must be met come first, then the earlier deadline, then the larger weight.
    """
    if jobs[one].must != jobs[other].must:
        return jobs[one].must
    if jobs[one].deadline != jobs[other].deadline:
        return jobs[one].deadline < jobs[other].deadline
    return jobs[one].weight > jobs[other].weight


@kernel
def _merge(
    jobs: Records, source: IntArray, into: IntArray, first: int, middle: int, last: int
) -> None:
    """Merge the jobs at ``first : middle`` and ``middle : last`` of `source`, both in order."""
    one, other = first, middle
    for at in range(first, last):
        if other >= last or (one < middle and not _before(jobs, source[other], source[one])):
            into[at] = source[one]
            one += 1
        else:
            into[at] = source[other]
            other += 1


@kernel
def _in_deadline_order(jobs: Records, lists: Lists) -> int:
    """Write the jobs with deadlines into `lists.order`, see :func:`_before`; return how many.

    By merging: heaps take three times as long, and so does compiling the sort of numba.
    """
    order, spare = lists.order, lists.spare
    count = 0
    for j in range(len(jobs)):
        if jobs[j].deadline < math.inf:
            order[count] = j
            count += 1
    width = 1
    while width < count:
        # Two rounds at a time, so that the jobs end where they began.
        for first in range(0, count, 2 * width):
            middle = min(first + width, count)
            _merge(jobs, order, spare, first, middle, min(first + 2 * width, count))
        for first in range(0, count, 4 * width):
            middle = min(first + 2 * width, count)
            _merge(jobs, spare, order, first, middle, min(first + 4 * width, count))
        width *= 4
    return count


@kernel
def _pick(
    source: IntArray, count: int, marks: BoolArray, marked: bool, into: IntArray, at: int
) -> int:
    """Write those of the first `count` jobs of `source` that are `marked`, or are not, into `into`.

    They keep their order, and begin at place `at`, which is returned as it is after the last one;
    `into` may be `source` itself.
    """
    for i in range(count):
        if marks[source[i]] == marked:
            into[at] = source[i]
            at += 1
    return at


@kernel
def _share_out(
    desk: Desk,
    lists: Lists,
    capacity: Capacity,
    order: IntArray,
    count: int,
    num_moved: int,
    until: int,
) -> tuple[int, int]:
    """Plan all anew: the jobs moved to the edge there, then minimum shares for those of `order`.

    See :func:`~edgeflow_opt.solvers.greedy.minimum_shares.minimum_shares` for what is returned.
    """
    start_again(desk, capacity.times, capacity.free)
    place_on_edge(desk, lists, num_moved)
    return minimum_shares(desk, order, count, until, lists.spare)


@written_out
def _admit(desk: Desk, lists: Lists, capacity: Capacity, num_jobs: int) -> None:
    """Note which of the fresh jobs admission control refuses, looked at in order of the list.

    Of the plans nothing remains that anyone may use.
    """
    jobs, refused, kept = desk.jobs, lists.refused, lists.listed
    some = False
    for j in range(len(jobs)):
        some = some or jobs[j].fresh
    if desk.rules.admission == ADMIT_ALL or not some:
        return
    together = desk.rules.admission == ADMIT_TOGETHER
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
        count = _pick(lists.order, num_jobs, refused, NO, kept, NOBODY)
        now_late, _ = _share_out(desk, lists, capacity, kept, count, NOBODY, until)
        if j >= 0:
            refused[j] = now_late > misses
        else:
            misses = now_late
    if together and misses > 0:
        for j in range(len(jobs)):
            refused[j] = jobs[j].fresh


@kernel
def _move_one_by_one(
    desk: Desk, lists: Lists, capacity: Capacity, count: int, num_moved: int
) -> None:
    """Plan the cloud around the jobs on the edge; while jobs are late, move the most hopeless there.

    This is rule 3 of Algorithm 1 where `rule_3_ends` is ``"none_late"``, see
    :func:`~edgeflow_opt.solvers.greedy.offloading.offload`.
    """
    found = True
    while found:
        misses, _ = _share_out(desk, lists, capacity, lists.order, count, num_moved, ALWAYS)
        found = False
        if misses > 0:
            join_late(desk, lists, count)
        while length(lists.queue) > 0 and not found:
            j = pop(lists.queue)
            mode = free_server_mode(desk, j)
            if mode >= 0:
                num_moved = note_move(lists, num_moved, j, mode)
                found = True
        lists.queue[0].job = 0


@written_out
def _as_published(desk: Desk, lists: Lists, capacity: Capacity, count: int) -> None:
    """Plan steps 1 and 2, and step 1 again around the jobs on the edge.

    Where only what is held now is asked for: jobs that stay on the edge, and these alone, decide
    whether rules 2 and 3 find a server there; if not, the first plans are of no use. Once the cloud
    is full now, no plan can add anything to what is held, but for the edge, see
    :func:`~edgeflow_opt.solvers.greedy.offloading.offload`.
    """
    rules, known, order = desk.rules, lists.known, lists.order
    _list_jobs(desk, lists, count)
    until = ALWAYS
    if rules.now_only:
        start_again(desk, capacity.times, capacity.free)
        keep_on_edge(desk, lists, count)
        if not edge_free_now(desk.timeline):
            minimum_shares(desk, order, count, FULL, lists.spare)
            return
        if rules.hopeless_by != BY_PLAN and not rules.one_by_one:
            until = FULL | MISSED
    num_moved = -1
    while num_moved < 0:
        misses, done = _share_out(desk, lists, capacity, order, count, NOBODY, until)
        for j in range(len(desk.jobs)):
            lists.mode_of[j] = -1
            known[j] = False
        for i in range(done):
            known[order[i]] = True
        num_moved = offload(desk, lists, count, misses)
        # If it cannot be told, all plans have to be made.
        lists.queue[0].job = 0
        until = ALWAYS
    if rules.rule_3 and rules.one_by_one:
        _move_one_by_one(desk, lists, capacity, count, num_moved)
    elif num_moved > 0 or done < count:
        start_again(desk, capacity.times, capacity.free)
        place_on_edge(desk, lists, num_moved)
        full = rules.now_only and not edge_free_now(desk.timeline)
        minimum_shares(desk, order, count, FULL if full else ALWAYS, lists.spare)


@kernel
def _list_jobs(desk: Desk, lists: Lists, count: int) -> None:
    """Write the first `count` jobs of the order into `lists.listed`, in that order or by number."""
    if desk.rules.by_deadline:
        for i in range(count):
            lists.listed[i] = lists.order[i]
        return
    for j in range(len(desk.jobs)):
        lists.known[j] = False
    for i in range(count):
        lists.known[lists.order[i]] = True
    num_listed = 0
    for j in range(len(desk.jobs)):
        if lists.known[j]:
            lists.listed[num_listed] = j
            num_listed += 1


@entry
def plan_all(
    desk: Desk,
    capacity: Capacity,
    chosen: BoolArray,
    refused: BoolArray,
    queue: Records,
    known: BoolArray,
    rows: IntArray,
) -> int:
    """Plan all jobs, on the free units as they are at first: ``free[k, s]`` from ``times[s]`` on.

    `chosen` is given, and `refused` (false before) notes the answer, see
    :class:`~edgeflow_opt.solvers.greedy.tables.Lists`; the others are work space for its fields.
    The integer ones lie in the rows of one array, since a call of a kernel pays for each array.

    Returns
    -------
    holders
        How many jobs hold a mode at time 0; these are the first in row :data:`HOLDERS`, their modes
        in row :data:`HELD`.
    """
    lists = Lists(
        queue, chosen, refused, known, rows[0], rows[1], rows[2], rows[3], rows[4], rows[HOLDERS],
        rows[HELD],
    )  # fmt: skip
    rules, plans = desk.rules, desk.plans
    lists.queue[0].job = 0
    count = _in_deadline_order(desk.jobs, lists)
    _admit(desk, lists, capacity, count)
    count = _pick(lists.order, count, lists.refused, NO, lists.order, NOBODY)
    if rules.select_jobs:
        ranked = lists.listed
        num_chosen = _pick(lists.order, count, lists.chosen, YES, ranked, NOBODY)
        _pick(lists.order, count, lists.chosen, NO, ranked, num_chosen)
        start_again(desk, capacity.times, capacity.free)
        select(desk, lists, ranked, count, num_chosen)
    else:
        _as_published(desk, lists, capacity, count)
    if rules.elastic:
        scale(desk, lists, count)
    if rules.wait_on_edge:
        wait_on_edge(desk, lists, count)
    if rules.fill:
        fill(desk, lists, count)
    holders = 0
    for j in range(len(desk.jobs)):
        first = plans.table[j].first
        if plans.table[j].segments > 0 and plans.pool[first].start <= 0.0:
            lists.holders[holders] = j
            lists.held[holders] = plans.pool[first].mode
            holders += 1
    return holders
