"""``edgeflow warm-up``: compile the kernels once after installation."""

from __future__ import annotations

import time

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson


def warm_up(as_json: AsJson = False) -> None:
    """Compile the kernels and keep them on disk, so that the first solve does not pay for it."""
    from edgeflow_opt.cli.console import seconds, show_json

    elapsed = compile_once(True)
    if as_json:
        show_json({"format": "edgeflow-warm-up/1", "seconds": elapsed})
    else:
        typer.echo(f"Kernels are compiled ({seconds(elapsed)} s).")


def compile_once(quiet: bool, *modules: str) -> float:
    """Compile kernels unless they are compiled, load them, and return the seconds it took.

    Parameters
    ----------
    quiet
        Do not tell on stderr that it is done, and that it is done once only.
    *modules
        Modules with the kernels (:data:`edgeflow_opt.solvers.kernels.MODULES`); none = all.
    """
    from edgeflow_opt.cli.console import seconds, stdout_kept_pure
    from edgeflow_opt.solvers.kernels import MODULES, compile_in_parallel, missing

    start = time.perf_counter()
    with stdout_kept_pure():
        new = missing(*(modules or MODULES))
        if new and not quiet:
            failures.say(
                "Compiling kernels that are needed here for the first time; this may take a minute ..."
            )
        if new:
            compile_in_parallel(*new)
    elapsed = time.perf_counter() - start
    if new and not quiet:
        failures.say(f"Kernels compiled in {seconds(elapsed)} s; they are kept.")
    return elapsed
