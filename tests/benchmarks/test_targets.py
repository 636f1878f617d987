"""The benchmark command: what it prints, keeps and refuses, on instances of no weight."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this distribution")

from benchmarks import contenders, targets, worker
from benchmarks.answers import Answer
from benchmarks.criteria import gap_at_most, optimal
from benchmarks.instances import Instance, digest
from benchmarks.records import Record, false_bounds
from benchmarks.registry import QUICK, TARGETS


def _record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "target": "300x96",
        "instance": {"load": 1.6},
        "digest": "same",
        "solver": "auto",
        "limit_s": 5.0,
        "seconds": 5.0,
        "status": "feasible",
        "value": 200.0,
        "bound": 200.0,
    }
    return Record(**fields | changes)


def test_quick_run_prints_all_contenders_and_keeps_a_line_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The quick run of a target ends with 0, with a row and a JSON line for every contender."""
    path = tmp_path / "runs.jsonl"
    assert targets.main(["--quick", "--only", "30x24", "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["solver"] for line in lines] == list(TARGETS["30x24"].contenders)
    assert len({line["digest"] for line in lines}) == 1
    for line in lines:
        assert line["solver"] in printed
        assert line["versions"]["edgeflow-opt"]
        assert line["instance"]["seed"] == 0
        if line["status"] != "not installed":
            # Instances of six jobs are solved by everybody.
            assert line["value"] == line["bound"] == lines[0]["value"]


@pytest.mark.parametrize("name", [name for name in QUICK if name != "30x24"])
def test_quick_run_of_every_other_kind_of_target(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losses, arrivals, heuristics and memory are measured and judged."""
    assert targets.main(["--quick", "--only", name]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(name)
    # Which of the two depends on the machine, too.
    assert {"met", "missed"} & set(last.split())


def test_bound_below_a_value_is_printed_in_capitals_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A contender whose bound is below the value of another one makes the exit code 1."""
    liar = {"price": lambda problem, limit_s: Answer(status="optimal", value=0.0, bound=0.0)}
    monkeypatch.setattr("benchmarks.tasks.CONTENDERS", {**contenders.CONTENDERS, **liar})
    assert targets.main(["--quick", "--only", "30x24", "--solvers", "auto", "price"]) == 1
    assert "BOUND 0.000000 OF price IS BELOW THE VALUE" in capsys.readouterr().out


def test_failed_run_is_a_row_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An exception in a contender spoils neither the other rows nor the table."""

    def broken(problem: object, limit_s: float) -> Answer:
        raise ValueError("out of order")

    monkeypatch.setattr("benchmarks.tasks.CONTENDERS", {**contenders.CONTENDERS, "price": broken})
    assert targets.main(["--quick", "--only", "30x24", "--solvers", "auto", "price"]) == 1
    printed = capsys.readouterr().out
    assert "ValueError: out of order" in printed
    assert "30x24             auto" in printed


def test_peer_that_is_not_installed_is_a_row_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without pyscipopt the row of SCIP names the extra to install, and nothing fails."""
    monkeypatch.setattr("benchmarks.peers.importlib.util.find_spec", lambda name: None)
    assert targets.main(["--quick", "--only", "30x24", "--solvers", "scip"]) == 0
    assert "not installed; pip install edgeflow-opt[bench]" in capsys.readouterr().out


def test_bounds_are_compared_on_the_same_instance_only() -> None:
    """A bound is held against values of its own instance, and rounding is forgiven."""
    lower = _record(solver="price", value=None, bound=199.0)
    assert len(list(false_bounds([_record(), lower]))) == 1
    assert list(false_bounds([_record(), _record(digest="other", value=1.0, bound=1.0)])) == []
    assert list(false_bounds([_record(), _record(solver="scip", bound=200.0 - 1e-7)])) == []


def test_criteria_ask_for_gap_time_and_share() -> None:
    """A run reaches its goal by gap or by grain, in time; a target by its share of such runs."""
    goal = gap_at_most(0.3, grain=1.0)
    assert goal.reached(_record(bound=201.0))
    assert not goal.reached(_record(bound=202.0))
    assert not goal.reached(_record(bound=None))
    assert not goal.reached(_record(seconds=5.6))
    nine, ten = [_record()] * 9, _record(bound=201.0)
    assert optimal(0.9).judge([*nine, ten]).met
    judged = optimal(0.9).judge([*nine, ten, ten])
    assert (judged.good, judged.runs, judged.met) == (9, 11, False)
    assert judged.worst == pytest.approx(0.5)


def test_late_is_beyond_ten_percent_and_half_a_second() -> None:
    """A limit counts as kept within 10 % or 0.5 s, the larger."""
    assert not _record(seconds=5.4).late
    assert _record(seconds=5.6).late
    assert not _record(limit_s=0.5, seconds=0.9).late
    assert _record(limit_s=30.0, seconds=33.1).late


def test_run_apart_answers_for_the_same_instance() -> None:
    """A run in a process of its own returns the record of the instance asked for."""
    instance = Instance(num_jobs=5, num_slots=4, seed=3)
    record = worker.run_apart("solve", "probe", instance, "price", 2.0)
    assert record.digest == digest(instance.problem())
    assert record.status == "optimal"
    assert record.peak_mb is not None
    assert record.peak_mb > 50.0


def test_run_that_dies_is_a_record() -> None:
    """A process that ends with an error leaves a failed run that quotes it."""
    instance = Instance(num_jobs=0, num_slots=4)
    record = worker.run_apart("solve", "probe", instance, "price", 2.0)
    assert record.status == "failed"
    assert "num_jobs" in record.note
