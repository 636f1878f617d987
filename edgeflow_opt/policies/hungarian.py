"""Hungarian matching of waiting jobs to free units, then elastic growth."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError, how_to_install
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Mode
    from edgeflow_opt.problem.arrays import FloatArray

#: Worth of the work that a job does by a deadline that it misses, per weight of the job.
_LATE_WORTH = 0.1

#: What an edge server is preferred by where it would do as well as the cloud, per weight.
_EDGE_BONUS = 0.01


class HungarianPolicy:
    """Hungarian: waiting jobs are matched to free units as well as possible, then grow.

    1. Jobs on an edge server stay; jobs in the cloud keep their least level there.
    2. Waiting jobs are matched to the cloud GPUs and edge servers that are left, each to one unit,
       so that the worth of all pairs is greatest: the job's weight where the site can complete it
       by its deadline (in the cloud at its best level), else a tenth of the share of its work that
       is done by then; an edge server counts a little more where both would do.
    3. In deadline order jobs in the cloud grow to the least level that meets their deadlines.
    4. What is left over goes, one level at a time, to the greatest gain in rate per GPU and rate.

    Source: Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics
    Quarterly 2, 1955, in the form of :func:`scipy.optimize.linear_sum_assignment`; a simple
    alternative to EdgeFlow's offloading, from no paper. Needs scipy.

    Raises
    ------
    UsageError
        If scipy is not installed.
    """

    def __init__(self) -> None:
        try:
            from scipy.optimize import linear_sum_assignment
        except ImportError:
            raise UsageError(
                "policy 'hungarian' needs scipy, which is not installed; install it with "
                f"{how_to_install('matching')}"
            ) from None
        self._assign = linear_sum_assignment
        self._clouds = Clouds()

    def decide(self, state: ClusterState) -> Decision:
        """Return the modes after matching and growth."""
        free = self._clouds.look(state)
        kind: dict[str, str] = {site.name: site.kind for site in state.sites}
        free |= {s.name: s.capacity_at(state.now) for s in state.sites if s.kind == "edge"}
        allocation: dict[str, Mode] = {}
        waiting: list[JobState] = []
        for seen in state.jobs:
            stays = seen.mode
            if stays is not None and kind[stays.site] == "cloud":
                levels = self._clouds.levels(seen.job)
                stays = levels[0] if levels else None
            units = 0 if stays is None else stays.gpus if kind[stays.site] == "cloud" else 1
            if stays is None or units > free[stays.site]:
                waiting.append(seen)
                continue
            free[stays.site] -= units
            allocation[seen.job.id] = stays
        self._match(state, waiting, free, kind, allocation)
        self._grow(state, free, allocation)
        return Decision(allocation=allocation)

    def _match(
        self,
        state: ClusterState,
        waiting: list[JobState],
        free: dict[str, int],
        kind: dict[str, str],
        allocation: dict[str, Mode],
    ) -> None:
        """Give waiting jobs units that are free, one each."""
        seats = [name for name, units in free.items() for _ in range(min(units, len(waiting)))]
        if not waiting or not seats:
            return
        hosts = {site.name: site for site in state.sites}
        worth: FloatArray = np.zeros((len(waiting), len(free)))
        modes: list[list[Mode | None]] = []
        for row, seen in enumerate(waiting):
            own: list[Mode | None] = []
            for column, name in enumerate(free):
                if kind[name] == "cloud":
                    levels = [m for m in self._clouds.levels(seen.job) if m.site == name]
                    mode, best = (levels[0], levels[-1]) if levels else (None, None)
                    if mode is not None and mode.gpus > free[name]:
                        mode = None
                else:
                    own_modes = [m for m in seen.job.modes if m.site == name]
                    best = max(own_modes, key=lambda mode: mode.rate, default=None)
                    mode = best if hosts[name].hosts(seen.job) else None
                own.append(mode)
                if mode is not None and best is not None:
                    worth[row, column] = _worth(seen, best, state.now, kind[name] == "edge")
            modes.append(own)
        column_of = {name: column for column, name in enumerate(free)}
        columns = [column_of[name] for name in seats]
        rows, matched = self._assign(worth[:, columns], maximize=True)
        for row, seat in zip(rows.tolist(), matched.tolist(), strict=True):
            name = seats[seat]
            mode = modes[row][columns[seat]]
            units = 0 if mode is None else mode.gpus if kind[name] == "cloud" else 1
            # The least level of a job may be more than one GPU.
            if mode is not None and units <= free[name]:
                free[name] -= units
                allocation[waiting[row].job.id] = mode

    def _grow(self, state: ClusterState, free: dict[str, int], allocation: dict[str, Mode]) -> None:
        """Let the jobs in the cloud grow: first to meet their deadlines, then for the rate."""
        growing = [
            (seen, levels)
            for seen in state.jobs
            if (levels := self._clouds.levels(seen.job))
            and seen.job.id in allocation
            and allocation[seen.job.id].site == levels[0].site
        ]
        with_deadline = [pair for pair in growing if pair[0].job.deadline is not None]
        with_deadline.sort(key=lambda pair: pair[0].job.deadline or 0.0)
        for seen, levels in with_deadline:
            assert seen.job.deadline is not None
            window = seen.job.deadline - state.now
            for mode in levels:
                if mode.rate * window >= seen.required_left:
                    _take(allocation, free, seen, mode)
                    break
        heap: list[tuple[float, int, int]] = []
        for index, (seen, levels) in enumerate(growing):
            at = levels.index(allocation[seen.job.id])
            heapq.heappush(heap, (-_gain(levels, at), index, at))
        while heap:
            gain, index, at = heapq.heappop(heap)
            seen, levels = growing[index]
            if gain < 0.0 and _take(allocation, free, seen, levels[at + 1]):
                heapq.heappush(heap, (-_gain(levels, at + 1), index, at + 1))


def _worth(seen: JobState, mode: Mode, now: float, on_edge: bool) -> float:
    """Return the worth of a unit of the site on which the job's best mode is `mode`."""
    weight = seen.job.weight
    loss = 0.0
    if seen.last_site is not None:
        loss = seen.job.restart_s if seen.last_site == mode.site else seen.job.migration_s
    if seen.job.deadline is None:
        return 1e-6
    share = mode.rate * max(0.0, seen.job.deadline - now - loss) / seen.required_left
    if share >= 1.0:
        return weight * (1.0 + _EDGE_BONUS * on_edge) + 1e-6
    return _LATE_WORTH * weight * share + 1e-6


def _gain(levels: tuple[Mode, ...], at: int) -> float:
    """Return the relative gain in rate per GPU of the next level; 0 = there is none."""
    if at + 1 >= len(levels):
        return 0.0
    now, more = levels[at], levels[at + 1]
    return (more.rate / now.rate - 1.0) / (more.gpus - now.gpus)


def _take(allocation: dict[str, Mode], free: dict[str, int], seen: JobState, mode: Mode) -> bool:
    """Let a job hold `mode` in place of what it holds on the same site, if that fits."""
    more = mode.gpus - allocation[seen.job.id].gpus
    if more > free[mode.site]:
        return False
    free[mode.site] -= more
    allocation[seen.job.id] = mode
    return True
