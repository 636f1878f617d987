"""``edgeflow import``: a solution of another solver as a checked schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson, Output, check_output

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers.exchange import Imported


#: Jobs that are named of those whose claims do not hold.
_NAMED = 5


def import_(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="The instance that was exported; - = stdin."),
    ],
    solution: Annotated[
        str,
        typer.Argument(
            metavar="SOLUTION",
            help="Solution file of HiGHS, CBC, SCIP or Gurobi, lines 'name value', or JSON; "
            "- = stdin.",
        ),
    ],
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Turn a solution of an exported model into a schedule, and check it.

    Exit code 6 if the schedule breaks a rule; it is then not written.
    """
    from edgeflow_opt.cli.console import show, show_json
    from edgeflow_opt.cli.inputs import STDIN, bytes_on_stdin, only_one_stdin, read_instance
    from edgeflow_opt.errors import SolutionError
    from edgeflow_opt.problem import schedule_to_dict, write_schedule
    from edgeflow_opt.solvers.exchange import import_solution
    from edgeflow_opt.solvers.exchange.solution_files import parse_solution, read_solution

    only_one_stdin([instance, solution])
    check_output(output, instance, solution)
    problem = read_instance(instance)
    if solution == STDIN:
        found = parse_solution(bytes_on_stdin(SolutionError), "stdin")
    else:
        found = read_solution(solution)
    imported = import_solution(problem, found)
    if imported.report.valid and output is not None:
        write_schedule(imported.schedule, output)
    if as_json:
        show_json(schedule_to_dict(imported.schedule))
        if note := _unmet_claims(imported):
            typer.echo(f"Note: {note}", err=True)
    else:
        show(*_report(problem, imported))
    valid = imported.report.valid
    raise typer.Exit(failures.EXIT_SOLVED if valid else failures.EXIT_CHECK_FAILED)


def _report(problem: EpochProblem, imported: Imported) -> list[RenderableType]:
    from edgeflow_opt.cli.check import violations_table
    from edgeflow_opt.cli.console import facts, number, word

    schedule, found, value = imported.schedule, imported.solution, imported.schedule.objective
    assert value is not None
    with_deadline = sum(job.deadline is not None for job in problem.jobs)
    pairs: list[tuple[str, str | Text]] = [
        ("file", f"{found.format}, {len(found.values):,} values"),
        ("it claims", " ".join(_claims(imported)) or "-"),
        ("checked", word("valid" if imported.report.valid else "invalid")),
        ("deadlines met", f"{schedule.met} of {with_deadline}"),
        ("met weight", number(value.met_weight)),
        ("progress", number(value.progress)),
        ("leftover", number(value.leftover)),
        ("cost", number(value.cost)),
        ("reconfigurations", number(value.reconfigurations)),
    ]
    unmet = _unmet_claims(imported)
    if unmet:
        pairs.append(("note", unmet))
    things: list[RenderableType] = [facts("Imported schedule", pairs)]
    if not imported.report.valid:
        things.append(violations_table(imported.report))
    return things


def _unmet_claims(imported: Imported) -> str:
    """Return in words which jobs the file calls met though its plan does not meet them, or ''."""
    from edgeflow_opt.cli.console import count, printable

    claimed = imported.unmet_claims
    if not claimed:
        return ""
    names = ", ".join(f"'{printable(name)}'" for name in claimed[:_NAMED])
    more = f" and {len(claimed) - _NAMED} more" if len(claimed) > _NAMED else ""
    return f"the file claims {count(len(claimed), 'met job')} that its plan does not meet: {names}{more}"


def _claims(imported: Imported) -> list[str]:
    from edgeflow_opt.cli.console import number, printable

    claims = []
    if imported.solution.status:
        claims.append(printable(imported.solution.status))
    if imported.solution.objective is not None:
        claims.append(f"objective {number(imported.solution.objective)}")
    return claims
