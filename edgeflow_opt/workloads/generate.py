"""Seeded generators of traces and of epoch problems, so that no download is needed.

The same options and seed give the same result on every platform (see :mod:`.draws`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.arrays import FloatArray
from edgeflow_opt.problem.data import Grid, Job, Mode, Running, Site
from edgeflow_opt.problem.epoch import EpochProblem
from edgeflow_opt.workloads.draws import (
    Draws,
    check_positive,
    check_range,
    check_share,
    significant,
)
from edgeflow_opt.workloads.rates import DEFAULT_CATALOG, RateCatalog
from edgeflow_opt.workloads.tides import DAY_S, Steps, joined
from edgeflow_opt.workloads.trace import Trace, TraceJob

#: Shares of jobs by GPUs asked for, measured with the readers of this package.
GPU_MIXES: dict[str, dict[int, float]] = {
    # microsoft/elasticflow-traces, clusters 01, 02, 03, 05 and 10 together: 14,273 jobs.
    "itp": {1: 0.7804, 2: 0.0209, 4: 0.0251, 8: 0.1549, 16: 0.0097, 32: 0.0050, 64: 0.0040},
    # The 195 jobs of the testbed experiment of ElasticFlow.
    "testbed": {1: 0.6051, 2: 0.0051, 4: 0.2308, 8: 0.1436, 16: 0.0154},
    # Microsoft Philly (Jeon et al., ATC 2019), 82,247 jobs; powers of two up to 64.
    "philly": {1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.0200, 16: 0.0024, 32: 0.0008, 64: 0.0001},
}

#: Median duration of the 14,273 ITP jobs, seconds.
ITP_MEDIAN_DURATION_S = 7855.0

#: Standard deviation of the logarithm of their durations.
ITP_DURATION_SIGMA = 1.3

#: Load of a generated trace where neither a load nor a rate of arrivals is asked for.
DEFAULT_LOAD = 0.6

_SHORTEST_S = 60.0


def generate_trace(
    num_jobs: int,
    seed: int | np.random.Generator = 0,
    *,
    load: float | None = None,
    cloud_gpus: int = 32,
    arrivals_per_hour: float | None = None,
    deadline_factors: tuple[float, float] = (0.5, 1.5),
    median_duration_s: float = ITP_MEDIAN_DURATION_S,
    duration_sigma: float = ITP_DURATION_SIGMA,
    gpu_mix: str | Mapping[int, float] = "itp",
    diurnal: float = 0.0,
    peak_hour: float = 14.0,
    best_effort_share: float = 0.0,
    start_s: float = 0.0,
    catalog: RateCatalog = DEFAULT_CATALOG,
    name: str = "",
) -> Trace:
    """Return a trace like the published ones.

    What was measured, with the readers of this package: durations of the 14,273 jobs of
    microsoft/elasticflow-traces (clusters 01, 02, 03, 05, 10) have a median of 7,855 s and a
    standard deviation of the logarithm of 1.30 (testbed: 15,625 s and 1.42; the Philly virtual
    cluster: 24,049 s and 1.52); GPU counts see :data:`GPU_MIXES`; duration and GPU count hardly
    hang together (correlation of the logarithms 0.04 to 0.23 in the ITP clusters), so they are
    drawn apart; models and batches are about equally frequent; the deadline factor is uniform on
    [0.5, 1.5]. What is simpler here: arrivals are Poisson, while those of the traces come in
    bunches (coefficient of variation of the inter-arrival times 2 to 13).

    Parameters
    ----------
    num_jobs
        Number of jobs, at least 1.
    seed
        A seed, or a numpy Generator to draw from.
    load
        Load on `cloud_gpus` while jobs arrive (:meth:`Trace.arrival_load`), met but for the chance
        of the arrivals. :meth:`Trace.offered_load` counts the time to the last deadline too and is
        therefore lower, much lower for a short trace. None = 0.6, unless `arrivals_per_hour` is
        given.
    cloud_gpus
        Size of the cloud cluster, at least 1; no job asks for more GPUs.
    arrivals_per_hour
        Mean rate of arrivals, instead of `load`.
    deadline_factors
        Deadline = submission + U[low, high] * duration.
    median_duration_s, duration_sigma
        Log-normal durations on the GPUs asked for; none is below 60 s.
    gpu_mix
        Shares by GPU count: a name in :data:`GPU_MIXES`, or a mapping. A count for which the
        catalog has no rate is lowered to the next that it has.
    diurnal
        Amplitude a of a daily cosine in the rate of arrivals, ``1 + a cos(2 pi (h - peak) / 24)``,
        from 0 (none) to 1.
    peak_hour
        Hour of most arrivals, counted from time 0.
    best_effort_share
        Share of jobs without deadline.
    start_s
        Submission of the first job, seconds.
    catalog
        Models, batches and rates.
    name
        For people.

    Raises
    ------
    UsageError
        If an option is out of its range, or both `load` and `arrivals_per_hour` are given.
    """
    _check_count("num_jobs", num_jobs)
    _check_count("cloud_gpus", cloud_gpus)
    check_range("deadline_factors", *deadline_factors)
    check_positive("median_duration_s", median_duration_s)
    check_range("duration_sigma", 0.0, duration_sigma)
    check_share("diurnal", diurnal)
    check_share("best_effort_share", best_effort_share)
    if load is not None and arrivals_per_hour is not None:
        raise UsageError("generate: give load or arrivals_per_hour, not both")
    if arrivals_per_hour is not None:
        check_positive("arrivals_per_hour", arrivals_per_hour)
    if load is not None:
        check_positive("load", load)
    mix = _mix(gpu_mix)
    draws = Draws(seed)
    gaps = [draws.exponential() for _ in range(num_jobs)]
    best_effort = draws.sample(range(num_jobs), best_effort_share)
    drafts = []
    for index in range(num_jobs):
        profile = catalog.profiles[draws.whole(0, len(catalog.profiles) - 1)]
        wanted = min(draws.choice(mix), cloud_gpus)
        gpus, rate = max(entry for entry in profile.rates if entry[0] <= wanted)
        duration = max(_SHORTEST_S, draws.log_normal(median_duration_s, duration_sigma))
        iterations = max(1, round(duration * rate))
        duration = round(iterations / rate, 3)
        window = round(draws.uniform(*deadline_factors) * duration)
        drafts.append(
            TraceJob(
                id=str(index),
                submission=0.0,
                deadline=None if index in best_effort else float(window),
                model=profile.model,
                batch=profile.batch,
                gpus=gpus,
                iterations=float(iterations),
                duration=duration,
            )
        )
    if arrivals_per_hour is not None:
        spacing = 3600.0 / arrivals_per_hour
    else:
        work = Trace(entries=tuple(drafts)).one_gpu_seconds(catalog)
        target = DEFAULT_LOAD if load is None else load
        spacing = work / (num_jobs * cloud_gpus * target)
    # A Poisson process of rate 1 with its first arrival at 0, stretched.
    unit_times = np.cumsum([0.0, *gaps[1:]])
    times = np.round(_daily(unit_times * spacing, diurnal, peak_hour))
    return Trace(
        entries=tuple(
            dataclasses.replace(
                job,
                submission=start_s + float(time),
                deadline=None if job.deadline is None else start_s + float(time) + job.deadline,
            )
            for job, time in zip(drafts, times, strict=True)
        ),
        name=name or f"generated, {num_jobs} jobs",
    )


def _mix(gpu_mix: str | Mapping[int, float]) -> Mapping[int, float]:
    """Return the shares by GPU count, checked."""
    if isinstance(gpu_mix, str):
        if gpu_mix not in GPU_MIXES:
            raise UsageError(
                f"gpu_mix: {gpu_mix!r} is not known; known are {', '.join(GPU_MIXES)}, or give "
                "shares by GPU count"
            )
        return GPU_MIXES[gpu_mix]
    good = gpu_mix and all(
        isinstance(gpus, int) and gpus >= 1 and 0 <= share < math.inf
        for gpus, share in gpu_mix.items()
    )
    if not good or sum(gpu_mix.values()) <= 0:
        raise UsageError(
            "gpu_mix: needs whole GPU counts of at least 1 with shares of at least 0, one of them "
            f"above 0, got {dict(gpu_mix)}"
        )
    return gpu_mix


def _daily(times: FloatArray, amplitude: float, peak_hour: float) -> FloatArray:
    """Return arrivals at a rate ``1 + a cos(...)``, given those at a rate of 1, both from 0 on.

    The integral of the rate up to the arrival is the given time; it is inverted by bisection.
    """
    if amplitude == 0.0:
        return times
    turn, peak = 2.0 * math.pi / DAY_S, peak_hour * 3600.0
    sway = amplitude / turn

    def integral(at: FloatArray) -> FloatArray:
        return at + sway * (np.sin(turn * (at - peak)) + math.sin(turn * peak))

    low, high = times - 2.0 * sway, times + 2.0 * sway
    for _ in range(60):
        middle = (low + high) / 2.0
        below = integral(middle) < times
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # Start at 0 exactly: the first unit time is 0 and so is its integral.
    return np.maximum(0.0, (low + high) / 2.0)


def generate_problem(
    num_jobs: int,
    num_slots: int,
    seed: int | np.random.Generator = 0,
    *,
    load: float = 1.6,
    slot_s: float = 300.0,
    cloud_gpus: int | None = None,
    edge_servers: int | None = None,
    tide: bool = True,
    deadline_factors: tuple[float, float] = (0.7, 2.5),
    duration_sigma: float = 1.0,
    arrival_spread: float = 0.0,
    restart_s: float = 0.0,
    migration_s: float = 0.0,
    running_share: float = 0.0,
    suspended_share: float = 0.0,
    best_effort_share: float = 0.0,
    moldable_share: float = 0.0,
    must_meet_share: float = 0.0,
    weights: tuple[int, int] = (1, 1),
) -> EpochProblem:
    """Return a random epoch problem of the family on which the solvers are measured.

    A job asks for 1, 2, 4 or 8 cloud GPUs (60, 15, 15, 10 %) and may use powers of two up to twice
    to eight times that, 16 at most, at a rate of ``rate(1) * gpus^a`` with a uniform on
    [0.6, 0.95]. Its duration on the GPUs asked for is log-normal with a median of an eighth of the
    horizon, and no longer than the horizon. 80 % of the jobs may use ONE edge server at 0.40 to
    0.65 of the rate on one GPU.

    All jobs are present at now = 0 by default, so early slots are much more overloaded than `load`
    says.

    Parameters
    ----------
    num_jobs, num_slots
        Sizes, at least 1.
    seed
        A seed, or a numpy Generator to draw from.
    load
        One-GPU work of all jobs over cloud GPUs times horizon: decides the cloud GPUs,
        ``G = max(1, round(one-GPU seconds / (load * horizon)))``.
    slot_s
        Length of a slot, seconds.
    cloud_gpus
        Cloud GPUs, instead of by `load`.
    edge_servers
        Edge servers in all; None = a quarter of the cloud GPUs, at least 1.
    tide
        Edge servers follow a tide of 12 steps over the horizon, all usable at its begin and end,
        none in the middle: ``round(E (1 + cos(2 pi k / 12)) / 2)``. False = all usable throughout.
    deadline_factors
        Deadline = arrival + U[low, high] * duration, but no later than the horizon, since a plan
        ends there.
    duration_sigma
        Standard deviation of the logarithm of the duration.
    arrival_spread
        Arrivals are uniform on this share of the horizon, 0 to 1.
    restart_s, migration_s
        Losses of every job, seconds.
    running_share
        Share of the jobs that run at now, each in one of its modes, as far as there is room; each
        has a loss left that is uniform up to its `restart_s`.
    suspended_share
        Share of the jobs that ran before and are idle now.
    best_effort_share
        Share of jobs without deadline.
    moldable_share
        Share of jobs that keep one mode in one run.
    must_meet_share
        Share of the jobs that must be met; only such as could be met alone on the cloud are
        marked, yet together they may be too many.
    weights
        Weights are whole numbers uniform on low, ..., high.

    Raises
    ------
    UsageError
        If an option is out of its range.
    """
    _check_count("num_jobs", num_jobs)
    _check_count("num_slots", num_slots)
    check_positive("load", load)
    check_positive("slot_s", slot_s)
    check_range("deadline_factors", *deadline_factors)
    check_range("duration_sigma", 0.0, duration_sigma)
    for name, losses in (("restart_s", restart_s), ("migration_s", migration_s)):
        check_range(name, 0.0, losses)
    shares = {
        "arrival_spread": arrival_spread,
        "running_share": running_share,
        "suspended_share": suspended_share,
        "best_effort_share": best_effort_share,
        "moldable_share": moldable_share,
        "must_meet_share": must_meet_share,
        "running_share + suspended_share": running_share + suspended_share,
    }
    for name, share in shares.items():
        check_share(name, share)
    for name, units, least in (("cloud_gpus", cloud_gpus, 1), ("edge_servers", edge_servers, 0)):
        if units is not None and (not isinstance(units, int) or units < least):
            raise UsageError(f"{name}: must be a whole number of at least {least}, got {units!r}")
    low, high = weights
    if not (isinstance(low, int) and isinstance(high, int) and 0 <= low <= high):
        raise UsageError(f"weights: must be whole numbers 0 <= low <= high, got {low}, {high}")

    draws = Draws(seed)
    horizon = num_slots * slot_s
    drafts = [
        _draft(draws, index, horizon, deadline_factors, duration_sigma, arrival_spread, weights)
        for index in range(num_jobs)
    ]
    if cloud_gpus is None:
        one_gpu_s = math.fsum(job.work / job.modes[0].rate for job in drafts)
        cloud_gpus = max(1, round(one_gpu_s / (load * horizon)))
    if edge_servers is None:
        edge_servers = max(1, round(cloud_gpus / 4))
    sites = (
        Site(name="cloud", kind="cloud", gpu_type="a100", capacity=((0.0, cloud_gpus),),
             gpus_per_node=8),
        Site(name="edge", kind="edge", gpu_type="v100", gpus_per_node=1,
             capacity=_twelve_steps(edge_servers, num_slots, slot_s) if tide
             else ((0.0, edge_servers),)),
    )  # fmt: skip
    best_effort = draws.sample(range(num_jobs), best_effort_share)
    moldable = draws.sample(range(num_jobs), moldable_share)
    must_meet = draws.sample(range(num_jobs), must_meet_share)
    jobs = [
        dataclasses.replace(
            job,
            deadline=None if index in best_effort else job.deadline,
            malleable=index not in moldable,
            must_meet=index in must_meet and index not in best_effort and _easy(job, cloud_gpus),
            restart_s=restart_s,
            migration_s=migration_s,
        )
        for index, job in enumerate(drafts)
    ]
    if running_share or suspended_share:
        jobs = _with_past(draws, jobs, sites, running_share, suspended_share)
    return EpochProblem(grid=Grid.uniform(0.0, slot_s, num_slots), sites=sites, jobs=tuple(jobs))


_ASKED = {1: 0.60, 2: 0.15, 4: 0.15, 8: 0.10}


def _draft(
    draws: Draws,
    index: int,
    horizon: float,
    deadline_factors: tuple[float, float],
    duration_sigma: float,
    arrival_spread: float,
    weights: tuple[int, int],
) -> Job:
    """Return a job of :func:`generate_problem`, malleable, idle, with a deadline."""
    asked = draws.choice(_ASKED)
    most = min(16, asked << draws.whole(1, 3))
    exponent = draws.uniform(0.60, 0.95)
    rate = significant(draws.uniform(1.0, 10.0))
    duration = min(horizon, draws.log_normal(horizon / 8.0, duration_sigma))
    arrival = round(draws.unit() * arrival_spread * horizon, 3)
    window = draws.uniform(*deadline_factors) * duration
    edge = draws.unit() < 0.8
    edge_ratio = draws.uniform(0.40, 0.65)
    modes = [
        Mode(site="cloud", gpus=1 << power, rate=significant(rate * (1 << power) ** exponent))
        for power in range(most.bit_length())
    ]
    if edge:
        modes.append(Mode(site="edge", gpus=1, rate=significant(edge_ratio * rate)))
    return Job(
        id=f"j{index + 1}",
        arrival=arrival,
        deadline=round(min(horizon, arrival + window), 3),
        work=significant(duration * rate * asked**exponent),
        modes=tuple(modes),
        weight=float(draws.whole(*weights)),
    )


def _twelve_steps(servers: int, num_slots: int, slot_s: float) -> Steps:
    """Return the tide of :func:`generate_problem`; its steps begin on slot boundaries."""
    steps: dict[float, int] = {}
    for k in range(12):
        # Where there are fewer slots than steps, the last step to begin in a slot holds.
        begin = round(k * num_slots / 12) * slot_s
        if begin < num_slots * slot_s:
            level = round(servers * (1.0 + math.cos(2.0 * math.pi * k / 12.0)) / 2.0, 6)
            steps[begin] = round(level)
    return joined(sorted(steps.items()))


def _easy(job: Job, cloud_gpus: int) -> bool:
    """Whether the job alone could be met on the cloud, with a slot boundary to spare."""
    assert job.deadline is not None
    assert job.arrival is not None
    best = max(m.rate for m in job.modes if m.site == "cloud" and m.gpus <= cloud_gpus)
    return bool(job.work / best <= (job.deadline - job.arrival) / 2.0)


def _with_past(
    draws: Draws,
    jobs: Sequence[Job],
    sites: tuple[Site, Site],
    running_share: float,
    suspended_share: float,
) -> list[Job]:
    """Return `jobs` with some of them running or suspended at now."""
    cloud, edge = sites
    free = {cloud.name: cloud.capacity_at(0.0), edge.name: edge.capacity_at(0.0)}
    units = {cloud.name: cloud, edge.name: edge}
    present = [index for index, job in enumerate(jobs) if not job.arrival]
    active = sorted(draws.sample(present, running_share + suspended_share))
    total = running_share + suspended_share
    running = draws.sample(active, running_share / total)
    result = list(jobs)
    for index in active:
        job = jobs[index]
        # The GPUs of the mode are drawn low rather than high: more jobs find room.
        options = [m for m in job.modes if units[m.site].units(m) <= free[m.site]]
        pick, site_pick, loss = draws.unit(), draws.unit(), draws.unit()
        if index in running and options:
            mode = options[int(pick * pick * len(options))]
            if options[-1].site == edge.name and site_pick < 0.25:
                mode = options[-1]
            free[mode.site] -= units[mode.site].units(mode)
            result[index] = dataclasses.replace(
                job,
                running=Running(
                    site=mode.site, gpus=mode.gpus, loss_left_s=round(loss * job.restart_s, 3)
                ),
            )
        elif index not in running:
            last = job.modes[-1] if site_pick < 0.25 else job.modes[0]
            result[index] = dataclasses.replace(job, last_site=last.site)
    return result


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name}: must be a whole number of at least 1, got {value!r}")
