"""Processes that end with the process that started them, however it ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading

#: Exit code of a process whose parent is gone, where it is not killed by the system.
_ORPHANED = 3

#: ``PR_SET_PDEATHSIG`` of prctl(2).
_SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Let this process of :mod:`multiprocessing` end within moments of its parent's end.

    A pool cannot see to that once its process has been killed: a worker may then wait for a lock
    or a message for ever, or go on with a long call. On Linux the system kills the worker, whatever
    it is doing (prctl(2), ``PR_SET_PDEATHSIG``; it counts the end of the thread that started the
    worker as the parent's, and pools keep theirs as long as they have workers). Elsewhere, and
    besides, a thread waits for the parent's end; it needs the interpreter for a moment, which
    compiled code may hold until its call returns.

    Does nothing in a process that :mod:`multiprocessing` did not start.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(_ORPHANED)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
