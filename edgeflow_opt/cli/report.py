"""``edgeflow report``: one HTML file of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import Quiet, check_output


def report(
    results: Annotated[
        str,
        typer.Argument(
            metavar="RESULTS", help="What compare --json, simulate --json or bench wrote."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="HTML file, whole or not at all."),
    ] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the report.")] = None,
    quiet: Quiet = False,
) -> None:
    """Make one self-contained HTML file of results.

    It has summaries, pictures, paired tests and all rows in sortable tables, and loads nothing from
    anywhere. Needs the extra 'report'.
    """
    from edgeflow_opt.analysis.documents import read_results
    from edgeflow_opt.analysis.report import comparison_page, policies_page
    from edgeflow_opt.analysis.report.page import html_of, joined
    from edgeflow_opt.problem.files import write_text

    check_output(output, results)
    solvers, policies = read_results(results)
    pages = []
    if solvers is not None:
        pages.append(comparison_page(solvers, title=title))
    if policies is not None:
        pages.append(policies_page(policies, title=title))
    write_text(output, html_of(joined(pages, title)))
    if not quiet:
        failures.say(f"Report written to {output}.")
