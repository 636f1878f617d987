"""``edgeflow solve``: solve one instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import (
    DEFAULT_TIME_LIMIT_S,
    DEFAULT_WORKERS,
    AsJson,
    Output,
    Quiet,
    Seed,
    TimeLimit,
    Workers,
    assignments_of,
    check_output,
    whole,
)

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.text import Text

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers import SolveResult


def solve(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="File in format edgeflow-epoch/1; - = stdin.")
    ],
    solver: Annotated[
        str, typer.Option("--solver", "-s", metavar="NAME", help="See 'edgeflow solvers'.")
    ] = "auto",
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT_S,
    seed: Seed = 0,
    workers: Workers = DEFAULT_WORKERS,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Same input, options and seed give the same schedule; slower. Not where the result says that the "
            "time limit ended it: give it time.",
        ),
    ] = False,
    levels: Annotated[
        int,
        whole("--levels", "Levels of the objective to optimise: 1 = met jobs only, 5 = all.", 1, 5),
    ] = 5,
    warm_start: Annotated[
        str | None,
        typer.Option(
            "--warm-start", metavar="FILE", help="Schedule of the same instance to begin from."
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="Parameter of the solver; repeatable."),
    ] = None,
    plan: Annotated[
        bool | None,
        typer.Option(
            "--plan/--no-plan",
            help="Show the runs of every job and the use of the sites (default: up to 30 jobs).",
        ),
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Solve an instance: meet as many deadlines as can be met, at least cost.

    Ctrl-C ends the search; the best schedule so far is still printed and written.
    """
    from edgeflow_opt.cli.console import show, show_json, stdout_kept_pure
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instance, read_plan
    from edgeflow_opt.cli.levels import value_name
    from edgeflow_opt.cli.progress import progress_of
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem import schedule_to_dict, write_schedule
    from edgeflow_opt.solvers import SOLVERS, SolveOptions, kernels_of
    from edgeflow_opt.solvers import solve as run

    params = assignments_of(param, "--param")
    check_output(output, instance, *([warm_start] if warm_start else []))
    only_one_stdin([instance, warm_start])
    with stdout_kept_pure():
        exact = SOLVERS.get(solver).capabilities.exact
    problem = read_instance(instance)
    options = SolveOptions(
        time_limit_s=time_limit, seed=seed, workers=workers, deterministic=deterministic,
        levels=levels, params=params,
        warm_start=None if warm_start is None else read_plan(warm_start),
    )  # fmt: skip
    compile_once(quiet, *kernels_of(solver))
    with stdout_kept_pure(), progress_of(solver, quiet, value_name(problem)) as on_progress:
        result = run(problem, solver, options, on_progress=on_progress)
    if output is not None:
        write_schedule(result.schedule, output)
    if as_json:
        show_json(schedule_to_dict(result.schedule))
    else:
        show(*report(problem, result, exact, plan))
    raise typer.Exit(failures.exit_code_of_status(result.status, result.limit))


def report(
    problem: EpochProblem, result: SolveResult, exact: bool, plan: bool | None
) -> list[RenderableType]:
    """Return the result for people.

    Parameters
    ----------
    problem, result
        The instance and its result.
    exact
        Whether the solver can prove bounds.
    plan
        Whether the plan itself is shown; None = up to so many jobs as are read at a glance.
    """
    from edgeflow_opt.cli.console import console
    from edgeflow_opt.cli.levels import levels_table
    from edgeflow_opt.cli.plan import MOST_JOBS_UNASKED, plan_tables

    things: list[RenderableType] = [summary(problem, result, exact)]
    if result.objective is None:
        return things
    things.append(levels_table(problem, result))
    if plan or (plan is None and len(problem.jobs) <= MOST_JOBS_UNASKED):
        target = console()
        things += plan_tables(problem, result.schedule, target.width, target.encoding)
    return things


def summary(problem: EpochProblem, result: SolveResult, exact: bool) -> Group:
    """Return what matters most of a result, for people."""
    from edgeflow_opt.cli.console import facts, number, percent, seconds, size_of, word
    from edgeflow_opt.cli.levels import value_name

    with_deadline = sum(job.deadline is not None for job in problem.jobs)
    value = result.objective
    status = word(str(result.status))
    if result.limit is not None:
        status.append(f" (stopped: {result.limit})", style="not bold default")
    pairs: list[tuple[str, str | Text]] = [("instance", size_of(problem)), ("status", status)]
    if value is not None:
        pairs.append(("deadlines met", f"{result.schedule.met} of {with_deadline}"))
        name = value_name(problem)
        if name is not None:
            pairs.append(("met weight", number(value.met_weight)))
        if value.weighted is not None:
            pairs.append((name or "weighted value", number(value.weighted)))
    pairs.append(("proven bound", _bound_in_words(result, exact)))
    if value is not None:
        pairs.append(("gap", percent(result.gap)))
    pairs.append(("seconds", seconds(result.schedule.seconds)))
    return facts(f"Schedule by {result.schedule.solver}", pairs)


def _bound_in_words(result: SolveResult, exact: bool) -> str:
    from edgeflow_opt.cli.console import number

    if result.status == "infeasible":
        return "none: proven that no schedule exists"
    if result.bound is not None:
        return number(result.bound)
    return "none yet" if exact else "none (a heuristic proves none)"
