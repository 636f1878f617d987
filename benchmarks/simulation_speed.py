"""How fast whole traces are simulated, side by side with the public ElasticFlow simulator.

``python -m benchmarks.simulation_speed`` prints, for each trace and policy, events and jobs per
second of CPU time, the independent check of the history included, and the ratio to the public
simulator where a figure of it is known: 8.5 s for the 195 jobs of the testbed trace and 49 s for
1,000 generated jobs, both on 64 GPUs and an idle machine (design notes on peers). Those are whole
runs of its process; here reading the trace and compiling or loading the kernels are left out. CPU
time is reported, since wall times of shared machines are noise; one thread does all the work.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeflow_opt.errors import EdgeflowError
from edgeflow_opt.policies import POLICIES, make_policy
from edgeflow_opt.simulation import simulate
from edgeflow_opt.solvers import warm_up
from edgeflow_opt.workloads import Trace, cluster, generate_trace, read_trace

#: Policies that are no rule of thumb but solve a model at every event.
_SLOW = ("exact",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A trace on a cluster.

    Parameters
    ----------
    name
        Of the trace.
    cloud_gpus, edge_servers
        The cluster.
    public_s
        Seconds that the public simulator took for as many jobs; None = not known.
    file
        Path below the folder of public traces; None = generated.
    jobs
        Jobs that are generated.
    """

    name: str
    cloud_gpus: int
    edge_servers: int = 0
    public_s: float | None = None
    file: str | None = None
    jobs: int = 0

    def trace(self) -> Trace | None:
        """Return the trace; None where the folder of public traces is not there."""
        if self.file is None:
            return generate_trace(self.jobs, 0, load=0.6, cloud_gpus=self.cloud_gpus)
        folder = os.environ.get("EDGEFLOW_DATA")
        return None if not folder else read_trace(Path(folder) / "elasticflow_itp" / self.file)


CASES = (
    Case(name="testbed195", cloud_gpus=64, public_s=8.5, file="testbed195.csv"),
    Case(name="generated", cloud_gpus=64, public_s=49.0, jobs=1000),
    Case(name="cluster02", cloud_gpus=512, file="cluster02.csv.gz"),
    Case(name="cluster02", cloud_gpus=96, edge_servers=16, file="cluster02.csv.gz"),
    Case(name="generated", cloud_gpus=512, edge_servers=64, jobs=15_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a policy went through a trace.

    Parameters
    ----------
    trace, jobs, cloud_gpus, edge_servers, policy
        What was simulated.
    met, events
        What came of it.
    cpu_s
        CPU seconds, the check of the history included.
    ratio
        Seconds of the public simulator over `cpu_s`; None where they are not known.
    """

    trace: str
    jobs: int
    cloud_gpus: int
    edge_servers: int
    policy: str
    met: int
    events: int
    cpu_s: float
    ratio: float | None

    @property
    def events_per_s(self) -> float:
        """Events for each second."""
        return self.events / self.cpu_s


def measured(case: Case, policies: list[str], most_jobs: int | None) -> Iterator[Speed]:
    """Yield how fast each policy goes through a trace; nothing where the trace is not there."""
    trace = case.trace()
    if trace is None:
        return
    if most_jobs is not None:
        trace = trace.head(most_jobs)
    sites = cluster(case.cloud_gpus, case.edge_servers, start_s=trace.start, end_s=trace.end)
    jobs = trace.jobs()
    for name in policies:
        begin = time.process_time()
        try:
            metrics = simulate(jobs, sites, make_policy(name)).metrics
        except EdgeflowError as error:
            print(f"{case.name}, {name}: {error}", file=sys.stderr)
            continue
        cpu_s = time.process_time() - begin
        known = case.public_s is not None and most_jobs is None
        yield Speed(
            trace=case.name,
            jobs=len(jobs),
            cloud_gpus=case.cloud_gpus,
            edge_servers=case.edge_servers,
            policy=name,
            met=metrics.met,
            events=metrics.events,
            cpu_s=cpu_s,
            ratio=case.public_s / cpu_s if known and case.public_s else None,
        )


_HEAD = (
    f"{'trace':<11} {'jobs':>6} {'GPUs':>5} {'edge':>4}  {'policy':<17} {'met':>6} {'events':>7} "
    f"{'CPU s':>7} {'events/s':>9} {'jobs/s':>8} {'public s':>8} {'times':>6}"
)


def line_of(speed: Speed) -> str:
    """Return one line of the table."""
    public = "-" if speed.ratio is None else f"{speed.ratio * speed.cpu_s:.1f}"
    times = "-" if speed.ratio is None else f"{speed.ratio:.0f}"
    return (
        f"{speed.trace:<11} {speed.jobs:>6} {speed.cloud_gpus:>5} {speed.edge_servers:>4}  "
        f"{speed.policy:<17} {speed.met:>6} {speed.events:>7} {speed.cpu_s:>7.2f} "
        f"{speed.events_per_s:>9.0f} {speed.jobs / speed.cpu_s:>8.0f} {public:>8} {times:>6}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark and print its table."""
    options = _parser().parse_args(arguments)
    policies = options.policies or [name for name in POLICIES.names() if name not in _SLOW]
    warm_up()
    print(_HEAD, flush=True)
    for case in CASES:
        if options.traces and case.name not in options.traces:
            continue
        for speed in measured(case, policies, options.head):
            print(line_of(speed), flush=True)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    document = dataclasses.asdict(speed) | {"events_per_s": speed.events_per_s}
                    file.write(json.dumps(document) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulation_speed",
        description="Events per second of whole simulations, beside the public simulator.",
    )
    parser.add_argument("--policies", nargs="+", choices=POLICIES.names(), metavar="NAME")
    parser.add_argument("--traces", nargs="+", choices=sorted({case.name for case in CASES}))
    parser.add_argument("--head", type=int, metavar="N", help="only the first jobs of each trace")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line for every run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
