"""What went wrong as a document of RFC 9457, and its status."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.errors import InputError, UsageError
from edgeflow_opt.service.pool import TaskError
from edgeflow_opt.service.refusals import (
    NoSuchSessionError,
    NotReadyError,
    SlowBodyError,
    TooLargeError,
    TooManyError,
)
from edgeflow_opt.service.store import StoreError

_TITLES = {
    400: "cannot be read",
    401: "no valid token",
    404: "not there",
    405: "method not allowed",
    408: "too slow",
    409: "cancelled",
    413: "too large",
    422: "at fault",
    429: "too many",
    500: "a fault of the service",
    503: "not ready",
    504: "late",
    507: "disk full",
}

#: Status of what a task did not end well by, where the request is not at fault.
_TASK_STATUS = {"late": 504, "busy": 503, "died": 503, "MemoryError": 503, "cancelled": 409}

#: Kinds of faults of tasks for which the request is at fault.
_AT_FAULT = frozenset(
    {
        "InputError", "InstanceError", "ScheduleError", "EventError", "UsageError",
        "UnsupportedError", "SolverUnavailableError",
    }
)  # fmt: skip


def details_of(problem: BaseException) -> tuple[dict[str, Any], int]:
    """Return what went wrong as a document (RFC 9457), and its status."""
    faults: Any = ()
    if isinstance(problem, TaskError):
        faults = problem.faults
        status = _TASK_STATUS.get(problem.kind, 422 if problem.kind in _AT_FAULT else 500)
    elif isinstance(problem, InputError):
        faults, status = problem.faults, 422
    elif isinstance(problem, NoSuchSessionError):
        status = 404
    elif isinstance(problem, TooManyError):
        status = 429
    elif isinstance(problem, TooLargeError):
        status = 413
    elif isinstance(problem, SlowBodyError):
        status = 408
    elif isinstance(problem, NotReadyError):
        status = 503
    elif isinstance(problem, StoreError):
        status = 507
    elif isinstance(problem, (UsageError, ValueError)):
        status = 422
    else:
        status = 500
    text = str(problem) if status != 500 else f"{type(problem).__name__}: see the log"
    return document_of(status, text, faults), status


def document_of(status: int, detail: str, faults: Any = ()) -> dict[str, Any]:
    """Return a document of RFC 9457."""
    return {
        "type": "about:blank",
        "title": _TITLES.get(status, "not done"),
        "status": status,
        "detail": detail,
        "faults": [
            {
                "object": f.object, "field": f.field, "rule": f.rule, "value": f.value,
                "remedy": f.remedy,
            }
            for f in faults[:100]
        ],
    }  # fmt: skip
