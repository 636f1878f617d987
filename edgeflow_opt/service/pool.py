"""Processes that solve: whatever happens in one, the caller gets an answer, and in time."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from edgeflow_opt.errors import EdgeflowError, Fault, UsageError
from edgeflow_opt.service.line import Line

#: Memory that a process may take beyond its libraries, MiB.
DEFAULT_MEMORY_MIB = 2048

#: Tasks after which a process is replaced, so that what libraries leak stays small.
_TASKS_PER_PROCESS = 500

#: Seconds that a process which is late is given to come back before it is killed: a new one costs
#: seconds of computing.
_GRACE_S = 1.0

#: Seconds between two looks at the clock and at cancellations.
_POLL_S = 0.05

#: A process that ends within so many seconds of being given a task was dead already.
_DEAD_ON_ARRIVAL_S = 0.2

#: Seconds that a cancelled task is given to come back with what it has.
_CANCEL_S = 0.5

#: Processes that are ready to take the place of one that has to be replaced.
_SPARE = 1

#: Failures in a row to become ready after which processes are no longer started.
_MOST_FALSE_STARTS = 5


class TaskError(EdgeflowError):
    """A task did not end with a result.

    Parameters
    ----------
    kind
        ``late``, ``busy`` (no process came free in time), ``died``, ``cancelled``, or the name of
        the exception that it raised.
    message
        In words.
    faults
        All faults of an input, where that was at fault.
    """

    def __init__(self, kind: str, message: str, faults: tuple[Fault, ...] = ()) -> None:
        self.kind = kind
        self.faults = faults
        super().__init__(message)


class _DeadOnArrivalError(Exception):
    """A process was dead when it was given a task."""


class _Process:
    """One process and the line to it."""

    def __init__(self, memory_mib: int) -> None:
        ours, theirs = socket.socketpair()
        self.line = Line(ours)
        self.tasks = 0
        self.ready = False
        self.late = False
        self.started = time.monotonic()
        try:
            self._process = subprocess.Popen(
                # -P: the current folder must not stand in for the installed package.
                [
                    sys.executable, "-P", "-m", "edgeflow_opt.service.worker",
                    str(theirs.fileno()), str(memory_mib),
                ],
                pass_fds=(theirs.fileno(),),
                # Ctrl-C in a terminal is for the parent, which decides what ends.
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def look(self) -> None:
        """Take note of whether the process has loaded its libraries; does not wait."""
        try:
            if not self.ready:
                message = self.line.next(0.0)
                self.ready = message is not None and message[0] == "ready"
        except (EOFError, OSError):
            return

    def how_it_ended(self) -> str:
        """Return how the process died, in words."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "closed its line"
        return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"

    def alive(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Ask the task to come to an end with what it has."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.line.close()


class SolverPool:
    """A few processes, each of which does one task at a time, under a limit on memory.

    A process that hangs, crashes or takes too much memory is replaced; the others go on. Safe from
    any thread; to be closed, or used as a context manager.

    Parameters
    ----------
    workers
        Number of processes at work at a time, at least 1; one more stands by.
    memory_mib
        Memory that each may take beyond its libraries, MiB.

    Raises
    ------
    UsageError
        If a number makes no sense.
    """

    def __init__(self, workers: int = 1, memory_mib: int = DEFAULT_MEMORY_MIB) -> None:
        for name, value in (("workers", workers), ("memory_mib", memory_mib)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"option {name}: must be a whole number >= 1, got {value!r}")
        self.workers = workers
        self._memory_mib = memory_mib
        self._changed = threading.Condition()
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._closed = False
        self._false_starts = 0
        #: Processes that callers hold, of which there are at most `workers`.
        self._at_work = 0
        #: How many processes have ended, by reason.
        self.ended: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start all processes, without waiting for them."""
        with self._changed:
            self._fill()

    def wait_ready(self, limit_s: float) -> bool:
        """Wait until a process is ready for work; False = none was in time."""
        try:
            process = self._acquire(time.monotonic() + limit_s, None)
        except TaskError:
            return False
        self._release(process)
        return True

    @property
    def any_ready(self) -> bool:
        """Whether a process is ready for work, or at work."""
        with self._changed:
            for process in self._idle:
                process.look()
            return any(process.ready and not process.late for process in self._all)

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of the processes."""
        with self._changed:
            return tuple(sorted(process.pid for process in self._all))

    def close(self) -> None:
        """End all processes; tasks under way fail as ``died``."""
        with self._changed:
            self._closed = True
            processes, self._all, self._idle = self._all, set(), []
            self._changed.notify_all()
        for process in processes:
            process.kill()

    def run(
        self,
        task: str,
        arguments: Mapping[str, Any],
        *,
        limit_s: float,
        hear: Callable[[Any], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> Any:
        """Run a task in a process and return its result.

        Parameters
        ----------
        task
            ``module:function``; it is called with `arguments` and a callable `tell`.
        arguments
            Picklable.
        limit_s
            Wall seconds, the wait for a process included.
        hear
            Called in this thread with all that the task tells on its way.
        cancelled
            Ends the task when set.

        Raises
        ------
        TaskError
            If there is no result.
        """
        until = time.monotonic() + limit_s
        try:
            return self._run(task, arguments, limit_s, until, hear, cancelled)
        except _DeadOnArrivalError:
            # It was killed while it waited for work; one that dies of the task is not tried again.
            try:
                return self._run(task, arguments, limit_s, until, hear, cancelled)
            except _DeadOnArrivalError as lost:
                raise TaskError("died", str(lost)) from None

    def _run(
        self,
        task: str,
        arguments: Mapping[str, Any],
        limit_s: float,
        until: float,
        hear: Callable[[Any], None] | None,
        cancelled: threading.Event | None,
    ) -> Any:
        process = self._acquire(until, cancelled)
        begun = time.monotonic()
        heard = asked = False
        try:
            process.tasks += 1
            process.line.put((task, dict(arguments), max(0.0, until - time.monotonic())))
            while True:
                if cancelled is not None and cancelled.is_set() and not asked:
                    # It comes back with what it has; soon, or not at all.
                    asked = True
                    process.interrupt()
                    until = min(until, time.monotonic() + _CANCEL_S)
                left = until - time.monotonic()
                message = process.line.next(max(0.0, min(left, _POLL_S)))
                if message is None:
                    if left <= 0:
                        self._leave_late(process)
                        if asked:
                            raise TaskError("cancelled", "the task was cancelled")
                        raise TaskError("late", f"no answer within {limit_s:.3g} s")
                    continue
                heard = True
                if message[0] == "news":
                    if hear is not None:
                        hear(message[1])
                    continue
                if message[:2] == ("fault", "MemoryError"):
                    # What libraries make of a lack of memory is not to be trusted.
                    self._discard(process, "memory")
                else:
                    self._release(process)
                if message[0] == "result":
                    return message[1]
                raise TaskError(*message[1:])
        except (EOFError, OSError) as lost:
            how = process.how_it_ended()
            self._discard(process, "died")
            if not heard and time.monotonic() - begun < _DEAD_ON_ARRIVAL_S:
                raise _DeadOnArrivalError(f"the solver process {how}") from lost
            raise TaskError("died", f"the solver process {how}") from lost
        except TaskError:
            raise
        except BaseException:
            self._discard(process, "abandoned")
            raise

    def _fill(self) -> None:
        """Replace processes that have died, and start those that are missing.

        One more than work at a time: where a process has to be replaced, another one is ready.
        """
        for process in tuple(self._idle):
            process.look()
            if not process.alive():
                self._idle.remove(process)
                self._drop(process, "died" if process.ready else "start")
                self._false_starts += not process.ready
            elif process.ready:
                self._false_starts = 0
        late = sum(process.late for process in self._all)
        missing = self.workers + _SPARE - (len(self._all) - late)
        if not self._closed and self._false_starts < _MOST_FALSE_STARTS:
            for _ in range(missing):
                process = _Process(self._memory_mib)
                self._all.add(process)
                self._idle.append(process)

    def _acquire(self, until: float, cancelled: threading.Event | None) -> _Process:
        """Return a process that is ready, and ours until it is released or discarded."""
        with self._changed:
            while True:
                if self._closed:
                    raise TaskError("died", "the pool of solver processes is closed")
                self._fill()
                if self._false_starts >= _MOST_FALSE_STARTS:
                    raise TaskError(
                        "died", "solver processes do not start; see 'edgeflow versions'"
                    )
                if self._at_work < self.workers:
                    for process in self._idle:
                        if process.ready:
                            self._idle.remove(process)
                            self._at_work += 1
                            return process
                left = until - time.monotonic()
                if cancelled is not None and cancelled.is_set():
                    raise TaskError("cancelled", "the task was cancelled")
                if left <= 0:
                    raise TaskError("busy", "no solver process was ready in time")
                self._changed.wait(min(left, _POLL_S))

    def _release(self, process: _Process) -> None:
        """Take back a process that was acquired."""
        if process.tasks >= _TASKS_PER_PROCESS:
            self._discard(process, "recycled")
            return
        with self._changed:
            self._at_work -= 1
            if process in self._all:
                self._idle.append(process)
            self._changed.notify()

    def _discard(self, process: _Process, reason: str) -> None:
        """End a process that was acquired, and have another one in its place."""
        process.kill()
        with self._changed:
            self._at_work -= 1
            if process in self._all:
                self._drop(process, reason)
            self._fill()
            self._changed.notify_all()

    def _drop(self, process: _Process, reason: str) -> None:
        self._all.discard(process)
        self.ended[reason] = self.ended.get(reason, 0) + 1

    def _leave_late(self, process: _Process) -> None:
        """Let a late process come back within a grace, or else end it; the caller does not wait."""
        with self._changed:
            # Its place at work is free for another one.
            process.late = True
            self._at_work -= 1
            self._fill()
            self._changed.notify_all()

        def watch() -> None:
            until = time.monotonic() + _GRACE_S
            back = False
            try:
                process.interrupt()
                while time.monotonic() < until and not back:
                    message = process.line.next(_POLL_S)
                    back = message is not None and message[0] != "news"
            except (EOFError, OSError):
                back = False
            with self._changed:
                self._at_work += 1
                process.late = False
            if back and len(self._all) <= self.workers + _SPARE:
                self._release(process)
            else:
                self._discard(process, "surplus" if back else "late")

        threading.Thread(target=watch, daemon=True, name="edgeflow-late").start()
