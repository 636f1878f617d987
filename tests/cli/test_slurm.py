"""``edgeflow slurm`` against programs that only play a Slurm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adapters.slurm.fake import FakeSlurm, record, running
from tests.cli.helpers import Ran, edgeflow


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Return programs that play a Slurm."""
    monkeypatch.setattr("edgeflow_opt.adapters.slurm.orders._SETTLING_S", 0.0)
    return FakeSlurm(tmp_path)


def once(slurm: FakeSlurm, *options: str) -> Ran:
    """Run one turn of the command without solvers above the floor."""
    return edgeflow(
        "slurm", "--partitions", "cloud,edge", "--once", "--solvers", "none",
        "--programs", str(slurm.folder), *options,
    )  # fmt: skip


def test_one_turn_starts_what_waits_and_says_so(slurm: FakeSlurm) -> None:
    """A line of JSON tells trouble and decision, and Slurm is told the same."""
    slurm.set(record(1), record(2, comment='{"edgeflow": {}}'))
    done = once(slurm, "--json")
    assert done.code == 0, done.err
    trouble, decision = (json.loads(line) for line in done.out.splitlines())
    assert trouble["event"] == "trouble"
    assert "job 2, comment, work: is missing" in trouble["message"]
    assert decision["event"] == "decision"
    assert [(change["job"], change["kind"]) for change in decision["changes"]] == [("1", "start")]
    assert "schedule" not in decision
    assert slurm.job(1)["job_state"] == "RUNNING"


def test_a_dry_run_only_says_it(slurm: FakeSlurm) -> None:
    """What would be started is named for people, and nothing is told to Slurm."""
    slurm.set(record(1))
    done = once(slurm, "--dry-run")
    assert done.code == 0, done.err
    assert "1 job, 1 run; value 1 of 1 (edgeflow-select" in done.out
    assert "start 1 on" in done.out
    assert slurm.orders() == []


def test_a_state_goes_on_after_a_restart(slurm: FakeSlurm, tmp_path: Path) -> None:
    """What is known is kept in the file: a job that was known does not arrive anew."""
    state = tmp_path / "memory.json"
    slurm.set(running(1, 2, start_time=0))
    assert once(slurm, "--state", str(state)).code == 0
    first = json.loads(state.read_text())
    done = once(slurm, "--state", str(state), "--slot", "30")
    assert done.code == 0, done.err
    second = json.loads(state.read_text())
    assert second["decisions"] == 2
    assert second["cluster"]["jobs"][0]["arrival"] == first["cluster"]["jobs"][0]["arrival"]
    assert second["options"]["slot_s"] == 30
    other = edgeflow(
        "slurm", "--partitions", "cloud", "--once", "--programs", str(slurm.folder),
        "--state", str(state),
    )  # fmt: skip
    assert other.code == 2
    assert "is of the partitions cloud=cloud,edge=edge; name those" in other.err
    state.write_text("{}")
    assert once(slurm, "--state", str(state)).code == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--partitions", "cloud=fog"], "must be NAME, NAME=cloud or NAME=edge"),
        (["--partitions", "cloud,cloud=edge"], "'cloud' is named twice"),
        (["--partitions", "cloud", "--interval", "0"], "must be a finite number above 0"),
        (["--partitions", "cloud", "--solvers", "nonsense"], "solver 'nonsense'"),
        ([], "--partitions"),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], words: str) -> None:
    """A wrong option is exit code 2 before Slurm is asked anything."""
    done = edgeflow("slurm", "--once", *options)
    assert done.code == 2
    assert words in done.err


def test_without_slurm_the_way_out_is_named(tmp_path: Path) -> None:
    """Programs that are not there are one clear error."""
    done = edgeflow("slurm", "--partitions", "cloud", "--programs", str(tmp_path))
    assert done.code == 1
    assert "squeue' of Slurm cannot be run" in done.err
    assert "install the Slurm client" in done.err
