"""``edgeflow plot``: pictures of schedules and results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from edgeflow_opt.cli.options import check_output, one_of, positive, whole
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.analysis.history import History

#: Kinds of pictures, and the files that each is made of.
KINDS = {
    "gantt": "INSTANCE SCHEDULE", "usage": "INSTANCE SCHEDULE", "gap": "RESULTS",
    "profile": "RESULTS", "policies": "RESULTS", "sweep": "RESULTS",
}  # fmt: skip

_Found = TypeVar("_Found")


def plot(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="gantt, usage, gap, profile, policies or sweep."),
    ],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="gantt, usage: an instance and its schedule. gap, profile: what compare --json or "
            "bench wrote. policies, sweep: what simulate --json or bench wrote.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Name ending in .png, .svg or .pdf."),
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="profile: seconds or value; gap: primal or proven; policies, sweep: dsr, late, ...",
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="SETTING", help="sweep: what runs along the x axis."),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="usage: one site instead of all.")
    ] = None,
    width: Annotated[
        float | None, positive("--width", "Inches; suits the picture by default.", "IN")
    ] = None,
    height: Annotated[
        float | None, positive("--height", "Inches; suits the picture by default.", "IN")
    ] = None,
    dpi: Annotated[int, whole("--dpi", "Dots per inch of a PNG.", 20, 1200)] = 150,
    title: Annotated[str | None, typer.Option("--title", help="Title of the picture.")] = None,
) -> None:
    """Draw a schedule (gantt, usage) or results (gap, profile, policies, sweep).

    Needs the extra 'plot'. Colours are told apart by all kinds of colour vision.
    """
    from edgeflow_opt.analysis import plots
    from edgeflow_opt.analysis.documents import read_results
    from edgeflow_opt.analysis.plots.style import figure_of, picture_format

    one_of("kind of picture", kind, KINDS)
    wanted = len(KINDS[kind].split())
    if len(files) != wanted:
        raise UsageError(f"plot {kind}: needs {KINDS[kind]}, got {len(files)} files")
    picture_format(output)
    check_output(output, *files)
    drawn: Any
    if kind in ("gantt", "usage"):
        history = _history(*files)
        if kind == "gantt":
            drawn = plots.plot_gantt(history, title=title)
        elif site is None:
            drawn = plots.usage_figure(history)
        else:
            drawn = plots.plot_usage(history, site=site, title=title)
    else:
        solvers, policies = read_results(files[0])
        if kind == "gap":
            found = _needed(solvers, kind, files[0], "solvers")
            drawn = plots.plot_gap(found, measure or "primal", title=title)
        elif kind == "profile":
            found = _needed(solvers, kind, files[0], "solvers")
            drawn = plots.plot_profile(found, measure or "seconds", title=title)
        elif kind == "policies":
            given = _needed(policies, kind, files[0], "policies")
            drawn = plots.plot_policies(given, measure or "dsr", title=title)
        else:
            given = _needed(policies, kind, files[0], "policies")
            drawn = plots.plot_sweep(given, x, measure or "dsr", title=title)
    figure = drawn if hasattr(drawn, "savefig") else figure_of(drawn)
    inches = figure.get_size_inches()
    figure.set_size_inches(width or inches[0], height or inches[1])
    plots.save(figure, output, dpi=dpi)


def _history(instance: str, schedule: str) -> History:
    from edgeflow_opt.analysis.history import History
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instance, read_plan

    only_one_stdin([instance, schedule])
    return History.of_schedule(read_instance(instance), read_plan(schedule))


def _needed(found: _Found | None, kind: str, path: str, what: str) -> _Found:
    if found is None:
        raise UsageError(f"plot {kind}: '{path}' has no results of {what}; name a file that has")
    return found
