"""Weighted sums: what whole numbers leave open is closed in real numbers."""

from __future__ import annotations

import pytest

from edgeflow_opt.problem import Objective, SolveStatus, Weights
from edgeflow_opt.solvers import solve
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
