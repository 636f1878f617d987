"""One solver on one instance with one seed: a row of a comparison, and how it comes about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import EdgeflowError, SolverUnavailableError, UnsupportedError

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers import Progress, SolveOptions

#: Status of a row without a schedule.
FAILED = "error"

#: Keys of a row in the document, by the field where that has another name.
_KEYS = {"num_jobs": "jobs"}

#: One improvement of a solve: seconds, value (None = none yet), proven bound (None = none yet).
TracePoint = tuple[float, float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One solver on one instance with one seed.

    Parameters
    ----------
    instance, solver
        Names.
    seed
        Seed of the solver.
    num_jobs
        Jobs of the instance that have a deadline.
    status
        Status of the schedule; ``error`` where there is none, for the reason in `message`.
    limit
        The limit that stopped the solver; None = none.
    met
        Number of jobs that meet their deadline; None without a plan, as all levels below.
    met_weight, progress, cost, reconfigurations
        Levels of the objective.
    value
        Level 1, to which bound and gap refer: the met weight, or the weighted sum.
    value_name
        What `value` counts; None = jobs met.
    bound, gap, seconds
        As in :class:`~edgeflow_opt.problem.Schedule`.
    message
        Why there is no result; None where there is one.
    refused
        Whether the solver refused the instance, or its library is missing: no fault of its own.
    error_code
        Exit code that the failure stands for; None where there is a result.
    digest
        The first 16 hexadecimal digits of the SHA-256 of the instance; empty = not known.
    trace
        Improvements in their order; points that bring no news are left out.
    """

    instance: str
    solver: str
    seed: int = 0
    num_jobs: int
    status: str
    limit: str | None = None
    met: int | None = None
    met_weight: float | None = None
    value: float | None = None
    value_name: str | None = None
    bound: float | None = None
    gap: float | None = None
    progress: float | None = None
    cost: float | None = None
    reconfigurations: int | None = None
    seconds: float | None = None
    message: str | None = None
    refused: bool = False
    error_code: int | None = None
    digest: str = ""
    trace: tuple[TracePoint, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the solver ended without a result; a proof of infeasibility is one."""
        return self.status == FAILED

    @property
    def proof_s(self) -> float | None:
        """Seconds until level 1 was proven, or the instance infeasible; None = neither was.

        A solver that goes on to the levels below takes longer in all.
        """
        if self.status not in ("optimal", "infeasible"):
            return None
        for seconds, value, bound in self.trace:
            if value is not None and bound is not None and value >= bound - 1e-6 * abs(value):
                return seconds
        return self.seconds

    def document(self) -> dict[str, Any]:
        """Return the row as an object of format ``edgeflow-compare/1``."""
        found = {_KEYS.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        return {**found, "trace": [list(point) for point in self.trace]}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Row:
        """Return the row that an object of the format says; unknown keys are passed over.

        Raises
        ------
        KeyError
            If a required key is missing.
        """
        names = {f.name: _KEYS.get(f.name, f.name) for f in fields(cls)}
        found = {name: document[key] for name, key in names.items() if key in document}
        if "trace" in found:
            found["trace"] = tuple((p[0], p[1], p[2]) for p in found["trace"])
        missing = [
            key
            for name, key in names.items()
            if name in ("instance", "solver", "num_jobs", "status") and name not in found
        ]
        if missing:
            raise KeyError(missing[0])
        return cls(**found)


def digest_of(problem: EpochProblem) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the instance document."""
    from edgeflow_opt.problem import problem_to_dict

    text = json.dumps(problem_to_dict(problem), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def value_name(problem: EpochProblem) -> str | None:
    """Return what level 1 counts, where that is not simply the jobs met; None where it is.

    Value, bound and gap are then in another unit than the number of jobs met.
    """
    if problem.objective.mode == "weighted":
        return "weighted value"
    if any(job.weight != 1 for job in problem.jobs if job.deadline is not None):
        return "met weight"
    return None


def solve_row(
    instance: str,
    problem: EpochProblem,
    solver: str,
    options: SolveOptions,
    *,
    digest: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Row:
    """Solve one instance by one solver; a failure becomes a row that says so.

    Parameters
    ----------
    instance
        Name of the instance.
    problem, solver, options
        As in :func:`edgeflow_opt.solve`; the seed of the row is that of the options.
    digest
        Of the instance, where it is known already; None = it is computed.
    on_progress
        Called with every improvement.
    """
    from edgeflow_opt.solvers import solve

    known: dict[str, Any] = {
        "instance": instance,
        "solver": solver,
        "seed": options.seed,
        "num_jobs": sum(job.deadline is not None for job in problem.jobs),
        "value_name": value_name(problem),
        "digest": digest_of(problem) if digest is None else digest,
    }
    try:
        changes = {} if on_progress is None else {"on_progress": on_progress}
        result = solve(problem, solver, options, **changes)
    except EdgeflowError as error:
        return Row(
            **known, status=FAILED, message=str(error), error_code=error.exit_code,
            refused=isinstance(error, UnsupportedError | SolverUnavailableError),
        )  # fmt: skip
    except Exception as error:
        return Row(
            **known, status=FAILED, message=f"{type(error).__name__}: {error}",
            error_code=EdgeflowError.exit_code,
        )  # fmt: skip
    value = result.objective
    return Row(
        **known,
        status=str(result.status),
        limit=None if result.limit is None else str(result.limit),
        met=None if value is None else result.schedule.met,
        met_weight=None if value is None else value.met_weight,
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        progress=None if value is None else value.progress,
        cost=None if value is None else value.cost,
        reconfigurations=None if value is None else value.reconfigurations,
        seconds=result.schedule.seconds,
        trace=_news(result.trace),
    )


def _news(trace: tuple[Progress, ...]) -> tuple[TracePoint, ...]:
    """Return the points of a trace at which value or bound changed."""
    points: list[TracePoint] = []
    for point in trace:
        if not points or points[-1][1:] != (point.value, point.bound):
            points.append((point.seconds, point.value, point.bound))
    return tuple(points)
