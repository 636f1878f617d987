"""The gate of the service: tokens, faults as documents, a log line and a count of every request."""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

import msgspec

from edgeflow_opt.service.details import details_of, document_of
from edgeflow_opt.service.openapi import OPEN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from edgeflow_opt.service.metrics import Metrics

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("edgeflow_opt.service.access")


class Gate:
    """ASGI middleware around the routes.

    Parameters
    ----------
    app
        What is behind it.
    tokens
        Any of them lets a request in; empty = all requests.
    measured
        Counts requests.
    """

    def __init__(self, app: App, tokens: tuple[str, ...], measured: Metrics) -> None:
        self._app = app
        self._tokens = tuple(token.encode() for token in tokens)
        self._measured = measured

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
            self._measured.answered(route, status, seconds)
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
