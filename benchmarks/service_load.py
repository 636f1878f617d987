"""Load on the service: mixed requests of several clients, bad ones among them.

    python -m benchmarks.service_load                                  # 8 clients, 2 minutes
    python -m benchmarks.service_load --seconds 20 --clients 4 --json load.json

starts ``edgeflow serve`` on a free port of this machine, and prints a table: codes, latencies and
limits broken by kind of request, memory of the service and of its largest solver process over time,
and what is asked of a service: no 5xx but those that are documented, limits kept, memory flat. The
exit code is 1 where one of these does not hold. On a busy machine latencies tell little.

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
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
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

#: Time limits that requests ask for, seconds.
SOLVE_LIMIT_S, DECIDE_LIMIT_S = 1.0, 0.5

#: Kinds of requests that have a time limit, and which.
LIMITS = {
    "small": SOLVE_LIMIT_S, "hanging": SOLVE_LIMIT_S, "cancelled": SOLVE_LIMIT_S,
    "decide": DECIDE_LIMIT_S,
}  # fmt: skip

#: What a limit may be passed by, seconds: that of solvers, and the way there and back.
GRACE_S = 0.5 + 0.1

#: 5xx that the API documents: not ready or no process, late, full.
DOCUMENTED = frozenset({"503", "504", "507"})

#: Growth of the memory of the service, from the second fifth of the time to the last, that counts as
#: flat.
FLAT = 0.1

QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}

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
             "time_limit_s": SOLVE_LIMIT_S}
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
        text = json.dumps({"now": clock, "time_limit_s": DECIDE_LIMIT_S}).encode()
        code, _ = self.ask("decide", "POST", f"/sessions/{session}/decide", text)
        return (session if code == 200 else ""), clock


def _memory_mib(process: psutil.Process) -> tuple[float, float]:
    """Return the resident memory of the service and of its largest solver process."""
    largest = 0.0
    for child in process.children():
        with contextlib.suppress(psutil.Error):
            largest = max(largest, child.memory_info().rss / 2**20)
    return round(process.memory_info().rss / 2**20, 1), round(largest, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load, print what was seen, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--json", type=Path, help="file for the whole report")
    options = parser.parse_args(arguments)
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
    report |= {"exit_code": code}
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(table(report))
    return 0 if all(verdicts(report).values()) else 1


def verdicts(report: Mapping[str, Any]) -> dict[str, bool]:
    """Return what is asked of a service, and whether it holds."""
    undocumented = [
        code
        for codes in report["codes"].values()
        for code in codes
        if code not in DOCUMENTED and (code.startswith("5") or not code.isdigit())
    ]
    return {
        "an answer to every request, no 5xx but 503, 504, 507": not undocumented,
        f"time limits kept within {GRACE_S:g} s": not any(report["late"].values()),
        f"memory of the service flat within {FLAT:.0%}": report["growth"] <= FLAT,
        "stopped by SIGTERM with exit code 0": report["exit_code"] == 0,
    }


def table(report: Mapping[str, Any]) -> str:
    """Return a report as text."""
    lines = [
        (
            f"{report['requests']} requests of {report['clients']} clients in {report['seconds']:g} s, "
            f"load average {report['load_average']:.1f} at the end"
        ),
        "",
        f"{'kind':<10} {'requests':>8} {'p50 s':>7} {'p99 s':>7} {'max s':>7} {'late':>5}  codes",
    ]
    for kind, codes in report["codes"].items():
        seen = report["latency_s"].get(kind, {})
        times = " ".join(f"{seen[q]:>7.3f}" if q in seen else f"{'-':>7}" for q in QUANTILES)
        late = report["late"].get(kind, "-")
        told = ", ".join(f"{code} x {count}" for code, count in sorted(codes.items()))
        lines.append(f"{kind:<10} {sum(codes.values()):>8} {times} {late:>5}  {told}")
    lines += ["", f"{'second':>6} {'service MiB':>12} {'largest solver MiB':>19}"]
    points = report["memory_mib"]
    shown = points[:: max(1, len(points) // 12)]
    if points[-1] not in shown:
        shown = [*shown, points[-1]]
    lines += [
        f"{at['second']:>6} {at['service']:>12.1f} {at['largest_solver']:>19.1f}" for at in shown
    ]
    lines += ["", f"growth of the service: {report['growth']:+.1%}"]
    lines += [f"{'yes' if holds else 'NO':>3}  {what}" for what, holds in verdicts(report).items()]
    return "\n".join(lines)


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
        time.sleep(min(5.0, max(0.5, 0.04 * options.seconds)))
    fifth = max(1, len(memory) // 5)
    early = statistics.median(own for _, own, _ in memory[fifth : 2 * fifth] or memory)
    late = statistics.median(own for _, own, _ in memory[-fifth:])

    def quantile(kind: str, share: float) -> float:
        values = sorted(load.seconds[kind])
        return round(values[min(len(values) - 1, int(share * len(values)))], 3)

    return {
        "seconds": options.seconds,
        "clients": options.clients,
        "requests": sum(sum(codes.values()) for codes in load.codes.values()),
        "codes": {kind: dict(codes) for kind, codes in sorted(load.codes.items())},
        "latency_s": {
            kind: {name: quantile(kind, share) for name, share in QUANTILES.items()}
            for kind in sorted(load.seconds)
        },
        "late": {
            kind: sum(seconds > limit + GRACE_S for seconds in load.seconds[kind])
            for kind, limit in LIMITS.items()
        },
        "growth": late / early - 1.0,
        "load_average": os.getloadavg()[0],
        "memory_mib": [
            {"second": at, "service": own, "largest_solver": solver} for at, own, solver in memory
        ],
    }


if __name__ == "__main__":
    raise SystemExit(main())
