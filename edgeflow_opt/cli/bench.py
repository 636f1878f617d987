"""``edgeflow bench``: a suite of experiments, to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson, Quiet, check_output, whole

if TYPE_CHECKING:
    from edgeflow_opt.analysis.bench import Record


def bench(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE.toml", help="File in format edgeflow-suite/1.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Results as JSON lines; what is finished there is not run again. By default the "
            "name of the suite with .jsonl, in this folder.",
        ),
    ] = None,
    jobs: Annotated[int, whole("--jobs", "Cells at a time, each in a process.", 1, 1024)] = 1,
    dask: Annotated[
        str | None,
        typer.Option("--dask", metavar="ADDRESS", help="Run on this Dask cluster instead."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the suite and count its cells.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a suite of experiments: instances or traces x contenders x sweeps x seeds.

    Every finished cell is on disk at once: after a kill, or Ctrl-C, the same command goes on where
    it was. 'edgeflow report' and 'edgeflow plot' take the results. Needs the extra 'suite', and
    'dask' for a cluster.

    The exit code is 0 if all cells have results, 1 if some cell died, was over time or failed.
    """
    from edgeflow_opt.analysis.bench import read_suite, run_suite
    from edgeflow_opt.cli.console import count, seconds, show, show_json
    from edgeflow_opt.cli.progress import status_line
    from edgeflow_opt.cli.warm_up import compile_once

    found = read_suite(suite)
    path = output or Path(f"{Path(suite).stem}.jsonl")
    check_output(path, suite)
    if dry_run:
        document = {"format": "edgeflow-bench-outcome/1", "suite": found.name,
                    "output": str(path), "cells": len(found.cells)}  # fmt: skip
        if as_json:
            show_json(document)
        else:
            show(f"Suite '{found.name}' has {count(len(found.cells), 'cell')}.")
        return
    if dask is None:
        compile_once(quiet)
    varied = found.varied
    with status_line(found.name, quiet) as line:

        def tell(record: Record, finished: int, total: int) -> None:
            if line is not None:
                news = record.failure is not None or finished == total
                end = record.failure or f"{seconds(record.seconds)} s"
                line(f"{finished:>6} of {total}  {_what(record, varied)}: {end}", news)

        outcome = run_suite(found, path, workers=jobs, dask=dask, on_record=tell)
    if as_json:
        show_json({
            "format": "edgeflow-bench-outcome/1", "suite": found.name, "output": str(path),
            "cells": outcome.total, "kept": outcome.kept, "ran": outcome.ran,
            "failures": outcome.failures, "strangers": outcome.strangers,
        })  # fmt: skip
    else:
        show(
            f"Suite '{found.name}': {count(outcome.total, 'cell')} in {path}, {outcome.ran:,} run now, "
            f"{outcome.kept:,} kept from before, {count(outcome.failures, 'failure')}."
        )
        if outcome.strangers:
            show(
                f"{count(outcome.strangers, 'result')} there belong to no cell of the suite as it is now."
            )
    raise typer.Exit(failures.EXIT_INTERNAL if outcome.failures else failures.EXIT_SOLVED)


def _what(record: Record, varied: frozenset[str]) -> str:
    """Return what tells a cell from the others of its suite, `varied` being what differs."""
    from edgeflow_opt.analysis.report.page import setting

    row = record.row
    contender = row.get("solver") or row.get("policy")
    parts = [str(row.get("instance") or row.get("trace")), str(contender)]
    label = f"seed {record.seed}"
    if not parts[0].endswith(label):
        parts.append(label)
    for name, value in row.get("settings", {}).items():
        if name in varied:
            parts.append(f"{name.replace('_', ' ')} {setting(value)}")
    return ", ".join(parts)
