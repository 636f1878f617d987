"""The queue of jobs against sorting."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from edgeflow_opt.solvers.greedy.job_queue import length, new_queue, pop, push

KEYS = st.sampled_from((-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf))


@njit
def _through(queue, first, second, early, drained):
    """Push all jobs, taking one out after every third; return what comes out, in order."""
    count = 0
    for job in range(len(first)):
        push(queue, first[job], second[job], job)
        if job % 3 == 2:
            early[count] = pop(queue)
            count += 1
    left = length(queue)
    out = 0
    while length(queue) > 0:
        drained[out] = pop(queue)
        out += 1
    return count, left, out


@settings(deadline=None)
@given(st.lists(st.tuples(KEYS, KEYS), max_size=40))
def test_jobs_come_out_by_their_keys_and_then_by_their_numbers(keys):
    """The queue gives the same jobs as a list that is sorted before each turn."""
    first, second = (np.array([pair[i] for pair in keys]) for i in range(2))
    early, drained = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    taken, left, out = _through(new_queue(len(keys)), first, second, early, drained)
    assert out == left
    waiting, expected = [], []
    for job, pair in enumerate(keys):
        waiting.append((*pair, job))
        waiting.sort()
        if job % 3 == 2:
            expected.append(waiting.pop(0)[2])
    assert early[:taken].tolist() == expected
    assert drained[:left].tolist() == [job for _, _, job in waiting]
