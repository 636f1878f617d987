"""``edgeflow bound``: what is possible on a whole trace when all arrivals are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson, Output, Quiet, Seed, Workers, check_output, positive
from edgeflow_opt.cli.options import whole as whole_number
from edgeflow_opt.cli.traces import (
    ArrivalScale,
    CloudGpus,
    Deadlines,
    EdgeServers,
    Failures,
    Head,
    SkipBadRows,
    Tide,
    TraceFile,
    Withdrawals,
    scene_of,
)
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Group

    from edgeflow_opt.clairvoyant import ClairvoyantBound


def bound(
    trace: TraceFile,
    cloud_gpus: CloudGpus,
    edge_servers: EdgeServers,
    tide: Tide = "constant",
    deadlines: Deadlines = "trace",
    arrival_scale: ArrivalScale = 1.0,
    head: Head = None,
    failures_of_nodes: Failures = None,
    withdrawals: Withdrawals = None,
    losses: Annotated[
        str,
        typer.Option(
            "--losses",
            metavar="RESTART_S,MIGRATION_S",
            help="Losses of every job in the schedule that is looked for; the bound holds under any.",
        ),
    ] = "0,0",
    time_limit: Annotated[float, positive("--time-limit", "Seconds in all.")] = 30.0,
    schedule: Annotated[
        bool, typer.Option("--schedule/--no-schedule", help="Whether a schedule is looked for.")
    ] = True,
    intervals: Annotated[
        int,
        whole_number("--intervals", "Merge event times beyond so many: weaker, faster.", 1, 10**6),
    ] = 2000,
    seed: Seed = 0,
    workers: Workers = 2,
    skip_bad_rows: SkipBadRows = False,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Bound the deadlines of a whole trace that any schedule can meet, all arrivals known.

    The bound is proven for every schedule in continuous time, online or not. The best schedule
    found beside it, planned with all arrivals known, says how tight it is; it passes the
    independent checker. Ctrl-C keeps what is known by then.
    """  # fmt: skip
    from edgeflow_opt.clairvoyant import bound_document, clairvoyant_bound
    from edgeflow_opt.cli.console import json_text, show, show_json, stdout_kept_pure
    from edgeflow_opt.cli.simulations import load_line, loads_of
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem.files import write_text
    from edgeflow_opt.problem.schedule import Limit
    from edgeflow_opt.solvers import kernels_of
    from edgeflow_opt.solvers.kernels import CLAIRVOYANT
    from edgeflow_opt.workloads import with_outages

    restart_s, migration_s = _losses_of(losses)
    check_output(output, trace, tide)
    scene = scene_of(
        trace, cloud_gpus=cloud_gpus, edge_servers=edge_servers, tide=tide, deadlines=deadlines,
        arrival_scale=arrival_scale, head=head, failures=failures_of_nodes,
        withdrawals=withdrawals, skip_bad_rows=skip_bad_rows, seed=seed,
    )  # fmt: skip
    jobs = scene.trace
    settings = {
        **scene.settings,
        "overhead": losses if restart_s or migration_s else "none",
        "time_limit_s": time_limit,
        "max_intervals": intervals,
        "workers": workers,
        **loads_of(jobs, cloud_gpus),
    }
    compile_once(quiet, CLAIRVOYANT, *kernels_of("price"))
    with stdout_kept_pure():
        result = clairvoyant_bound(
            jobs.jobs(restart_s=restart_s, migration_s=migration_s),
            with_outages(scene.sites, scene.outages), time_limit_s=time_limit, schedule=schedule, max_intervals=intervals, seed=seed,
            workers=workers,
        )  # fmt: skip
    document = bound_document(jobs.name, settings, result)
    if output is not None:
        write_text(output, json_text(document))
    if as_json:
        show_json(document)
    else:
        show(load_line(jobs, settings), _facts(result))
    interrupted = result.limit is Limit.INTERRUPTED
    raise typer.Exit(failures.EXIT_INTERRUPTED if interrupted else failures.EXIT_SOLVED)


def _losses_of(text: str) -> tuple[float, float]:
    """Return the two losses that an option names.

    Raises
    ------
    UsageError
        If they are not two numbers of at least 0.
    """
    from edgeflow_opt.simulation import FixedLosses, parse_overhead

    try:
        model = parse_overhead(text)
    except UsageError:
        model = None
    if not isinstance(model, FixedLosses) or "," not in text:
        raise UsageError(
            "option --losses: must be RESTART_S,MIGRATION_S with seconds >= 0, "
            f"got {text!r}; for example 30,180"
        )
    return model.restart_s, model.migration_s


def _facts(result: ClairvoyantBound) -> Group:
    """Return the result for people."""
    from edgeflow_opt.cli.console import facts, number, percent, seconds

    def of_jobs(value: float | None) -> str:
        if value is None:
            return "-"
        share = value / result.jobs if result.jobs else None
        return f"{number(value)} of {number(result.jobs)} ({percent(share)})"

    merging = f", merged from {number(result.events)}" if result.intervals < result.events else ""
    return facts(
        "Deadlines that can be met, all arrivals known",
        [
            ("at most (proven)", of_jobs(result.bound)),
            ("best schedule found", of_jobs(result.best_known)),
            ("found by", result.source or "-"),
            ("gap", percent(result.gap)),
            ("linear bound", number(result.linear_bound)),
            ("intervals", f"{number(result.intervals)}{merging}"),
            ("nodes", number(result.nodes)),
            ("seconds", seconds(result.seconds)
                + ("" if result.limit is None else f" ({result.limit})")),
        ],
    )  # fmt: skip
