"""Work that fits to a hair, or fails by one; numbers as large and small as the format allows."""

from __future__ import annotations

import dataclasses
import itertools
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Running, Site, SolveStatus, check
from edgeflow_opt.solvers import SolveResult, solve
from tests.effort import examples
from tests.oracle import optimum

EXACT = ("cpsat", "highs", "auto", "price")

SLOT_S = 100.0 / 3.0


def _edge(work: float, *, rate: float = 0.7, now: float = 0.0, scale: float = 1.0) -> EpochProblem:
    """Return a job that must hold one of two modes in each of three slots to do `work` in time.

    Its fast mode takes both GPUs; a second job needs one GPU in one slot and weighs less.
    """
    boundaries = tuple(now + k * SLOT_S * scale for k in range(4))
    site = Site(name="c", kind="cloud", capacity=((now, 2),))
    modes = (
        Mode(site="c", gpus=1, rate=rate / scale),
        Mode(site="c", gpus=2, rate=1.3 * rate / scale),
    )
    jobs = (
        Job(id="edge", deadline=boundaries[3], work=work, weight=2.0, modes=modes),
        Job(
            id="other", deadline=boundaries[3], work=0.7 * SLOT_S, weight=1.0,
            modes=(Mode(site="c", gpus=1, rate=0.7 / scale),),
        ),
    )  # fmt: skip
    return EpochProblem(grid=Grid(boundaries), sites=(site,), jobs=jobs)


def _assert_true(problem: EpochProblem, result: SolveResult) -> None:
    """Assert that no claim of `result` is false; brute force says what is true."""
    best = optimum(problem)
    assert best is not None
    assert check(problem, result.schedule).valid
    assert result.bound is not None
    assert result.value is not None
    assert result.value <= best.value.met_weight <= result.bound + 1e-9
    if result.status is SolveStatus.OPTIMAL:
        assert result.value == best.value.met_weight


#: Most that "edge" can do while it leaves one GPU for one slot: 1.3 + 1.3 + 1 parts.
MOST = 0.7 * SLOT_S * 3.6


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("now", [0.0, 1e7])
@pytest.mark.parametrize(
    ("relative", "value"),
    [
        (0.0, 3.0), (-1e-9, 3.0), (-1e-6, 3.0), (5e-7, 3.0), (9.9e-7, 3.0),
        (1.02e-6, 2.0), (1.1e-6, 2.0), (1e-5, 2.0), (1e-3, 2.0),
    ],
)  # fmt: skip
def test_work_about_what_fits(solver: str, now: float, relative: float, value: float) -> None:
    """Up to the tolerance of 1e-6 both jobs are met and it is proven so; beyond it one is."""
    problem = _edge(MOST * (1.0 + relative), now=now)
    result = solve(problem, solver)
    _assert_true(problem, result)
    assert result.value == value
    assert result.status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("solver", EXACT)
@settings(max_examples=examples(10))
@given(ulps=st.floats(-1e-9, 1e-9), now=st.sampled_from([0.0, 1e7, -3e5]))
def test_work_within_a_billionth_of_the_tolerance(solver: str, ulps: float, now: float) -> None:
    """Where rounding cannot tell whether it fits, nothing false is claimed."""
    problem = _edge(MOST / (1.0 - 1e-6) * (1.0 + ulps), now=now)
    _assert_true(problem, solve(problem, solver, time_limit_s=0.5))


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("relative", [0.0, 1e-7, 9e-7, 1.1e-6, 1e-5])
def test_a_hard_deadline_to_a_hair(solver: str, relative: float) -> None:
    """must_meet that fits within the tolerance has a schedule; beyond it, infeasible."""
    problem = _edge(MOST * (1.0 + relative))
    jobs = tuple(dataclasses.replace(job, must_meet=True) for job in problem.jobs)
    result = solve(problem.replace(jobs=jobs), solver, time_limit_s=1.0)
    fits = relative < 1e-6
    if solver == "price" and result.status is SolveStatus.NO_SOLUTION:
        # Prices bound what many jobs can do together; they need not see what one misses by a hair.
        assert not fits
        return
    assert result.status is (SolveStatus.OPTIMAL if fits else SolveStatus.INFEASIBLE)
    assert result.value == (3.0 if fits else None)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("relative", [0.0, 1e-7, 1.1e-6, 1e-5])
@pytest.mark.parametrize(("work", "scale"), [(1e12, 1.0), (1e-9, 1.0), (1e12, 1e4), (1e-9, 1e-3)])
def test_huge_and_tiny_numbers(solver: str, relative: float, work: float, scale: float) -> None:
    """Work and rates of any size, and times of any scale, are judged alike."""
    rate = work / (SLOT_S * 3.6)
    problem = _edge(work * (1.0 + relative), rate=rate, scale=scale)
    result = solve(problem, solver)
    assert check(problem, result.schedule).valid
    assert result.status is SolveStatus.OPTIMAL
    assert result.value == (3.0 if relative < 1e-6 else 2.0)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("weights", [(1e9, 1.0), (1e12, 0.125), (1e-4, 1e-4), (0.1, 1e-3)])
def test_weights_of_all_sizes(solver: str, weights: tuple[float, float]) -> None:
    """Both jobs fit: their weights add up, however different, and the bound is not below."""
    problem = _edge(MOST)
    jobs = tuple(
        dataclasses.replace(job, weight=w) for job, w in zip(problem.jobs, weights, strict=True)
    )
    result = solve(problem.replace(jobs=jobs), solver)
    assert result.value is not None
    assert result.bound is not None
    assert result.value == pytest.approx(sum(weights), rel=1e-6)
    assert result.bound >= sum(weights) * (1.0 - 1e-12)
    assert result.status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto"])
@pytest.mark.parametrize("relative", [0.0, 1e-12, -1e-12, 1e-9, -1e-9])
def test_levels_below_claim_nothing_false_to_a_hair(solver: str, relative: float) -> None:
    """A cheap plan whose credit is what is required, to a billionth: no false proof of cost."""
    site = Site(name="c", kind="cloud", capacity=((0.0, 2),))
    modes = (Mode(site="c", gpus=1, rate=0.7), Mode(site="c", gpus=2, rate=1.3))
    grid = Grid(tuple(k * SLOT_S for k in range(4)))
    credit = 0.7 * (grid.end - 0.0)
    work = credit / (1.0 - 1e-6) * (1.0 + relative)
    job = Job(id="j", deadline=grid.end, work=work, modes=modes)
    problem = EpochProblem(grid=grid, sites=(site,), jobs=(job,))
    result = solve(problem, solver)
    best = optimum(problem)
    assert best is not None
    assert result.objective is not None
    truth = dict(zip(LEVELS, best.value.key(), strict=True))
    mine = dict(zip(LEVELS, result.objective.key(), strict=True))
    for level in result.levels:
        if not level.optimal:
            break
        assert mine[level.level] == pytest.approx(truth[level.level], rel=1e-6)  # type: ignore[index]


#: Every engine that gives a bound.
BOUNDING = ("cpsat", "highs", "auto", "price", "plan", "pulp:HiGHS")


@pytest.mark.parametrize("solver", BOUNDING)
@pytest.mark.parametrize("malleable", [True, False])
def test_nothing_is_done_in_no_time(solver: str, malleable: bool) -> None:
    """On a clock since 1970 a tiny job whose deadline is now is late, for checker and engines."""
    now = 1701000181.123
    site = Site(name="c", kind="cloud", capacity=((now, 2),))
    modes = (Mode(site="c", gpus=1, rate=1.0),)
    jobs = tuple(
        Job(id=name, deadline=deadline, work=work, modes=modes, malleable=malleable)
        for name, deadline, work in (("late", now, 1e-9), ("other", now + 60.0, 60.0))
    )
    problem = EpochProblem(grid=Grid((now, now + 60.0)), sites=(site,), jobs=jobs)
    result = solve(problem, solver)
    _assert_true(problem, result)
    assert (result.value, result.bound) == (1.0, 1.0)


CLOCKS = (0.0, 1e-3, -3e5, 1e7 + 1 / 3, 1701000181.123, 1e12)


def _near(time: float, rng: Random) -> float:
    """Return `time`, or one that the clock can just tell from it."""
    for _ in range(rng.choice((0, 0, 1, 3)) if time else 0):
        time = math.nextafter(time, rng.choice((math.inf, -math.inf)))
    return time


def _job_on_the_edge(name: str, boundaries: list[float], scale: float, rng: Random) -> Job:
    """Return a job with tiny work, or what some modes slot by slot can do, to a few roundings."""
    unit = rng.choice((1.0, 0.7, 1e-6, 1e6))
    gpus = rng.choice(((1,), (1, 2), (2, 1)))
    modes = tuple(Mode(site="c", gpus=g, rate=unit * rng.choice((1.0, 1.3)) * g**0.8) for g in gpus)
    modes += (Mode(site="e", gpus=1, rate=unit),)[: rng.randint(0, 1)]
    deadline = _near(rng.choice(boundaries) - rng.choice((0.0, 0.0, scale / 2)), rng)
    restart, migration = (rng.choice((0.0, 1e-9, scale / 3, scale)) for _ in "rm")
    work = rng.choice((1e-99, 1e-12, 1e-9, 1e-6, 2.5e-8 * unit))
    if rng.random() < 0.6:
        credit = 1e-9 - rng.choice((0.0, modes[0].rate * restart))
        for start, end in itertools.pairwise(boundaries):
            credit += rng.choice(modes).rate * max(0.0, min(end, deadline) - start)
        work = max(1e-9, credit) / (1 - 1e-6) * (1 + rng.choice((0, 1, -1, 10, -1e3)) * 2.2e-16)
    state = rng.choice(("new", "idle", "running"))
    on = rng.choice(modes)
    running = Running(site=on.site, gpus=on.gpus, loss_left_s=rng.choice((0.0, 1e-9, scale)))
    return Job(
        id=name, deadline=deadline, work=work, modes=modes, weight=rng.choice((1.0, 2.0)),
        running=running if state == "running" else None,
        last_site=None if state == "new" else on.site,
        restart_s=restart, migration_s=migration,
        malleable=rng.random() < 0.8, must_meet=rng.random() < 0.08,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("solver", "number"), [("price", 80), ("plan", 40), ("cpsat", 12), ("highs", 12)]
)
def test_tiny_jobs_and_clocks_since_1970(solver: str, number: int) -> None:
    """Where a slot does a job many times over, or the clock is coarse, nothing false is claimed."""

    @settings(max_examples=examples(number))
    @given(rng=st.randoms(use_true_random=False))
    def holds(rng: Random) -> None:
        now, scale = rng.choice(CLOCKS), rng.choice((1.0, 60.0, SLOT_S, 1e4))
        steps = [scale * rng.choice((1.0, 0.37, 2.6)) for _ in range(rng.randint(1, 3))]
        boundaries = list(itertools.accumulate(steps, initial=now))
        sites = (
            Site(name="c", kind="cloud", capacity=((now, rng.randint(1, 3)),)),
            Site(name="e", kind="edge", capacity=((now, 1),)),
        )
        jobs = [_job_on_the_edge(f"j{k}", boundaries, scale, rng) for k in range(rng.randint(1, 3))]
        problem = EpochProblem(grid=Grid(tuple(boundaries)), sites=sites, jobs=tuple(jobs))
        result = solve(problem, solver, time_limit_s=0.2, levels=2)
        if optimum(problem) is None:
            assert result.value is None
        elif result.value is None:
            assert result.status is SolveStatus.NO_SOLUTION
        else:
            _assert_true(problem, result)

    holds()
