"""``edgeflow simulate`` with placement and estimated rates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeflow_opt.problem.files import write_text
from tests.cli.helpers import Ran, edgeflow
from tests.cli.test_simulate import TRACE


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Return a file with the trace."""
    path = tmp_path / "trace.csv"
    write_text(path, TRACE)
    return path


def simulate(trace: Path, *args: str) -> Ran:
    """Simulate under AFS on a small cluster."""
    return edgeflow(
        "simulate", trace, "-p", "afs", "--cloud-gpus", "4", "--edge-servers", "1", *args
    )


def test_placement(trace_file: Path) -> None:
    """The row has an object of its own, the table lines, and the settings the mode."""
    ran = simulate(trace_file, "--placement", "repack", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["settings"]["placement"] == "repack"
    assert set(ran.document["results"][0]["placement"]) == {
        "mode", "repacks", "repacks_per_job", "fragmentation", "delayed_jobs", "shrunk_jobs",
        "spread_runs",
    }  # fmt: skip
    assert "repacks a job" in simulate(trace_file, "--placement", "fixed").out
    plain = simulate(trace_file, "--json").document
    assert "placement" not in plain["results"][0]
    assert "estimation" not in plain["results"][0]


def test_estimated_rates(trace_file: Path) -> None:
    """Errors, fitted rates and measuring times are options, and their effect is told."""
    given = ("--rate-error", "0.3", "--measured-gpus", "1,4", "--learn-after", "never")
    ran = simulate(trace_file, *given, "--profiling-time", "10,20", "--seed", "2", "--json")
    assert ran.code == 0, ran.err
    settings = ran.document["settings"]
    assert settings["rate_error"] == 0.3
    assert settings["measured_gpus"] == [1, 4]
    assert settings["learn_after_s"] is None
    assert settings["profiling_s"] == [10.0, 20.0]
    row = ran.document["results"][0]["estimation"]
    assert row["mean_error"] > 0.0
    assert row["learned"] == 0
    assert "rates corrected" in simulate(trace_file, *given).out
    json.dumps(ran.document, allow_nan=False)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--placement", "fred"), "did you mean 'free'?"),
        (("--rate-error", "-1"), "option --rate-error: must be a number from 0 to 10"),
        (("--measured-gpus", "1,x"), "option --measured-gpus: must be whole numbers"),
        (("--learn-after", "soon"), "option --learn-after: must be seconds above 0 or never"),
        (("--profiling-time", "9,1"), "option --profiling-time: must be two finite numbers"),
    ],
)
def test_senseless_options(trace_file: Path, args: tuple[str, ...], message: str) -> None:
    """Each is refused with its name, its rule and the exit code of wrong usage."""
    ran = simulate(trace_file, *args)
    assert ran.code == 2
    assert message in ran.err
