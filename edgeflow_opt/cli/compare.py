"""``edgeflow compare``: several solvers on several instances."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import (
    DEFAULT_TIME_LIMIT_S,
    DEFAULT_WORKERS,
    AsJson,
    Output,
    Quiet,
    Seed,
    TimeLimit,
    Workers,
    check_output,
    names_of,
    one_of,
)


def compare(
    instances: Annotated[
        list[str],
        typer.Argument(metavar="INSTANCE...", help="Files in format edgeflow-epoch/1; - = stdin."),
    ],
    solvers: Annotated[
        str | None,
        typer.Option("--solvers", metavar="NAME,...", help="All that are installed by default."),
    ] = None,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT_S,
    seed: Seed = 0,
    workers: Workers = DEFAULT_WORKERS,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare solvers on the same instances.

    A solver that fails or refuses an instance gets a row that says so, and the others go on. The
    exit code is that of the worst row, from best to worst: 0 solved, 4 no solution, 3 infeasible,
    2 usage (refused, or not installed), 5 bad input, 1 internal error, 130 interrupted.
    """
    from edgeflow_opt.cli.comparison import Row, notes, rows_tables, run_row, worst_exit_code
    from edgeflow_opt.cli.console import json_text, show, show_json
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instances
    from edgeflow_opt.cli.solvers import installed_solvers
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem.files import write_text
    from edgeflow_opt.solvers import SOLVERS, SolveOptions

    if solvers is None:
        names = installed_solvers()
    else:
        names = names_of(solvers, "--solvers")
        for name in names:
            one_of("solver", name, SOLVERS.names())
    check_output(output, *instances)
    only_one_stdin(instances)
    problems = read_instances(instances)
    options = SolveOptions(time_limit_s=time_limit, seed=seed, workers=workers)
    compile_once(quiet)
    rows: list[Row] = []
    for label, problem in zip(labels_of(instances), problems, strict=True):
        for name in names:
            if rows and rows[-1].exit_code == failures.EXIT_INTERRUPTED:
                break
            rows.append(run_row(label, problem, name, options, quiet))
    document = {"format": "edgeflow-compare/1", "rows": [row.document() for row in rows]}
    if output is not None:
        write_text(output, json_text(document))
    if as_json:
        show_json(document)
    else:
        show(*rows_tables(rows), *notes(rows))
    raise typer.Exit(worst_exit_code(rows))


def labels_of(paths: list[str]) -> list[str]:
    """Return how to name the instances: by their file names, by their paths where those clash."""
    names = ["stdin" if path == "-" else PurePath(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
