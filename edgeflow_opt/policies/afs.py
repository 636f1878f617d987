"""AFS-L: elastic sharing by a tournament of marginal gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, seconds_left
from edgeflow_opt.solvers.greedy.tables import entry
from edgeflow_opt.solvers.kernels import AFS

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState
    from edgeflow_opt.problem import Mode
    from edgeflow_opt.problem.arrays import FloatArray, IntArray


class AfsPolicy:
    """AFS-L: GPUs are dealt one level at a time, each to the winner of a tournament.

    A job without GPUs beats all that have some, and of two such jobs the one with less time left on
    its least level wins. Of two jobs with GPUs let A be the one with less time left at its present
    rate, B the other, p the rate and p' that at the next level of g more GPUs: B wins iff
    ``(p'_B - p_B) / (p'_B g_B) > (p'_A - p_A) / (p_A g_A)``, else A does. Repeated until no level
    fits. Shares are dealt anew at every event. Knows no deadlines and no edge.

    Source: Hwang et al., "Elastic resource sharing for distributed deep learning", NSDI 2021
    (apathetic future share, without knowledge of arrivals); GPUs come in the levels of the jobs'
    modes instead of singly.

    Parameters
    ----------
    knee_cap
        Whether levels that do not raise the rate are left out.
    """

    #: Modules whose kernels the policy calls.
    kernels = (AFS,)

    def __init__(self, *, knee_cap: bool = True) -> None:
        self._clouds = Clouds(knee_cap=knee_cap)

    def decide(self, state: ClusterState) -> Decision:
        """Return the levels that the tournaments end with."""
        free = self._clouds.look(state)
        levels = [self._clouds.levels(seen.job) for seen in state.jobs]
        allocation: dict[str, Mode] = {}
        first: list[int] = []
        # Whoever holds nothing wins every tournament: the first level needs none.
        left = sum(free.values())
        for index in sorted(
            range(len(levels)), key=lambda i: seconds_left(state.jobs[i], levels[i][:1])
        ):
            if left <= 0:
                break
            if levels[index] and levels[index][0].gpus <= free[levels[index][0].site]:
                first.append(index)
                mode = levels[index][0]
                free[mode.site] -= mode.gpus
                left -= mode.gpus
                allocation[state.jobs[index].job.id] = mode
        if left <= 0 or not first:
            return Decision(allocation=allocation)
        sites = list(free)
        for number, site in enumerate(sites):
            here = [index for index in first if levels[index][0].site == site]
            if not here or free[site] <= 0:
                continue
            count = np.array([len(levels[index]) for index in here])
            gpus = np.zeros((len(here), count.max()), dtype=np.int64)
            rates = np.zeros(gpus.shape)
            for row, index in enumerate(here):
                gpus[row, : count[row]] = [mode.gpus for mode in levels[index]]
                rates[row, : count[row]] = [mode.rate for mode in levels[index]]
            work = np.array([state.jobs[index].required_left for index in here])
            dealt = deal(gpus, rates, count, work, free[sites[number]])
            for row, index in enumerate(here):
                allocation[state.jobs[index].job.id] = levels[index][dealt[row]]
        return Decision(allocation=allocation)


@entry
def deal(
    gpus: IntArray, rates: FloatArray, count: IntArray, work: FloatArray, free: int
) -> IntArray:
    """Deal `free` GPUs to jobs that hold their first levels; return the levels that they end with.

    Parameters
    ----------
    gpus, rates
        (n, L) of the levels of each job, rising in GPUs.
    count
        (n,) number of levels of each job.
    work
        (n,) iterations left.
    free
        GPUs left over.
    """
    n = len(count)
    level = np.zeros(n, dtype=np.int64)
    while free > 0:
        best = -1
        best_left, best_gain = 0.0, 0.0
        for j in range(n):
            at = level[j]
            if at + 1 >= count[j]:
                continue
            more = gpus[j, at + 1] - gpus[j, at]
            if more > free:
                continue
            rise = (rates[j, at + 1] - rates[j, at]) / more
            left = work[j] / rates[j, at]
            if best < 0:
                wins = True
            elif left < best_left:
                # The challenger is the shorter one.
                other = level[best]
                more_b = gpus[best, other + 1] - gpus[best, other]
                rise_b = (rates[best, other + 1] - rates[best, other]) / more_b
                wins = not rise_b / rates[best, other + 1] > rise / rates[j, at]
            else:
                wins = rise / rates[j, at + 1] > best_gain
            if wins:
                best, best_left, best_gain = j, left, rise / rates[j, at]
        if best < 0:
            break
        free -= gpus[best, level[best] + 1] - gpus[best, level[best]]
        level[best] += 1
    return level


def warm_up() -> None:
    """Compile the kernel, or load it from the cache."""
    one = np.ones((1, 2), dtype=np.int64)
    deal(np.cumsum(one, axis=1), np.cumsum(one, axis=1) * 1.0, one[:, 0] + 1, np.ones(1), 1)
