"""The line to a solver process: no message, however large, is waited for longer than wanted."""

from __future__ import annotations

import pickle
import select
import socket
import struct
import time
from typing import Any

#: Before each message: its length in bytes.
_LENGTH = struct.Struct("!Q")

#: Most bytes read or written at a time.
_CHUNK = 1 << 18

_IN = select.POLLIN | select.POLLHUP | select.POLLERR


class Line:
    """One end of a line between two processes that trust each other.

    A process may be stopped or hang at any time, also halfway through a message. So what is sent and
    what has come in part is kept here, and both go on with every :meth:`next`.

    Parameters
    ----------
    end
        One socket of a pair; the line closes it.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._out = memoryview(b"")
        self._in = bytearray()

    def put(self, message: tuple[Any, ...]) -> None:
        """Take a message to be sent, without waiting."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._out = memoryview(b"".join((self._out, _LENGTH.pack(len(data)), data)))

    def send(self, message: tuple[Any, ...]) -> None:
        """Send a message whole, however long the other end takes.

        Raises
        ------
        EOFError, OSError
            If the other end is gone.
        """
        self.put(message)
        while self._out:
            self._move(select.POLLOUT, None)

    def next(self, seconds: float | None) -> tuple[Any, ...] | None:
        """Return the next message, and send what is left to send meanwhile.

        Parameters
        ----------
        seconds
            Longest wait; None = as long as it takes.

        Returns
        -------
        message
            None = there is no whole one yet.

        Raises
        ------
        EOFError, OSError
            If the other end is gone.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            message = self._whole()
            left = None if until is None else until - time.monotonic()
            if message is not None:
                return message
            wanted = select.POLLIN | (select.POLLOUT if self._out else 0)
            moved = self._move(wanted, None if left is None else max(0.0, left))
            if (not moved or (left is not None and left <= 0.0)) and until is not None:
                return self._whole()

    def close(self) -> None:
        """Close this end; what was not sent is lost."""
        self._end.close()

    def _move(self, wanted: int, seconds: float | None) -> bool:
        """Send or receive a piece; False = nothing could be within the time."""
        poll = select.poll()
        try:
            poll.register(self._end, wanted)
        except ValueError:
            raise EOFError("the line is closed") from None
        ready = poll.poll(None if seconds is None else 1000.0 * seconds)
        if not ready:
            return False
        _, events = ready[0]
        if events & select.POLLOUT:
            self._out = self._out[self._end.send(self._out[:_CHUNK]) :]
        elif events & _IN and wanted & select.POLLIN:
            piece = self._end.recv(_CHUNK)
            if not piece:
                raise EOFError("the other end is gone")
            self._in += piece
        else:
            raise EOFError("the other end is gone")
        return True

    def _whole(self) -> tuple[Any, ...] | None:
        """Return the first message that is there whole."""
        head = _LENGTH.size
        if len(self._in) < head:
            return None
        (length,) = _LENGTH.unpack_from(self._in)
        if len(self._in) < head + length:
            return None
        with memoryview(self._in) as all_of_it:
            message: tuple[Any, ...] = pickle.loads(all_of_it[head : head + length])
        del self._in[: head + length]
        return message
