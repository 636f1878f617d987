"""``edgeflow export``: a model as MPS, LP, CP-SAT protobuf or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edgeflow_opt.cli.options import assignments_of, check_output, whole


def export(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="File in format edgeflow-epoch/1; - = stdin.")
    ],
    formulation: Annotated[
        str,
        typer.Option(
            "--formulation", "-f", metavar="NAME",
            help="malleable (time-indexed), moldable (every job in one run of one mode) or plan "
            "(a column per plan: all of small instances, else those of column generation).",
        ),
    ] = "malleable",
    format_name: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME",
            help="mps (minimises the negated objective), lp, cpsat (protobuf text) or json "
            "('edgeflow schema model' has its schema).",
        ),
    ] = "mps",
    level: Annotated[
        int,
        whole("--level", "Level that is optimised: 1 met, 2 progress, 3 leftover, 4 cost, "
              "5 reconfigurations.", 1, 5),
    ] = 1,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="LEVEL=VALUE",
            help="Value that an earlier level must keep, such as met=20; repeatable.",
        ),
    ] = None,
    keep_schedule: Annotated[
        str | None,
        typer.Option(
            "--keep-schedule", metavar="FILE",
            help="Schedule whose values the earlier levels must keep.",
        ),
    ] = None,
    rounding: Annotated[
        str,
        typer.Option(
            "--rounding", metavar="NAME",
            help="cpsat: pessimistic (every solution is a schedule) or optimistic (the optimum is "
            "a bound).",
        ),
    ] = "pessimistic",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="Write there, whole or not at all, instead of to stdout.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Write the model of an instance for other solvers, with readable names.

    'edgeflow import' turns their solutions back into checked schedules.
    """
    from edgeflow_opt.cli.console import stdout_kept_pure
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instance, read_plan
    from edgeflow_opt.errors import UsageError
    from edgeflow_opt.solvers.exchange import export as run

    values = assignments_of(keep, "--keep")
    if keep_schedule is not None and values:
        raise UsageError("options --keep and --keep-schedule: give one of them")
    only_one_stdin([instance, keep_schedule])
    check_output(output, instance, *([keep_schedule] if keep_schedule else []))
    problem = read_instance(instance)
    kept = None
    if keep_schedule is not None:
        kept = read_plan(keep_schedule).objective
        if kept is None:
            raise UsageError(f"option --keep-schedule: '{keep_schedule}' has no plan")
    with stdout_kept_pure():
        text = run(
            problem, formulation, format_name, level=level, keep=kept or values,
            rounding=rounding, output=output,  # type: ignore[arg-type]
        )  # fmt: skip
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
