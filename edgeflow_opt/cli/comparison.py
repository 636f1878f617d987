"""Rows of a comparison: several solvers on several instances, each failure a row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.cli import failures
from edgeflow_opt.errors import EdgeflowError, SolverUnavailableError, UnsupportedError

if TYPE_CHECKING:
    from rich.table import Table

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers import SolveOptions

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One solver on one instance.

    Parameters
    ----------
    instance, solver
        Names.
    num_jobs
        Jobs of the instance that have a deadline.
    status
        Status of the schedule; ``error`` where there is none, for the reason in `message`.
    exit_code
        Exit code that this row stands for alone.
    met, met_weight, progress, cost, reconfigurations
        Of the schedule; None without a plan.
    value
        Level 1, to which bound and gap refer: the met weight, or the weighted sum.
    value_name
        What `value` counts; None = jobs met.
    bound, gap, limit, seconds
        As in :class:`~edgeflow_opt.problem.Schedule`.
    message
        Why there is no result; None where there is one.
    refused
        Whether the solver refused the instance, or its library is missing: no fault of its own.
    """

    instance: str
    solver: str
    num_jobs: int
    status: str
    exit_code: int
    met: int | None = None
    met_weight: float | None = None
    value: float | None = None
    value_name: str | None = None
    bound: float | None = None
    gap: float | None = None
    progress: float | None = None
    cost: float | None = None
    reconfigurations: int | None = None
    limit: str | None = None
    seconds: float | None = None
    message: str | None = None
    refused: bool = False

    def document(self) -> dict[str, Any]:
        """Return the row as an object of format ``edgeflow-compare/1``."""
        return {
            "instance": self.instance,
            "solver": self.solver,
            "status": self.status,
            "limit": self.limit,
            "jobs": self.num_jobs,
            "met": self.met,
            "met_weight": self.met_weight,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "progress": self.progress,
            "cost": self.cost,
            "reconfigurations": self.reconfigurations,
            "seconds": self.seconds,
            "message": self.message,
        }


def run_row(
    name: str, problem: EpochProblem, solver: str, options: SolveOptions, quiet: bool
) -> Row:
    """Solve one instance by one solver; a failure becomes a row that says so."""
    from edgeflow_opt.cli.console import stdout_kept_pure
    from edgeflow_opt.cli.levels import value_name
    from edgeflow_opt.cli.progress import progress_of
    from edgeflow_opt.cli.solve import exit_code
    from edgeflow_opt.solvers import solve

    num_jobs = sum(job.deadline is not None for job in problem.jobs)
    counted = value_name(problem)
    try:
        with stdout_kept_pure(), progress_of(f"{name} {solver}", quiet, counted) as on_progress:
            result = solve(problem, solver, options, on_progress=on_progress)
    except EdgeflowError as error:
        return Row(
            instance=name, solver=solver, num_jobs=num_jobs, status="error",
            exit_code=error.exit_code, message=str(error),
            refused=isinstance(error, UnsupportedError | SolverUnavailableError),
        )  # fmt: skip
    except Exception as error:
        return Row(
            instance=name, solver=solver, num_jobs=num_jobs, status="error",
            exit_code=failures.EXIT_INTERNAL, message=f"{type(error).__name__}: {error}",
        )  # fmt: skip
    value = result.objective
    return Row(
        instance=name,
        solver=solver,
        num_jobs=num_jobs,
        status=str(result.status),
        exit_code=exit_code(result),
        met=None if value is None else result.schedule.met,
        met_weight=None if value is None else value.met_weight,
        value=result.value,
        value_name=counted,
        bound=result.bound,
        gap=result.gap,
        progress=None if value is None else value.progress,
        cost=None if value is None else value.cost,
        reconfigurations=None if value is None else value.reconfigurations,
        limit=None if result.limit is None else str(result.limit),
        seconds=result.schedule.seconds,
    )


def worst_exit_code(rows: Sequence[Row]) -> int:
    """Return the worst exit code of `rows`, in the order of :data:`SEVERITY`."""
    return max((row.exit_code for row in rows), key=SEVERITY.index, default=failures.EXIT_SOLVED)


def rows_tables(rows: Sequence[Row]) -> list[Table]:
    """Return the rows for people: a table for each instance, with its name if there are several."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.instance, []).append(row)
    return [_table(name if len(groups) > 1 else None, group) for name, group in groups.items()]


def _table(title: str | None, rows: Sequence[Row]) -> Table:
    from edgeflow_opt.cli.console import number, percent, printable, seconds, table, word

    name = next((row.value_name for row in rows if row.value_name is not None), None)
    made = table(
        "solver", "met", *([] if name is None else [name]), "bound", "gap", "cost", "reconf.",
        "seconds", "status",
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


def notes(rows: Sequence[Row]) -> list[str]:
    """Return a line for each row without a result, saying why."""
    from edgeflow_opt.cli.failures import printable

    return [printable(f"{row.instance}: {row.message}") for row in rows if row.message is not None]
