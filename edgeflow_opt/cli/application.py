"""The application: its commands, and what becomes of everything that goes wrong in them.

The modules of the commands are light: what is heavy (numpy, solvers, the simulator, rich tables) is
imported inside the commands, so that ``edgeflow --help`` answers at once.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from edgeflow_opt._version import __version__
from edgeflow_opt.cli.bench import bench
from edgeflow_opt.cli.bound import bound
from edgeflow_opt.cli.check import check
from edgeflow_opt.cli.compare import compare
from edgeflow_opt.cli.demo import demo
from edgeflow_opt.cli.explain import explain
from edgeflow_opt.cli.export import export
from edgeflow_opt.cli.failures import (
    EXIT_INTERRUPTED,
    EXIT_NO_SOLUTION,
    EXIT_SOLVED,
    exit_code_of,
    lenient_streams,
)
from edgeflow_opt.cli.generate import generate
from edgeflow_opt.cli.import_solution import import_
from edgeflow_opt.cli.interrupts import interrupts_kept
from edgeflow_opt.cli.plot import plot
from edgeflow_opt.cli.policies import policies
from edgeflow_opt.cli.report import report
from edgeflow_opt.cli.schema import schema
from edgeflow_opt.cli.serve import serve
from edgeflow_opt.cli.simulate import simulate
from edgeflow_opt.cli.slurm import slurm
from edgeflow_opt.cli.solve import solve
from edgeflow_opt.cli.solvers import solvers
from edgeflow_opt.cli.versions import versions
from edgeflow_opt.cli.warm_up import warm_up


class Application(TyperGroup):
    """The group of all commands; its exit codes are those of the package."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what the command-line library would end in its own way ends in ours."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (BrokenPipeError, KeyboardInterrupt) as problem:
            raise typer.Exit(exit_code_of(problem)) from None
        return result

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> Any:
        """Run a command and exit with its code; no failure but with ``--debug`` shows a traceback."""
        settings["standalone_mode"] = False
        lenient_streams()
        with interrupts_kept() as pressed:
            try:
                code = super().main(args, *rest, **settings)
                sys.stdout.flush()
            except (Exception, KeyboardInterrupt) as problem:
                code = exit_code_of(problem)
        if pressed.is_set() and code in (None, EXIT_SOLVED, EXIT_NO_SOLUTION):
            code = EXIT_INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=Application,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 solved, 1 internal error, 2 usage, 3 proven infeasible, 4 no solution "
    "within the limit, 5 bad instance or trace, 6 check failed, 130 interrupted.",
)


#: Name of the log handler of ``--debug``.
_HANDLER = "edgeflow command line"


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"edgeflow-opt {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    context: typer.Context,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="EDGEFLOW_DEBUG",
            help="Show tracebacks, log messages and the native output of solvers on stderr.",
        ),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Schedule elastic deep-learning jobs with deadlines over cloud GPUs and edge servers."""
    from edgeflow_opt.cli import failures

    failures.show_tracebacks = debug
    _log_to_stderr(debug)


def _log_to_stderr(debug: bool) -> None:
    """Show all that the package logs, and of its libraries only what they log of their own accord.

    A debug log of the compiler of kernels alone would be megabytes.
    """
    log = logging.getLogger("edgeflow_opt")
    for old in [handler for handler in log.handlers if handler.name == _HANDLER]:
        log.removeHandler(old)  # of another command in the same process
    if debug:
        handler = logging.StreamHandler(sys.stderr)
        handler.name = _HANDLER
        handler.setFormatter(logging.Formatter("%(relativeCreated)8.0f ms %(name)s: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)


def _add(panel: str, *commands: Callable[..., None]) -> None:
    """Add commands; the paragraphs of their docstrings are wrapped to the terminal, as lines are."""
    for command in commands:
        paragraphs = (inspect.getdoc(command) or "").split("\n\n")
        app.command(
            # A command whose name is a word of Python has a function with an underscore behind it.
            command.__name__.strip("_").replace("_", "-"),
            rich_help_panel=panel,
            help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        )(command)


_add("One epoch", demo, solve, check, compare, explain)
_add("Other tools", export, import_, serve, slurm)
_add("Whole traces", simulate, bound, generate)
_add("Pictures and experiments", plot, report, bench)
_add("About this installation", solvers, policies, versions, schema, warm_up)
