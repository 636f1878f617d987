"""Comparisons on the command line: their progress, their tables, their exit codes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.interrupts import interrupts_kept, until_pressed

if TYPE_CHECKING:
    from rich.table import Table

    from edgeflow_opt.analysis import Comparison, Row
    from edgeflow_opt.analysis.comparison import Watch
    from edgeflow_opt.analysis.statistics import PairedTest
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers import Progress

#: Exit codes from best to worst: a comparison ends with the worst of its rows.
SEVERITY = (
    failures.EXIT_SOLVED,
    failures.EXIT_NO_SOLUTION,
    failures.EXIT_INFEASIBLE,
    failures.EXIT_USAGE,
    failures.EXIT_BAD_INPUT,
    failures.EXIT_INTERNAL,
    failures.EXIT_INTERRUPTED,
)


def watch_of(problems: dict[str, EpochProblem], quiet: bool, several_seeds: bool) -> Watch:
    """Return what keeps stdout pure and shows progress while a solve of a comparison runs."""
    from edgeflow_opt.analysis.rows import value_name
    from edgeflow_opt.cli.console import stdout_kept_pure
    from edgeflow_opt.cli.progress import progress_of

    @contextlib.contextmanager
    def watch(instance: str, solver: str, seed: int) -> Iterator[Callable[[Progress], None] | None]:
        name = f"{instance} {solver}" + (f" seed {seed}" if several_seeds else "")
        counted = value_name(problems[instance])
        with (
            stdout_kept_pure(),
            interrupts_kept() as pressed,
            progress_of(name, quiet, counted) as on_progress,
        ):
            yield until_pressed(pressed, on_progress)

    return watch


def exit_code_of_row(row: Row) -> int:
    """Return the exit code that a row stands for."""
    if row.error_code is not None:
        return row.error_code
    return failures.exit_code_of_status(row.status, row.limit)


def worst_exit_code(rows: Sequence[Row]) -> int:
    """Return the worst exit code of `rows`, in the order of :data:`SEVERITY`."""
    codes = (exit_code_of_row(row) for row in rows)
    return max(codes, key=SEVERITY.index, default=failures.EXIT_SOLVED)


def rows_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the rows for people: a table for each instance, with its name if there are several."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.instance, []).append(row)
    return [_table(name if len(groups) > 1 else None, group) for name, group in groups.items()]


def _table(title: str | None, rows: Sequence[Row]) -> Table:
    from edgeflow_opt.cli.console import number, percent, printable, seconds, table, word

    name = next((row.value_name for row in rows if row.value_name is not None), None)
    seeds = len({row.seed for row in rows}) > 1
    made = table(
        "solver", *(["seed"] if seeds else []), "met", *([] if name is None else [name]), "bound",
        "gap", "cost", "reconf.", "seconds", "status",
        title=title and printable(title), left=("solver", "status"),
    )  # fmt: skip
    # Where it is narrow, statuses break before names do.
    made.columns[0].min_width = min(20, max(len(printable(row.solver)) for row in rows))
    for row in rows:
        status = word("not supported" if row.refused else row.status)
        if row.limit is not None:
            status.append(f" ({row.limit})", style="not bold dim")
        made.add_row(
            printable(row.solver),
            *([str(row.seed)] if seeds else []),
            "-" if row.met is None else f"{row.met}/{row.num_jobs}",
            *([] if name is None else [number(row.value)]),
            number(row.bound),
            percent(row.gap),
            number(row.cost),
            number(row.reconfigurations),
            seconds(row.seconds),
            status,
        )
    return made


def summary_table(comparison: Comparison) -> Table:
    """Return a line per solver over all instances and seeds."""
    from edgeflow_opt.cli.console import number, percent, printable, seconds, table

    made = table(
        "solver", "runs", "failed", "proven", "best known", "mean value", "mean gap", "mean s",
        title=f"All {len(comparison.instances)} instances", left=("solver",),
    )  # fmt: skip
    for line in comparison.summary():
        made.add_row(
            printable(line["solver"]),
            number(line["rows"]),
            number(line["failed"]),
            number(line["optimal"]),
            number(line["best"]),
            number(line["value"], 4),
            percent(line["gap"]),
            seconds(line["seconds"]),
        )
    return made


def tests_table(tests: Sequence[PairedTest]) -> Table:
    """Return paired tests for people."""
    from edgeflow_opt.cli.console import number, printable, table

    measure = tests[0].measure if tests else ""
    made = table(
        "solver", "against", "pairs", "more", "same", "less", "mean difference", "95 % interval",
        "p (t)", "p (Wilcoxon)", "p (Holm)",
        title=f"Paired differences of {measure}", left=("solver", "against"),
    )  # fmt: skip

    def p(value: float | None) -> str:
        return "-" if value is None else f"{value:.2g}"

    for test in tests:
        d = test.difference
        made.add_row(
            printable(test.first),
            printable(test.second),
            number(test.count),
            number(test.wins),
            number(test.ties),
            number(test.losses),
            number(d.mean, 3),
            "-" if d.low is None else f"{number(d.low, 3)} to {number(d.high, 3)}",
            p(test.p_t),
            p(test.p_wilcoxon),
            p(test.p_adjusted),
        )
    return made


def notes(rows: Sequence[Row]) -> list[str]:
    """Return a line for each row without a result, saying why."""
    from edgeflow_opt.cli.failures import printable

    return [printable(f"{row.instance}: {row.message}") for row in rows if row.message is not None]
