"""The clock of a solve: time limit, cancellation, progress, and interrupts that keep the incumbent.

No signal handler is touched. A native solver runs in a daemon thread while the calling thread waits
on an event in short steps, so that Ctrl-C reaches Python; it then asks the solver to stop, waits
for it, and the incumbent is kept.
"""

from __future__ import annotations

import atexit
import copy
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from edgeflow_opt.errors import is_ctrl_c
from edgeflow_opt.problem import Limit
from edgeflow_opt.solvers.kernels import compile_or_load
from edgeflow_opt.solvers.progress import Progress

if TYPE_CHECKING:
    from edgeflow_opt.problem import ObjectiveValue
    from edgeflow_opt.problem.arrays import IntArray

T = TypeVar("T")

#: Seconds between two looks at the clock and at Ctrl-C while a native solver runs.
_POLL_S = 0.02

#: Seconds that a native solver is given to come back once it was asked to stop.
_LEAST_GRACE_S = 0.3


#: Seconds that the end of the process waits for native solvers that were left to themselves.
_FAREWELL_S = 10.0

#: Native solvers that were left to themselves: when each is done, and how to ask it to stop.
_left_behind: list[tuple[threading.Event, Callable[[], None]]] = []


def _leave_behind(done: threading.Event, stop: Callable[[], None]) -> None:
    """Remember a native solver that does not stop, so that the process does not end under it.

    The threads of HiGHS are ended with the process while they work, which C++ answers with an abort
    (exit code -6).
    """
    if not _left_behind:
        atexit.register(_wait_for_those_left_behind)
    _left_behind.append((done, stop))


def _wait_for_those_left_behind() -> None:
    until = time.monotonic() + _FAREWELL_S
    for done, stop in _left_behind:
        while not done.is_set() and time.monotonic() < until:
            stop()
            done.wait(_POLL_S)


class SolveControl:
    """The running clock of one solve.

    Parameters
    ----------
    time_limit_s
        Wall seconds from now; None = no limit.
    on_progress
        Called with every improvement.
    unit
        What values and bounds are multiplied by before they are told (see
        :mod:`edgeflow_opt.solvers.units`).
    cancelled
        An event of the caller that ends the solve when set; None = there is none.
    steady
        Whether the result must not depend on the clock: work that is counted is then cut short by
        the limit of the whole solve only.
    """

    def __init__(
        self,
        time_limit_s: float | None,
        on_progress: Callable[[Progress], None] | None = None,
        unit: float = 1.0,
        cancelled: threading.Event | None = None,
        *,
        steady: bool = False,
    ) -> None:
        self._start = time.perf_counter()
        self._limit_s = time_limit_s
        self._steady = steady
        self._on_progress = on_progress
        self._unit = unit
        self._cancelled = threading.Event()
        self._cancelled_outside = cancelled
        self._needless: Callable[[], bool] = lambda: False
        self._believes_values = True
        # Of all parts together.
        self._forgiven = [0.0]
        self._lock = threading.Lock()
        # Shared by all parts of a solve.
        self._trace: list[Progress] = []
        self._best: dict[str, float | None] = {"value": None, "bound": None}
        self._kept: list[tuple[ObjectiveValue, IntArray]] = []
        self._callback_faults: list[Exception] = []

    @property
    def value(self) -> float | None:
        """Best value reported so far."""
        return self._best["value"]

    @property
    def bound(self) -> float | None:
        """Best bound reported so far."""
        return self._best["bound"]

    def part(
        self,
        seconds: float,
        needless: Callable[[], bool] | None = None,
        *,
        relaxed: bool = False,
    ) -> SolveControl:
        """Return the control of a part of this solve that may take at most `seconds` from now.

        Clock, cancellation and progress are those of the whole.

        Parameters
        ----------
        needless
            Asked often, from several threads: once true, the part must come to an end, since
            another part has found what it is looking for; None = that of the whole.
        relaxed
            Whether the part solves a relaxation: its bounds are bounds, its values are none.
        """
        part = copy.copy(self)
        part.limit_to(seconds)
        if relaxed:
            part.believe_no_values()
        if needless is not None:
            part.ends_when(needless)
        return part

    def counted_part(self, seconds: float, *, relaxed: bool = False) -> SolveControl:
        """Return the control of a part that ends by itself where the result must be steady.

        As :meth:`part`; a steady solve lets it take all the time there is, since its share of the
        clock would end it sooner or later by the speed of the machine.
        """
        return self.part(math.inf if self._steady else seconds, relaxed=relaxed)

    def aside(self, seconds: float) -> SolveControl:
        """Return the control of a part that looks at another objective, for at most `seconds`.

        Clock and cancellation are those of the whole; its values, bounds and plans are its own.
        """
        part = self.part(seconds)
        part.forget()
        return part

    def forget(self) -> None:
        """Keep apart from now on what is reported here, and tell nobody."""
        self._on_progress = None
        self._trace, self._kept = [], []
        self._best = {"value": None, "bound": None}

    def ends_when(self, needless: Callable[[], bool]) -> None:
        """Let this part of a solve come to an end as soon as `needless` is true."""
        before = self._needless
        self._needless = lambda: before() or needless()

    def believe_no_values(self) -> None:
        """Take note of bounds only: what this part of a solve plans need not be a schedule."""
        self._believes_values = False

    def limit_to(self, seconds: float) -> None:
        """Let the limit be at most `seconds` from now."""
        self._limit_s = self.elapsed_s + min(seconds, self.left_s)

    def forgive(self, seconds: float) -> None:
        """Take `seconds` off the clock: time that no limit of the caller should pay for."""
        with self._lock:
            self._forgiven[0] += seconds

    def load_kernels(self, *modules: str) -> None:
        """Load compiled kernels by module; no limit of the caller pays for their compilation."""
        self.forgive(compile_or_load(*modules))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the solve began, time forgiven taken off."""
        return time.perf_counter() - self._start - self._forgiven[0]

    @property
    def left_s(self) -> float:
        """Seconds left, at least 0; +inf without a limit."""
        if self._limit_s is None:
            return float("inf")
        return max(0.0, self._limit_s - self.elapsed_s)

    @property
    def _grace_s(self) -> float:
        if self._limit_s is None or math.isinf(self._limit_s):
            return _LEAST_GRACE_S
        return max(_LEAST_GRACE_S, 0.05 * self._limit_s)

    @property
    def interrupted(self) -> bool:
        """Whether the solve was cancelled or interrupted."""
        outside = self._cancelled_outside
        return self._cancelled.is_set() or (outside is not None and outside.is_set())

    @property
    def stopped(self) -> bool:
        """Whether the solver must come to an end: time is up, or it was interrupted.

        Or, in a part of a solve, that part is needless by now.
        """
        return self.interrupted or self.left_s <= 0.0 or self._needless()

    @property
    def limit(self) -> Limit | None:
        """The limit that stops the solver now; None = none does."""
        if self.interrupted:
            return Limit.INTERRUPTED
        return Limit.TIME if self.left_s <= 0.0 else None

    @property
    def trace(self) -> tuple[Progress, ...]:
        """Improvements so far."""
        with self._lock:
            return tuple(self._trace)

    def cancel(self) -> None:
        """Ask the solver to come to an end soon; safe from any thread."""
        self._cancelled.set()

    def report(self, source: str, value: float | None = None, bound: float | None = None) -> None:
        """Take note of a value of a checked schedule, or of a proven bound; keep improvements."""
        if not self._believes_values:
            value = None
        with self._lock:
            better = False
            if value is not None and (self.value is None or value > self.value + 1e-9):
                self._best["value"], better = value, True
            if bound is not None and (self.bound is None or bound < self.bound - 1e-9):
                self._best["bound"], better = bound, True
            if not better:
                return
            point = Progress(self.elapsed_s, self._told(self.value), self._told(self.bound), source)
            self._trace.append(point)
        if self._on_progress is None or self._callback_faults:
            return
        # Ctrl-C may strike here too, in a thread of a native solver even.
        with self.interruptible():
            try:
                self._on_progress(point)
            except Exception as fault:
                # Raised here it would go through a solver, and take the incumbent with it.
                self._callback_faults.append(fault)
                self.cancel()

    @property
    def callback_fault(self) -> Exception | None:
        """The exception of `on_progress`, which ended the solve; None = it raised none."""
        return self._callback_faults[0] if self._callback_faults else None

    def _told(self, number: float | None) -> float | None:
        return None if number is None else number * self._unit

    def keep(self, plan: IntArray, value: ObjectiveValue) -> None:
        """Keep a feasible plan in case Ctrl-C ends the solver itself; the best one is kept."""
        with self._lock:
            if not self._kept or value.better_than(self._kept[0][0]):
                self._kept[:] = [(value, plan)]

    @property
    def kept_plan(self) -> IntArray | None:
        """The best plan kept; None = none yet."""
        with self._lock:
            return self._kept[0][1] if self._kept else None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end the block and be noted as :attr:`interrupted`, so that work done is kept."""
        try:
            yield
        except (KeyboardInterrupt, SystemError) as problem:
            if not is_ctrl_c(problem):
                raise
            self.cancel()

    def run(self, work: Callable[[], T], stop: Callable[[], None]) -> T | None:
        """Run `work` in a daemon thread; when it must end, call `stop` and wait for it.

        It must end on Ctrl-C, on :meth:`cancel`, and when time is up. Native solvers have been seen
        to overlook all of them, in presolve mostly: one that does not come back within a grace
        of 0.3 s or 5 % of the limit is left to itself, and what it may still find is lost. A
        process that ends meanwhile waits for it for some seconds, since it would crash otherwise.

        Parameters
        ----------
        work
            The native solve; it must come to an end soon after `stop` was called.
        stop
            Asks the native solver to stop; called repeatedly, since such requests are lost when
            they come before the search has begun.

        Returns
        -------
        result
            What `work` returned; None where it was left to itself.

        Raises
        ------
        Exception
            Whatever `work` raises.
        """
        done = threading.Event()
        box: list[T] = []
        failure: list[BaseException] = []

        def body() -> None:
            try:
                box.append(work())
            except BaseException as problem:
                failure.append(problem)
            finally:
                done.set()

        threading.Thread(target=body, daemon=True, name="edgeflow-solve").start()
        in_time = False
        while True:
            # Ctrl-C strikes between any two instructions: all of the loop that waits lies within.
            try:
                in_time = self._wait(done, stop)
                break
            except KeyboardInterrupt:
                self.cancel()
        if not in_time:
            _leave_behind(done, stop)
            return None
        if failure:
            raise failure[0]
        return box[0]

    def _wait(self, done: threading.Event, stop: Callable[[], None]) -> bool:
        """Wait for `done`, asking to stop when it is time; return whether it came within the grace."""
        asked_at: float | None = None
        while not done.wait(_POLL_S):
            if self.stopped:
                stop()
                asked_at = self.elapsed_s if asked_at is None else asked_at
                if self.elapsed_s - asked_at > self._grace_s:
                    return False
        return True
