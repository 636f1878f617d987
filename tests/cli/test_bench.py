"""``edgeflow bench``."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.analysis.bench.cells import Cell, run_cell
from edgeflow_opt.analysis.bench.crew import Ended
from tests.cli.helpers import edgeflow

SUITE = """
format = "edgeflow-suite/1"
name = "mine"
[[solve]]
generate = { num_jobs = [2, 3], num_slots = 3 }
solvers = ["greedy"]
[[simulate]]
generate = { num_jobs = 4 }
policies = ["edgeflow-select"]
cloud_gpus = 8
edge_servers = [1, 2]
"""


class Here:
    """A crew in this process."""

    room = 1

    def __init__(self) -> None:
        self.cells: list[Cell] = []

    def begin(self, cell: Cell) -> None:
        """Take a cell."""
        self.cells.append(cell)

    def ended(self) -> list[Ended]:
        """Run what is there."""
        ends = [Ended(cell=cell, record=run_cell(cell)) for cell in self.cells]
        self.cells.clear()
        return ends

    def close(self, finished: bool) -> None:
        """Nobody is there to leave."""


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run cells in this process, in a folder of its own."""
    monkeypatch.setattr("edgeflow_opt.analysis.bench.run._crew", lambda *_: Here())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_suite.toml").write_text(SUITE)


def test_a_suite_and_its_report(tmp_path: Path) -> None:
    """A suite runs to its end, is not run again, and its results make a report and pictures."""
    ran = edgeflow("bench", "my_suite.toml")
    assert ran.code == 0, ran.err
    assert "4 run now" in ran.out
    assert "4 of 4  4 jobs" in ran.err
    assert ran.err.rstrip().rpartition(": ")[0].endswith("edgeflow-select, seed 0, edge servers 2")
    ran = edgeflow("bench", "my_suite.toml", "--json", "-q")
    assert (ran.document["kept"], ran.document["ran"]) == (4, 0)
    assert edgeflow("report", "my_suite.jsonl", "-o", "r.html").code == 0
    html = (tmp_path / "r.html").read_text()
    assert "3x3 seed 0" in html
    assert "edgeflow-select" in html
    assert (
        edgeflow("plot", "profile", "my_suite.jsonl", "-o", "p.svg", "--measure", "value").code == 0
    )
    assert edgeflow("plot", "policies", "my_suite.jsonl", "-o", "p.svg").code == 0


def test_dry_run(tmp_path: Path) -> None:
    """A dry run counts the cells and runs none."""
    ran = edgeflow("bench", "my_suite.toml", "--dry-run")
    assert "Suite 'mine' has 4 cells" in ran.out
    assert not (tmp_path / "my_suite.jsonl").exists()


def test_failures_are_the_exit_code(tmp_path: Path) -> None:
    """Where a cell fails the exit code is 1; a bad suite is bad input."""
    (tmp_path / "my_suite.toml").write_text(SUITE.replace("num_jobs = 4", "num_jobs = 0"))
    assert edgeflow("bench", "my_suite.toml", "-q").code == 1
    (tmp_path / "my_suite.toml").write_text("format = 3")
    assert edgeflow("bench", "my_suite.toml", "-q").code == 5
