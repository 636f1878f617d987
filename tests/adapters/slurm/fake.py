"""``squeue`` and ``scontrol`` that keep their jobs in a file: what can be tried without a Slurm."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from edgeflow_opt.adapters.slurm import SlurmPrograms

_PROGRAM = """#!{python} -IS
import json, pathlib, sys, time
folder = pathlib.Path({folder!r})
state = json.loads((folder / "state.json").read_text())
name, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with (folder / "calls").open("a") as calls:
    print(name, *arguments, file=calls)
time.sleep(state["delay_s"])
jobs = {{str(job["job_id"]): job for job in state["jobs"]}}
if name == "squeue":
    print(json.dumps({{"jobs": state["jobs"]}}))
elif arguments[-2:] == ["show", "nodes"]:
    print(state["nodes"])
elif arguments[:2] == ["show", "hostnames"]:
    print("\\n".join(state["hosts"][arguments[2]]))
else:
    verb = arguments[0]
    settings = dict(text.split("=", 1) for text in arguments if "=" in text)
    number = settings.get("JobId", arguments[1])
    if verb in state["refuses"] or number not in jobs:
        sys.exit("scontrol: Access/permission denied for job " + number)
    job = jobs[number]
    if verb == "requeuehold" and not state["stubborn"]:
        job.update(job_state="PENDING", priority=0, nodes="", gres_detail=[])
    if verb == "hold":
        job.update(priority=0)
    if verb == "update" and "Gres" in settings:
        job.update(partition=settings["Partition"], wanted=settings)
    if verb == "release":
        job.update(priority=1)
        if not state["full"]:
            wanted = job["wanted"]
            nodes = wanted["ReqNodeList"].split(",")
            job.update(
                job_state="RUNNING", nodes=wanted["ReqNodeList"], node_count=len(nodes),
                gres_detail=[wanted["Gres"]] * len(nodes), start_time=int(time.time()),
            )
    (folder / "state.json").write_text(json.dumps(state))
"""


#: Of all jobs, so that none seems to be given another one.
DEADLINE = int(time.time()) + 6000


def comment(work: float = 300.0, **changes: Any) -> str:
    """Return the comment of a job of three modes."""
    modes = [
        {"site": "cloud", "gpus": 1, "rate": 1.0},
        {"site": "cloud", "gpus": 2, "rate": 1.75},
        {"site": "edge", "gpus": 1, "rate": 0.5},
    ]
    description = {"work": work, "modes": modes, "restart_s": 5.0, "migration_s": 10.0, **changes}
    return json.dumps({"edgeflow": description})


def record(number: int, **changes: Any) -> dict[str, Any]:
    """Return a held job as squeue of Slurm 22.05 tells of it, in short."""
    return {
        "job_id": number, "job_state": "PENDING", "partition": "cloud", "priority": 0,
        "comment": comment(), "deadline": DEADLINE, "requeue": True, "nodes": "",
        "node_count": 1, "gres_detail": [], "time_limit": None, "restart_cnt": 0, **changes,
    }  # fmt: skip


def running(number: int, gpus: int = 2, node: str = "c1", **changes: Any) -> dict[str, Any]:
    """Return a job that runs on one node."""
    settings = {
        "job_state": "RUNNING", "priority": 1, "nodes": node, "gres_detail": [f"gpu:{gpus}(IDX:0)"],
        **changes,
    }  # fmt: skip
    return record(number, **settings)


def node(name: str, partition: str, gpus: int, used: int = 0, state: str = "IDLE") -> str:
    """Return a node as scontrol tells of it, in short."""
    return (
        f"NodeName={name} Arch=x86_64 Gres=gpu:{gpus} GresUsed=gpu:{used}(IDX:N/A) State={state} "
        f"Partitions={partition} Reason=all Gres=gpu:99 [root@2026-01-01T00:00:00]"
    )


class FakeSlurm:
    """Programs in a folder, and the jobs and nodes that they tell of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = _PROGRAM.format(python=sys.executable, folder=str(folder))
        for name in ("squeue", "scontrol"):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        nodes = (node("c1", "cloud", 4), node("c2", "cloud", 2), node("e1", "edge", 1))
        self._state: dict[str, Any] = {
            "jobs": [], "nodes": "\n".join(nodes), "hosts": {}, "refuses": [], "stubborn": False,
            "full": False, "delay_s": 0.0,
        }  # fmt: skip
        self.set()

    def programs(self, timeout_s: float = 30.0) -> SlurmPrograms:
        """Return the way to call them."""
        return SlurmPrograms(self.folder, timeout_s)

    def set(self, *jobs: dict[str, Any], **changes: Any) -> None:
        """Replace the jobs, and change what else is said."""
        self._state |= {"jobs": list(jobs), **changes}
        (self.folder / "state.json").write_text(json.dumps(self._state))
        self.forget()

    def job(self, number: int) -> dict[str, Any]:
        """Return a job as it is now."""
        jobs = json.loads((self.folder / "state.json").read_text())["jobs"]
        return next(job for job in jobs if job["job_id"] == number)

    def forget(self) -> None:
        """Forget the calls so far."""
        (self.folder / "calls").write_text("")

    def orders(self) -> list[str]:
        """Return the calls that change something."""
        calls = (self.folder / "calls").read_text().splitlines()
        return [call for call in calls if not call.startswith("squeue") and " show " not in call]
