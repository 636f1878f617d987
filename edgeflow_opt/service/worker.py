"""A process that solves for another one, under a limit on memory, and is ended by an alarm.

Started by :mod:`edgeflow_opt.service.pool` as ``python -m edgeflow_opt.service.worker FD MIB``. It takes
pickled tasks from a socket, one at a time, and answers with messages. It ends when its parent does:
at the end of the file, or, whatever a solver does then, by an alarm that no code can swallow.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import socket
import sys
from functools import partial
from typing import Any

from edgeflow_opt.errors import EdgeflowError, InputError, is_ctrl_c
from edgeflow_opt.service.line import Line

#: How much a solver process gives way to the one that it works for.
_NICE = 5

#: Seconds after which an alarm ends a process beyond the time that its parent would allow it.
_ALARM_GRACE_S = 5.0


def main(descriptor: int, memory_mib: int) -> None:
    """Serve tasks until the parent is gone."""
    line = Line(socket.socket(fileno=descriptor))
    working = False

    def interrupt(*_: object) -> None:
        # The parent asks the task to come to an end with what it has; between tasks it comes late.
        if working:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    # Whoever watches the clock must get the processor when time is up.
    os.nice(_NICE)
    # What solvers print belongs to nobody.
    with open(os.devnull, "w") as sink:
        os.dup2(sink.fileno(), 1)
    from edgeflow_opt.solvers import warm_up

    warm_up()
    for module in ("ortools.sat.python.cp_model", "highspy"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    _limit_memory(memory_mib)
    line.send(("ready",))
    while True:
        try:
            task = line.next(None)
        except (EOFError, OSError):
            return
        assert task is not None
        name, arguments, limit_s = task
        signal.setitimer(signal.ITIMER_REAL, limit_s + _ALARM_GRACE_S)
        try:
            working = True
            answer = _answer(line, name, arguments)
            working = False
        except KeyboardInterrupt:
            working = False
            answer = "fault", "cancelled", "the task was cancelled", ()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        try:
            line.send(answer)
        except (EOFError, OSError):
            return


def _answer(line: Line, name: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """Return the last message of a task: its result, or what went wrong."""
    module, _, function = name.partition(":")
    try:
        work = getattr(importlib.import_module(module), function)
        return "result", work(tell=partial(_tell, line), **arguments)
    except MemoryError:
        return "fault", "MemoryError", "the memory limit of a solver process was reached", ()
    except EdgeflowError as fault:
        faults = fault.faults if isinstance(fault, InputError) else ()
        kind = next(
            k.__name__ for k in type(fault).__mro__ if k.__module__ == EdgeflowError.__module__
        )
        return "fault", kind, str(fault), faults
    except Exception as fault:
        if is_ctrl_c(fault):
            raise KeyboardInterrupt from fault
        return "fault", type(fault).__name__, str(fault), ()


def _tell(line: Line, what: Any) -> None:
    """Send news whole: half a message, because of an interrupt, would block the parent."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        line.send(("news", what))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _limit_memory(memory_mib: int) -> None:
    """Allow so much memory beyond what the libraries have taken already."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        taken = 1 << 32
    limit = taken + memory_mib * (1 << 20)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
