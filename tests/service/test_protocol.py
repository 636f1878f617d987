"""Connections of the service: those that do not finish the head of a request are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn

from edgeflow_opt.service.protocol import http_protocol

HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HEAD_S = 0.1


async def _slow(scope: Any, receive: Any, send: Callable[[Any], Any]) -> None:
    """Answer later than a head may take."""
    await asyncio.sleep(4 * HEAD_S)
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def _said(*pieces: bytes) -> bytes:
    """Return what a server says to `pieces`, sent one by one, until it hangs up."""
    config = uvicorn.Config(
        _slow, port=0, http=http_protocol(HEAD_S), lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = b""
    for piece in pieces:
        writer.write(piece)
        if piece.endswith(b"\r\n\r\n"):
            said += await asyncio.wait_for(reader.readuntil(b"ok"), 30.0)
    try:
        # Less than the time for which a connection is kept for the next request.
        said += await asyncio.wait_for(reader.read(), 3.0)
    except ConnectionResetError:
        said += b", gone"
    writer.close()
    server.should_exit = True
    await serving
    return said


def test_half_a_head_is_let_go() -> None:
    """Nothing, or half a head, is waited for no longer than the limit, for a second request too."""
    for pieces in ((b"",), (b"GET /hea",), (HEAD, b"GET /hea")):
        said = asyncio.run(_said(*pieces))
        assert said.count(b"200 OK") == len(pieces) - 1
        assert said in (b"", b", gone") or said.endswith((b"ok", b"ok, gone"))


def test_whole_heads_have_all_the_time_of_their_answers() -> None:
    """A request whose head is there is answered, however long that takes, and so is the next one."""
    said = asyncio.run(_said(HEAD[:8], HEAD[8:], HEAD, b"G"))
    assert said.count(b"200 OK") == 2
