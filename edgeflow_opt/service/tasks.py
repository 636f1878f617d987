"""Stateless requests, as they are carried out in a solver process: from bytes to a document."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from edgeflow_opt.errors import Fault, InputError, InstanceError, UsageError
from edgeflow_opt.problem import EpochProblem, Limit, Schedule, check
from edgeflow_opt.problem.formats import problem_from_dict, schedule_from_dict, schedule_to_dict
from edgeflow_opt.problem.parsing import convert_part, parse_json
from edgeflow_opt.solvers import SOLVERS, solve
from edgeflow_opt.solvers.base import features_of
from edgeflow_opt.solvers.progress import Progress

#: The solver whose answer stands in where another gives none in time.
FLOOR = "edgeflow-select"

#: The solver of the rung between that and `auto`, where it takes the instance.
_BETWEEN = "price"

#: Share of the time left that a solver is told; the rest is for what it overruns.
_TOLD_SHARE = 0.85

#: Most constraints of an instance.
_MOST_CONSTRAINTS = 100

Tell = Callable[[Any], None]


def parsed(body: bytes, kind: type[Struct], *documents: str) -> tuple[Any, dict[str, Any]]:
    """Return the body of a request, and apart the documents in it of formats of their own.

    Raises
    ------
    InputError
        With every fault outside of these documents.
    """
    value = parse_json(body, "", InputError)
    if not isinstance(value, dict):
        fault = Fault("request", "", "must be a JSON object", type(value).__name__)
        raise InputError((fault,))
    found: dict[str, Any] = {}
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    missing = [
        Fault("request", name, "is missing", remedy=f"add the key {name!r}")
        for name in documents
        if name not in value and fields[name].required
    ]
    if missing:
        raise InputError(tuple(missing))
    for name in documents:
        found[name] = value.pop(name, None)
    plain = msgspec.defstruct(
        kind.__name__,
        [(f.name, f.type, _default(f)) for f in fields.values() if f.name not in documents],
        kw_only=True,
        forbid_unknown_fields=True,
    )
    rest = convert_part(value, plain, "request")
    if isinstance(rest, tuple):
        raise InputError(rest)
    return rest, found


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field() if field.required else field.default


def problem_within(document: Any, max_jobs: int, max_slots: int) -> EpochProblem:
    """Return the instance of a document, if it is not too large.

    Raises
    ------
    InstanceError
        With every fault.
    """
    if isinstance(document, dict):
        sizes = (("jobs", max_jobs), ("grid", max_slots + 1), ("constraints", _MOST_CONSTRAINTS))
        for key, most in sizes:
            found = document.get(key)
            if isinstance(found, list) and len(found) > most:
                rule = f"this service takes at most {most}"
                fault = Fault("instance", key, rule, str(len(found)), "give a smaller instance")
                raise InstanceError((fault,))
    return problem_from_dict(document)


def solve_task(
    body: bytes, until: float, max_jobs: int, max_slots: int, tell: Tell
) -> dict[str, Any]:
    """Solve; the answer of the floor is told first, then progress.

    Parameters
    ----------
    body
        See :class:`~edgeflow_opt.service.wire.SolveRequest`.
    until
        When the answer has to be there, seconds as of ``time.time()``.
    max_jobs, max_slots
        Largest instance.
    tell
        Takes ``("floor", document)`` and ``("progress", document)``.
    """
    from edgeflow_opt.service.wire import SolveRequest

    request, documents = parsed(body, SolveRequest, "problem")
    problem = problem_within(documents["problem"], max_jobs, max_slots)
    floor = solve(problem, FLOOR, time_limit_s=None).schedule
    tell(("floor", schedule_to_dict(floor)))

    def progress(point: Progress) -> None:
        tell(
            (
                "progress",
                {
                    "seconds": point.seconds,
                    "value": point.value,
                    "bound": point.bound,
                    "source": point.source,
                },
            )
        )

    left = _TOLD_SHARE * (until - time.time())
    if request.solver == FLOOR and not request.params:
        return schedule_to_dict(floor)
    start, prices = None, None
    if request.solver == "auto" and not request.params and _takes(_BETWEEN, problem):
        # A rung between, in case the last one is late.
        middle = solve(
            problem, _BETWEEN, time_limit_s=max(0.3 * left, 0.01), seed=request.seed, workers=1
        )
        prices = middle.prices
        found, least = middle.objective, floor.objective
        if found is not None and (least is None or found.better_than(least)):
            start = middle.schedule
            tell(("floor", schedule_to_dict(start)))
        if middle.limit is Limit.INTERRUPTED:
            return schedule_to_dict(start or floor)
        left = _TOLD_SHARE * (until - time.time())
    result = solve(
        problem,
        request.solver,
        time_limit_s=max(left, 0.01),
        seed=request.seed,
        levels=request.levels,
        params=request.params,
        workers=1,
        warm_start=start,
        prices=prices,
        on_progress=progress,
    )
    return schedule_to_dict(result.schedule)


def _takes(solver: str, problem: EpochProblem) -> bool:
    """Whether a solver honours all features of an instance."""
    return set(features_of(problem)) <= SOLVERS.get(solver).capabilities.features


def floor_task(body: bytes, max_jobs: int, max_slots: int) -> dict[str, Any]:
    """Return the answer of the floor to a request to solve."""
    from edgeflow_opt.service.wire import SolveRequest

    _, documents = parsed(body, SolveRequest, "problem")
    problem = problem_within(documents["problem"], max_jobs, max_slots)
    return schedule_to_dict(solve(problem, FLOOR, time_limit_s=None).schedule)


def check_task(
    body: bytes, until: float, max_jobs: int, max_slots: int, tell: Tell
) -> dict[str, Any]:
    """Check a schedule; see :class:`~edgeflow_opt.service.wire.CheckRequest`."""
    from edgeflow_opt.service.wire import CheckRequest

    _, documents = parsed(body, CheckRequest, "problem", "schedule")
    problem = problem_within(documents["problem"], max_jobs, max_slots)
    return check(problem, _schedule(documents["schedule"])).document()


def _schedule(document: Any) -> Schedule:
    return schedule_from_dict(document)


def bound_task(
    body: bytes, until: float, max_jobs: int, max_slots: int, tell: Tell
) -> dict[str, Any]:
    """Bound level 1; see :class:`~edgeflow_opt.service.wire.BoundRequest`."""
    from edgeflow_opt.service.wire import BoundRequest

    request, documents = parsed(body, BoundRequest, "problem")
    if not SOLVERS.get(request.solver).capabilities.exact:
        raise UsageError(f"solver '{request.solver}' is a heuristic and proves no bound")
    problem = problem_within(documents["problem"], max_jobs, max_slots)
    result = solve(
        problem,
        request.solver,
        time_limit_s=max(0.01, _TOLD_SHARE * (until - time.time())),
        seed=request.seed,
        levels=1,
        workers=1,
    )
    return {
        "solver": request.solver,
        "status": str(result.status),
        "bound": result.bound,
        "value": result.value,
        "gap": result.gap,
        "seconds": result.schedule.seconds,
    }


def explain_task(
    body: bytes, until: float, max_jobs: int, max_slots: int, tell: Tell
) -> Mapping[str, Any]:
    """Explain; see :class:`~edgeflow_opt.service.wire.ExplainRequest`."""
    from edgeflow_opt.analysis.explain import explain
    from edgeflow_opt.service.wire import ExplainRequest

    request, documents = parsed(body, ExplainRequest, "problem", "schedule")
    problem = problem_within(documents["problem"], max_jobs, max_slots)
    schedule = documents["schedule"]
    found = explain(
        problem,
        None if schedule is None else _schedule(schedule),
        jobs=request.jobs,
        time_limit_s=max(0.01, 0.8 * (until - time.time())),
    )
    return found.document()
