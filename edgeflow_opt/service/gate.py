"""The gate of the service: tokens, faults as documents, a log line and a count of every request."""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

import msgspec

from edgeflow_opt.errors import InputError, UsageError
from edgeflow_opt.service.hub import NoSuchSessionError, TooManyError
from edgeflow_opt.service.openapi import OPEN
from edgeflow_opt.service.pool import TaskError
from edgeflow_opt.service.requests import NotReadyError, SlowBodyError, TooLargeError
from edgeflow_opt.service.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from edgeflow_opt.service.app import Service

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("edgeflow_opt.service.access")

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


class Gate:
    """ASGI middleware around the routes.

    Parameters
    ----------
    app
        What is behind it.
    service
        Whose settings and counters it uses.
    """

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self._service = service
        self._tokens = tuple(token.encode() for token in service.settings.tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        request_id = secrets.token_hex(6)
        status = 0

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"cache-control", b"no-store"),
                ]
            await send(message)

        try:
            if scope["path"] not in OPEN and not self._let_in(scope):
                await _refuse(
                    send_seen, 401, document_of(401, "give 'Authorization: Bearer TOKEN'")
                )
            else:
                await self._serve(scope, receive, send_seen)
        finally:
            seconds = time.perf_counter() - begin
            route = _route_of(scope)
            self._service.measured.answered(route, status, seconds)
            logger.info(
                "request",
                extra={
                    "request": request_id,
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "seconds": round(seconds, 6),
                },
            )

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import ClientDisconnect

        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as problem:
            document, status = details_of(problem)
            if status == 500:
                logger.exception("fault")
            await _refuse(send, status, document)

    def _let_in(self, scope: Scope) -> bool:
        if not self._tokens:
            return True
        given = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                given = value
        kind, _, token = given.partition(b" ")
        if kind.lower() != b"bearer":
            return False
        # All are compared, so that the time tells nothing.
        return sum(hmac.compare_digest(token.strip(), known) for known in self._tokens) > 0


def _route_of(scope: Scope) -> str:
    """Return the route of a request as the OpenAPI document names it: few, whatever is asked for."""
    if "endpoint" not in scope:
        return "other"
    parts = scope["path"].split("/")
    if scope.get("path_params"):
        parts[2] = "{id}"
    return "/".join(parts)


async def _refuse(send: Send, status: int, document: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/problem+json")]
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (408, 413):
        # The rest of the body is not read.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(document)})
