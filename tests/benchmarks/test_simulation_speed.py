"""The benchmark of whole simulations runs, and its figures fit together."""

from __future__ import annotations

import json

import pytest

from benchmarks import simulation_speed
from benchmarks.simulation_speed import Case, main, measured


def test_every_policy_is_timed_on_every_trace(monkeypatch, tmp_path, capsys):
    """A line for each trace and policy, and the same as JSON."""
    cases = (Case(name="generated", cloud_gpus=8, jobs=6, public_s=49.0),)
    monkeypatch.setattr(simulation_speed, "CASES", cases)
    file = tmp_path / "runs.jsonl"
    assert main(["--policies", "edgeflow", "fifo", "--json", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    runs = [json.loads(line) for line in file.read_text().splitlines()]
    assert [run["policy"] for run in runs] == ["edgeflow", "fifo"]
    assert len(lines) == 3
    for run in runs:
        assert run["jobs"] == 6
        assert 6 <= run["events"] <= 12
        assert run["ratio"] * run["cpu_s"] == pytest.approx(49.0)
        assert run["events_per_s"] * run["cpu_s"] == pytest.approx(run["events"])


def test_a_part_of_a_trace_is_not_compared(monkeypatch):
    """The public figure is of all jobs: for the first ones there is no ratio."""
    case = Case(name="generated", cloud_gpus=8, jobs=6, public_s=49.0)
    (speed,) = measured(case, ["fifo"], 3)
    assert (speed.jobs, speed.ratio) == (3, None)


def test_a_trace_that_is_not_there_is_left_out(monkeypatch):
    """Without the folder of public traces their cases have no line."""
    monkeypatch.delenv("EDGEFLOW_DATA", raising=False)
    case = Case(name="testbed195", cloud_gpus=8, file="testbed195.csv")
    assert list(measured(case, ["fifo"], None)) == []
