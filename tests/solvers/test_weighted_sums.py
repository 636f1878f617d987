"""Weighted sums: what whole numbers leave open is closed in real numbers."""

from __future__ import annotations

import dataclasses

import pytest

from edgeflow_opt.problem import Objective, Running, SolveStatus, Weights
from edgeflow_opt.solvers import solve
from tests.oracle import optimum
from tests.solvers.instances import small


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
@pytest.mark.parametrize("progress", [0.3, 0.7])
def test_small_weighted_sums_are_proven_and_agree(solver: str, progress: float) -> None:
    """Shares of work do not keep an engine of whole numbers from `optimal` within 1e-6."""
    weights = Weights(met=2.0, progress=progress, leftover=1.0 / 3.0)
    problem = small(objective=Objective(mode="weighted", weights=weights))
    found = solve(problem, solver, time_limit_s=60.0)
    reference = solve(problem, "highs", time_limit_s=60.0)
    assert found.status is SolveStatus.OPTIMAL
    assert found.value == pytest.approx(reference.value, rel=2e-6)


@pytest.mark.parametrize("weight", [1.0, 1e-9])
@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs", "price"])
def test_prohibitive_costs_do_not_hide_what_is_gained(solver: str, weight: float) -> None:
    """Beside a change at 1e15 times a job the optimum is proven; at 1e24 times nothing false is said."""
    weights = Weights(met=1e-6, leftover=2.5e-7, reconfigurations=1e9)
    held = Running(site="cloud", gpus=1, loss_left_s=1.0)
    changes = ({"running": held}, {"restart_s": 5.0}, {"last_site": "cloud"}, {"deadline": None})
    jobs = tuple(
        dataclasses.replace(job, weight=weight, **change)
        for job, change in zip(small().jobs, changes, strict=True)
    )
    problem = small(jobs=jobs, objective=Objective(mode="weighted", weights=weights))
    best = optimum(problem)
    assert best is not None
    result = solve(problem, solver, time_limit_s=20.0)
    assert result.bound is not None
    assert result.bound >= best.value.level_1
    if weight == 1.0:
        assert result.value == pytest.approx(best.value.level_1, rel=1e-5)
    if weight == 1.0 and solver != "price":
        assert result.status is SolveStatus.OPTIMAL
