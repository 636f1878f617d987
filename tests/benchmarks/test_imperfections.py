"""The experiments on wrong rates and placement, on tiny generated traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import imperfections

TINY = ("--trace", "generated", "--jobs", "8", "--seeds", "2", "--policies", "edgeflow", "edf")


def test_misestimation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every policy and slack has a point at every level; without error none is told."""
    file = tmp_path / "out.json"
    given = (*TINY, "--levels", "0", "0.5", "--slacks", "60", "--json", str(file))
    assert imperfections.main(["misestimation", *given]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [(row["value"], row["policy"]) for row in rows] == [
        (level, policy)
        for level in (0.0, 0.5)
        for policy in ("edgeflow", "edf", "select, 60 s slack")
    ]
    assert all(("estimation" in row) == (row["value"] > 0) for row in rows)
    assert "load" in capsys.readouterr().out


def test_placement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Free repacking meets what counting meets, and the table tells the modes apart."""
    file = tmp_path / "out.json"
    assert imperfections.main(["placement", *TINY, "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    met = {(row["value"], row["policy"]): row["met"] for row in rows}
    assert len(met) == 12
    for policy in ("edgeflow", "edf"):
        assert met["free", policy] == met["counted", policy]
    assert "repacks a job" in capsys.readouterr().out


def test_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """More points to fit to leave smaller errors."""
    assert imperfections.main(["fit"]) == 0
    rows = imperfections.fit_table()
    by_points = {tuple(row["measured"]): row["mean"] for row in rows}
    assert by_points[1, 8, 32] < by_points[1, 4] < by_points[1,]
    assert "largest" in capsys.readouterr().out
