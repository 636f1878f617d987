"""The instance as flat numpy arrays: the one view that formulations and heuristics compute on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from edgeflow_opt.problem.constraints.rows import LinearRows, no_rows, rows_of

if TYPE_CHECKING:
    from edgeflow_opt.problem.epoch import EpochProblem

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ProblemArrays:
    """An :class:`~edgeflow_opt.problem.EpochProblem` with n jobs, K sites, T slots, M modes.

    Modes of all jobs are numbered through, those of job j are ``mode_start[j] : mode_start[j+1]``.

    Parameters
    ----------
    boundaries
        (T+1,) seconds.
    lengths
        (T,) seconds.
    capacity
        (K, T) units usable throughout the slot: the least within it.
    is_cloud
        (K,) whether a mode takes its GPUs (cloud) or one unit (edge).
    weight, work, required
        (n,) weight; iterations left; credit at which the job completes, ``work (1 - 1e-6)``.
    deadline
        (n,) seconds, +inf for best effort.
    first_slot
        (n,) first slot in which the job may run (T if none): that of the first boundary at or
        after its arrival.
    end_slot
        (n,) first slot that begins at or after the deadline (T if none): slots
        ``first_slot : end_slot`` can help to meet it.
    restart_s, migration_s
        (n,) losses in seconds.
    must_meet, malleable
        (n,) flags.
    running_mode
        (n,) index of the running mode, -1 = idle.
    loss_left_s
        (n,) loss left of the running mode, seconds.
    last_site
        (n,) index of the site where the job last ran, -1 = never ran.
    mode_start
        (n+1,) first mode of each job.
    mode_job, mode_site, mode_gpus, mode_units
        (M,) job, site, GPUs and units of the mode.
    mode_rate
        (M,) iterations per second.
    mode_cost
        (M,) cost per second held: GPUs times price of the site.
    mode_usable
        (M,) whether the site has the memory, and ever has the units, that the mode needs.
    mode_kept
        (M,) usable and not dominated (see :func:`dominated_modes`); all usable ones where there are
        constraints, which may count modes otherwise.
    rows
        The constraints of the instance as linear rows.
    """

    boundaries: FloatArray
    lengths: FloatArray
    capacity: IntArray
    is_cloud: BoolArray
    weight: FloatArray
    work: FloatArray
    required: FloatArray
    deadline: FloatArray
    first_slot: IntArray
    end_slot: IntArray
    restart_s: FloatArray
    migration_s: FloatArray
    must_meet: BoolArray
    malleable: BoolArray
    running_mode: IntArray
    loss_left_s: FloatArray
    last_site: IntArray
    mode_start: IntArray
    mode_job: IntArray
    mode_site: IntArray
    mode_gpus: IntArray
    mode_units: IntArray
    mode_rate: FloatArray
    mode_cost: FloatArray
    mode_usable: BoolArray
    mode_kept: BoolArray
    rows: LinearRows = field(default_factory=no_rows)

    @property
    def num_jobs(self) -> int:
        """Number of jobs n."""
        return len(self.weight)

    @property
    def num_slots(self) -> int:
        """Number of slots T."""
        return len(self.lengths)

    @property
    def num_sites(self) -> int:
        """Number of sites K."""
        return len(self.is_cloud)

    @property
    def num_modes(self) -> int:
        """Number of modes M of all jobs together."""
        return len(self.mode_rate)

    @property
    def has_deadline(self) -> BoolArray:
        """(n,) whether the job has a deadline."""
        return np.isfinite(self.deadline)

    @property
    def has_losses(self) -> BoolArray:
        """(n,) whether any loss can befall the job."""
        losses = (self.restart_s > 0) | (self.migration_s > 0)
        result: BoolArray = losses | ((self.loss_left_s > 0) & (self.running_mode >= 0))
        return result

    def useful_lengths(self) -> FloatArray:
        """Return (n, T) seconds of each slot before the deadline of each job.

        ``max(0, min(t_{s+1}, d_j) - t_s)``.
        """
        ends = np.minimum(self.boundaries[None, 1:], self.deadline[:, None])
        result: FloatArray = np.maximum(0.0, ends - self.boundaries[None, :-1])
        return result


def arrays_of(problem: EpochProblem) -> ProblemArrays:
    """Return the flat view of `problem`."""
    jobs, sites, grid = problem.jobs, problem.sites, problem.grid
    n = len(jobs)
    boundaries = np.array(grid.boundaries, dtype=np.float64)
    num_slots = grid.num_slots
    capacity = np.array([_least_capacities(site.capacity, boundaries) for site in sites])
    is_cloud = np.array([site.kind == "cloud" for site in sites])
    price = np.array([site.price for site in sites])
    memory = np.array([np.inf if s.memory_gib is None else s.memory_gib for s in sites])
    site_index = problem.site_index

    def column(name: str) -> FloatArray:
        return np.array([getattr(job, name) for job in jobs], dtype=np.float64)

    deadline = np.array(
        [np.inf if job.deadline is None else job.deadline for job in jobs], dtype=np.float64
    )
    arrival = column("arrival") if n else np.zeros(0)
    first_slot = np.minimum(np.searchsorted(boundaries, arrival, side="left"), num_slots)
    end_slot = np.minimum(np.searchsorted(boundaries, deadline, side="left"), num_slots)
    counts = np.array([len(job.modes) for job in jobs], dtype=np.int64)
    mode_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    modes = list(chain.from_iterable(job.modes for job in jobs))
    mode_job = np.repeat(np.arange(n), counts)
    mode_site = np.array([site_index[mode.site] for mode in modes], dtype=np.int64)
    mode_gpus = np.array([mode.gpus for mode in modes], dtype=np.int64)
    mode_rate = np.array([mode.rate for mode in modes], dtype=np.float64)
    mode_units = np.where(is_cloud[mode_site], mode_gpus, 1) if n else mode_gpus
    mode_cost = mode_gpus * price[mode_site] if n else mode_rate
    running_mode = np.full(n, -1, dtype=np.int64)
    loss_left = np.zeros(n)
    last_site = np.full(n, -1, dtype=np.int64)
    for index, job in enumerate(jobs):
        if job.last_site is not None:
            last_site[index] = site_index[job.last_site]
        if job.running is not None:
            loss_left[index] = job.running.loss_left_s
            running_mode[index] = mode_start[index] + next(
                k
                for k, mode in enumerate(job.modes)
                if mode.gpus == job.running.gpus and mode.site == job.running.site
            )
    memory_need = column("memory_gib") if n else np.zeros(0)
    most_units = capacity.max(axis=1) if num_slots else np.zeros(len(sites))
    if n:
        usable = (memory_need[mode_job] <= memory[mode_site]) & (
            mode_units <= most_units[mode_site]
        )
    else:
        usable = np.zeros(0, dtype=np.bool_)
    is_running = np.zeros(len(modes), dtype=np.bool_)
    is_running[running_mode[running_mode >= 0]] = True
    restart, migration = column("restart_s"), column("migration_s")
    malleable = np.array([job.malleable for job in jobs], dtype=np.bool_)
    # A moldable job has one run, so that there is nothing to join.
    may_join = ~malleable | _may_join(grid.boundaries, restart, migration, loss_left, running_mode)
    dominated = dominated_modes(
        mode_job, mode_site, mode_units, mode_rate, mode_cost, usable, is_running, may_join
    )
    work = column("work") if n else np.zeros(0)
    arrays = ProblemArrays(
        boundaries=boundaries,
        lengths=np.diff(boundaries),
        capacity=capacity,
        is_cloud=is_cloud,
        weight=column("weight"),
        work=work,
        required=np.array([job.required for job in jobs], dtype=np.float64),
        deadline=deadline,
        first_slot=first_slot.astype(np.int64),
        end_slot=end_slot.astype(np.int64),
        restart_s=restart,
        migration_s=migration,
        must_meet=np.array([job.must_meet for job in jobs], dtype=np.bool_),
        malleable=malleable,
        running_mode=running_mode,
        loss_left_s=loss_left,
        last_site=last_site,
        mode_start=mode_start,
        mode_job=mode_job,
        mode_site=mode_site,
        mode_gpus=mode_gpus,
        mode_units=mode_units.astype(np.int64),
        mode_rate=mode_rate,
        mode_cost=mode_cost.astype(np.float64),
        mode_usable=usable,
        mode_kept=usable if problem.constraints else usable & ~dominated,
    )
    if problem.constraints:
        arrays = dataclasses.replace(arrays, rows=rows_of(problem, arrays))
    return arrays


def _least_capacities(steps: tuple[tuple[float, int], ...], boundaries: FloatArray) -> IntArray:
    """Return (T,) the least units within each slot of a step function."""
    times = np.array([time for time, _ in steps], dtype=np.float64)
    units = np.array([u for _, u in steps], dtype=np.int64)
    first = np.maximum(0, np.searchsorted(times, boundaries[:-1], side="right") - 1)
    # Steps strictly inside a slot also bind it.
    stop = np.searchsorted(times, boundaries[1:], side="left")
    return np.array(
        [units[a : max(b, a + 1)].min() for a, b in zip(first, stop, strict=True)], dtype=np.int64
    )


def _may_join(
    boundaries: tuple[float, ...],
    restart: FloatArray,
    migration: FloatArray,
    loss_left: FloatArray,
    running_mode: IntArray,
) -> BoolArray:
    """Return (n,) whether joining two neighbouring runs of a job on a site never loses credit.

    Of two runs that abut, the second pays `restart_s`. Joined they pay the loss of the first only,
    but all of it, where apart the first pays no more than its length. So joining can lose credit
    only if the loss of the first exceeds its length plus `restart_s`: a migration loss longer than
    a slot, or what is left of the loss of the running mode (which an other mode that begins now
    need not pay at all).
    """
    shortest = float(np.diff(boundaries).min())
    left = np.where(running_mode >= 0, loss_left, 0.0)
    result: BoolArray = (migration <= restart + shortest) & (left <= restart)
    return result


def dominated_modes(
    job: IntArray,
    site: IntArray,
    units: IntArray,
    rate: FloatArray,
    cost: FloatArray,
    usable: BoolArray,
    is_running: BoolArray,
    may_join: BoolArray,
) -> BoolArray:
    """Return (M,) the modes that never need to be used because another is as good.

    `may_join` is (n,), by job; all else is (M,), by mode.

    Mode a dominates mode b of the same job on the same site iff units_a <= units_b,
    rate_a >= rate_b and cost_a <= cost_b: a plan that uses b can use a instead, which takes no
    more capacity and cost, does no less work, and at most joins runs that were apart. That can hurt
    where a loss is longer than a slot, so no mode of a job that is not `may_join` is dominated. Of
    equal modes the first stays. The running mode stays, since leaving it costs a reconfiguration;
    and a mode on another site dominates none, since capacities and migrations differ.
    """
    total = len(rate)
    dominated = np.zeros(total, dtype=np.bool_)
    if not total:
        return dominated
    longest = int(np.bincount(job).max())
    usable = usable & may_join[job]
    for offset in range(1, longest):
        a, b = np.arange(total - offset), np.arange(offset, total)
        same = (job[a] == job[b]) & (site[a] == site[b]) & usable[a] & usable[b]
        a_over_b = same & (units[a] <= units[b]) & (rate[a] >= rate[b]) & (cost[a] <= cost[b])
        b_over_a = same & (units[b] <= units[a]) & (rate[b] >= rate[a]) & (cost[b] <= cost[a])
        dominated[b] |= a_over_b & ~is_running[b]
        dominated[a] |= b_over_a & ~a_over_b & ~is_running[a]
        # Of two equal modes the first goes only where the second stays for running.
        dominated[a] |= b_over_a & a_over_b & is_running[b] & ~is_running[a]
    return dominated
