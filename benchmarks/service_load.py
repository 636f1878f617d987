"""Load on the service: mixed requests of several clients, bad ones among them.

``python -m benchmarks.service_load [--seconds 120] [--clients 8]`` starts ``edgeflow serve`` on a free
port of this machine, and prints one JSON document: latency of small solves, codes by kind of
request, memory of the service and of its solver processes over time.

Kinds: small solves, sessions (events and decisions), solves by a solver that hangs, bodies too large,
bodies that are no JSON, solves cancelled by their id, clients that go away.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from edgeflow_opt.problem import problem_to_dict
from edgeflow_opt.service import JobArrived, JobCompleted, events_to_dict
from edgeflow_opt.workloads.generate import generate_problem

#: How often each kind of request is made.
KINDS = {
    "small": 60, "session": 20, "malformed": 6, "oversized": 4, "hanging": 3, "cancelled": 4,
    "gone": 3,
}  # fmt: skip

MAX_BYTES = 1 << 20

PLUG_IN = """
import signal
import time
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.solvers.base import FEATURES, Capabilities, Draft


class Hanging:
    name = "hanging"
    capabilities = Capabilities(summary="hangs", exact=False, features=frozenset(FEATURES))

    def solve(self, problem, arrays, options, control):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        until = time.monotonic() + 600
        while time.monotonic() < until:
            pass
        return Draft(status=SolveStatus.NO_SOLUTION)


SOLVER = Hanging()
"""


def install_plug_in(folder: Path) -> None:
    """Write a package with a solver that hangs, as pip would install it."""
    (folder / "edgeflow_hanging.py").write_text(PLUG_IN)
    information = folder / "edgeflow_hanging-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: edgeflow-hanging\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(
        "[edgeflow_opt.solvers]\nhanging = edgeflow_hanging:SOLVER\n"
    )


class Load:
    """Clients and what they have seen.

    Parameters
    ----------
    port
        Of the service.
    until
        When clients stop, as of ``time.monotonic()``.
    """

    def __init__(self, port: int, until: float) -> None:
        self.port = port
        self.until = until
        self.codes: dict[str, collections.Counter[str]] = collections.defaultdict(
            collections.Counter
        )
        self.seconds: dict[str, list[float]] = collections.defaultdict(list)
        self._lock = threading.Lock()
        self.small = [
            {"problem": problem_to_dict(generate_problem(num_jobs=12, num_slots=12, seed=seed)),
             "time_limit_s": 1.0}
            for seed in range(8)
        ]  # fmt: skip

    def ask(
        self, kind: str, method: str, path: str, body: bytes | None, headers: Any = None
    ) -> tuple[int, Any]:
        """Make one request and note its code and time."""
        begin = time.perf_counter()
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        code, document = "no answer", None
        try:
            line.request(method, path, body=body, headers=headers or {})
            answer = line.getresponse()
            code, text = str(answer.status), answer.read()
            document = json.loads(text) if text else None
        except (OSError, http.client.HTTPException) as problem:
            code = type(problem).__name__
        finally:
            line.close()
        with self._lock:
            self.codes[kind][code] += 1
            if code == "200":
                self.seconds[kind].append(time.perf_counter() - begin)
        return (int(code) if code.isdigit() else 0), document

    def client(self, number: int) -> None:
        """Make requests of all kinds until time is up."""
        draw = random.Random(number)
        session, clock = "", 0.0
        while time.monotonic() < self.until:
            kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
            body = draw.choice(self.small)
            if kind == "small":
                self.ask(kind, "POST", "/solve", json.dumps(body).encode())
            elif kind == "hanging":
                text = json.dumps({**body, "solver": "hanging"}).encode()
                self.ask(kind, "POST", "/solve", text)
            elif kind == "malformed":
                text = json.dumps(body).encode()
                self.ask(kind, "POST", "/solve", text[: draw.randrange(len(text))])
            elif kind == "oversized":
                self.ask(kind, "POST", "/solve", b" " * (MAX_BYTES + 1))
            elif kind == "cancelled":
                name = f"{number}-{draw.random()}"
                stop = threading.Timer(0.1, self.ask, ("cancel", "DELETE", f"/solves/{name}", None))
                stop.start()
                text = json.dumps({**body, "solver": "cpsat"}).encode()
                self.ask(kind, "POST", "/solve", text, {"X-Solve-Id": name})
                stop.join()
            elif kind == "gone":
                self._go_away(json.dumps(body).encode())
            else:
                session, clock = self._session_step(session, clock, body)

    def _go_away(self, body: bytes) -> None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port)) as line,
        ):
            head = f"POST /solve HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            time.sleep(0.05)

    def _session_step(self, session: str, clock: float, body: Any) -> tuple[str, float]:
        problem = body["problem"]
        if not session:
            text = json.dumps({"sites": problem["sites"], "jobs": problem["jobs"]}).encode()
            _, document = self.ask("session", "POST", "/sessions", text)
            return (document or {}).get("id", ""), problem["now"]
        clock += 30.0
        _, snapshot = self.ask("session", "GET", f"/sessions/{session}", None)
        names = [job["id"] for job in (snapshot or {}).get("cluster", {}).get("jobs", ())]
        events: list[Any] = [JobCompleted(time=clock, job=name) for name in names[:1]]
        new = generate_problem(num_jobs=1, num_slots=12, seed=int(clock)).jobs[0]
        if len(names) < 15:
            import dataclasses

            arrived = dataclasses.replace(
                new,
                id=f"n{clock}",
                deadline=clock + 600,
                arrival=clock,
                running=None,
                last_site=None,
            )
            events.append(JobArrived(time=clock, job=arrived))
        text = json.dumps(events_to_dict(events)).encode()
        self.ask("session", "POST", f"/sessions/{session}/events", text)
        text = json.dumps({"now": clock, "time_limit_s": 0.5}).encode()
        code, _ = self.ask("decide", "POST", f"/sessions/{session}/decide", text)
        return (session if code == 200 else ""), clock


def _memory_mib(process: psutil.Process) -> tuple[float, float]:
    """Return the resident memory of the service and of its largest solver process."""
    largest = 0.0
    for child in process.children():
        with contextlib.suppress(psutil.Error):
            largest = max(largest, child.memory_info().rss / 2**20)
    return round(process.memory_info().rss / 2**20, 1), round(largest, 1)


def main() -> None:
    """Run the load and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install_plug_in(folder)
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))
            port = line.getsockname()[1]
        paths = [name, *filter(None, [os.environ.get("PYTHONPATH")])]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "edgeflow_opt", "serve", "--port", str(port), "--store",
                 str(folder / "sessions.db"), "--max-bytes", str(MAX_BYTES)],
                stderr=log,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            )  # fmt: skip
            try:
                report = _measure(process, port, options)
            finally:
                process.terminate()
                code = process.wait(30)
    print(json.dumps({**report, "exit_code": code}, indent=1))


def _measure(process: subprocess.Popen[bytes], port: int, options: Any) -> dict[str, Any]:
    load = Load(port, 0.0)
    while load.ask("wait", "GET", "/ready", None)[0] != 200:
        time.sleep(0.5)
    del load.codes["wait"]
    load.seconds.clear()
    begin = time.monotonic()
    load.until = begin + options.seconds
    threads = [threading.Thread(target=load.client, args=(k,)) for k in range(options.clients)]
    for thread in threads:
        thread.start()
    seen = psutil.Process(process.pid)
    memory = []
    while any(thread.is_alive() for thread in threads):
        memory.append((round(time.monotonic() - begin), *_memory_mib(seen)))
        time.sleep(10.0)

    def quantile(kind: str, share: float) -> float | None:
        values = sorted(load.seconds[kind])
        return round(values[min(len(values) - 1, int(share * len(values)))], 3) if values else None

    return {
        "seconds": options.seconds,
        "clients": options.clients,
        "requests": sum(sum(codes.values()) for codes in load.codes.values()),
        "codes": {kind: dict(codes) for kind, codes in sorted(load.codes.items())},
        "latency_s": {
            kind: {
                "p50": quantile(kind, 0.5),
                "p99": quantile(kind, 0.99),
                "max": quantile(kind, 1.0),
            }
            for kind in sorted(load.seconds)
        },
        "memory_mib": [
            {"second": at, "service": own, "largest_solver": solver} for at, own, solver in memory
        ],
    }


if __name__ == "__main__":
    main()
