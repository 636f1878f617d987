"""The benchmarks of sessions run, and their tables say what they are to say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import service_load, session, session_traces


def test_every_event_has_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After each kind of event both ways to decide are valued, and no bound contradicts the other."""
    file = tmp_path / "rows.json"
    arguments = ["--sizes", "8x4", "--limit", "0.2", "--json", str(file)]
    assert session.main(arguments) == 0
    rows, printed = json.loads(file.read_text()), capsys.readouterr().out
    assert [row["event"] for row in rows] == ["arrival", "completion", "rate correction"]
    for row in rows:
        found = [row["scratch"], *row["incremental"].values()]
        assert max(f["value"] for f in found) <= min(f["bound"] for f in found) + 1e-6
        assert row["event"] in printed


def test_a_trace_goes_through_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    """Every contender meets jobs of a short trace, the table has their sum."""
    arguments = ["--jobs", "6", "--seeds", "1", "--loads", "2", "--max-slots", "6"]
    assert session_traces.main([*arguments, "--time-limit", "0.05"]) == 0
    head, line, total = capsys.readouterr().out.splitlines()
    assert line.split()[1:] == total.split()[1:]
    assert all(0 < int(met) <= 6 for met in line.split()[1:])
    assert "session, select" in head


def test_the_verdicts_of_the_load_test() -> None:
    """An undocumented 5xx, a late answer, memory that grows and a bad end are each seen."""
    good = {
        "requests": 9, "clients": 2, "seconds": 1.0, "load_average": 0.5, "exit_code": 0,
        "codes": {"small": {"200": 8, "503": 1}}, "late": {"small": 0}, "growth": 0.01,
        "latency_s": {"small": {"p50": 0.1, "p99": 0.2, "max": 0.3}},
        "memory_mib": [{"second": 0, "service": 90.0, "largest_solver": 200.0}],
    }  # fmt: skip
    assert all(service_load.verdicts(good).values())
    assert "small             9   0.100   0.200   0.300     0  200 x 8, 503 x 1" in (
        service_load.table(good)
    )
    for change in (
        {"codes": {"small": {"500": 1}}}, {"codes": {"small": {"TimeoutError": 1}}},
        {"late": {"small": 1}}, {"growth": 0.5}, {"exit_code": 1},
    ):  # fmt: skip
        bad = service_load.verdicts({**good, **change})
        assert sum(not holds for holds in bad.values()) == 1
        assert " NO  " in service_load.table({**good, **change})
