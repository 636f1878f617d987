"""The service over HTTP: an ASGI application.

Starlette rather than a framework that binds bodies to types: bodies are read in solver processes,
so that no request, however large or wrong, holds up the loop that serves the others, and all faults
of a body are told together. The OpenAPI document is made from the same structures.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.service.details import document_of
from edgeflow_opt.service.gate import Gate
from edgeflow_opt.service.hub import SessionHub
from edgeflow_opt.service.lanes import Lane
from edgeflow_opt.service.metrics import Metrics
from edgeflow_opt.service.openapi import openapi_document
from edgeflow_opt.service.pool import SolverPool
from edgeflow_opt.service.refusals import NotReadyError
from edgeflow_opt.service.requests import Work, read_body
from edgeflow_opt.service.settings import ServiceSettings
from edgeflow_opt.service.store import SessionStore

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

logger = logging.getLogger(__name__)

#: Most decisions made at a time, each in a thread of its own; and most other requests to sessions,
#: which take milliseconds, and must not wait for decisions.
_DECISION_THREADS, _SESSION_THREADS = 16, 16


def make_app(settings: ServiceSettings) -> Starlette:
    """Return the application.

    Parameters
    ----------
    settings
        Limits, tokens, and where sessions are kept.

    Raises
    ------
    UsageError
        If the extra ``serve`` is not installed.
    """
    applications = load("starlette.applications", "serve", "the service")
    routing = load("starlette.routing", "serve", "the service")
    exceptions = load("starlette.exceptions", "serve", "the service")
    service = Service(settings)
    route = routing.Route
    app: Starlette = applications.Starlette(
        routes=[
            route("/solve", service.solve, methods=["POST"]),
            route("/check", partial(service.task, "check"), methods=["POST"]),
            route("/bound", partial(service.task, "bound"), methods=["POST"]),
            route("/explain", partial(service.task, "explain"), methods=["POST"]),
            route("/solves/{id}", service.cancel, methods=["DELETE"]),
            route("/sessions", service.sessions, methods=["GET", "POST"]),
            route("/sessions/{id}", service.one_session, methods=["GET", "DELETE"]),
            route("/sessions/{id}/events", service.events, methods=["POST"]),
            route("/sessions/{id}/decide", service.decide, methods=["POST"]),
            route("/health", service.health, methods=["GET"]),
            route("/ready", service.ready, methods=["GET"]),
            route("/metrics", service.metrics, methods=["GET"]),
            route("/openapi.json", service.openapi, methods=["GET"]),
        ],
        lifespan=service.lifespan,
        exception_handlers={exceptions.HTTPException: service.refused},
    )
    app.router.redirect_slashes = False
    app.state.service = service
    app.add_middleware(Gate, tokens=settings.tokens, measured=service.measured)
    return app


class Service:
    """What stands behind the routes.

    Parameters
    ----------
    settings
        See :class:`~edgeflow_opt.service.settings.ServiceSettings`.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self._responses = load("starlette.responses", "serve", "the service")
        self._pool = SolverPool(settings.workers, settings.memory_mib)
        self._work = Work(self._pool, settings)
        self._hub: SessionHub | None = None
        self._store: SessionStore | None = None
        self.measured = Metrics(
            under_way=lambda: self._work.under_way,
            sessions=lambda: 0 if self._hub is None else len(self._hub),
            ended=lambda: self._pool.ended,
        )
        self._decisions = Lane(
            "decide", _DECISION_THREADS, refusal="too many decisions are under way; come again"
        )
        self._calls = Lane(
            "session",
            _SESSION_THREADS,
            refusal="too many requests to sessions are under way; come again",
        )

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Take up sessions and start processes; at the end let both go."""
        from edgeflow_opt.solvers import warm_up

        # Not the threads that the loop keeps for everybody, which others may have filled.
        lane = Lane("lifespan", 1)
        await lane.run(warm_up)
        self._pool.start()
        self._store = SessionStore(self.settings.store, self.settings.max_store_mib)
        self._hub = SessionHub(self.settings, self._store, self._pool)
        logger.info("ready", extra={"sessions": len(self._hub)})
        try:
            yield
        finally:
            self.stop()
            await lane.run(self._pool.close)
            self._store.close()

    @property
    def hub(self) -> SessionHub:
        """The sessions."""
        assert self._hub is not None
        return self._hub

    def json(self, document: Any, status: int = 200, headers: Any = None) -> Response:
        """Return a document as a response."""
        response: Response = self._responses.Response(
            msgspec.json.encode(document),
            status_code=status,
            media_type="application/json",
            headers=headers,
        )
        return response

    async def refused(self, request: Request, problem: Any) -> Response:
        """Answer what the routes themselves refuse: an unknown path, a wrong method."""
        document = document_of(problem.status_code, str(problem.detail))
        response: Response = self._responses.Response(
            msgspec.json.encode(document),
            status_code=problem.status_code,
            media_type="application/problem+json",
            headers=problem.headers,
        )
        return response

    async def solve(self, request: Request) -> Response:
        """``POST /solve``."""
        body = await read_body(request, self.settings)
        solve = self._work.begin_solve(body, request.headers.get("x-solve-id"))
        headers = {"X-Solve-Id": solve.id}
        if "text/event-stream" in request.headers.get("accept", ""):
            stream: Response = self._responses.StreamingResponse(
                solve.stream(request), media_type="text/event-stream", headers=headers
            )
            return stream
        answer = await solve.answer(request)
        self.measured.rung(answer["rung"], known=True)
        return self.json(answer, headers=headers)

    async def task(self, name: str, request: Request) -> Response:
        """``POST /check``, ``/bound`` and ``/explain``."""
        body = await read_body(request, self.settings)
        return self.json(await self._work.run(name, body, request))

    async def cancel(self, request: Request) -> Response:
        """``DELETE /solves/{id}``."""
        self._work.cancel(request.path_params["id"])
        return self.json({"id": request.path_params["id"]}, 202)

    async def sessions(self, request: Request) -> Response:
        """``GET`` and ``POST /sessions``."""
        if request.method != "POST":
            return self.json(self.hub.all())
        body = await read_body(request, self.settings)
        return self.json(await self._calls.run(partial(self.hub.begin, body)), 201)

    async def one_session(self, request: Request) -> Response:
        """``GET`` and ``DELETE /sessions/{id}``."""
        name = request.path_params["id"]
        if request.method != "DELETE":
            return self.json(await self._calls.run(partial(self.hub.snapshot, name)))
        await self._calls.run(partial(self.hub.delete, name))
        response: Response = self._responses.Response(status_code=204)
        return response

    async def events(self, request: Request) -> Response:
        """``POST /sessions/{id}/events``."""
        name = request.path_params["id"]
        body = await read_body(request, self.settings)
        return self.json(await self._calls.run(partial(self.hub.update, name, body)))

    async def decide(self, request: Request) -> Response:
        """``POST /sessions/{id}/decide``."""
        name = request.path_params["id"]
        body = await read_body(request, self.settings)
        document = await self._decisions.run(partial(self.hub.decide, name, body))
        self.measured.rung(document["rung"], known=True)
        return self.json(document)

    async def health(self, request: Request) -> Response:
        """``GET /health``."""
        return self.json({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        """``GET /ready``."""
        if self._work.stopping.is_set() or not self._pool.any_ready:
            raise NotReadyError("no solver process is ready yet")
        return self.json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """``GET /metrics``."""
        text = self.measured.text()
        response: Response = self._responses.Response(text, media_type="text/plain")
        return response

    async def openapi(self, request: Request) -> Response:
        """``GET /openapi.json``."""
        return self.json(openapi_document())

    def stop(self) -> None:
        """Let all that is under way answer with the best it has, and take nothing more."""
        self._work.stop()
        if self._hub is not None:
            self._hub.stop()
