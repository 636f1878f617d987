"""``edgeflow generate``: a random instance or trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflow_opt.cli.options import Seed, check_output, positive, range_of, whole
from edgeflow_opt.errors import UsageError


def generate(
    jobs: Annotated[int, whole("--jobs", "Number of jobs.", 1, 1_000_000)] = 30,
    slots: Annotated[
        int | None, whole("--slots", "Instance: number of slots (default 24).", 1, 100_000)
    ] = None,
    slot_length: Annotated[
        float | None, positive("--slot-length", "Instance: seconds a slot (default 300).")
    ] = None,
    load: Annotated[
        float | None,
        positive(
            "--load", "One-GPU work over cloud capacity (default 1.6; with --trace 0.6).", "X"
        ),
    ] = None,
    cloud_gpus: Annotated[
        int | None,
        whole("--cloud-gpus", "Cloud GPUs (default by --load; with --trace 32).", 1, 10**9),
    ] = None,
    edge_servers: Annotated[
        int | None,
        whole("--edge-servers", "Instance: edge servers (default a quarter).", 0, 10**9),
    ] = None,
    deadlines: Annotated[
        str | None,
        typer.Option(
            "--deadlines",
            metavar="LO,HI",
            help="Range of (deadline - arrival) / duration (default 0.7,2.5; with --trace "
            "0.5,1.5).",
        ),
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option(
            "--losses",
            metavar="RESTART_S,MIGRATION_S",
            help="Instance: losses of every job (default 0,0).",
        ),
    ] = None,
    moldable: Annotated[
        float | None,
        typer.Option(
            "--moldable",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Instance: share of jobs that keep one mode in one run (default 0).",
        ),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="A trace in CSV instead of an instance in JSON.")
    ] = False,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there instead of to stdout."),
    ] = None,
) -> None:
    """Generate a random instance or, with --trace, a trace like the published ones."""  # fmt: skip
    check_output(output)
    common: dict[str, Any] = {
        "load": load,
        "cloud_gpus": cloud_gpus,
        "deadline_factors": None if deadlines is None else range_of(deadlines, "--deadlines"),
    }
    of_instances = {
        "--slots": slots, "--slot-length": slot_length, "--edge-servers": edge_servers,
        "--losses": losses, "--moldable": moldable,
    }  # fmt: skip
    if trace:
        for name, value in of_instances.items():
            if value is not None:
                raise UsageError(f"option {name}: is for instances only; drop it or --trace")
        text = _trace_text(jobs, seed, _given(common))
    else:
        restart_s, migration_s = (
            (None, None) if losses is None else range_of(losses, "--losses", rising=False)
        )
        own = {
            "slot_s": slot_length, "edge_servers": edge_servers, "restart_s": restart_s,
            "migration_s": migration_s, "moldable_share": moldable,
        }  # fmt: skip
        text = _instance_text(jobs, 24 if slots is None else slots, seed, _given(common | own))
    if output is None:
        sys.stdout.write(text)
    else:
        from edgeflow_opt.problem.files import write_text

        write_text(output, text)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; the others keep the defaults of the generators."""
    return {name: value for name, value in options.items() if value is not None}


def _trace_text(jobs: int, seed: int, options: dict[str, Any]) -> str:
    from edgeflow_opt.workloads import generate_trace
    from edgeflow_opt.workloads.readers.elasticflow import trace_text

    return trace_text(generate_trace(jobs, seed, **options))


def _instance_text(jobs: int, slots: int, seed: int, options: dict[str, Any]) -> str:
    from edgeflow_opt.problem import problem_to_dict
    from edgeflow_opt.problem.formats import dumps
    from edgeflow_opt.workloads import generate_problem

    if jobs * slots > 50_000_000:
        raise UsageError(f"options --jobs, --slots: {jobs} x {slots} is too large; choose less")
    return dumps(problem_to_dict(generate_problem(jobs, slots, seed, **options)))
