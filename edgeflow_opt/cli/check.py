"""``edgeflow check``: check a schedule against its instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.failures import printable
from edgeflow_opt.cli.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from edgeflow_opt.problem import CheckReport, Schedule

#: Violations shown to people; all are in the JSON document.
_SHOWN = 50


def check(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="File in format edgeflow-epoch/1; - = stdin.")
    ],
    schedule: Annotated[
        str,
        typer.Argument(metavar="SCHEDULE", help="File in format edgeflow-schedule/1; - = stdin."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check every claim of a schedule, whoever made it; no solver takes part.

    Exit code 6 if it breaks a rule or claims what is not so.
    """
    from edgeflow_opt.cli.console import show_json
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instance, read_plan
    from edgeflow_opt.problem import check as run

    only_one_stdin([instance, schedule])
    problem = read_instance(instance)
    plan = read_plan(schedule)
    report = run(problem, plan)
    if as_json:
        show_json(report.document())
    else:
        _show_report(report, plan)
    raise typer.Exit(failures.EXIT_SOLVED if report.valid else failures.EXIT_CHECK_FAILED)


def _show_report(report: CheckReport, plan: Schedule) -> None:
    from edgeflow_opt.cli.console import facts, number, show, word
    from edgeflow_opt.problem import SolveStatus

    count = len(report.violations)
    has_plan = bool(plan.allocations) or plan.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
    verdict = word("valid" if report.valid else "invalid")
    if report.valid and not has_plan:
        verdict = word("nothing to check")
    if count:
        verdict.append(f" ({count} violation{'s' * (count != 1)})", style="not bold default")
    pairs: list[tuple[str, str | Text]] = [("verdict", verdict)]
    if has_plan:
        pairs += [
            ("deadlines met", number(report.met)),
            ("met weight", number(report.met_weight)),
        ]
    else:
        pairs += [
            ("plan", "none"),
            ("claim", f"{plan.status}: the word of '{printable(plan.solver)}', not proven here"),
        ]
    things: list[Any] = [facts("Check", pairs)]
    if count:
        things.append(violations_table(report))
    if count > _SHOWN:
        things.append(f"... and {count - _SHOWN} more; --json shows all")
    show(*things)


def violations_table(report: CheckReport) -> Table:
    """Return the violations of a report as a table, up to so many."""
    from edgeflow_opt.cli.console import number, table

    left = ("rule", "job", "site", "in words")
    made = table("rule", "job", "site", "time", "amount", "in words", title="Violations", left=left)
    for v in report.violations[:_SHOWN]:
        made.add_row(
            v.kind, printable(v.job or "-"), printable(v.site or "-"), number(v.time),
            number(v.amount), printable(v.message),
        )  # fmt: skip
    return made
