"""Processes end with the one that started them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

SCRIPT = """
import ctypes, multiprocessing, os, signal, time
from edgeflow_opt.analysis import tether

def work(lock, how):
    if how == "thread":
        tether.sys = type("Elsewhere", (), {"platform": "elsewhere"})
    tether.end_with_parent()
    print(os.getpid(), flush=True)
    if how == "call":
        ctypes.PyDLL(None).sleep(600)  # holds the interpreter all the time
    lock.acquire()

if __name__ == "__main__":
    tether.end_with_parent()  # nothing: no process of multiprocessing
    context = multiprocessing.get_context("spawn")
    lock = context.Lock()
    lock.acquire()
    context.Process(target=work, args=(lock, "HOW")).start()
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "how",
    [
        "lock",
        "thread",
        pytest.param(
            "call",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends such a call"),
        ),
    ],
)
def test_a_worker_ends_with_its_parent(tmp_path: Path, how: str) -> None:
    """After kill -9 of the parent a worker ends, waiting for a lock or within a call that is long."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).replace("HOW", how))
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs([worker], timeout=120)
    for process in alive:
        process.kill()
    assert alive == []
    parent.stdout.close()
