"""``edgeflow warm-up``: compile the kernels once after installation."""

from __future__ import annotations

import time

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson


def warm_up(as_json: AsJson = False) -> None:
    """Compile the kernels and keep them on disk, so that the first solve does not pay for it."""
    from edgeflow_opt.cli.console import seconds, show_json

    elapsed = compile_once(quiet=True)
    if as_json:
        show_json({"format": "edgeflow-warm-up/1", "seconds": elapsed})
    else:
        typer.echo(f"Kernels are compiled ({seconds(elapsed)} s).")


def compile_once(quiet: bool) -> float:
    """Compile the kernels unless they are compiled, and return the seconds that it took."""
    from edgeflow_opt.cli.console import seconds, stdout_kept_pure
    from edgeflow_opt.solvers.kernels import compile_in_parallel
    from edgeflow_opt.solvers.kernels import warm_up as load_kernels

    start = time.perf_counter()
    with stdout_kept_pure():
        compile_in_parallel()
        load_kernels()
    elapsed = time.perf_counter() - start
    if not quiet and elapsed > 2.0:
        failures.say(f"Kernels compiled in {seconds(elapsed)} s; this is not done again.")
    return elapsed
