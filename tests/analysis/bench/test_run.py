"""Running suites: every cell once, whatever is killed on the way."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.analysis.bench import Cell, Suite, read_records, read_suite, run_suite
from edgeflow_opt.analysis.bench import run as running
from edgeflow_opt.analysis.bench.cells import failed_record
from edgeflow_opt.analysis.bench.crew import Ended
from edgeflow_opt.analysis.bench.records import comparisons_of, open_ledger
from edgeflow_opt.errors import InputError, UsageError
from tests.effort import examples

#: A hundred cells of a fiftieth of a second.
HUNDRED = """
format = "edgeflow-suite/1"
cell_limit_s = 5
seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
[[solve]]
generate = { num_jobs = [1, 2, 3, 4, 5], num_slots = [2, 3] }
solvers = ["sleepy"]
"""

#: A suite of one cell that does not end.
STUCK = """
format = "edgeflow-suite/1"
[[solve]]
generate = { num_jobs = 6, num_slots = 2 }
solvers = ["sleepy"]
params.sleepy = { seconds = 600 }
"""


def with_stuck(path: Path) -> Suite:
    """Return the hundred cells in a file, and before them one that does not end."""
    stuck = path.with_name("stuck.toml")
    stuck.write_text(STUCK)
    path.write_text(HUNDRED)
    hundred = read_suite(path)
    return dataclasses.replace(hundred, cells=(*read_suite(stuck).cells, *hundred.cells))


def cells(count: int) -> tuple[Cell, ...]:
    """Return cells that nobody runs."""
    return tuple(
        Cell(suite="s", kind="solve", label="i", contender="c", seed=seed, source={}, settings={},
             options={})
        for seed in range(count)
    )  # fmt: skip


class ScriptedCrew:
    """A crew whose attempts end as a script says, one after the other; then it is killed."""

    room = 3

    def __init__(self, script: list[str]) -> None:
        self.script = script
        self.waiting: list[Cell] = []
        self.closed: bool | None = None

    def begin(self, cell: Cell) -> None:
        """Take a cell."""
        assert len(self.waiting) < self.room
        self.waiting.append(cell)

    def ended(self) -> Iterator[Ended]:
        """End the oldest attempt."""
        what = self.script.pop(0) if self.script else "fine"
        if what == "kill":
            raise KeyboardInterrupt
        cell = self.waiting.pop(0)
        if what == "fine":
            yield Ended(cell=cell, record=failed_record(cell, "error", "done", 1))
        else:
            yield Ended(cell=cell, reason=what, message="gone")

    def close(self, finished: bool) -> None:
        """Note how it ended."""
        self.closed = finished


@settings(max_examples=examples(30))
@given(st.lists(st.sampled_from(["fine", "fine", "died", "time", "kill"]), max_size=40))
def test_every_cell_once(script: list[str]) -> None:
    """Whatever dies, is over time or is killed, in the end each cell has exactly one record."""
    import tempfile

    suite = Suite(name="s", cells=cells(8), cell_limit_s=1.0)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        output = Path(folder) / "r.jsonl"
        crew = ScriptedCrew(script)
        patch.setattr(running, "_crew", lambda *_: crew)
        seen: list[str] = []
        for _ in range(len(script) + 1):
            crew.waiting.clear()
            try:
                outcome = run_suite(suite, output, on_record=lambda r, *_: seen.append(r.cell))
            except KeyboardInterrupt:
                assert crew.closed is False
                continue
            break
        records = read_records(output)
        assert Counter(r.cell for r in records) == Counter(cell.id for cell in suite.cells)
        assert seen == [r.cell for r in records]
        assert outcome.kept + outcome.ran == outcome.total == 8
        assert all(r.attempts <= running.MAX_ATTEMPTS for r in records)
        assert all(r.attempts == running.MAX_ATTEMPTS for r in records if r.failure == "died")


def test_a_line_cut_off_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kill left of a line is removed, its cell run, and strangers stay and are counted."""
    suite = Suite(name="s", cells=cells(3), cell_limit_s=1.0)
    output = tmp_path / "r.jsonl"
    lines = [failed_record(cell, "error", "done", 1).line() for cell in cells(5)]
    output.write_bytes(lines[4] + lines[0] + lines[1][:-9])
    assert len(read_records(output)) == 2
    monkeypatch.setattr(running, "_crew", lambda *_: ScriptedCrew([]))
    outcome = run_suite(suite, output)
    assert (outcome.kept, outcome.ran, outcome.strangers) == (1, 2, 1)
    assert len(read_records(output)) == 4


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """A file of something else is refused, and stays as it was; so is one that is in use."""
    suite = Suite(name="s", cells=cells(1), cell_limit_s=1.0)
    other = tmp_path / "notes.txt"
    other.write_text("dear diary\nno JSON here\n")
    with pytest.raises(InputError, match="line 1: is no result"):
        run_suite(suite, other)
    assert other.read_text().startswith("dear diary")
    with open_ledger(tmp_path / "r.jsonl"), pytest.raises(UsageError, match="another run"):
        run_suite(suite, tmp_path / "r.jsonl")
    with pytest.raises(UsageError, match="cannot be written"):
        run_suite(suite, tmp_path / "no" / "r.jsonl")
    with pytest.raises(UsageError, match="workers"):
        run_suite(suite, tmp_path / "r.jsonl", workers=0)


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> int:
    """Wait until a file has so many lines; return how many it has."""
    until = time.monotonic() + 400
    while time.monotonic() < until:
        found = path.read_bytes().count(b"\n") if path.exists() else 0
        if found >= count:
            return found
        assert process.poll() is None, "the suite ended before it was killed"
        time.sleep(0.005)
    raise AssertionError(f"no {count} lines in time")


def test_killed_processes(tmp_path: Path, sleepy: None) -> None:
    """Cells survive kill -9 of a worker and of the main process, none twice; a stuck one is ended."""
    suite, output = tmp_path / "s.toml", tmp_path / "r.jsonl"
    suite.write_text(HUNDRED)
    command = [
        sys.executable, "-m", "edgeflow_opt", "bench", str(suite), "-o", str(output), "--jobs", "2",
        "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(command)
    try:
        wait_for_lines(output, 10, process)
        children = psutil.Process(process.pid).children()
        worker = next(c for c in children if "spawn_main" in " ".join(c.cmdline()))
        worker.kill()
        wait_for_lines(output, 40, process)
        family = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=120)
    assert alive == [], [process.cmdline() for process in alive]
    before = read_records(output)
    assert 40 <= len(before) < 100
    outcome = run_suite(with_stuck(suite), output)
    assert (outcome.kept, outcome.ran, outcome.failures) == (len(before), 101 - len(before), 1)
    records = read_records(output)
    assert len(records) == len({record.cell for record in records}) == 101
    assert records[: len(before)] == before
    (late,) = [record for record in records if record.failure]
    assert late.failure == "time"
    assert "longer than 5 s" in late.row["message"]
    solvers, policies = comparisons_of(records)
    assert policies is None
    assert solvers is not None
    assert len(solvers.rows) == 101


def test_a_process_that_dies_between_cells(sleepy: None) -> None:
    """Killed where no cell runs, it takes those with it that wait, and others take its place."""
    from edgeflow_opt.analysis.bench.processes import ProcessCrew

    crew = ProcessCrew(1, 60.0)
    (cell,) = cells(1)
    mine = psutil.Process()
    before = set(mine.children())
    try:
        crew.begin(cell)
        (first,) = crew.ended()
        workers = [child for child in mine.children() if child not in before]
        for worker in workers:
            if "spawn_main" in " ".join(worker.cmdline()):
                worker.kill()
        reasons = []
        for _ in range(3):
            crew.begin(cell)
            (end,) = crew.ended()
            reasons.append(end.reason)
    finally:
        crew.close(finished=False)
    # What nobody runs is a record of an error.
    assert first.record is not None
    assert end.record is not None
    assert set(reasons) <= {"", "died"}


def test_on_a_cluster(tmp_path: Path, sleepy: None) -> None:
    """On a Dask cluster the same suite survives the death of a worker and ends what is over time."""
    distributed = pytest.importorskip("distributed")
    suite, output = with_stuck(tmp_path / "s.toml"), tmp_path / "r.jsonl"
    killed: list[int] = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:

        def tell(record: object, finished: int, total: int) -> None:
            if finished == 20:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        outcome = run_suite(suite, output, dask=cluster.scheduler_address, on_record=tell)
    assert killed
    assert (outcome.total, outcome.ran, outcome.failures) == (101, 101, 1)
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert len({record["cell"] for record in records}) == len(records) == 101
    assert [r["failure"] for r in records if r["failure"]] == ["time"]


def test_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no scheduler answers the error says so, and names the address."""
    pytest.importorskip("distributed")
    from edgeflow_opt.analysis.bench import cluster

    monkeypatch.setattr(cluster, "_CONNECT_S", 0.3)
    suite = Suite(name="s", cells=cells(1), cell_limit_s=1.0)
    with pytest.raises(UsageError, match="no scheduler answers at"):
        run_suite(suite, tmp_path / "r.jsonl", dask="tcp://127.0.0.1:9")
