"""Kernels of a queue of jobs by two keys: a binary heap.

The heap stands in places 1, 2, ... of a table of entries; place 0 holds its length. It is our own
since sorting and the heaps of numba take seconds to compile.
"""

from __future__ import annotations

import numpy as np

from edgeflow_opt.solvers.greedy.tables import Records, kernel

#: A job in the queue; in place 0 `job` is the length.
ENTRY = np.dtype([("first", np.float64), ("second", np.float64), ("job", np.int64)], align=True)

#: Place of the first job.
FRONT = np.int64(1)


def new_queue(num_jobs: int) -> Records:
    """Return an empty queue with room for `num_jobs` entries."""
    return np.zeros(num_jobs + 2, dtype=ENTRY)


@kernel
def length(queue: Records) -> int:
    """Return the number of entries."""
    return queue[0].job


@kernel
def precedes(queue: Records, at: int, first: float, second: float, job: int) -> bool:
    """Whether the entry in place `at` comes before the keys and the job given."""
    if queue[at].first != first:
        return queue[at].first < first
    if queue[at].second != second:
        return queue[at].second < second
    return queue[at].job < job


@kernel
def put(queue: Records, at: int, first: float, second: float, job: int) -> None:
    """Write an entry into place `at`."""
    queue[at].first = first
    queue[at].second = second
    queue[at].job = job


@kernel
def push(queue: Records, first: float, second: float, job: int) -> None:
    """Add a job; those of smaller keys come first, of equal keys the smaller number."""
    queue[0].job += 1
    at = queue[0].job
    while at > 1 and not precedes(queue, at // 2, first, second, job):
        up = at // 2
        put(queue, at, queue[up].first, queue[up].second, queue[up].job)
        at = up
    put(queue, at, first, second, job)


@kernel
def pop(queue: Records) -> int:
    """Take out the first job and return it."""
    job = queue[1].job
    size = queue[0].job
    first, second, last = queue[size].first, queue[size].second, queue[size].job
    size -= 1
    queue[0].job = size
    at = FRONT
    while 2 * at <= size:
        down = 2 * at
        if down < size:
            right = queue[down + 1]
            if not precedes(queue, down, right.first, right.second, right.job):
                down += 1
        if not precedes(queue, down, first, second, last):
            break
        put(queue, at, queue[down].first, queue[down].second, queue[down].job)
        at = down
    put(queue, at, first, second, last)
    return job
