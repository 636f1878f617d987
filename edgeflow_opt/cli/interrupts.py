"""Ctrl-C on the command line: remembered, so that none is lost, whatever it strikes.

Python drops an exception that is raised while it cleans up (in callbacks of weak references, for
example), and a solve takes a KeyboardInterrupt for its own and hands out its incumbent.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


@contextlib.contextmanager
def interrupts_kept() -> Iterator[threading.Event]:
    """Remember Ctrl-C and SIGTERM, which batch systems send; both end a search with its incumbent.

    Yields
    ------
    pressed
        Set by either signal, which also raises KeyboardInterrupt as Ctrl-C always does.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def remember(number: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def until_pressed(
    pressed: threading.Event, call: Callable[[T], None] | None
) -> Callable[[T], None]:
    """Return `call`, raising KeyboardInterrupt instead if there was a Ctrl-C that got lost."""

    def take(what: T) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        if call is not None:
            call(what)

    return take
