"""Random valid instances and schedules for property tests.

``problems()`` draws instances that touch every rule of the format; a flag switches off what a
solver under test does not support. All numbers are short decimals, so that a credit is either equal
to the work required or differs from it by far more than the tolerance of 1e-6.
"""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    Running,
    Schedule,
    Site,
    SolveStatus,
    Weights,
    evaluate,
)
from edgeflow_opt.problem.schedule import in_order

LENGTHS = (10.0, 60.0, 100.0, 37.5, 300.0)
RATES = (0.5, 1.0, 1.25, 1.5, 2.0, 2.6, 3.0, 4.0)
LOSSES = (0.0, 5.0, 10.0, 45.0, 150.0)
WEIGHTS = (1.0, 0.0, 0.5, 2.0, 2.25, 3.0)
OFFSETS = (0.0, 1000.0, 1e7, -500.0)
PRICES = (1.0, 0.5, 0.0, 2.0)


@st.composite
def problems(
    draw: st.DrawFn,
    max_jobs: int = 4,
    max_slots: int = 4,
    *,
    min_jobs: int = 1,
    max_sites: int = 2,
    max_modes: int = 3,
    losses: bool = True,
    tides: bool = True,
    arrivals: bool = True,
    best_effort: bool = True,
    weights: bool = True,
    must_meet: bool = True,
    moldable: bool = True,
    running: bool = True,
    passed: bool = True,
    memory: bool = True,
    uneven: bool = True,
    offset: bool = True,
    prices: bool = True,
    weighted: bool = False,
) -> EpochProblem:
    """Draw a valid instance.

    Parameters
    ----------
    max_jobs, max_slots, min_jobs, max_sites, max_modes
        Sizes; `max_modes` is per job.
    losses
        Losses at restarts and migrations, and such as are left of the running mode.
    tides
        Capacities that change, also within slots.
    arrivals
        Arrivals after now, also within slots.
    best_effort, must_meet, moldable, running
        Jobs of these kinds; running jobs may exceed the capacity, and idle ones may have run.
    weights
        Weights other than one, zero and fractions among them.
    passed
        Deadlines at or before now.
    memory
        Sites whose units are too small for some jobs.
    uneven
        Slots of different lengths.
    offset
        Clocks that do not begin at 0, up to 1e7.
    prices
        Sites whose price is not 1.
    weighted
        The weighted sum as objective (never drawn by default).
    """
    now = draw(st.sampled_from(OFFSETS)) if offset else 0.0
    num_slots = draw(st.integers(1, max_slots))
    if uneven:
        lengths = [draw(st.sampled_from(LENGTHS)) for _ in range(num_slots)]
    else:
        lengths = [draw(st.sampled_from(LENGTHS))] * num_slots
    boundaries = [now]
    for length in lengths:
        boundaries.append(boundaries[-1] + length)
    grid = Grid(tuple(boundaries))
    # Boundaries, and times within slots.
    inside = [(a + b) / 2 for a, b in itertools.pairwise(boundaries)]
    times = sorted(boundaries + inside)
    num_sites = draw(st.integers(1, max_sites))
    sites = tuple(
        draw(_sites(index, now, times, tides=tides, memory=memory, prices=prices))
        for index in range(num_sites)
    )
    jobs = tuple(
        draw(
            _jobs(
                f"j{index}",
                grid,
                times,
                sites,
                max_modes=max_modes,
                losses=losses,
                arrivals=arrivals,
                best_effort=best_effort,
                weights=weights,
                must_meet=must_meet,
                moldable=moldable,
                running=running,
                passed=passed,
                memory=memory,
            )
        )
        for index in range(draw(st.integers(min_jobs, max_jobs)))
    )
    objective = Objective()
    if weighted:
        costs = draw(st.sampled_from((0.0, 0.001, 0.01)))
        changes = draw(st.sampled_from((0.0, 0.25, 2.0)))
        objective = Objective(
            mode="weighted",
            weights=Weights(
                met=1.0,
                progress=draw(st.sampled_from((0.5, 0.0, 0.125))),
                leftover=draw(st.sampled_from((0.0, 0.25, 0.5))),
                cost=costs,
                reconfigurations=changes,
            ),
        )
    return EpochProblem(grid=grid, sites=sites, jobs=jobs, objective=objective)


@st.composite
def _sites(
    draw: st.DrawFn,
    index: int,
    now: float,
    times: list[float],
    *,
    tides: bool,
    memory: bool,
    prices: bool,
) -> Site:
    kind = draw(st.sampled_from(("cloud", "edge")))
    steps = [(now - draw(st.sampled_from((0.0, 50.0))), draw(st.integers(0, 4)))]
    if tides:
        for time in sorted(draw(st.sets(st.sampled_from(times[1:]), max_size=2))):
            steps.append((time, draw(st.integers(0, 4))))
    return Site(
        name=f"site{index}",
        kind=kind,
        capacity=tuple(steps),
        memory_gib=draw(st.sampled_from((None, 8.0, 16.0))) if memory else None,
        price=draw(st.sampled_from(PRICES)) if prices else 1.0,
    )


@st.composite
def _jobs(
    draw: st.DrawFn,
    job_id: str,
    grid: Grid,
    times: list[float],
    sites: tuple[Site, ...],
    *,
    max_modes: int,
    losses: bool,
    arrivals: bool,
    best_effort: bool,
    weights: bool,
    must_meet: bool,
    moldable: bool,
    running: bool,
    passed: bool,
    memory: bool,
) -> Job:
    now = grid.start
    keys = draw(
        st.lists(
            st.tuples(st.sampled_from([site.name for site in sites]), st.integers(1, 3)),
            min_size=1,
            max_size=max_modes,
            unique=True,
        )
    )
    modes = tuple(
        Mode(site=site, gpus=gpus, rate=draw(st.sampled_from(RATES))) for site, gpus in keys
    )
    deadline: float | None
    if best_effort and draw(st.integers(0, 4)) == 0:
        deadline = None
    elif passed and draw(st.integers(0, 7)) == 0:
        deadline = now - draw(st.sampled_from((0.0, 20.0)))
    else:
        deadline = draw(st.sampled_from([*times[1:], grid.end + 50.0]))
    arrival: float | None = None
    if arrivals and draw(st.integers(0, 2)) == 0:
        candidates = [t for t in [now - 30.0, *times] if deadline is None or t <= deadline]
        arrival = draw(st.sampled_from(candidates)) if candidates else None
    # Work around what one of the modes does between now and a time, so that ties are met often.
    span = draw(st.sampled_from(times[1:])) - now
    exact = draw(st.sampled_from(modes)).rate * span
    work = max(1.0, exact + draw(st.sampled_from((0.0, 0.0, -5.0, 5.0, -0.5 * span))))
    held: Running | None = None
    last_site: str | None = None
    if running and (arrival is None or arrival <= now):
        state = draw(st.integers(0, 3))
        if state == 0:
            mode = draw(st.sampled_from(modes))
            left = draw(st.sampled_from(LOSSES)) if losses else 0.0
            held = Running(site=mode.site, gpus=mode.gpus, loss_left_s=left)
        elif state == 1:
            last_site = draw(st.sampled_from([site.name for site in sites]))
    return Job(
        id=job_id,
        deadline=deadline,
        work=work,
        modes=modes,
        arrival=arrival,
        weight=draw(st.sampled_from(WEIGHTS)) if weights else 1.0,
        memory_gib=draw(st.sampled_from((0.0, 0.0, 12.0))) if memory else 0.0,
        running=held,
        last_site=last_site,
        restart_s=draw(st.sampled_from(LOSSES)) if losses else 0.0,
        migration_s=draw(st.sampled_from(LOSSES)) if losses else 0.0,
        must_meet=must_meet and deadline is not None and draw(st.integers(0, 5)) == 0,
        malleable=not (moldable and draw(st.integers(0, 3)) == 0),
    )


@st.composite
def valid_schedules(draw: st.DrawFn, problem: EpochProblem) -> Schedule:
    """Draw a valid schedule of `problem`, which must have no job that must be met.

    Modes are drawn slot by slot and dropped where they break a rule.
    """
    boundaries = problem.grid.boundaries
    slots = list(itertools.pairwise(boundaries))
    site_of = {site.name: site for site in problem.sites}
    free = {
        (site.name, slot): site.least_capacity(*slot) for site in problem.sites for slot in slots
    }
    allocations: list[Allocation] = []
    for job in problem.jobs:
        assert not job.must_meet
        assert job.arrival is not None
        plan: list[tuple[tuple[float, float], Mode]] = []
        for slot in slots:
            mode = draw(st.sampled_from([None, *job.modes]))
            if mode is None or slot[0] < job.arrival:
                continue
            site = site_of[mode.site]
            if not site.hosts(job) or site.units(mode) > free[mode.site, slot]:
                continue
            if not job.malleable and not _may_extend(job, plan, slot, mode, problem.now):
                continue
            free[mode.site, slot] -= site.units(mode)
            plan.append((slot, mode))
        for (start, end), mode in plan:
            last = allocations[-1] if allocations else None
            same = last is not None and (last.job, last.site, last.gpus, last.end) == (
                job.id,
                mode.site,
                mode.gpus,
                start,
            )
            # Abutting allocations in one mode are one run whether or not they are written as one.
            if last is not None and same and draw(st.booleans()):
                allocations.pop()
                start = last.start
            allocations.append(
                Allocation(job=job.id, start=start, end=end, site=mode.site, gpus=mode.gpus)
            )
    value, outcomes = evaluate(problem, allocations)
    return Schedule(
        solver="random",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=in_order(allocations, problem.jobs),
        outcomes=outcomes,
    )


def _may_extend(
    job: Job,
    plan: list[tuple[tuple[float, float], Mode]],
    slot: tuple[float, float],
    mode: Mode,
    now: float,
) -> bool:
    """Whether a moldable job may hold `mode` in `slot` after `plan`."""
    if plan:
        return plan[-1][0][1] == slot[0] and plan[-1][1] == mode
    if job.running is not None:
        return slot[0] == now and (mode.site, mode.gpus) == (job.running.site, job.running.gpus)
    return True


@st.composite
def problems_with_schedules(
    draw: st.DrawFn, max_jobs: int = 4, max_slots: int = 4, **flags: bool | int
) -> tuple[EpochProblem, Schedule]:
    """Draw an instance in which no job must be met, and a valid schedule of it."""
    flags["must_meet"] = False
    problem = draw(problems(max_jobs, max_slots, **flags))  # type: ignore[arg-type]
    return problem, draw(valid_schedules(problem))
