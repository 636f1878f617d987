"""What an ideal simulation leaves out: wrong rates, and GPUs that have places.

    python -m benchmarks.imperfections misestimation --json rates.json
    python -m benchmarks.imperfections misestimation --learn-after never --measured-gpus 1 8 32
    python -m benchmarks.imperfections placement --cloud-gpus 64
    python -m benchmarks.imperfections fit

``misestimation``: the ratio of jobs met by policies that see rates with errors of some size, and
edgeflow-select with a slack before every deadline as the remedy. ``placement``: the same where
repacking is free, where a moved job pays a restart, and where nobody may be moved. ``fit``: how far
the model of rates is off on the published tables, at the counts left out. Means and Student intervals
over seeds; a seed draws deadlines and errors, the same for every policy and value, so that
differences within a table say more than the intervals.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.online import (
    require_trace,
    summary_of,
    table,
    trace_parser,
    traces_of,
    two_numbers,
    write_rows,
)

POLICIES = ("edf", "tiresias", "afs", "elasticflow", "edgeflow", "edgeflow-select")
LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5)
SLACKS = (300.0, 900.0)
MODES = ("counted", "free", "repack", "fixed", "wait", "spread")


def points(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the mean and interval of every contender at every value of an experiment."""
    traces = list(traces_of(options))
    contenders: list[tuple[str, str, dict[str, Any]]] = [(p, p, {}) for p in options.policies]
    values: Sequence[Any] = MODES
    if options.experiment == "misestimation":
        values = options.levels
        contenders += [
            (f"select, {slack:g} s slack", "edgeflow-select", {"slack_s": slack})
            for slack in options.slacks
        ]
    for value in values:
        for label, policy, given in contenders:
            runs = [_run(options, trace, seed, value, policy, given) for seed, trace in traces]
            point = {
                "experiment": options.experiment,
                "axis": "rate_error" if options.experiment == "misestimation" else "placement",
                "value": value,
                "policy": label,
                **summary_of("dsr", runs),
            }
            for name in ("placement", "estimation"):
                told = [row[name] for row, _ in runs if name in row]
                if told:
                    point[name] = _means(told)
            yield point


def _run(
    options: argparse.Namespace,
    trace: Any,
    seed: int,
    value: Any,
    policy: str,
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], float]:
    """Return the results row of one simulation, and the load."""
    from edgeflow_opt.policies import make_policy, wants_all_counts
    from edgeflow_opt.simulation import simulate
    from edgeflow_opt.simulation.analyser import Analyser
    from edgeflow_opt.workloads import cluster

    if options.deadlines is not None:
        trace = trace.with_deadlines(*options.deadlines, seed=seed)
    sites = cluster(options.cloud_gpus, options.edge_servers, start_s=trace.start, end_s=trace.end)
    chosen: dict[str, Any] = {}
    if options.experiment == "misestimation":
        counts = options.measured_gpus
        chosen["analyser"] = Analyser(
            rate_error=value,
            measured_gpus=None if counts is None else tuple(counts),
            learn_after_s=options.learn_after,
            profiling_s=options.profiling_time,
            seed=seed,
        )
    elif value != "counted":
        chosen["placement"] = value
    result = simulate(
        trace.jobs(beyond_knee=wants_all_counts(policy)), sites, make_policy(policy, **given),
        overhead=options.overhead, name=policy, **chosen,
    )  # fmt: skip
    return result.to_dict(), trace.arrival_load(options.cloud_gpus)


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of the numbers of several rows; other entries as they are in the first."""
    found: dict[str, Any] = {}
    for name, first in rows[0].items():
        numbers = [row[name] for row in rows if isinstance(row[name], (int, float))]
        found[name] = sum(numbers) / len(numbers) if numbers else first
    return found


def details(found: Sequence[Mapping[str, Any]]) -> str:
    """Return what placement came to, a line for each policy and mode."""
    heads = ("mode", "repacks a job", "fragmentation", "delayed", "shrunk", "spread")
    widths = (9, 15, 15, 9, 8, 8)
    lines = ["".join([" " * 18, *(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True))])]
    for point in found:
        told = point.get("placement")
        if told is None:
            continue
        lost = told["fragmentation"]
        lines.append(
            f"{point['policy']:<18}{told['mode']:>9}{told['repacks_per_job']:>15.2f}"
            f"{'-' if lost is None else f'{100 * lost:.1f} %':>15}{told['delayed_jobs']:>9.1f}"
            f"{told['shrunk_jobs']:>8.1f}{told['spread_runs']:>8.1f}"
        )
    return "\n".join(lines)


def fit_table() -> list[dict[str, Any]]:
    """Print and return the errors of fits to some counts of every published table, at the others."""
    from edgeflow_opt.simulation.analyser import left_out_errors
    from edgeflow_opt.workloads import DEFAULT_CATALOG

    rows = []
    print(f"{'measured on GPUs':<20}{'points':>8}{'mean error':>12}{'largest':>9}  at")
    for measured in ((1,), (1, 2, 4), (1, 4), (1, 4, 16), (1, 8, 32), (1, 8, 64), (1, 2, 8, 32)):
        errors = [
            (abs(error), f"{profile.model} batch {profile.batch}, {gpus} GPUs")
            for profile in DEFAULT_CATALOG.profiles
            for gpus, error in left_out_errors(dict(profile.rates), measured).items()
        ]
        mean = sum(error for error, _ in errors) / len(errors)
        worst, where = max(errors)
        rows.append(
            {
                "experiment": "fit",
                "measured": list(measured),
                "points": len(errors),
                "mean": mean,
                "max": worst,
                "at": where,
            }
        )
        print(
            f"{', '.join(map(str, measured)):<20}{len(errors):>8}{100 * mean:>10.1f} %"
            f"{100 * worst:>7.0f} %  {where}"
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an experiment and print it; return the exit code."""
    parser = trace_parser(
        "benchmarks.imperfections",
        "Wrong rates and placement; the overhead of the latter is 30,180 unless given.",
    )
    parser.set_defaults(seeds=5, policies=POLICIES)
    parser.add_argument("experiment", choices=("misestimation", "placement", "fit"))
    parser.add_argument("--levels", nargs="+", type=float, metavar="CV", default=LEVELS)
    parser.add_argument("--slacks", nargs="*", type=float, metavar="S", default=SLACKS)
    parser.add_argument("--learn-after", type=_seconds, default=60.0, metavar="S|never")
    parser.add_argument("--measured-gpus", nargs="+", type=int, metavar="N")
    parser.add_argument("--profiling-time", type=two_numbers, default=(0.0, 0.0), metavar="LO,HI")
    options = parser.parse_args(arguments)
    if options.overhead is None:
        options.overhead = "30,180" if options.experiment == "placement" else "none"
    if options.experiment == "fit":
        rows = fit_table()
    else:
        require_trace(parser, options)
        from edgeflow_opt.solvers.kernels import warm_up

        warm_up()
        rows = list(points(options))
        print(f"{options.experiment}: dsr, {options.trace}, {options.cloud_gpus} GPUs, "
              f"{options.edge_servers} edge servers, overhead {options.overhead}, "
              f"{options.seeds} seeds")  # fmt: skip
        print(table(rows))
        if options.experiment == "placement":
            print(details(rows))
    write_rows(options, rows)
    return 0


def _seconds(text: str) -> float:
    return math.inf if text == "never" else float(text)


if __name__ == "__main__":
    sys.exit(main())
