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
    """Compile the kernels unless they are compiled, load them, and return the seconds it took.

    Parameters
    ----------
    quiet
        Do not tell on stderr that it is done, and that it is done once only.
    """
    from edgeflow_opt.cli.console import seconds, stdout_kept_pure
    from edgeflow_opt.formulations import plans
    from edgeflow_opt.formulations.plan_kernels import walk_plans
    from edgeflow_opt.solvers.kernels import compile_in_parallel
    from edgeflow_opt.solvers.kernels import warm_up as load_kernels

    start = time.perf_counter()
    with stdout_kept_pure():
        plans.warm_up()
        new = bool(walk_plans.stats.cache_misses)
        if new and not quiet:
            failures.say(
                "Compiling kernels, once after installation; this takes about a minute ..."
            )
        compile_in_parallel()
        load_kernels()
    elapsed = time.perf_counter() - start
    if new and not quiet:
        failures.say(f"Kernels compiled in {seconds(elapsed)} s; this is not done again.")
    return elapsed
