"""Malformed input of every kind: one readable error, the right code, no traceback, no file."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.solvers import SolveControl
from tests.cli.helpers import INSTANCE, Ran, ScriptedSolver, edgeflow

Install = Callable[..., None]


def _never(control: SolveControl) -> None:
    pytest.fail("a solve began")


@pytest.fixture(autouse=True)
def no_solve(scripted: Install) -> None:
    """Fail the test if a solve begins."""
    scripted(ScriptedSolver("one", act=_never))


def changed(*path: str | int, value: Any) -> str:
    """Return the instance with one value changed."""
    document = copy.deepcopy(INSTANCE)
    target = document
    for key in path[:-1]:
        target = target[key]  # type: ignore[index]
    target[path[-1]] = value  # type: ignore[index]
    return json.dumps(document)


def assert_refused(ran: Ran, code: int, *words: str) -> None:
    """Fail unless the run says what is wrong, readably, and nothing else."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    # The one-time compilation of kernels may be told before it.
    told = [line for line in ran.err.splitlines() if not line.startswith(("Compiling", "Kernels"))]
    assert told[0].startswith("Error: ")
    assert "Traceback" not in ran.err
    assert "Internal" not in ran.err
    for word in words:
        assert word in ran.err
    assert len(ran.err) < 6000


INSTANCES: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "empty": ("", ("is not JSON",)),
    "junk": (b"\xff\xfe\x00 junk", ("UTF-8",)),
    "a list": ("[]", ("must be a JSON object",)),
    "a number": ("3", ("must be a JSON object",)),
    "no format": ("{}", ("format", "edgeflow-epoch/1")),
    "other format": (changed("format", value="edgeflow-epoch/2"), ("edgeflow-epoch/2",)),
    "cut off": (json.dumps(INSTANCE)[:-20], ("is not JSON", "line 1")),
    "deep": ("[" * 100_000, ("nested too deeply",)),
    "NaN": (changed("now", value=float("nan")), ("finite", "NaN")),
    "infinity": (changed("grid", value=[0, float("inf")]), ("finite", "Infinity")),
    "1e308": (changed("jobs", 0, "work", value=1e308), ("job 'j1'", "work", "1e15")),
    "huge integer": (changed("jobs", 0, "work", value=10**400), ("job 'j1'", "work")),
    "overlong integer": ('{"now": ' + "9" * 5000 + "}", ("number that cannot be read",)),
    "zero GPUs": (changed("jobs", 0, "modes", 0, "gpus", value=0), ("gpus", "got 0")),
    "half a GPU": (changed("jobs", 0, "modes", 0, "gpus", value=0.5), ("gpus", "0.5")),
    "true GPUs": (changed("jobs", 0, "modes", 0, "gpus", value=True), ("gpus", "True")),
    "text for a number": (changed("jobs", 0, "work", value="12"), ("job 'j1'", "work", "'12'")),
    "blank time": (changed("jobs", 0, "deadline", value=""), ("job 'j1'", "deadline", "''")),
    "null work": (changed("jobs", 0, "work", value=None), ("job 'j1'", "work")),
    "unsorted grid": (changed("grid", value=[0, 600, 300]), ("grid", "300")),
    "one boundary": (changed("grid", value=[0]), ("grid",)),
    "now off the grid": (changed("now", value=5), ("now", "5")),
    "duplicate job": (changed("jobs", 1, "id", value="j1"), ("job", "'j1'")),
    "duplicate site": (changed("sites", 1, "name", value="cloud"), ("site", "'cloud'")),
    "unknown key": (changed("jobs", 0, "prioritty", value=1), ("prioritty", "job 'j1'")),
    "unknown site": (changed("jobs", 0, "modes", 0, "site", value="fog"), ("fog",)),
    "no modes": (changed("jobs", 0, "modes", value=[]), ("job 'j1'", "modes")),
    "no sites": (changed("sites", value=[]), ("sites",)),
    "no capacity": (changed("sites", 0, "capacity", value=[]), ("site 'cloud'", "capacity")),
    "late capacity": (changed("sites", 0, "capacity", value=[[10, 2]]), ("site 'cloud'",)),
    "negative capacity": (changed("sites", 0, "capacity", value=[[0, -2]]), ("-2",)),
    "must meet nothing": (changed("jobs", 1, "must_meet", value=True), ("job 'j2'", "must_meet")),
    "late arrival": (changed("jobs", 0, "arrival", value=10_000), ("job 'j1'", "arrival")),
    "duplicate key": (
        '{"now": 0, "now": 1}',
        (
            "'now'",
            "more than once",
        ),
    ),
    "lone surrogate": (changed("jobs", 0, "id", value="\ud800"), ("job",)),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_bad_instance(name: str, tmp_path: Path) -> None:
    """A bad instance is exit code 5, from a file and from stdin, and leaves no file."""
    content, words = INSTANCES[name]
    data = content if isinstance(content, bytes) else content.encode()
    path, output = tmp_path / "in.json", tmp_path / "out.json"
    path.write_bytes(data)
    ran = edgeflow("solve", path, "-s", "one", "--json", "-o", output)
    assert_refused(ran, 5, str(path), *words)
    assert list(tmp_path.iterdir()) == [path]
    assert_refused(edgeflow("solve", "-", "-s", "one", stdin=data), 5, "stdin", *words)
    assert_refused(edgeflow("check", path, path), 5, *words)


def test_all_faults_together(tmp_path: Path) -> None:
    """Faults of several objects are reported in one go, many of them cut."""
    document = copy.deepcopy(INSTANCE)
    document["jobs"][0]["work"] = -1
    document["jobs"][1]["extra"] = 1
    document["sites"][0]["kind"] = "fog"
    path = tmp_path / "in.json"
    path.write_text(json.dumps(document))
    ran = edgeflow("solve", path, "-s", "one")
    assert_refused(ran, 5, "3 faults", "job 'j1', work", "job 'j2', 'extra'", "site 'cloud', kind")
    document["jobs"] = [{"id": f"j{i}"} for i in range(500)]
    path.write_text(json.dumps(document))
    assert_refused(edgeflow("solve", path, "-s", "one"), 5, "more")


def test_large_junk(tmp_path: Path) -> None:
    """A file of 50 MB of junk is refused in one short line."""
    path = tmp_path / "junk.json"
    path.write_bytes(b"junk " * 10_000_000)
    assert_refused(edgeflow("solve", path, "-s", "one"), 5, str(path), "document")


def test_damaged_compression(tmp_path: Path) -> None:
    """A damaged .gz file is an unreadable file."""
    path = tmp_path / "in.json.gz"
    path.write_bytes(gzip.compress(json.dumps(INSTANCE).encode())[:-30])
    assert_refused(edgeflow("solve", path, "-s", "one"), 5, str(path), "cannot be read")
    path.write_bytes(b"no gzip")
    assert_refused(edgeflow("solve", path, "-s", "one"), 5, str(path), "cannot be read")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    """A missing file and a folder are told apart."""
    assert_refused(edgeflow("solve", tmp_path, "-s", "one"), 5, "is a folder")
    missing = tmp_path / "missing.json"
    assert_refused(edgeflow("solve", missing, "-s", "one"), 5, "does not exist")
    assert_refused(edgeflow("solve", "a\0b", "-s", "one"), 5, "cannot be read")
    assert_refused(edgeflow("solve", "x" * 5000, "-s", "one"), 5, "cannot be read")


OPTIONS: list[tuple[list[str], str]] = [
    (["--time-limit", "0"], "--time-limit"),
    (["--time-limit", "-3"], "--time-limit"),
    (["--time-limit", "nan"], "--time-limit"),
    (["--time-limit", "inf"], "--time-limit"),
    (["--time-limit", "soon"], "--time-limit"),
    (["--time-limit", ""], "--time-limit"),
    (["--seed", "-1"], "--seed"),
    (["--seed", "2147483648"], "--seed"),
    (["--seed", "1.5"], "--seed"),
    (["--workers", "0"], "--workers"),
    (["--workers", "1000000"], "--workers"),
    (["--levels", "0"], "--levels"),
    (["--levels", "6"], "--levels"),
    (["--param", "x"], "--param"),
    (["--param", "=3"], "--param"),
    (["--param", "x=1", "--param", "x=2"], "given twice"),
    (["--param", "x=1"], "'x'"),
    (["--solver", "oen"], "did you mean 'one'"),
    (["--solver", ""], "is not known"),
    (["--solver", "family:CBC"], "is not known"),
    (["--frobnicate"], "--frobnicate"),
]


@pytest.mark.parametrize(("options", "word"), OPTIONS, ids=lambda x: str(x))
def test_bad_options(options: list[str], word: str, instance_file: Path) -> None:
    """A bad option is exit code 2, before any work."""
    ran = edgeflow("solve", instance_file, "-s", "one", *options)
    assert_refused(ran, 2, word)


def test_bad_outputs(instance_file: Path, tmp_path: Path) -> None:
    """The place of the output is checked before the solve, so that no work is lost."""

    def refused(output: Path | str, *words: str) -> None:
        assert_refused(edgeflow("solve", instance_file, "-s", "one", "-o", output), 2, *words)
        assert_refused(
            edgeflow("compare", instance_file, "--solvers", "one", "-o", output), 2, *words
        )

    before = instance_file.read_text()
    refused(tmp_path, "is a folder")
    refused(tmp_path / "none" / "out.json", "does not exist")
    refused(instance_file / "out.json", "does not exist")
    refused(instance_file, "would overwrite an input")
    refused("", "is a folder")
    assert instance_file.read_text() == before
    assert list(tmp_path.iterdir()) == [instance_file]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["slove", "x"], "Did you mean 'solve'"),
        (["solve"], "INSTANCE"),
        (["check", "x"], "SCHEDULE"),
        (["compare"], "INSTANCE"),
        (["schema", "shedule"], "did you mean 'schedule'"),
        (["solvers", "extra"], "extra"),
    ],
)
def test_bad_commands(arguments: list[str], word: str) -> None:
    """A wrong command line is exit code 2 and points to the help."""
    assert_refused(edgeflow(*arguments), 2, word)


@pytest.mark.parametrize("name", INSTANCES)
def test_bad_warm_start(name: str, instance_file: Path, tmp_path: Path) -> None:
    """A warm start that is no schedule is bad input, never a crash."""
    content, _ = INSTANCES[name]
    path = tmp_path / "plan.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = edgeflow("solve", instance_file, "-s", "one", "--warm-start", path)
    assert_refused(ran, 5, str(path))
