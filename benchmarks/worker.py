"""A run in a process of its own: its memory is its own, and nothing it leaves behind disturbs others.

Reads the run as JSON from stdin and writes its record as JSON to stdout.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from typing import Any

from benchmarks.instances import Instance
from benchmarks.records import Record

#: Seconds beyond the limits (of the solve before an arrival too) that a process is given for imports, kernels, instance and model.
_GRACE_S = 60.0


def run_apart(
    task: str, target: str, instance: Instance, solver: str, limit_s: float, *, cold: bool = False
) -> Record:
    """Run :func:`benchmarks.tasks.run_task` in a process of its own; its death is a record too."""
    load_average = os.getloadavg()[0]
    order: dict[str, Any] = {
        "task": task,
        "target": target,
        "instance": dataclasses.asdict(instance),
        "solver": solver,
        "limit_s": limit_s,
        "cold": cold,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        # A solver that is a process itself ends with its worker.
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps(order), timeout=12.0 * limit_s + _GRACE_S)
        note = f"its process ended with {process.returncode}: {err.strip()[-200:]}"
    except subprocess.TimeoutExpired:
        out, note = "", "did not come back, and was ended"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode == 0 and out:
        return Record(**json.loads(out.splitlines()[-1]))
    return Record(
        target=target,
        instance=order["instance"],
        digest="",
        solver=solver,
        limit_s=limit_s,
        seconds=0.0,
        status="failed",
        load_average=load_average,
        note=note,
    )


def main() -> None:
    """Do what stdin says."""
    from benchmarks.tasks import run_task

    order: dict[str, Any] = json.load(sys.stdin)
    record = run_task(**order | {"instance": Instance(**order["instance"])})
    print(json.dumps(dataclasses.asdict(record)), flush=True)
    # A native thread that was left to itself must not hold the process.
    os._exit(0)


if __name__ == "__main__":
    main()
