"""The line to a solver process: whole messages, and no wait for the other end."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pickle import dumps

import pytest

from edgeflow_opt.service.line import Line

LARGE = bytes(range(256)) * (1 << 15)


def test_messages_of_any_size_come_through() -> None:
    """What one end sends the other gets, in its order, however much larger than the buffers."""
    ours, theirs = map(Line, socket.socketpair())
    messages = [("small",), ("large", LARGE), ("last", {"a": 1})]

    def echo() -> None:
        for _ in messages:
            message = theirs.next(None)
            assert message is not None
            theirs.send(message)

    other = threading.Thread(target=echo, daemon=True)
    other.start()
    for message in messages:
        ours.put(message)
    assert [ours.next(30.0) for _ in messages] == messages
    other.join(30.0)
    ours.close()
    theirs.close()


def test_nothing_waits_for_an_end_that_does_not_read() -> None:
    """A large message to an end that reads nothing is kept, and goes on when that reads again."""
    ours, theirs = map(Line, socket.socketpair())
    ours.put(("large", LARGE))
    assert ours.next(0.05) is None
    found = None
    until = time.monotonic() + 30.0
    while found is None and time.monotonic() < until:
        assert ours.next(0.0) is None
        found = theirs.next(0.0)
    assert found == ("large", LARGE)
    ours.close()
    theirs.close()


def test_half_a_message_is_none() -> None:
    """Half a message is not waited for beyond the limit, and is one when the rest is there."""
    end, other = socket.socketpair()
    line = Line(end)
    data = dumps(("whole", 1))
    data = struct.pack("!Q", len(data)) + data
    for piece in (data[:3], data[3:12]):
        other.sendall(piece)
        assert line.next(0.01) is None
    other.sendall(data[12:])
    assert line.next(10.0) == ("whole", 1)
    line.close()
    other.close()


def test_an_end_that_is_gone_is_told() -> None:
    """Where the other end is closed, or this one, there is an error, and no wait."""
    ours, theirs = map(Line, socket.socketpair())
    theirs.close()
    with pytest.raises(EOFError, match="the other end is gone"):
        ours.next(None)
    with pytest.raises(OSError, match="Broken pipe"):
        ours.send(("anybody",))
    ours.close()
    with pytest.raises(EOFError, match="the line is closed"):
        ours.next(None)
