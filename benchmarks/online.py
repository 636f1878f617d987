"""The experiments of the EdgeFlow paper on whole traces, with means and Student intervals.

    python -m benchmarks.online --list
    python -m benchmarks.online table                       # the table of the README
    python -m benchmarks.online servers --seeds 5 --json servers.json
    python -m benchmarks.online arrivals --trace philly_vc_103959 --policies edgeflow afs
    python -m benchmarks.online gpus --trace generated --jobs 100
    python -m benchmarks.online motivating

A trace is ``generated``, a path, or the name of an ElasticFlow trace in the folder of public data
(``--data``, or the environment variable EDGEFLOW_DATA). A seed draws the deadlines of a public trace
anew (submission + U[LO, HI] x duration, ``--deadlines``), and makes a generated trace. Confidence
intervals are Student's t over the seeds; the load while jobs arrive stands beside every table, since
policies that know deadlines differ under overload only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeflow_opt.workloads import Trace

#: Name and version of the document.
FORMAT = "edgeflow-experiment/1"

#: The policies of the paper, and those that the package adds.
PAPER = ("edf", "gandiva", "tiresias", "afs", "elasticflow", "elasticflow-edge", "edgeflow")
ALL = (
    "edf", "edf-knee", "fifo", "srpt", "least-laxity", "gandiva", "tiresias", "tiresias-gittins",
    "themis", "chronus", "afs", "hungarian", "elasticflow", "elasticflow-edge", "edgeflow",
    "edgeflow-select",
)  # fmt: skip

#: Variants of EdgeFlow with a rule less or another reading, by label.
ABLATION: Mapping[str, Mapping[str, Any]] = {
    "edgeflow": {},
    "without rule 1": {"rule_1": False},
    "without rule 2": {"rule_2": False},
    "without rule 3": {"rule_3": False},
    "without scaling": {"elastic": False},
    "without knee cap": {"knee_cap": False},
    "late jobs last": {"late": "last"},
    "late jobs nothing": {"late": "nothing"},
    "admission": {"admission": "per_job"},
    "two-level shares": {"share": "two_level"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What one point of an experiment is run with.

    Parameters
    ----------
    cloud_gpus, edge_servers
        The cluster.
    arrival_scale
        Multiplier of the inter-arrival times.
    deadlines
        Range of the deadline factor; None = as in the trace.
    edge_ratio
        Rate of an edge server over that of one cloud GPU, for all models; None = the catalogue's.
    overhead
        Model of the losses.
    """

    cloud_gpus: int
    edge_servers: int
    arrival_scale: float = 1.0
    deadlines: tuple[float, float] | None = None
    edge_ratio: float | None = None
    overhead: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is varied, and for whom.

    Parameters
    ----------
    what
        For people.
    axis
        Field of :class:`Setting` that is varied; empty = none.
    values
        Its values.
    policies
        Compared unless others are asked for.
    variants
        Options of ``edgeflow`` by label, in place of policies.
    measure
        Of the metrics, printed.
    overhead
        Model of the losses.
    """

    what: str
    axis: str = ""
    values: tuple[Any, ...] = (None,)
    policies: tuple[str, ...] = PAPER
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measure: str = "dsr"
    overhead: str = "none"


EXPERIMENTS: Mapping[str, Experiment] = {
    "comparison": Experiment(what="all policies on a trace", policies=ALL),
    "arrivals": Experiment(
        what="inter-arrival times multiplied", axis="arrival_scale", values=(0.5, 1.0, 2.0, 4.0)
    ),
    "gpus": Experiment(what="cloud GPUs", axis="cloud_gpus", values=(16, 32, 64, 128)),
    "servers": Experiment(what="edge servers", axis="edge_servers", values=(2, 4, 8, 16)),
    "tightness": Experiment(
        what="deadline factors", axis="deadlines",
        values=((0.5, 1.0), (0.5, 1.5), (1.0, 2.0), (1.5, 3.0)),
    ),
    "ratio": Experiment(
        what="rate of an edge server over that of a cloud GPU", axis="edge_ratio",
        values=(0.25, 0.5, 0.75, 1.0),
    ),
    "ablation": Experiment(what="EdgeFlow with a rule less", variants=ABLATION),
    "migrations": Experiment(
        what="migrations between cloud and edge a job, 30 s a restart and 180 s a move",
        measure="migrations_per_job", overhead="30,180",
    ),
    "reconfigurations": Experiment(
        what="reconfigurations a job, 30 s a restart and 180 s a move",
        measure="reconfigurations_per_job", overhead="30,180",
    ),
}  # fmt: skip


def trace_path(options: argparse.Namespace) -> Path | None:
    """Return the file of the trace; None where it is generated."""
    if options.trace == "generated":
        return None
    path = Path(options.trace)
    if not path.exists() and options.data is not None:
        folder = Path(options.data) / "elasticflow_itp"
        found = [folder / f"{options.trace}.csv{end}" for end in ("", ".gz")]
        path = next((file for file in found if file.exists()), path)
    return path


def require_trace(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a usage error, before anything is computed, where the trace is not there."""
    path = trace_path(options)
    if path is not None and not path.exists():
        parser.error(
            f"trace {options.trace}: there is no such file, nor a trace of that name in the folder of "
            "public data; give --data or set EDGEFLOW_DATA, or take --trace generated"
        )


def traces_of(options: argparse.Namespace) -> Iterator[tuple[int, Trace]]:
    """Yield the trace of every seed."""
    from edgeflow_opt.workloads import generate_trace, read_trace

    path = trace_path(options)
    base = None if path is None else read_trace(path)
    for seed in range(options.seeds):
        trace = generate_trace(options.jobs, seed) if base is None else base
        yield seed, trace if options.head is None else trace.head(options.head)


def run(
    trace: Trace, seed: int, setting: Setting, policy: str, options: Mapping[str, Any]
) -> tuple[dict[str, Any], float]:
    """Return the metrics of a policy on a trace, and the load while jobs arrive."""
    from edgeflow_opt.policies import make_policy, wants_all_counts
    from edgeflow_opt.simulation import simulate
    from edgeflow_opt.workloads import DEFAULT_CATALOG, cluster

    trace = trace.scale_arrivals(setting.arrival_scale)
    if setting.deadlines is not None:
        trace = trace.with_deadlines(*setting.deadlines, seed=seed)
    catalog = DEFAULT_CATALOG
    if setting.edge_ratio is not None:
        catalog = catalog.with_edge_ratios(setting.edge_ratio)
    sites = cluster(setting.cloud_gpus, setting.edge_servers, start_s=trace.start, end_s=trace.end)
    # Without the cap a policy has to see what is beyond the knee.
    beyond_knee = wants_all_counts(policy) or options.get("knee_cap") is False
    jobs = trace.jobs(catalog, beyond_knee=beyond_knee)
    result = simulate(
        jobs, sites, make_policy(policy, **options), overhead=setting.overhead, name=policy
    )
    return result.metrics.to_dict(), trace.arrival_load(setting.cloud_gpus)


def points(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the points of an experiment: the mean and interval of a policy at a value."""
    experiment = EXPERIMENTS[name]
    entries: list[tuple[str, str, Mapping[str, Any]]] = [
        (policy, policy, {}) for policy in options.policies or experiment.policies
    ]
    if experiment.variants and not options.policies:
        entries = [(label, "edgeflow", given) for label, given in experiment.variants.items()]
    base: dict[str, Any] = {
        "cloud_gpus": options.cloud_gpus,
        "edge_servers": options.edge_servers,
        "deadlines": options.deadlines,
        "overhead": options.overhead or experiment.overhead,
    }
    for value in experiment.values:
        setting = Setting(**(base | ({experiment.axis: value} if experiment.axis else {})))
        for label, policy, given in entries:
            runs = [run(trace, seed, setting, policy, given) for seed, trace in traces_of(options)]
            yield {
                "experiment": name,
                "axis": experiment.axis,
                "value": value,
                "policy": label,
                **summary_of(experiment.measure, runs),
            }


def summary_of(measure: str, runs: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, Any]:
    """Return mean and interval of a measure over runs, each its metrics and its load."""
    from edgeflow_opt.analysis.statistics import mean_of

    values = [float(metrics[measure] or 0.0) for metrics, _ in runs]
    mean = mean_of(values)
    return {
        "measure": measure,
        "mean": mean.mean,
        "half_width": mean.half_width,
        "values": values,
        "met": [metrics["met"] for metrics, _ in runs],
        "jobs": [metrics["jobs"] for metrics, _ in runs],
        "load": sum(load for _, load in runs) / len(runs),
    }


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the points for people: a line for each policy, a column for each value."""
    columns = list(dict.fromkeys(str(point["value"]) for point in found))
    policies = dict.fromkeys(point["policy"] for point in found)
    width = max(18, *(len(column) + 2 for column in columns))
    first = found[0]
    head = f"{first['axis'] or first['measure']:<18}" + "".join(f"{c:>{width}}" for c in columns)
    loads = dict.fromkeys(columns, 0.0) | {str(p["value"]): p["load"] for p in found}
    lines = [head, f"{'load':<18}" + "".join(f"{loads[c]:>{width}.2f}" for c in columns)]
    for policy in policies:
        cells = {str(p["value"]): p for p in found if p["policy"] == policy}
        lines.append(f"{policy:<18}" + "".join(f"{_cell(cells[c]):>{width}}" for c in columns))
    return "\n".join(lines)


def _cell(point: Mapping[str, Any]) -> str:
    width = point["half_width"]
    return f"{point['mean']:.3f}" + ("" if width is None else f" +-{width:.3f}")


def readme_table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the jobs met on testbed195 with 16 and 32 GPUs and 0 and 8 servers, by policy."""
    options.seeds = 1
    ((_, trace),) = traces_of(options)
    rows = []
    for policy in options.policies or ALL:
        for gpus in (16, 32):
            for servers in (0, 8):
                metrics, load = run(
                    trace, 0, Setting(cloud_gpus=gpus, edge_servers=servers), policy, {}
                )
                rows.append(
                    {
                        "experiment": "table", "policy": policy, "cloud_gpus": gpus,
                        "edge_servers": servers, "met": metrics["met"], "jobs": metrics["jobs"],
                        "load": load,
                    }
                )  # fmt: skip
        cells = " | ".join(str(row["met"]) for row in rows[-4:])
        if len(rows) == 4:
            print("| policy | " + " | ".join(
                f"G={r['cloud_gpus']}, E={r['edge_servers']} (load {r['load']:.2f})" for r in rows
            ) + " |\n| --- | --- | --- | --- | --- |")  # fmt: skip
        print(f"| `{policy}` | {cells} |", flush=True)
    return rows


def motivating(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the optimum and what policies meet of the motivating instance, with 0 and 1 server."""
    from edgeflow_opt import solve
    from edgeflow_opt.policies import make_policy
    from edgeflow_opt.simulation import simulate
    from edgeflow_opt.workloads.motivating import (
        motivating_jobs,
        motivating_problem,
        motivating_sites,
    )

    rows: list[dict[str, Any]] = []
    for servers in (0, 1):
        result = solve(motivating_problem(servers), "cpsat", time_limit_s=30, levels=1)
        best = {"name": "exact optimum", "met": result.value, "bound": result.bound}
        found = [best]
        for policy in options.policies or ALL:
            metrics = simulate(
                motivating_jobs(), motivating_sites(servers), make_policy(policy)
            ).metrics
            found.append({"name": policy, "met": metrics.met, "bound": None})
        rows += [{"experiment": "motivating", "edge_servers": servers, **row} for row in found]
    half = len(rows) // 2
    print(f"{'jobs met of 9':<18}{'no edge server':>16}{'one':>6}")
    for without, beside in zip(rows[:half], rows[half:], strict=True):
        print(f"{without['name']:<18}{without['met']:>16g}{beside['met']:>6g}")
    return rows


def trace_parser(module: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of the options of every experiment on traces."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--data", type=Path, default=os.environ.get("EDGEFLOW_DATA"))
    parser.add_argument("--trace", default="testbed195", help="generated, a path, or a name")
    parser.add_argument("--jobs", type=int, default=100, help="of a generated trace")
    parser.add_argument("--head", type=int, help="only the first jobs")
    parser.add_argument("--seeds", type=_at_least_one, default=3)
    parser.add_argument("--cloud-gpus", type=int, default=32)
    parser.add_argument("--edge-servers", type=int, default=8)
    parser.add_argument("--deadlines", type=two_numbers, default=(0.5, 1.5), metavar="LO,HI|trace")
    parser.add_argument("--overhead", help="none, elasticflow or RESTART_S,MIGRATION_S")
    parser.add_argument("--policies", nargs="+", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser


def _at_least_one(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def two_numbers(text: str) -> tuple[float, float] | None:
    """Return the numbers of ``LO,HI``; None = ``trace``."""
    if text == "trace":
        return None
    low, _, high = text.partition(",")
    return float(low), float(high)


def write_rows(options: argparse.Namespace, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the document where ``--json`` says."""
    if options.json is not None:
        document = {"format": FORMAT, "trace": options.trace, "rows": rows}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment and print it; return the exit code."""
    parser = trace_parser("benchmarks.online", "Experiments on whole traces.")
    own = {"table": "the table of the README", "motivating": "one edge server: 7 jobs to 9"}
    parser.add_argument("experiment", nargs="?", choices=(*EXPERIMENTS, *own), metavar="EXPERIMENT")
    parser.add_argument("--list", action="store_true", help="the names of the experiments")
    options = parser.parse_args(arguments)
    if options.list or options.experiment is None:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<17} {experiment.what}")
        for name, what in own.items():
            print(f"{name:<17} {what}")
        return 0
    if options.experiment == "table":
        options.trace = "testbed195"
    if options.experiment != "motivating":
        require_trace(parser, options)
    from edgeflow_opt.solvers.kernels import warm_up

    warm_up()
    name = options.experiment
    if name == "table":
        rows = readme_table(options)
    elif name == "motivating":
        rows = motivating(options)
    else:
        rows = list(points(name, options))
        print(f"{EXPERIMENTS[name].what}: {EXPERIMENTS[name].measure}, {options.trace}, "
              f"{options.seeds} seeds")  # fmt: skip
        print(table(rows))
    write_rows(options, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
