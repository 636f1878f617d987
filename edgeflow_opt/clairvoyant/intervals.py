"""The trace cut into intervals, as the clairvoyant relaxation sees it.

Between two neighbouring event times (arrivals, deadlines, changes of capacity) nothing that limits
a schedule changes. Let ``x[j,t,m]`` be the seconds that job j spends in mode m within interval t
and within its window (from its arrival to its deadline), and ``z[j]`` be 1 iff it is met. Every
schedule in continuous time, online or not, satisfies

    sum_m x[j,t,m]                <= length[j,t] z[j]      (it is in one mode at a time)
    sum_{t,m} rate_m x[j,t,m]     >= required_j z[j]       (credit; losses only take from it)
    sum_{j,m on site k} units_m x[j,t,m] <= supply[k,t]    (capacity, integrated over the interval)

where ``length[j,t]`` is the part of the interval that lies in the window of the job and
``supply[k,t]`` the integral of the capacity of site k over it; of a job that is not met, x is put to
0, which only frees capacity. All three hold for *any* cutting of the time: they are integrals of
what holds at every moment. So intervals may be merged where there are too many of them, at the
price of a weaker bound. A mode needs its units at one moment at least, so that it is out where it
needs more than the most that the interval has.

What must **not** be used is that a job has one mode throughout an interval: in continuous time it
may change within. Hence hull pricing (convex combinations of modes), never integer pricing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.problem.arrays import FloatArray, IntArray

#: Relative amount by which required work is lowered: more than the rounding of any sum of credits.
WORK_MARGIN = 1e-9


class IntervalData(NamedTuple):
    """Jobs, kinds of jobs and intervals, flat; n jobs, C kinds, K sites, T intervals, M modes.

    Jobs with the same usable modes are of one kind: what a second costs them in an interval is the
    same, so that it is computed once.

    Parameters
    ----------
    boundaries
        (T+1,) seconds, rising.
    supply
        (K, T) unit-seconds.
    most_units
        (K, T) most units usable at any moment of the interval.
    job
        (n,) position of the job in the trace: only jobs with a deadline, a worth and a mode.
    kind
        (n,) kind of the job.
    weight
        (n,) worth of meeting it, above 0.
    need
        (n,) credit that is needed, lowered by more than rounding, above 0.
    first, end
        (n,) intervals ``first : end`` overlap the window of the job; equal where it is empty.
    head_s, tail_s
        (n,) seconds of the window within its first and its last interval (the same, where that is
        one); every other interval lies in the window as a whole.
    mode_start
        (C+1,) first mode of each kind.
    site, units, rate
        (M,) of the modes.
    kind_first, kind_end
        (C,) intervals in which some job of the kind has its window.
    most_modes
        Largest number of modes of a kind, at least 1.
    """

    boundaries: FloatArray
    supply: FloatArray
    most_units: IntArray
    job: IntArray
    kind: IntArray
    weight: FloatArray
    need: FloatArray
    first: IntArray
    end: IntArray
    head_s: FloatArray
    tail_s: FloatArray
    mode_start: IntArray
    site: IntArray
    units: IntArray
    rate: FloatArray
    kind_first: IntArray
    kind_end: IntArray
    most_modes: int

    @property
    def num_jobs(self) -> int:
        """Number of jobs n."""
        return len(self.job)


def event_times(jobs: Sequence[Job], sites: Sequence[Site]) -> list[float]:
    """Return all arrivals and deadlines, and the changes of capacity between them, rising.

    Parameters
    ----------
    jobs
        The trace; jobs without a deadline do not count.
    sites
        The cluster.
    """
    times = set()
    for job in jobs:
        if job.deadline is not None and job.arrival is not None:
            times |= {job.arrival, job.deadline}
    if not times:
        return []
    start, end = min(times), max(times)
    for site in sites:
        for (_, before), (time, units) in pairwise(site.capacity):
            if start < time < end and units != before:
                times.add(time)
    return sorted(times)


def merged(times: Sequence[float], most: int) -> list[float]:
    """Return at most ``most + 1`` of `times`, the first and the last among them.

    Every interval that results spans about the same number of the original ones.
    """
    if len(times) <= most + 1:
        return list(times)
    chosen = np.unique(np.linspace(0, len(times) - 1, most + 1).round().astype(np.int64))
    return [times[index] for index in chosen.tolist()]


def interval_data(
    jobs: Sequence[Job], sites: Sequence[Site], boundaries: Sequence[float]
) -> IntervalData:
    """Return the relaxation's view of a trace on the intervals between `boundaries`.

    Parameters
    ----------
    jobs
        The trace, every job with its arrival.
    sites
        The cluster.
    boundaries
        From the first arrival to the last deadline or beyond, rising.
    """
    cuts = np.array(boundaries, dtype=np.float64)
    num_intervals = max(0, len(cuts) - 1)
    supply = np.zeros((len(sites), num_intervals))
    most_units = np.zeros((len(sites), num_intervals), dtype=np.int64)
    for k, site in enumerate(sites):
        supply[k], most_units[k] = _supply_of(site, cuts)
    usable = _Kinds(sites, most_units)
    rows = []
    for index, job in enumerate(jobs):
        its_kind = usable.kind_of(job)
        if job.deadline is not None and job.weight > 0 and its_kind is not None:
            rows.append((index, job, its_kind))
    arrival = np.array([_number(job.arrival) for _, job, _ in rows], dtype=np.float64)
    deadline = np.array([_number(job.deadline) for _, job, _ in rows], dtype=np.float64)
    kind = np.array([its_kind for _, _, its_kind in rows], dtype=np.int64)
    first = np.maximum(0, np.searchsorted(cuts, arrival, side="right") - 1)
    end = np.maximum(first, np.searchsorted(cuts, deadline, side="left"))
    end = np.where(deadline > arrival, np.minimum(end, num_intervals), first)
    last = np.maximum(first, end - 1)
    if num_intervals:
        head_s = np.minimum(deadline, cuts[np.minimum(first + 1, num_intervals)]) - arrival
        tail_s = deadline - np.maximum(arrival, cuts[np.minimum(last, num_intervals - 1)])
    else:
        head_s = tail_s = np.zeros(len(rows))
    modes, mode_start = usable.modes, np.array(usable.mode_start, dtype=np.int64)
    fastest = np.array([max(m[2] for m in modes[a:b]) for a, b in pairwise(usable.mode_start)])
    required = np.array([job.required for _, job, _ in rows], dtype=np.float64)
    # A completion that is computed by a division may be rounded to the deadline.
    rounding = 4.0 * np.spacing(np.abs(deadline)) * (fastest[kind] if len(kind) else 0.0)
    need = np.maximum(required * (1.0 - WORK_MARGIN) - rounding, required * 1e-6)
    kinds = len(mode_start) - 1
    kind_first = np.full(kinds, num_intervals, dtype=np.int64)
    kind_end = np.zeros(kinds, dtype=np.int64)
    np.minimum.at(kind_first, kind, first)
    np.maximum.at(kind_end, kind, end)
    return IntervalData(
        boundaries=cuts,
        supply=supply,
        most_units=most_units,
        job=np.array([index for index, _, _ in rows], dtype=np.int64),
        kind=kind,
        weight=np.array([job.weight for _, job, _ in rows], dtype=np.float64),
        need=need,
        first=first.astype(np.int64),
        end=end.astype(np.int64),
        head_s=np.maximum(0.0, head_s),
        tail_s=np.maximum(0.0, tail_s),
        mode_start=mode_start,
        site=np.array([mode[0] for mode in modes], dtype=np.int64),
        units=np.array([mode[1] for mode in modes], dtype=np.int64),
        rate=np.array([mode[2] for mode in modes], dtype=np.float64),
        kind_first=kind_first,
        kind_end=kind_end,
        most_modes=int(np.diff(mode_start).max(initial=1)),
    )


def _number(value: float | None) -> float:
    assert value is not None
    return value


def _supply_of(site: Site, cuts: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return (T,) the integral of the capacity of `site` over each interval, and the most of it."""
    if len(cuts) < 2:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    inner = [time for time, _ in site.capacity if cuts[0] < time < cuts[-1]]
    times = np.unique(np.concatenate([cuts, np.array(inner, dtype=np.float64)]))
    begins = times[:-1]
    steps = np.array([time for time, _ in site.capacity], dtype=np.float64)
    units = np.array([units for _, units in site.capacity], dtype=np.int64)
    there = units[np.maximum(0, np.searchsorted(steps, begins, side="right") - 1)]
    start = np.searchsorted(begins, cuts[:-1])
    supply: FloatArray = np.add.reduceat(there * np.diff(times), start)
    most: IntArray = np.maximum.reduceat(there, start)
    return supply, most


class _Kinds:
    """The kinds of jobs met so far: their usable modes, dominated ones left out.

    Parameters
    ----------
    sites
        The cluster.
    most_units
        (K, T) as in :class:`IntervalData`.
    """

    def __init__(self, sites: Sequence[Site], most_units: IntArray) -> None:
        self._sites = sites
        self._index = {site.name: k for k, site in enumerate(sites)}
        self._most = most_units.max(axis=1, initial=0)
        self._known: dict[tuple[tuple[int, int, float], ...], int] = {}
        self._by_modes: dict[tuple[tuple[Mode, ...], tuple[bool, ...]], int | None] = {}
        self.modes: list[tuple[int, int, float]] = []
        self.mode_start = [0]

    def kind_of(self, job: Job) -> int | None:
        """Return the kind of `job`; None where it has no usable mode."""
        hosts = tuple(site.hosts(job) for site in self._sites)
        key = (job.modes, hosts)
        if key not in self._by_modes:
            self._by_modes[key] = self._enter(job, hosts)
        return self._by_modes[key]

    def _enter(self, job: Job, hosts: tuple[bool, ...]) -> int | None:
        best: dict[tuple[int, int], float] = {}
        for mode in job.modes:
            k = self._index[mode.site]
            units = self._sites[k].units(mode)
            if hosts[k] and units <= self._most[k]:
                best[k, units] = max(best.get((k, units), 0.0), mode.rate)
        kept: list[tuple[int, int, float]] = []
        for (k, units), rate in sorted(best.items()):
            # Fewer units of the same site that are as fast are never worse.
            if not any(other == k and rate <= faster for other, _, faster in kept):
                kept.append((k, units, rate))
        if not kept:
            return None
        found = tuple(kept)
        if found not in self._known:
            self._known[found] = len(self._known)
            self.modes += found
            self.mode_start.append(len(self.modes))
        return self._known[found]
