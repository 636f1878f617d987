"""Solvers by way of PuLP: the optimum reached, nothing believed unseen."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from edgeflow_opt.errors import SolverUnavailableError, UsageError
from edgeflow_opt.problem import EpochProblem, SolveStatus, check
from edgeflow_opt.solvers import SOLVERS, solve
from edgeflow_opt.solvers.exchange import import_solution
from edgeflow_opt.solvers.pulp import to_pulp
from edgeflow_opt.solvers.pulp.engine import verdict_of
from edgeflow_opt.solvers.pulp.known import available_solvers
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import crowded, small
from tests.strategies import problems

pulp = pytest.importorskip("pulp", reason="needs PuLP, extra [pulp]")

AVAILABLE = available_solvers()


@pytest.mark.parametrize("name", AVAILABLE)
def test_every_available_solver_gives_the_lexicographic_optimum(name: str) -> None:
    """Each solver that PuLP finds here reaches and proves all levels of a small instance."""
    problem = small()
    best = optimum(problem)
    assert best is not None
    result = solve(problem, f"pulp:{name}", time_limit_s=60)
    assert result.status is SolveStatus.OPTIMAL
    assert result.objective is not None
    assert result.objective.key() == pytest.approx(best.value.key())
    assert all(level.optimal for level in result.levels)


@settings(max_examples=examples(12))
@given(problem=problems(max_jobs=3, max_slots=3))
def test_random_instances_equal_brute_force(problem: EpochProblem) -> None:
    """Losses, hard deadlines, moldable jobs and all: value and bound are those of brute force."""
    best = optimum(problem)
    result = solve(problem, "pulp", time_limit_s=60, levels=1)
    if best is None:
        assert result.status is SolveStatus.INFEASIBLE
        return
    assert result.status is SolveStatus.OPTIMAL
    assert result.value == pytest.approx(best.value.met_weight, abs=1e-6)
    assert result.bound == pytest.approx(best.value.met_weight, abs=1e-5)


@pytest.mark.parametrize("name", AVAILABLE)
def test_a_time_limit_proves_nothing(name: str) -> None:
    """A solve stopped by its limit is feasible, with a bound no lower than what can be reached."""
    problem = crowded(30, 12)
    result = solve(problem, f"pulp:{name}", time_limit_s=1.0, levels=1)
    assert result.status is SolveStatus.FEASIBLE
    assert result.limit == "time"
    assert check(problem, result.schedule).valid
    assert result.bound is not None
    assert result.value is not None
    assert result.bound > result.value


@pytest.mark.parametrize(
    ("status", "found", "optimal"),
    [("LpStatusOptimal", 1, True), ("LpStatusOptimal", 2, False), ("LpStatusNotSolved", 1, False)],
)
def test_optimal_needs_both_statuses(status: str, found: int, optimal: bool) -> None:
    """PuLP 3 calls a time-limited solve optimal: only with the second status too is it."""
    fake = SimpleNamespace(LpStatusOptimal=1, LpSolutionOptimal=1, LpStatusInfeasible=-1, LpStatusNotSolved=0,
                           LpStatus={1: "Optimal", 0: "Not Solved", -1: "Infeasible"},
                           LpSolution={1: "Optimal Solution Found", 2: "Solution Found"})  # fmt: skip
    model = SimpleNamespace(status=getattr(fake, status), sol_status=found)
    assert verdict_of(fake, model, 1).optimal is optimal


@pytest.mark.parametrize(
    ("name", "has_solution", "optimal", "infeasible"),
    [
        ("Optimal", True, True, False),
        ("Optimal", False, False, False),
        ("TimeLimit", True, False, False),
        ("Infeasible", False, False, True),
    ],
)
def test_the_statistics_of_pulp_4_are_understood(
    name: str, has_solution: bool, optimal: bool, infeasible: bool
) -> None:
    """PuLP 4 returns statistics in place of a status; a limit or a missing solution is no proof."""
    outcome = SimpleNamespace(status=SimpleNamespace(name=name), has_solution=has_solution)
    verdict = verdict_of(pulp, None, outcome)
    assert (verdict.optimal, verdict.infeasible) == (optimal, infeasible)


@pytest.mark.parametrize("formulation", ["malleable", "moldable", "plan"])
def test_a_formulation_is_a_model_of_pulp(formulation: str) -> None:
    """A model has readable names, and its solution comes back by them as a checked schedule."""
    problem = small()
    model = to_pulp(problem, formulation)
    model.solve(pulp.getSolver(AVAILABLE[0], msg=False))
    values = {variable.name: variable.varValue for variable in model.variables()}
    imported = import_solution(problem, values)
    assert imported.report.valid
    assert imported.schedule.met == 2


def test_names_are_forgiving() -> None:
    """Names are found whatever their case, and short ones stand for what is installed."""
    assert SOLVERS.get(f"pulp:{AVAILABLE[0].lower()}").native == AVAILABLE[0]
    assert SOLVERS.get("pulp").name == "pulp"
    if "PULP_CBC_CMD" in AVAILABLE:
        assert SOLVERS.get("pulp:cbc").native == "PULP_CBC_CMD"


def test_missing_solvers_are_told_with_those_available() -> None:
    """A solver that is not installed, or that nobody knows, is one clear error with a way out."""
    missing = next(name for name in ("XPRESS", "MOSEK", "CHOCO_CMD") if name not in AVAILABLE)
    here = re.escape(f"available here: {', '.join(AVAILABLE)}")
    with pytest.raises(SolverUnavailableError, match=f"'pulp:{missing}' is not installed.*{here}"):
        solve(small(), f"pulp:{missing}")
    with pytest.raises(UsageError, match=f"'pulp:nosuch' is not one that PuLP knows.*{here}"):
        solve(small(), "pulp:nosuch")
    with pytest.raises(UsageError, match="parameter 'nonsense' is not one of solver 'pulp:"):
        solve(small(), f"pulp:{AVAILABLE[0]}", params={"nonsense": 1})


def test_without_pulp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PuLP is not installed, the message says which extra brings it."""
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "pulp" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(SolverUnavailableError, match=r"pip install 'edgeflow-opt\[pulp\]'"):
        solve(small(), "pulp:CBC")
    assert "extra [pulp]" in SOLVERS.get("pulp").capabilities.summary


@pytest.mark.parametrize("name", AVAILABLE)
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither Python nor native code writes to stdout or stderr, whose owner is the caller."""
    flush = ctypes.CDLL(None).fflush
    flush(None)
    capfd.readouterr()
    assert solve(crowded(6, 4), f"pulp:{name}", time_limit_s=5.0).value is not None
    flush(None)
    assert capfd.readouterr() == ("", "")
