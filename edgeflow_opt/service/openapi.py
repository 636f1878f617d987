"""The OpenAPI document of the service, made from the structures that read and write its bodies."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from edgeflow_opt._version import __version__
from edgeflow_opt.service import wire
from edgeflow_opt.service.events import WireEvents
from edgeflow_opt.service.snapshot import WireSession

#: Statuses other than success, and when they come.
_STATUSES = {
    "400": "The request cannot be read.",
    "401": "The token is missing or wrong.",
    "404": "There is no such thing.",
    "408": "The body of the request did not come in time.",
    "409": "The request was cancelled before there was an answer.",
    "413": "The body is too large.",
    "422": "The body breaks its format or its rules; all faults are named.",
    "429": "The service is busy or full; come again after Retry-After seconds.",
    "500": "A fault of the service.",
    "503": "No solver process came free in time, or the service is about to stop.",
    "504": "There was no answer in time.",
    "507": "The disk is full; nothing has changed.",
}

_WORK = ("400", "401", "408", "413", "422", "429", "500", "503", "504")
_SESSION = ("400", "401", "404", "408", "413", "422", "429", "500", "503", "507")

_STREAM = (
    "With 'Accept: text/event-stream' as a stream: events 'progress', then 'result' or 'fault'."
)

#: (method, path, name, summary, body, answer, status, other statuses)
_ROUTES: tuple[tuple[str, str, str, str, Any, Any, str, tuple[str, ...]], ...] = (
    ("post", "/solve", "solve", f"Solve an instance. {_STREAM}", wire.SolveRequest, wire.Answer,
     "200", (*_WORK, "409")),
    ("post", "/check", "check", "Check a schedule.", wire.CheckRequest, wire.CheckAnswer, "200",
     _WORK),
    ("post", "/bound", "bound", "Bound level 1 of an instance.", wire.BoundRequest,
     wire.BoundAnswer, "200", _WORK),
    ("post", "/explain", "explain", "Tell why deadlines are missed.", wire.ExplainRequest, None,
     "200", _WORK),
    ("delete", "/solves/{id}", "cancel", "Cancel a solve; it answers with the best it has.", None,
     None, "202", ("401", "404", "500")),
    ("get", "/sessions", "sessions", "List the sessions.", None, list[wire.SessionAnswer], "200",
     ("401", "500")),
    ("post", "/sessions", "begin", "Begin a session.", wire.SessionRequest, wire.SessionAnswer,
     "201", _SESSION),
    ("get", "/sessions/{id}", "snapshot", "Return a session as a snapshot.", None, WireSession,
     "200", ("401", "404", "429", "500")),
    ("delete", "/sessions/{id}", "end", "End a session.", None, None, "204",
     ("401", "404", "429", "500", "507")),
    ("post", "/sessions/{id}/events", "events", "Tell what happened, all or none.", WireEvents,
     wire.EventsAnswer, "200", _SESSION),
    ("post", "/sessions/{id}/decide", "decide", "Decide who gets what.", wire.DecideRequest,
     wire.DecisionAnswer, "200", _SESSION),
    ("get", "/health", "health", "Whether the service is alive.", None, None, "200", ("500",)),
    ("get", "/ready", "ready", "Whether it can solve.", None, None, "200", ("500", "503")),
    ("get", "/metrics", "metrics", "Metrics for Prometheus.", None, str, "200", ("401", "500")),
    ("get", "/openapi.json", "openapi", "This document.", None, None, "200", ("500",)),
)  # fmt: skip

#: Routes that need no token.
OPEN = frozenset({"/health", "/ready", "/openapi.json"})


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document (3.1)."""
    types = [kind for route in _ROUTES for kind in route[4:6] if kind not in (None, str)]
    types.append(wire.ProblemDetails)
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schema_of = {str(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for method, path, name, summary, body, answer, status, others in _ROUTES:
        operation: dict[str, Any] = {
            "operationId": name,
            "summary": summary,
            "responses": {
                status: {"description": "Done."}
                | ({"content": _content(answer, schema_of)} if status != "204" else {})
            },
        }
        for other in others:
            operation["responses"][other] = {
                "description": _STATUSES[other],
                "content": {
                    "application/problem+json": {"schema": schema_of[str(wire.ProblemDetails)]}
                },
            }
        if "{id}" in path:
            operation["parameters"] = [
                {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string", "minLength": 1, "maxLength": 64},
                }
            ]
        if body is not None:
            operation["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": schema_of[str(body)]}},
            }
        if path in OPEN:
            operation["security"] = []
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "edgeflow-opt",
            "version": __version__,
            "description": "Schedules elastic deep-learning jobs with deadlines over cloud GPUs "
            "and edge servers.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _content(answer: Any, schema_of: dict[str, Any]) -> dict[str, Any]:
    if answer is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    schema = {"type": "object"} if answer is None else schema_of[str(answer)]
    return {"application/json": {"schema": schema}}
