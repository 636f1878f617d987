"""Themis: finish-time fairness, on the GPUs that were asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, Turns, pack

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState
    from edgeflow_opt.problem.arrays import FloatArray

#: Halvings of the interval in which the least ratio is searched.
_HALVINGS = 60

#: Seconds by which a round may end early, against rounding.
_ROUNDING = 1e-6


class ThemisPolicy:
    """Themis: make the worst ratio of shared to isolated finish time as small as possible.

    For job j with requested GPUs g_j, rate r_j there, work left w_j and age a_j the ratio is
    ``rho_j(x) = (a_j + w_j / (r_j x)) / T_j`` where x is the share of time for which it runs and T_j
    the time that it would take alone on 1/n of the cluster (n = number of jobs, over its life). The
    shares minimise ``max_j rho_j(x_j)`` under ``sum_j g_j x_j <= G``. In each round the jobs with the
    largest share per round that they have run so far get their GPUs. Knows no deadlines and no
    edge.

    Source: Mahajan et al., "Themis: Fair and efficient GPU cluster scheduling", NSDI 2020, as a
    max-min program in rounds (Narayanan et al., "Heterogeneity-aware cluster scheduling policies
    for deep learning workloads" (Gavel), OSDI 2020), which is how ElasticFlow compares itself with
    it; the auctions of the paper approximate the same aim.

    Parameters
    ----------
    slice_s
        Length of a round, seconds, above 0.

    Raises
    ------
    UsageError
        If `slice_s` makes no sense.
    """

    def __init__(self, *, slice_s: float = 60.0) -> None:
        if not 0.0 < slice_s < math.inf:
            raise UsageError(
                f"option slice_s: must be a number of seconds above 0, got {slice_s!r}"
            )
        self._slice_s = slice_s
        self._clouds = Clouds()
        self._isolated: dict[str, float] = {}
        """Seconds that the work done so far would have taken alone."""
        self._turns = Turns()
        self._before: dict[str, tuple[float, float]] = {}
        """Work left and rate alone at the last decision."""
        self._rounds: dict[str, int] = {}
        self._round_end = -math.inf

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs of this round; within a round only what became free is given out."""
        free = self._clouds.look(state)
        total = self._clouds.gpus
        over = state.now >= self._round_end - _ROUNDING
        if over:
            self._round_end = state.now + self._slice_s
        jobs = [seen for seen in state.jobs if self._clouds.gangs(seen.job)]
        vain = self._turns.look(state.jobs, over)
        if not jobs:
            return Decision(allocation={})
        gangs = [self._clouds.gangs(seen.job)[0] for seen in jobs]
        gpus = np.array([mode.gpus for mode in gangs], dtype=np.float64)
        rate = np.array([mode.rate for mode in gangs])
        left = np.array([seen.required_left for seen in jobs])
        alone = rate * np.minimum(1.0, math.ceil(total / len(jobs)) / gpus)
        isolated: dict[str, float] = {}
        rounds: dict[str, int] = {}
        for seen in jobs:
            name = seen.job.id
            done = 0.0
            if name in self._before:
                before, rate_then = self._before[name]
                done = max(0.0, before - seen.required_left) / rate_then
            isolated[name] = self._isolated.get(name, 0.0) + done
            rounds[name] = self._rounds.get(name, 0) + (over and seen.mode is not None)
        self._isolated, self._rounds = isolated, rounds
        self._before = {
            seen.job.id: (work, speed)
            for seen, work, speed in zip(jobs, left.tolist(), alone.tolist(), strict=True)
        }
        if gpus.sum() <= total:
            order = range(len(jobs))
        else:
            age = np.array([state.now - (seen.job.arrival or 0.0) for seen in jobs])
            spent = np.fromiter(isolated.values(), dtype=np.float64, count=len(jobs))
            share = fair_shares(gpus, left / rate, age, spent + left / alone, float(total))
            run = np.fromiter(rounds.values(), dtype=np.float64, count=len(jobs))
            priority = np.where(run > 0, share / np.maximum(run, 1.0), share * 1e9)
            stays = [seen.job.id in vain if over else seen.mode is not None for seen in jobs]
            priority[stays] += 1e12
            order = np.lexsort((-share, -priority)).tolist()
        allocation = pack((jobs[index] for index in order), self._clouds, free)
        waits = len(allocation) < len(jobs)
        if not waits:
            self._round_end = -math.inf
        return Decision(allocation=allocation, wake_up=self._round_end if waits else None)


def fair_shares(
    gpus: FloatArray, left_s: FloatArray, age_s: FloatArray, isolated_s: FloatArray, total: float
) -> FloatArray:
    """Return the shares of time that minimise the worst ratio of finish times.

    Parameters
    ----------
    gpus
        (n,) GPUs of each job while it runs.
    left_s
        (n,) seconds that each job still has to run, above 0.
    age_s
        (n,) seconds since its arrival.
    isolated_s
        (n,) seconds that it would take alone, above 0.
    total
        GPUs of the cluster.

    Returns
    -------
    share
        (n,) in (0, 1], with ``gpus @ share <= total`` up to rounding.
    """

    def shares(ratio: float) -> FloatArray:
        found: FloatArray = np.minimum(1.0, left_s / (ratio * isolated_s - age_s))
        return found

    # Below this ratio some job could not keep it even if it ran all the time.
    low = float(((age_s + left_s) / isolated_s).max())
    if float(gpus @ shares(low)) <= total:
        return shares(low)
    high = 2.0 * low
    while float(gpus @ shares(high)) > total:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if float(gpus @ shares(middle)) > total:
            low = middle
        else:
            high = middle
    return shares(high)
