"""Rounds of Sia's kind: the phase runs, and the single-slot path proves what HiGHS proves."""

from __future__ import annotations

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this distribution")

from benchmarks.single_slot import CONTENDERS, main, round_problem
from edgeflow_opt.problem import Limit
from edgeflow_opt.solvers import solve


def test_any_core_size_leads_to_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores that begin with one choice, and grow slowly, end at the same proven optimum."""
    problem = round_problem(12, 16, 1)
    value = solve(problem, "highs", levels=2).objective
    assert value is not None
    for first, growth in ((1, 2), (5, 3), (10_000, 2)):
        monkeypatch.setattr("edgeflow_opt.solvers.single_slot.knapsack._FIRST_CORE", first)
        monkeypatch.setattr("edgeflow_opt.solvers.single_slot.knapsack._CORE_GROWTH", growth)
        found = solve(problem, "auto", levels=2)
        assert found.objective is not None
        assert all(level.optimal for level in found.levels)
        assert found.objective.progress == pytest.approx(value.progress, rel=1e-6)


def test_a_round_of_many_jobs_is_proven() -> None:
    """160 jobs with some twenty configurations each: proven, at the value of HiGHS alone."""
    problem = round_problem(160, 64, 0)
    result = solve(problem, "auto", levels=2, time_limit_s=60.0)
    assert result.objective is not None
    assert all(level.optimal for level in result.levels)
    value, optimal = CONTENDERS["highs-bare"](problem)
    assert optimal
    assert 1000.0 * result.objective.progress == pytest.approx(value, rel=1e-6)


def test_next_to_no_time_leaves_the_greedy_plan() -> None:
    """A limit that has passed ends the path at once, without a false proof."""
    result = solve(round_problem(60, 32, 2), "auto", time_limit_s=1e-9)
    assert result.value is not None
    assert result.limit is Limit.TIME
    assert not all(level.optimal for level in result.levels)


def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The phase prints a line for each contender, and finds no contradiction."""
    arguments = ["--jobs", "8", "--seeds", "1", "--solvers", "auto", "highs", "highs-bare"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["auto", "highs", "highs-bare"]
    assert main([*arguments, "--json"]) == 0
    assert '"format": "edgeflow-single-slot/1"' in capsys.readouterr().out
