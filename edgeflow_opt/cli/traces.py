"""The options that say which trace meets which cluster, shared by the commands on whole traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli.options import positive, range_of, whole
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.problem import Site
    from edgeflow_opt.workloads import Outage, Trace

TraceFile = Annotated[
    str, typer.Argument(metavar="TRACE", help="CSV or CSV.gz of a known format; - = stdin.")
]
CloudGpus = Annotated[int, whole("--cloud-gpus", "GPUs of the cloud.", 0, 10**9)]
EdgeServers = Annotated[int, whole("--edge-servers", "Edge servers in all.", 0, 10**9)]
Tide = Annotated[
    str,
    typer.Option(
        "--tide",
        metavar="NAME",
        help="Usable edge servers over time: constant, daily, or a CSV file with the columns "
        "time_s and either units (usable servers) or load (their own work, 0 to 1).",
    ),
]
Deadlines = Annotated[
    str,
    typer.Option(
        "--deadlines",
        metavar="trace|LO,HI",
        help="As in the trace, or re-drawn as submission + U[LO, HI] x duration.",
    ),
]
ArrivalScale = Annotated[
    float, positive("--arrival-scale", "Multiplier of the inter-arrival times.", "X")
]
Head = Annotated[int | None, whole("--head", "Only the first jobs of the trace.", 1)]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Drop and count bad rows of the trace.")
]
Failures = Annotated[
    str | None,
    typer.Option(
        "--failures",
        metavar="MTBF_S,REPAIR_S",
        help="Every cloud node fails at random, with this mean time between, and is repaired.",
    ),
]
Withdrawals = Annotated[
    str | None,
    typer.Option(
        "--withdrawals",
        metavar="MEAN_S,AWAY_S",
        help="Every edge server is withdrawn at random, with this mean time between, and returns.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A trace and the cluster that it meets.

    Parameters
    ----------
    trace
        The jobs, changed as the options say.
    sites
        The cluster, without the outages.
    outages
        Random outages, from the first submission to the last deadline.
    settings
        What the options say, as entries of the settings of a document.
    """

    trace: Trace
    sites: tuple[Site, ...]
    outages: tuple[Outage, ...]
    settings: Mapping[str, Any]


def scene_of(
    path: str,
    *,
    cloud_gpus: int,
    edge_servers: int,
    tide: str,
    deadlines: str,
    arrival_scale: float,
    head: int | None,
    failures: str | None,
    withdrawals: str | None,
    skip_bad_rows: bool,
    seed: int,
) -> Scene:
    """Return what the options of this module say, all of them checked before the trace is read.

    Raises
    ------
    UsageError
        If an option makes no sense.
    TraceError
        If the trace cannot be read.
    """
    from edgeflow_opt.workloads import cluster

    if cloud_gpus + edge_servers == 0:
        raise UsageError("options --cloud-gpus, --edge-servers: at least one must be above 0")
    factors = None if deadlines == "trace" else range_of(deadlines, "--deadlines")
    node_means = _means_of(failures, "--failures")
    server_means = _means_of(withdrawals, "--withdrawals")
    trace = _read(path, skip_bad_rows, seed)
    if head is not None:
        trace = trace.head(head)
    trace = trace.scale_arrivals(arrival_scale)
    if factors is not None:
        trace = trace.with_deadlines(*factors, seed=seed)
    sites = cluster(cloud_gpus, edge_servers, tide=tide, start_s=trace.start, end_s=trace.end)
    settings = {
        "cloud_gpus": cloud_gpus,
        "edge_servers": edge_servers,
        "tide": tide,
        "deadlines": deadlines,
        "arrival_scale": arrival_scale,
        "head": head,
        "failures": failures,
        "withdrawals": withdrawals,
        "seed": seed,
        "skipped_rows": trace.skipped,
    }
    return Scene(
        trace=trace,
        sites=sites,
        outages=_outages_of(trace, sites, node_means, server_means, seed),
        settings=settings,
    )


def _means_of(text: str | None, option: str) -> tuple[float, float] | None:
    """Return the two mean times that an option names; None where it is not given.

    Raises
    ------
    UsageError
        If they are not two numbers above 0.
    """
    if text is None:
        return None
    try:
        up_s, down_s = (float(part) for part in text.split(","))
    except ValueError:
        up_s = down_s = 0.0
    if not (0.0 < up_s < float("inf") and 0.0 < down_s < float("inf")):
        raise UsageError(
            f"option {option}: must be two mean times in seconds above 0, got {text!r}; "
            "for example 86400,3600"
        )
    return up_s, down_s


def _outages_of(
    trace: Trace,
    sites: Sequence[Site],
    failures: tuple[float, float] | None,
    withdrawals: tuple[float, float] | None,
    seed: int,
) -> tuple[Outage, ...]:
    """Return the random outages that the options ask for."""
    from edgeflow_opt.workloads import draw_outages

    return tuple(
        outage
        for kind, means in (("cloud", failures), ("edge", withdrawals))
        if means is not None
        for outage in draw_outages(
            sites, kind, *means, start_s=trace.start, end_s=trace.end, seed=seed
        )
    )


def _read(path: str, skip_bad_rows: bool, seed: int) -> Trace:
    from edgeflow_opt.cli.inputs import STDIN, bytes_on_stdin
    from edgeflow_opt.errors import TraceError
    from edgeflow_opt.workloads import read_trace, trace_from_bytes

    if path != STDIN:
        return read_trace(path, skip_bad_rows=skip_bad_rows, seed=seed)
    return trace_from_bytes(
        bytes_on_stdin(TraceError), "stdin", skip_bad_rows=skip_bad_rows, seed=seed
    )
