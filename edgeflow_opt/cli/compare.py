"""``edgeflow compare``: several solvers on several instances."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    whole,
)
from edgeflow_opt.errors import UsageError


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
    seeds: Annotated[
        int, whole("--seeds", "Runs of each solver, with seeds from --seed on.", 1, 10_000)
    ] = 1,
    workers: Workers = DEFAULT_WORKERS,
    tests: Annotated[
        str | None,
        typer.Option(
            "--tests",
            metavar="MEASURE",
            help="Also show paired tests of value, gap, cost, seconds, ...",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="FILE",
            help="Also write the rows as .csv, .parquet, .tex or .html (bare table).",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write an HTML report."),
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare solvers on the same instances.

    A solver that fails or refuses an instance gets a row that says so, and the others go on. The
    exit code is that of the worst row, from best to worst: 0 solved, 4 no solution, 3 infeasible,
    2 usage (refused, or not installed), 5 bad input, 1 internal error, 130 interrupted.
    """
    from edgeflow_opt.analysis.comparison import (
        MEASURES,
        check_measure,
        installed_solvers,
        labels_of,
    )
    from edgeflow_opt.analysis.comparison import compare as run
    from edgeflow_opt.analysis.extras import require, require_report
    from edgeflow_opt.cli.comparison import (
        notes,
        rows_tables,
        summary_table,
        tests_table,
        watch_of,
        worst_exit_code,
    )
    from edgeflow_opt.cli.console import json_text, show, show_json
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instances
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem.files import write_text
    from edgeflow_opt.solvers import SOLVERS, kernels_of

    if solvers is None:
        names = installed_solvers()
    else:
        names = names_of(solvers, "--solvers")
        for name in names:
            if ":" in name:
                SOLVERS.get(name)  # a member of a family; says which there are
            else:
                one_of("solver", name, SOLVERS.names())
    if tests is not None:
        check_measure(tests, MEASURES)
    check_output(output, *instances)
    check_output(table, *instances)
    check_output(report, *instances)
    if tests is not None:
        require(("scipy",), "analysis", "option --tests")
    if table is not None:
        needed = {".parquet": ("pandas", "pyarrow"), ".tex": ("pandas", "jinja2")}
        require(needed.get(table.suffix, ("pandas",)), "analysis", "option --table")
    if report is not None:
        require_report()
    if table is not None and table.suffix not in TABLE_ENDS:
        raise UsageError(
            f"option --table: the name must end in one of {', '.join(TABLE_ENDS)}, "
            f"got '{table.name}'"
        )
    only_one_stdin(instances)
    labels = labels_of(instances)
    if len(set(labels)) < len(labels):
        raise UsageError("arguments INSTANCE...: a file is named twice; name it once")
    problems = dict(zip(labels, read_instances(instances), strict=True))
    compile_once(quiet, *kernels_of(*names))
    comparison = run(
        problems, names, range(seed, seed + seeds), time_limit_s=time_limit, workers=workers,
        watch=watch_of(problems, quiet, seeds > 1),
    )  # fmt: skip
    document = comparison.document()
    if output is not None:
        write_text(output, json_text(document))
    if table is not None:
        comparison.save(table)
    if report is not None:
        from edgeflow_opt.analysis.report import write_report

        write_report(comparison, report)
    if as_json:
        show_json(document)
    else:
        show(*rows_tables(comparison.rows), *notes(comparison.rows))
        if len(problems) > 1:
            show("", summary_table(comparison))
        if tests is not None:
            show("", tests_table(comparison.paired_tests(tests)))
    raise typer.Exit(worst_exit_code(comparison.rows))


#: Ends of the names of files that ``--table`` writes.
TABLE_ENDS = (".csv", ".parquet", ".tex", ".html")
