"""HTTP as the service speaks it: a client that does not finish the head of a request is let go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.extras import load

if TYPE_CHECKING:
    from h11 import Connection


def http_protocol(head_s: float) -> type[asyncio.Protocol]:
    """Return the protocol of uvicorn with a time limit for the heads of requests, which it lacks.

    Without it a few clients that send half a head each, for which no token is asked, would take all
    connections for good. Bodies have a limit of their own.

    Parameters
    ----------
    head_s
        Seconds from the beginning of a connection, or from the first byte of a later request on it,
        within which the head has to be there.

    Raises
    ------
    UsageError
        If the extra ``serve`` is not installed.
    """
    implementation = load("uvicorn.protocols.http.h11_impl", "serve", "the service")
    idle = load("h11", "serve", "the service").IDLE
    base: Any = implementation.H11Protocol

    class Protocol(base):
        conn: Connection
        transport: asyncio.Transport
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state is not idle:
                self._forget()
            elif self._head is None:
                self._head = asyncio.get_running_loop().call_later(head_s, self.transport.abort)

        def _forget(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    return Protocol
