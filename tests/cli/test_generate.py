"""``edgeflow generate``."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.problem import read_problem
from edgeflow_opt.workloads import read_trace
from tests.cli.helpers import edgeflow


def test_instance(tmp_path: Path) -> None:
    """An instance has the size asked for, the same by the same seed, on stdout or in a file."""
    path = tmp_path / "instance.json"
    args = ("generate", "--jobs", "5", "--slots", "3", "--seed", "4", "--losses", "30,10")
    ran = edgeflow(*args, "--output", path)
    assert ran.code == 0, ran.err
    assert ran.out == ""
    problem = read_problem(path)
    assert (len(problem.jobs), problem.grid.num_slots) == (5, 3)
    assert {(job.restart_s, job.migration_s) for job in problem.jobs} == {(30.0, 10.0)}
    assert edgeflow(*args).out == path.read_text()
    assert (
        edgeflow("generate", "--jobs", "5", "--slots", "3", "--seed", "5").out != path.read_text()
    )


def test_instance_options(tmp_path: Path) -> None:
    """Cluster, slots, deadlines and the share of moldable jobs are those asked for."""
    path = tmp_path / "instance.json"
    ran = edgeflow(
        "generate", "--cloud-gpus", "7", "--edge-servers", "3", "--slot-length", "60",
        "--deadlines", "1,1", "--jobs", "20", "--moldable", "0.25", "-o", path,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    problem = read_problem(path)
    assert problem.sites[0].capacity_at(0) == 7
    assert problem.sites[1].capacity_at(0) == 3
    assert sum(not job.malleable for job in problem.jobs) == 5
    assert problem.grid.boundaries[1] == 60.0


def test_trace(tmp_path: Path) -> None:
    """A trace can be read back, and simulated."""
    path = tmp_path / "trace.csv"
    ran = edgeflow("generate", "--trace", "--jobs", "6", "--load", "0.5", "-o", path)
    assert ran.code == 0, ran.err
    assert len(read_trace(path)) == 6
    ran = edgeflow("generate", "--trace", "--jobs", "6", "--load", "0.5")
    assert ran.out == path.read_text()
    ran = edgeflow(
        "simulate", path, "--policy", "edgeflow", "--cloud-gpus", "8", "--edge-servers", "2",
        "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.document["results"][0]["jobs"] == 6


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--jobs", "0"], "--jobs"),
        (["--slots", "0"], "--slots"),
        (["--jobs", "100000", "--slots", "100000"], "too large"),
        (["--load", "0"], "--load"),
        (["--load", "nan"], "--load"),
        (["--slot-length", "-1"], "--slot-length"),
        (["--cloud-gpus", "0"], "--cloud-gpus"),
        (["--edge-servers", "-1"], "--edge-servers"),
        (["--deadlines", "2,1"], "--deadlines"),
        (["--deadlines", "x"], "--deadlines"),
        (["--losses", "-1,2"], "--losses"),
        (["--seed", "-1"], "--seed"),
        (["--trace", "--slots", "3"], "instances only"),
        (["--trace", "--losses", "1,1"], "instances only"),
        (["--trace", "--moldable", "1"], "instances only"),
        (["--moldable", "1.5"], "--moldable"),
        (["--output", "no/such/folder/x"], "does not exist"),
        (["--output", "."], "is a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options(options: list[str], word: str) -> None:
    """A bad option is a usage error that names it."""
    ran = edgeflow("generate", *options)
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert word in ran.err
    assert ran.err.startswith("Error: ")
