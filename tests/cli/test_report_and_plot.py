"""``edgeflow report`` and ``edgeflow plot``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.helpers import policies, two_solvers
from tests.cli.helpers import edgeflow


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a file with a comparison of solvers."""
    two_solvers().to_json(tmp_path / "solvers.json")
    return tmp_path / "solvers.json"


def test_report_of_results(results: Path, tmp_path: Path) -> None:
    """A report is made of what compare writes, and of policies."""
    output = tmp_path / "r.html"
    ran = edgeflow("report", results, "-o", output, "--title", "My title")
    assert (ran.code, ran.out) == (0, "")
    assert "<h1>My title</h1>" in output.read_text()
    policies().to_json(tmp_path / "policies.json")
    assert edgeflow("report", tmp_path / "policies.json", "-o", output, "--quiet").code == 0
    assert "Comparison of policies" in output.read_text()


def test_compare_writes_a_report(instance_file: Path, tmp_path: Path) -> None:
    """``compare --report`` writes the report of its own rows."""
    output = tmp_path / "r.html"
    ran = edgeflow("compare", instance_file, "--solvers", "greedy", "-q", "--report", output)
    assert ran.code == 0, ran.err
    assert "instance.json" in output.read_text()


@pytest.mark.parametrize("kind", ["gap", "profile"])
def test_plots_of_solvers(results: Path, tmp_path: Path, kind: str) -> None:
    """Pictures of results are written in the size asked for."""
    from matplotlib.image import imread

    output = tmp_path / "p.png"
    size = ("--width", "4", "--height", "3", "--dpi", "50")
    ran = edgeflow("plot", kind, results, "-o", output, *size)
    assert ran.code == 0, ran.err
    assert imread(output).shape[:2] == (150, 200)


def test_plots_of_a_schedule(instance_file: Path, tmp_path: Path) -> None:
    """The Gantt chart and the use of sites are drawn from an instance and its schedule."""
    schedule = tmp_path / "schedule.json"
    edgeflow("solve", instance_file, "-s", "greedy", "-q", "-o", schedule)
    for kind, extra in (("gantt", ()), ("usage", ()), ("usage", ("--site", "edge"))):
        output = tmp_path / "p.svg"
        ran = edgeflow("plot", kind, instance_file, schedule, "-o", output, *extra)
        assert ran.code == 0, ran.err
        assert "<svg" in output.read_text()


def test_plots_of_policies(tmp_path: Path) -> None:
    """Sweeps and policies are drawn from results of policies."""
    policies().to_json(tmp_path / "p.json")
    for kind in ("policies", "sweep"):
        ran = edgeflow(
            "plot", kind, tmp_path / "p.json", "-o", tmp_path / "p.pdf", "--measure", "met"
        )
        assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("plot", "pie", "RESULTS", "-o", "p.png"), 2, "kind of picture 'pie' is not known"),
        (("plot", "gantt", "RESULTS", "-o", "p.png"), 2, "needs INSTANCE SCHEDULE, got 1 files"),
        (("plot", "gap", "RESULTS", "-o", "p.gif"), 2, "must end in one of"),
        (("plot", "sweep", "RESULTS", "-o", "p.png"), 2, "has no results of policies"),
        (("plot", "profile", "RESULTS", "-o", "p.png", "--measure", "cost"), 2, "has no profile"),
        (("report", "NOWHERE"), 5, "does not exist"),
        (("report", "INSTANCE"), 5, "must be one of results"),
    ],
)
def test_bad_questions(
    results: Path, instance_file: Path, tmp_path: Path,
    args: tuple[str, ...], code: int, message: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What makes no sense is refused with the way out, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    known = {"RESULTS": str(results), "INSTANCE": str(instance_file), "NOWHERE": "no.json"}
    ran = edgeflow(*[known.get(arg, arg) for arg in args])
    assert ran.code == code
    assert message in ran.err
    assert set(tmp_path.iterdir()) == before
    assert json.loads(results.read_text())["format"] == "edgeflow-compare/1"
