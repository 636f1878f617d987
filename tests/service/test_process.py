"""The service as a process: killed, restarted, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from edgeflow_opt.problem import EpochProblem, Grid, problem_to_dict
from edgeflow_opt.service import JobArrived, events_to_dict
from tests.service.clusters import job, sites


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
    return port


class _Service:
    """A service in a process of its own."""

    def __init__(self, folder: Path, extra_path: Path | None = None) -> None:
        self.port = _free_port()
        command = [
            sys.executable, "-m", "edgeflow_opt", "serve", "--port", str(self.port), "--workers",
            "1", "--store", str(folder / "sessions.db"),
        ]  # fmt: skip
        paths = [str(extra_path)] if extra_path else []
        paths += filter(None, [os.environ.get("PYTHONPATH")])
        self._log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            command, stderr=self._log, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        )
        self.wait_ready()

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=data, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def wait_ready(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            assert self.process.poll() is None
            with contextlib.suppress(OSError):
                if self.ask("GET", "/ready")[0] == 200:
                    return
            time.sleep(0.2)
        raise AssertionError("not ready in time")

    def solvers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


@contextlib.contextmanager
def _service(folder: Path, extra_path: Path | None = None) -> Iterator[_Service]:
    service = _Service(folder, extra_path)
    try:
        yield service
    finally:
        service.close()


def _kill_solvers_then_stop(service: _Service) -> None:
    """Check that a killed solver process is replaced, and that SIGTERM lets a solve answer."""
    problem = EpochProblem(grid=Grid.uniform(0.0, 60.0, 6), sites=sites(), jobs=(job("a"),))
    document = {"problem": problem_to_dict(problem), "time_limit_s": 30}
    for process in service.solvers():
        process.kill()
    status, answer = service.ask("POST", "/solve", document)
    assert (status, answer["schedule"]["objective"]["met_weight"]) == (200, 1.0)
    answers: list[tuple[int, Any]] = []
    hanging = {**document, "solver": "hanging"}
    asker = threading.Thread(target=lambda: answers.append(service.ask("POST", "/solve", hanging)))
    asker.start()
    time.sleep(2.0)
    service.process.send_signal(signal.SIGTERM)
    asker.join(30.0)
    assert answers[0][0] == 200
    assert answers[0][1]["rung"] == "edgeflow-select"
    assert "cancelled" in answers[0][1]["message"]
    assert service.process.wait(30.0) == 0


def _fill_the_disk_then_free_it(service: _Service, name: str) -> None:
    """Check that nothing can be written, nothing is changed, all else works, and then all does."""
    free = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    # As a full disk: from here on no file may grow.
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, free[1]))
    event = events_to_dict([JobArrived(time=0.0, job=job("refused", None))])
    status, told = service.ask("POST", f"/sessions/{name}/events", event)
    assert (status, told["title"]) == (507, "disk full")
    assert "cannot be written" in told["detail"]
    before = service.ask("GET", f"/sessions/{name}")[1]
    for path, document in (
        (f"/sessions/{name}/events", event),
        (f"/sessions/{name}/decide", {"time_limit_s": 0.1}),
        ("/sessions", {"sites": before["cluster"]["sites"]}),
    ):
        assert service.ask("POST", path, document)[0] == 507
    assert service.ask("GET", f"/sessions/{name}")[1] == before
    assert "refused" not in {one["id"] for one in before["cluster"]["jobs"]}
    problem = EpochProblem(grid=Grid.uniform(0.0, 60.0, 6), sites=sites(), jobs=(job("a"),))
    solve = {"problem": problem_to_dict(problem), "time_limit_s": 30}
    assert service.ask("POST", "/solve", solve)[0] == 200
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, free)


def test_killed_restarted_stopped(tmp_path: Path, plug_in_folder: Path) -> None:
    """Nothing acknowledged is lost by a full disk and kill -9; solvers are replaced; SIGTERM: 0."""
    cluster = problem_to_dict(EpochProblem(grid=Grid((0.0, 1.0)), sites=sites(), jobs=()))
    acknowledged: list[str] = []
    with _service(tmp_path) as service:
        name = service.ask("POST", "/sessions", {"sites": cluster["sites"]})[1]["id"]

        def stream() -> None:
            for number in range(10_000):
                events = events_to_dict(
                    [JobArrived(time=float(number), job=job(f"j{number}", None))]
                )
                try:
                    status, _ = service.ask("POST", f"/sessions/{name}/events", events)
                except (OSError, ValueError):
                    return
                if status == 200:
                    acknowledged.append(f"j{number}")

        sender = threading.Thread(target=stream)
        sender.start()
        while len(acknowledged) < 20:
            time.sleep(0.01)
        _fill_the_disk_then_free_it(service, name)
        # Decisions put snapshots in the place of events meanwhile.
        assert service.ask("POST", f"/sessions/{name}/decide", {"time_limit_s": 0.1})[0] == 200
        # It goes on without anybody's help.
        known = len(acknowledged)
        while len(acknowledged) < known + 40:
            time.sleep(0.01)
        solvers = service.solvers()
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
        sender.join()
        # Solver processes end with the one that they serve.
        assert psutil.wait_procs(solvers, timeout=20)[1] == []
    with _service(tmp_path, plug_in_folder) as service:
        status, snapshot = service.ask("GET", f"/sessions/{name}")
        assert status == 200
        kept = [one["id"] for one in snapshot["cluster"]["jobs"]]
        # The last request may have been written without its answer having come through.
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) <= len(acknowledged) + 1
        assert snapshot["decisions"] == 1
        status, decision = service.ask("POST", f"/sessions/{name}/decide", {"time_limit_s": 1})
        assert (status, len(decision["reasons"])) == (200, len(kept))
        _kill_solvers_then_stop(service)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    seen = [line for line in lines if line["message"] == "request" and line["route"] == "/solve"]
    # That of the solve on the full disk is there if it was freed before the line was written.
    assert [line["status"] for line in seen[-2:]] == [200, 200]
