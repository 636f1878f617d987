"""The plan engine against brute force, and what it keeps to: limits, interruption, determinism."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings

from edgeflow_opt.errors import UnsupportedError, UsageError
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Job,
    Limit,
    Mode,
    Running,
    Site,
    SolveStatus,
    check,
)
from edgeflow_opt.solvers import Progress, solve
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import crowded, small
from tests.strategies import problems

QUICK = settings(max_examples=examples(20))


def _assert_optimal(problem: EpochProblem, **changes: Any) -> None:
    result = solve(problem, "plan", time_limit_s=20.0, **changes)
    best = optimum(problem)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert check(problem, result.schedule).valid
    assert result.status is SolveStatus.OPTIMAL
    assert result.value == pytest.approx(best.value.level_1, abs=1e-6)
    assert result.bound == pytest.approx(best.value.level_1, abs=1e-5)
    reached, wanted = result.objective, best.value
    assert reached is not None
    for report, mine, theirs in zip(result.levels, reached.key(), wanted.key(), strict=False):
        if not report.optimal:
            break
        assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-6), report


@QUICK
@given(problem=problems())
def test_it_equals_brute_force(problem: EpochProblem) -> None:
    """Level 1 is reached and proven, or proven impossible, and so are all levels it says it proves.

    Losses, weights, tides, best effort, running, moldable and hard jobs among them.
    """
    _assert_optimal(problem)


@QUICK
@given(problem=problems(max_jobs=3, moldable=False, best_effort=False, weights=False))
def test_it_proves_without_help(problem: EpochProblem) -> None:
    """Without the price engine before it the tree alone proves the optimum, HiGHS in the master."""
    _assert_optimal(problem, levels=1, params={"prices": False, "master": "highs"})


@pytest.mark.parametrize("solver", ["plan", "auto"])
def test_a_worthless_job_that_must_be_met_on_free_units(solver: str) -> None:
    """With weight and prices of nothing a job has plans all the same: nothing is infeasible."""
    must = Job(
        id="must", deadline=30.0, work=20.0, weight=0.0, must_meet=True, migration_s=10.0,
        modes=(Mode(site="cloud", gpus=1, rate=4.0),),
    )  # fmt: skip
    wide = Job(
        id="wide", deadline=30.0, work=57.0, weight=0.5, restart_s=150.0,
        modes=(Mode(site="cloud", gpus=3, rate=2.6),), running=Running(site="cloud", gpus=3),
    )  # fmt: skip
    cloud = Site(name="cloud", kind="cloud", capacity=((0.0, 3),))
    grid = Grid((0.0, 10.0, 20.0, 30.0))
    problem = EpochProblem(grid=grid, sites=(cloud,), jobs=(must, wide))
    result = solve(problem, solver, levels=1)
    assert (result.status, result.value) == (SolveStatus.OPTIMAL, 0.0)


def test_it_closes_what_the_price_engine_leaves_open() -> None:
    """With losses the relaxation over whole plans proves a plan that the price engine cannot."""
    problem = crowded(12, 6, seed=2)
    price = solve(problem, "price", deterministic=True, params={"moves": 2000})
    plan = solve(problem, "plan", time_limit_s=None, levels=1)
    assert price.status is SolveStatus.FEASIBLE
    assert plan.status is SolveStatus.OPTIMAL
    assert price.bound is not None
    assert plan.value is not None
    assert price.value is not None
    assert price.value <= plan.value < price.bound


def test_both_masters_agree() -> None:
    """CP-SAT and HiGHS as masters lead to the same proven value."""
    problem = crowded(12, 6, seed=2)
    values = {
        solve(problem, "plan", time_limit_s=None, levels=1, params={"master": master}).value
        for master in ("cpsat", "highs")
    }
    assert len(values) == 1


def test_it_is_deterministic_on_request() -> None:
    """The same deterministic solve twice gives the same schedule, bound and number of plans."""
    problem = crowded(12, 6, seed=2)
    params = {"nodes": 3, "prices": False}
    first, second = (
        solve(problem, "plan", deterministic=True, time_limit_s=60.0, levels=1, params=params)
        for _ in range(2)
    )
    assert first.schedule.allocations == second.schedule.allocations
    assert first.bound == second.bound
    assert first.statistics["plans"] == second.statistics["plans"]


def test_interruption_keeps_incumbent_and_bound() -> None:
    """Ctrl-C in the midst of the columns: a checked plan, a bound above it, limit interrupted."""

    def on_progress(progress: Progress) -> None:
        if progress.source == "plan":
            raise KeyboardInterrupt

    result = solve(crowded(20, 10), "plan", time_limit_s=60.0, on_progress=on_progress)
    assert result.limit is Limit.INTERRUPTED
    assert result.status is SolveStatus.FEASIBLE
    assert result.value is not None
    assert result.bound is not None
    assert 0.0 < result.value <= result.bound


def test_a_short_limit_is_kept() -> None:
    """Out of time in the midst of it: what there is comes back, with limit time."""
    result = solve(crowded(), "plan", time_limit_s=0.3)
    assert result.limit is Limit.TIME
    assert result.value is not None
    assert result.bound is not None
    assert result.value <= result.bound


def test_nothing_is_printed() -> None:
    """Neither HiGHS nor anything else writes to the streams of the process."""
    script = (
        "from edgeflow_opt.solvers import solve; from tests.solvers.instances import crowded; "
        "solve(crowded(12, 6), 'plan', time_limit_s=5.0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"master": "cbc"}, "'cpsat' or 'highs', got 'cbc'"),
        ({"nodes": -1}, "whole number >= 0, got -1"),
        ({"nodes": True}, "whole number >= 0, got True"),
        ({"prices": 1}, "true or false, got 1"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    """A parameter that makes no sense is named, with its rule and value."""
    with pytest.raises(UsageError, match=message):
        solve(small(), "plan", params=params)


def test_the_weighted_sum_is_refused() -> None:
    """The weighted-sum objective is not supported, and said so before anything starts."""
    from edgeflow_opt.problem import Objective, Weights

    weighted = Objective(
        mode="weighted", weights=Weights(met=1.0, progress=0.5, cost=0.0, reconfigurations=0.0)
    )
    with pytest.raises(UnsupportedError, match="weighted-sum"):
        solve(small(objective=weighted), "plan")
