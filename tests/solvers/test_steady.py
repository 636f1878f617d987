"""Deterministic solves on clocks of any pace: whatever the machine, the same schedule."""

from __future__ import annotations

import random
import time

import pytest

from edgeflow_opt.problem import EpochProblem, Objective, Weights
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.base import SolveResult
from edgeflow_opt.workloads import generate_problem

_WEIGHTS = Weights(progress=0.1, leftover=0.05, cost=1e-6, reconfigurations=1e-4)

#: Mean seconds between two looks at the clock: a quick machine, a slow one, one that is overloaded.
_PACES = (1e-6, 1e-3, 1e-2)


class _Clock:
    """A clock that jumps by random amounts, many small and some large ones."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, pace: float) -> None:
        self._random, self._pace, self._now = random.Random(str(pace)), pace, 0.0

    def perf_counter(self) -> float:
        self._now += self._pace * self._random.expovariate(1.0) ** 3
        return self._now


def _lossy(jobs: int, slots: int) -> EpochProblem:
    return generate_problem(jobs, slots, load=1.6, seed=1, restart_s=30.0, migration_s=60.0)


def _weighted(jobs: int, slots: int) -> EpochProblem:
    return _lossy(jobs, slots).replace(objective=Objective(mode="weighted", weights=_WEIGHTS))


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        ("price", _lossy(60, 12)),
        ("price", _weighted(60, 12)),
        ("plan", generate_problem(30, 16, load=1.6, seed=1)),
        ("cpsat", generate_problem(20, 12, load=1.6, seed=1)),
        ("highs", _weighted(6, 6)),
        ("auto", _lossy(20, 12)),
        ("auto", _weighted(8, 5)),
    ],
)
def test_the_pace_of_the_clock_decides_nothing(
    solver: str, problem: EpochProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit apart: schedule, bound and levels are the same on a quick machine and a slow one."""

    def solved(pace: float) -> SolveResult:
        monkeypatch.setattr("edgeflow_opt.solvers.control.time", _Clock(pace))
        return solve(problem, solver, deterministic=True, levels=1, seed=3, time_limit_s=1e4)

    first, *others = (solved(pace) for pace in _PACES)
    for other in others:
        assert other.schedule.allocations == first.schedule.allocations
        assert (other.status, other.bound, other.levels) == (
            first.status,
            first.bound,
            first.levels,
        )
