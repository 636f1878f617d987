"""Programs that PuLP starts: none outlives its time, and no file of theirs is left."""

from __future__ import annotations

import stat
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from edgeflow_opt.problem import Limit
from edgeflow_opt.solvers import solve
from tests.solvers.instances import crowded

pytest.importorskip("pulp", reason="needs PuLP, extra [pulp]")


@pytest.fixture
def deaf_cbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program named cbc on the path that heeds no limit; return the folder of its files."""
    program = tmp_path / "bin" / "cbc"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(300)\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    files = tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    return files


def test_a_program_that_heeds_no_limit_is_ended(deaf_cbc: Path) -> None:
    """The greedy's plan comes in time; neither the program nor a file of its stays behind."""
    begin = time.monotonic()
    result = solve(crowded(14, 8), "pulp:COIN_CMD", time_limit_s=1.0)
    assert result.limit is Limit.TIME
    assert (result.value or 0.0) > 0.0
    assert result.bound is None or result.bound >= (result.value or 0.0)
    # Far from the 300 s that it would take; how soon depends on the machine.
    assert time.monotonic() - begin < 60.0
    until = time.monotonic() + 30.0
    while any(deaf_cbc.iterdir()) or any(
        str(deaf_cbc) in " ".join(child.cmdline()) for child in psutil.Process().children()
    ):
        assert time.monotonic() < until, "something was left behind"
        time.sleep(0.05)
