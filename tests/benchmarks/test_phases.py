"""The benchmark of phases: every contender runs, and all say the same where they must.

Timing is off unless asked for: ``pytest tests/benchmarks/test_phases.py --benchmark-enable``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this distribution")

from benchmarks import phases
from benchmarks.instances import Instance
from benchmarks.naive import naive, naive_model
from benchmarks.phases import PHASES, MissingLibraryError, measure

TINY = Instance(num_jobs=5, num_slots=4)
PAIRS = [(phase, name) for phase in PHASES for name in PHASES[phase].contenders]


@pytest.mark.parametrize(("phase", "contender"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_contender_runs(phase: str, contender: str, benchmark: Any) -> None:
    """Every contender of every phase does its work on a tiny instance."""
    try:
        figure = benchmark(PHASES[phase].contenders[contender](TINY, 5.0))
    except MissingLibraryError as missing:
        pytest.skip(str(missing))
    assert figure == 0 if phase == "check" else figure > 0


def test_solvers_agree() -> None:
    """All that solve, the naive model among them, meet as many jobs, and no bound is lower."""
    values = {t.figure for t in measure("solve", TINY, 1, 5.0) if t.seconds}
    bounds = [t.figure for t in measure("bound", TINY, 1, 5.0) if t.figure is not None]
    assert len(values) == 1
    assert min(bounds) >= max(value for value in values if value is not None)


def test_naive_model_refuses_losses() -> None:
    """The naive model does not pretend to know losses."""
    with pytest.raises(ValueError, match="knows no losses"):
        naive_model(Instance(num_jobs=2, num_slots=2, restart_s=10.0).problem())
    assert naive(TINY.problem(), 5.0).status == "optimal"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a line and keeps a row for each contender of the phases asked for."""
    path = tmp_path / "phases.jsonl"
    command = ["--phases", "build", "check", "--sizes", "5x4", "--repeats", "2"]
    assert phases.main([*command, "--json", str(path)]) == 0
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["contender"] for row in rows] == [
        *PHASES["build"].contenders, *PHASES["check"].contenders,
    ]  # fmt: skip
    for row in rows:
        assert row["contender"] in printed
        assert len(row["seconds"]) == 2 or row["note"]


@pytest.mark.parametrize("size", ["5", "0x4", "x", "5x-1"])
def test_bad_sizes(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A size that is none is refused with the rule."""
    with pytest.raises(SystemExit, match="2"):
        phases.main(["--sizes", size])
    assert "must be JOBSxSLOTS" in capsys.readouterr().err
