"""A real Slurm in a temporary folder: munged, slurmctld and one slurmd per node, with fake GPUs."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

_PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "scontrol", "sbatch", "scancel", "sinfo")

#: Debian has the daemons where only root looks.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

#: Long enough for a machine that does much else.
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Node:
    """A node with fake GPUs."""

    name: str
    partition: str
    gpus: int


def wait_until(what: str, true: Callable[[], Any], limit_s: float = PATIENCE_S) -> Any:
    """Return the first true answer of `true`, or fail with `what`."""
    end = time.monotonic() + limit_s
    while not (answer := true()):
        if time.monotonic() > end:
            pytest.fail(f"not within {limit_s:g} s: {what}")
        time.sleep(0.4)
    return answer


class RealSlurm:
    """A Slurm that begins with its context, and all of whose processes end with it."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._programs: list[subprocess.Popen[bytes]] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
        if missing:
            pytest.skip(
                f"no {', '.join(missing)} here: needs the Debian packages slurmctld, slurmd, "
                "slurm-client and munge"
            )
        with contextlib.ExitStack() as stack:
            # A short path, since those of sockets may not be long.
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp", ignore_cleanup_errors=True)
            )
            self.folder = Path(folder)
            self.folder.chmod(0o755)
            stack.callback(self._end)
            stack.callback(self._cancel)
            self._begin()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def environment(self) -> dict[str, str]:
        """What the programs of Slurm need to find it."""
        return os.environ | {"PATH": _PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str) -> str:
        """Return what a program of Slurm says."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def submit(self, *options: str, comment: Mapping[str, Any] | None = None) -> int:
        """Submit a job; return its number."""
        marked = [] if comment is None else [f"--comment={json.dumps(comment)}"]
        return int(self.run("sbatch", "--parsable", "--output=out.%j", *marked, *options))

    def job(self, number: int) -> dict[str, Any]:
        """Return what squeue says of a job."""
        jobs = json.loads(self.run("squeue", "--json", "--states=all"))["jobs"]
        return next(job for job in jobs if job["job_id"] == number)

    def state(self, number: int) -> str:
        """Return the state of a job, of any version."""
        state = self.job(number)["job_state"]
        return state if isinstance(state, str) else state[0]

    def logs(self) -> str:
        """Return the ends of what the daemons wrote, to be shown where a test fails."""
        parts = []
        for path in sorted(self.folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            parts.append("\n".join([f"--- {path.name}", *lines]))
        return "\n".join(parts)

    def _begin(self) -> None:
        folder, user = self.folder, pwd.getpwuid(os.getuid()).pw_name
        host = socket.gethostname().split(".")[0]
        ports = _free_ports(len(self.nodes) + 1)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in ("state", "munge"):
            (folder / name).mkdir()
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={ports[0]}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            f"AuthInfo=socket={folder}/munge/socket",
            f"StateSaveLocation={folder}/state",
            f"SlurmdSpoolDir={folder}/spool-%n",
            f"SlurmctldPidFile={folder}/slurmctld.pid",
            f"SlurmdPidFile={folder}/slurmd-%n.pid",
            # Neither control groups nor GPUs are there.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "MpiDefault=none",
            "SlurmdParameters=config_overrides",
            "GresTypes=gpu",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=2,sched_interval=2",
            "ReturnToService=2",
            "KillWait=5",
            "MinJobAge=600",
        ]
        gres = []
        for node, port in zip(self.nodes, ports[1:], strict=True):
            (folder / f"spool-{node.name}").mkdir()
            files = [folder / f"{node.name}-gpu{index}" for index in range(node.gpus)]
            for file in files:
                file.touch()
            gres += [f"NodeName={node.name} Name=gpu File={file}" for file in files]
            lines.append(
                f"NodeName={node.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 "
                f"Gres=gpu:{node.gpus}"
            )
        for partition in dict.fromkeys(node.partition for node in self.nodes):
            names = ",".join(node.name for node in self.nodes if node.partition == partition)
            lines.append(f"PartitionName={partition} Nodes={names} MaxTime=INFINITE State=UP")
        (folder / "slurm.conf").write_text("\n".join([*lines, ""]))
        (folder / "gres.conf").write_text("\n".join([*gres, ""]))
        munge = [f"--{name}={folder}/munge/{name}" for name in ("pid-file", "seed-file")]
        self._spawn(
            "munged", "--foreground", "--force", f"--key-file={key}", *munge,
            f"--socket={folder}/munge/socket", f"--log-file={folder}/munge/log",
        )  # fmt: skip
        wait_until("munged listens", (folder / "munge" / "socket").exists)
        self._spawn("slurmctld", "-D", "-c")
        for node in self.nodes:
            self._spawn("slurmd", "-D", "-N", node.name, log=f"slurmd-{node.name}.log")
        wait_until(f"all nodes are idle\n{self.logs()}", self._is_up)

    def _is_up(self) -> bool:
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%T"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.stdout.split() == ["idle"] * len(self.nodes)

    def _spawn(self, program: str, *arguments: str, log: str = "") -> None:
        path = shutil.which(program, path=_PATH)
        assert path is not None
        # Where the tests are killed the daemons go with them.
        setpriv = shutil.which("setpriv")
        leash = [] if setpriv is None else [setpriv, "--pdeathsig", "TERM"]
        with (self.folder / (log or f"{program}.log")).open("wb") as file:
            self._programs.append(
                subprocess.Popen(
                    [*leash, path, *arguments],
                    env=self.environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
            )

    def _cancel(self) -> None:
        """End all jobs while there is someone to end them: what keeps them outlives the daemons."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", f"--user={pwd.getpwuid(os.getuid()).pw_name}")
            end = time.monotonic() + 20.0
            while self.run("squeue", "--noheader") and time.monotonic() < end:
                time.sleep(0.3)

    def _end(self) -> None:
        for program in reversed(self._programs):
            program.send_signal(signal.SIGTERM)
        for program in self._programs:
            try:
                program.wait(timeout=15)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        # Jobs are in sessions of their own, and outlive the daemons.
        for process in self._left():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _left(self) -> Iterator[psutil.Process]:
        mark = str(self.folder / "slurm.conf")
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get("SLURM_CONF") == mark:
                    yield process


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
