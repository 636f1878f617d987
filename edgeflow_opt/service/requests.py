"""Requests that need a solver process: admitted, watched, cancelled, and answered in time."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from edgeflow_opt.errors import EdgeflowError
from edgeflow_opt.service.details import details_of
from edgeflow_opt.service.lanes import Lane
from edgeflow_opt.service.pool import SolverPool, TaskError
from edgeflow_opt.service.refusals import (
    BadLimitError,
    NoSuchSessionError,
    NotReadyError,
    SlowBodyError,
    TooLargeError,
    TooManyError,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from edgeflow_opt.service.settings import ServiceSettings

_TASKS = {
    name: f"edgeflow_opt.service.tasks:{name}_task"
    for name in ("solve", "check", "bound", "explain")
}

#: Time limit of requests that do not name one, seconds.
_DEFAULTS = {"solve": 5.0, "check": 30.0, "bound": 5.0, "explain": 10.0}

#: Seconds between two looks at whether the client is still there.
_LOOK_S = 0.25

#: Bodies up to this size are given an answer of the floor in the process of the service, where no
#: solver process is free: some milliseconds, spent while the request waits for one.
_SMALL_BYTES = 1 << 18

#: Share of the time limit of such a request that a solver process may take.
_SHARE = 0.9

#: Seconds beyond the time limit that such an answer, once begun, may take.
_FLOOR_GRACE_S = 0.5

#: Kinds of faults of tasks that no fault of the request has brought about.
SERVER_KINDS = frozenset({"late", "busy", "died", "MemoryError", "cancelled"})


async def read_body(request: Request, settings: ServiceSettings) -> bytes:
    """Return the body of a request.

    Raises
    ------
    TooLargeError
        If it is larger than the service takes. Up to twice that is read all the same: who is cut off
        while sending may never see the answer. Of more, and of what a client holds back until it is
        told to go on, nothing is.
    SlowBodyError
        If it does not come in time.
    """
    too_large = TooLargeError(f"the body is larger than {settings.max_bytes} bytes")
    most = settings.max_bytes
    length = request.headers.get("content-length", "0")
    held_back = "expect" in request.headers
    if length.isdigit() and int(length) > (most if held_back else 2 * most):
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            async for piece in request.stream():
                size += len(piece)
                if size > 2 * most:
                    break
                if size <= most:
                    pieces.append(piece)
    except TimeoutError:
        if size <= most:
            raise SlowBodyError(f"no body within {settings.body_timeout_s:g} s") from None
    if size > most:
        raise too_large
    return b"".join(pieces)


class _Head(msgspec.Struct):
    """What has to be known of a request before a process reads it."""

    time_limit_s: Any = None


class Work:
    """Requests under way.

    Parameters
    ----------
    pool
        Processes to work in.
    settings
        Limits.
    """

    def __init__(self, pool: SolverPool, settings: ServiceSettings) -> None:
        self._pool = pool
        self._settings = settings
        self._solves: dict[str, Solve] = {}
        self.under_way = 0
        # Each that is admitted has a thread at once, so that its limit holds while it waits, too.
        self._tasks = Lane("task", self._most)
        self._floors = Lane("floor", 1, self._most)
        #: Set when the service is asked to stop.
        self.stopping = threading.Event()

    @property
    def _most(self) -> int:
        """Most requests that have or wait for a solver process."""
        return self._pool.workers + self._settings.waiting

    @property
    def full(self) -> bool:
        """Whether all solver processes are taken, so that another request has to wait."""
        return self.under_way >= self._pool.workers

    def stop(self) -> None:
        """Let all that is under way answer with the best it has, and take nothing more."""
        self.stopping.set()
        for solve in tuple(self._solves.values()):
            solve.cancelled.set()

    def cancel(self, name: str) -> None:
        """Cancel a solve.

        Raises
        ------
        NoSuchSessionError
            If there is none of that id.
        """
        solve = self._solves.get(name)
        if solve is None:
            raise NoSuchSessionError(f"there is no solve '{name[:40]}' under way")
        solve.cancelled.set()

    def begin_solve(self, body: bytes, name: str | None) -> Solve:
        """Admit a solve; its id is `name` where that is given and free.

        Raises
        ------
        TooManyError
            If too many requests wait already, or the id is taken.
        """
        self._admit()
        name = (name or "")[:64] or secrets.token_hex(8)
        if name in self._solves:
            raise TooManyError("a solve of this id is under way; give another one")
        solve = Solve(self, name, body, self._limit_s("solve", body))
        self._solves[name] = solve
        return solve

    def end_solve(self, solve: Solve) -> None:
        """Forget a solve."""
        self._solves.pop(solve.id, None)

    def _admit(self) -> None:
        if self.stopping.is_set():
            raise NotReadyError("the service is about to stop")
        if self.under_way >= self._most:
            raise TooManyError(f"{self.under_way} requests are under way or wait; come again")

    def _limit_s(self, name: str, body: bytes) -> float:
        """Return the time limit that a request names; what is wrong with it the task will tell."""
        try:
            value = msgspec.json.decode(body, type=_Head).time_limit_s
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = None
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            return _DEFAULTS[name]
        if value > self._settings.max_time_limit_s:
            raise BadLimitError(
                f"time_limit_s: this service takes at most {self._settings.max_time_limit_s:g} s, "
                f"got {value:g}"
            )
        return float(value)

    async def run(self, name: str, body: bytes, request: Request) -> Any:
        """Carry out a request that has one answer."""
        self._admit()
        until = time.monotonic() + self._limit_s(name, body)
        return await self.carry_out(name, body, until, request, threading.Event(), None)

    async def floor(self, body: bytes) -> Any:
        """Return the answer of the floor, made in this process, for a small request.

        Raises
        ------
        EdgeflowError
            If the request is at fault.
        """
        from edgeflow_opt.service.tasks import floor_task

        sizes = self._settings.max_jobs, self._settings.max_slots
        return await self._floors.run(partial(floor_task, body, *sizes))

    async def carry_out(
        self,
        name: str,
        body: bytes,
        until: float,
        request: Request,
        cancelled: threading.Event,
        hear: Callable[[Any], None] | None,
    ) -> Any:
        """Run a task, and cancel it where the client goes away.

        Parameters
        ----------
        name, body
            Which task, and the request.
        until
            When it has to come to its end, seconds as of ``time.monotonic()``.
        request
            Whose client is watched.
        cancelled
            Ends the task when set; set where the client goes away.
        hear
            Called with all that the task tells on its way, in another thread.
        """
        arguments = {
            "body": body,
            "until": time.time() + until - time.monotonic(),
            "max_jobs": self._settings.max_jobs,
            "max_slots": self._settings.max_slots,
        }
        self.under_way += 1
        watch = asyncio.create_task(_watch(request, cancelled))

        def run() -> Any:
            left_s = max(0.0, until - time.monotonic())
            return self._pool.run(
                _TASKS[name], arguments, limit_s=left_s, hear=hear, cancelled=cancelled
            )

        try:
            return await self._tasks.run(run)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            self.under_way -= 1
            watch.cancel()


async def _watch(request: Request, cancelled: threading.Event) -> None:
    """Cancel when the client has gone."""
    while not cancelled.is_set():
        if await request.is_disconnected():
            cancelled.set()
        await asyncio.sleep(_LOOK_S)


class Solve:
    """One solve under way.

    Parameters
    ----------
    work
        Where it belongs.
    name
        Its id.
    body
        The request.
    limit_s
        Wall seconds.
    """

    def __init__(self, work: Work, name: str, body: bytes, limit_s: float) -> None:
        self.id = name
        self.cancelled = threading.Event()
        self._work = work
        self._body = body
        self._limit_s = limit_s
        self._begin = time.monotonic()
        self._floor: Any = None

    async def answer(
        self, request: Request, progress: Callable[[Any], None] | None = None
    ) -> dict[str, Any]:
        """Return the answer: of the solver asked for, or of the floor where that gives none.

        Raises
        ------
        TaskError
            If the request is at fault, or not even the floor was there in time.
        """

        def hear(news: tuple[str, Any]) -> None:
            if news[0] == "floor":
                self._floor = news[1]
            elif progress is not None:
                progress(news[1])

        message = ""
        small = len(self._body) <= _SMALL_BYTES
        ahead: asyncio.Task[Any] | None = None
        if small and self._work.full:
            # Many may wait, and their times be up together: the floor is made meanwhile.
            ahead = asyncio.create_task(self._work.floor(self._body))
            ahead.add_done_callback(lambda made: made.cancelled() or made.exception())
        try:
            # Where no process comes free there must be time left for the floor.
            until = self._begin + (_SHARE if small else 1.0) * self._limit_s
            schedule = await self._work.carry_out(
                "solve", self._body, until, request, self.cancelled, hear
            )
        except TaskError as fault:
            if fault.kind not in {*SERVER_KINDS, "SolverFaultError", "InvalidScheduleError"}:
                raise
            if self._floor is None:
                # No process was there for it.
                if not small or await request.is_disconnected():
                    raise
                left_s = max(0.0, self._begin + self._limit_s - time.monotonic())
                try:
                    async with asyncio.timeout(left_s + _FLOOR_GRACE_S):
                        self._floor = await (ahead or self._work.floor(self._body))
                except TimeoutError:
                    raise fault from None
            schedule, message = self._floor, f"{fault.kind}: {fault}"
        finally:
            if ahead is not None:
                ahead.cancel()
            self._work.end_solve(self)
        if schedule["objective"] is None and self._floor and self._floor["objective"]:
            message = f"solver '{schedule['solver']}' found no plan ({schedule['status']})"
            if schedule["status"] != "infeasible":
                schedule = self._floor
        return {
            "format": "edgeflow-answer/1",
            "id": self.id,
            "rung": schedule["solver"],
            "message": message,
            "schedule": schedule,
        }

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """Begin, and return progress and then the answer as server-sent events."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

        def progress(point: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, ("progress", point))

        async def work() -> None:
            try:
                queue.put_nowait(("result", await self.answer(request, progress)))
            except EdgeflowError as fault:
                queue.put_nowait(("fault", details_of(fault)[0]))

        # Not in the generator, which nobody may ever ask for its first event.
        return self._events(queue, asyncio.create_task(work()))

    async def _events(
        self, queue: asyncio.Queue[tuple[str, Any]], task: asyncio.Task[None]
    ) -> AsyncIterator[bytes]:
        try:
            while True:
                kind, document = await queue.get()
                yield f"event: {kind}\ndata: ".encode() + msgspec.json.encode(document) + b"\n\n"
                if kind != "progress":
                    return
        finally:
            self.cancelled.set()
            with contextlib.suppress(asyncio.CancelledError):
                await task
