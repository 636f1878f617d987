"""Epoch sessions: the solver as a backend of another scheduler, decision by decision."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from edgeflow_opt.errors import EventError, Fault, UsageError
from edgeflow_opt.problem import EpochProblem, Grid, Site
from edgeflow_opt.problem.types import expect
from edgeflow_opt.problem.values import as_tuple, is_finite, is_number, shown
from edgeflow_opt.service.decide import DecisionMaker
from edgeflow_opt.service.decision import SessionDecision
from edgeflow_opt.service.events import MAX_CLOCK
from edgeflow_opt.service.memory import SessionMemory
from edgeflow_opt.service.options import SessionOptions
from edgeflow_opt.service.pool import SolverPool
from edgeflow_opt.service.refusals import TooManyError
from edgeflow_opt.service.snapshot import read_snapshot, snapshot_of
from edgeflow_opt.service.state import ClusterView, later_than
from edgeflow_opt.solvers import warm_up

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job, Objective
    from edgeflow_opt.service.events import Event

#: Names of batches remembered.
_BATCHES = 1000


class EpochSession:
    """A cluster whose scheduler asks for decisions as things happen.

    ``session.update(events)`` tells what happened, ``session.decide(now, time_limit_s)`` says who
    gets what. A decision is taken to be carried out at once; where that is not so,
    :class:`~edgeflow_opt.service.events.JobPlaced` tells what a job really holds. Between events
    progress is reckoned by the rates of the modes.

    Every decision climbs a ladder of ever better plans, each passed by the checker, and the best one
    ready when time is up is taken: ``edgeflow-select``, and the last plan repaired, both in this
    process, in milliseconds; then the solvers of `rungs`, in a process of their own, whose hanging,
    crashing or running out of memory costs nothing but their rung. What is made of them is told by
    ``SessionOptions.follow``; the plan is never worth less on level 1 than that of ``edgeflow-select``
    on the same problem, and where the best plan itself is followed, not in the whole order either.

    Where nothing has happened since the last decision, its plan is followed without solving anew.

    Thread-safe. Events may come while a decision is made; it is then marked as overtaken. A session
    holds a process, so close it or use it as a context manager.

    Parameters
    ----------
    sites
        The sites, with what is known of their capacities.
    now
        Time of the clock, seconds, of magnitude at most 1e14.
    jobs
        The jobs that are there already.
    objective
        What is wanted; None = lexicographic.
    options
        How to plan; None = the defaults.
    pool
        Processes to solve in, shared with others; None = one of its own.
    isolated
        False = solve in this process: nothing then protects from a solver that hangs or crashes.

    Raises
    ------
    InstanceError
        If the sites or jobs break a rule of the instance format.
    UsageError
        If an option makes no sense.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        *,
        now: float = 0.0,
        jobs: Sequence[Job] = (),
        objective: Objective | None = None,
        options: SessionOptions | None = None,
        pool: SolverPool | None = None,
        isolated: bool = True,
    ) -> None:
        _check_clock(now)
        if options is not None:
            expect("argument options", options, SessionOptions, "make one by SessionOptions(…)")
        changes: dict[str, Any] = {} if objective is None else {"objective": objective}
        problem = EpochProblem(
            grid=Grid((now, later_than(now))), sites=as_tuple(sites), jobs=as_tuple(jobs), **changes
        )
        self._options = SessionOptions() if options is None else options
        self._memory = SessionMemory(ClusterView.of(problem))
        self._batches: deque[str] = deque(maxlen=_BATCHES)
        self._lock = threading.Lock()
        self._deciding = threading.Lock()
        self._own_pool: SolverPool | None = None
        self._pool = pool
        # First, since where kernels have to be compiled a process would compile them a second time.
        warm_up()
        if pool is None and isolated and self._options.rungs:
            self._pool = self._own_pool = SolverPool(1)
            self._own_pool.start()

    @classmethod
    def from_snapshot(
        cls,
        document: Any,
        *,
        pool: SolverPool | None = None,
        isolated: bool = True,
        source: str = "",
    ) -> Self:
        """Return the session that a document of format ``edgeflow-session/1`` describes.

        Raises
        ------
        EventError
            With every fault of the document.
        """
        found = read_snapshot(document, source)
        view = found.memory.view
        session = cls(
            tuple(view.sites.values()),
            now=view.clock,
            options=found.options,
            pool=pool,
            isolated=isolated,
        )
        session._memory = found.memory
        session._batches.extend(found.batches)
        return session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process of the session, if it has one of its own."""
        if self._own_pool is not None:
            self._own_pool.close()

    @property
    def options(self) -> SessionOptions:
        """How the session plans."""
        return self._options

    @property
    def view(self) -> ClusterView:
        """What the session knows of the cluster."""
        return self._memory.view

    @property
    def sequence(self) -> int:
        """Number of events taken so far."""
        return self._memory.sequence

    @property
    def decisions(self) -> int:
        """Number of decisions made so far."""
        return self._memory.decisions

    def wait_ready(self, limit_s: float = 60.0) -> bool:
        """Wait until the upper rungs are loaded; without it the first decisions lack them.

        Returns
        -------
        ready
            False = not within `limit_s` seconds.
        """
        return self._pool is None or self._pool.wait_ready(limit_s)

    def update(
        self,
        events: Iterable[Event],
        *,
        batch: str | None = None,
        commit: Callable[[], None] | None = None,
    ) -> int:
        """Take events, all or none.

        Parameters
        ----------
        events
            In the order in which they happened.
        batch
            Name of the batch: one of the last 1000 names is not taken again, so that a call may be
            repeated by someone who does not know whether it came through. None = no name.
        commit
            Called when the events are known to make sense and before they are taken; where it
            raises they are not.

        Returns
        -------
        taken
            Number of events taken; 0 for a batch that was taken before.

        Raises
        ------
        EventError
            With every event that makes no sense; nothing has changed then.
        """
        taken: tuple[Event, ...] = as_tuple(events)
        if not isinstance(taken, tuple):
            raise EventError((Fault("events", "", "must be a list of events", shown(taken)),))
        with self._lock:
            if batch is not None and batch in self._batches:
                return 0
            view = self._memory.view.after(taken)
            if commit is not None:
                commit()
            self._memory = dataclasses.replace(
                self._memory,
                view=view,
                settled=self._memory.settled and not taken,
                sequence=self._memory.sequence + len(taken),
            )
            if batch is not None:
                self._batches.append(batch)
        return len(taken)

    def snapshot(self) -> dict[str, Any]:
        """Return all that the session knows as a document of format ``edgeflow-session/1``."""
        with self._lock:
            return snapshot_of(self._memory, self._options, tuple(self._batches))

    def decide(
        self,
        now: float | None = None,
        time_limit_s: float = 1.0,
        *,
        fresh: bool = False,
        cancelled: threading.Event | None = None,
        commit: Callable[[dict[str, Any]], None] | None = None,
    ) -> SessionDecision:
        """Decide who gets what from `now` on, within the limit whatever the solvers do.

        Parameters
        ----------
        now
            Seconds; a time before what the session knows counts as the latest it knows. None = that.
        time_limit_s
            Wall seconds, above 0. The lower rungs take their milliseconds in any case.
        fresh
            Solve anew even where nothing has happened.
        cancelled
            When set, the best rung ready is taken at once.
        commit
            Called with the snapshot after the decision, before it takes effect; where it raises,
            the session is as before.

        Raises
        ------
        UsageError
            If a number makes no sense.
        TooManyError
            If another decision of this session is under way, for all of the limit.
        """
        begin = time.perf_counter()
        if not is_finite(time_limit_s) or not time_limit_s > 0.0:
            rule = "must be a number of seconds above 0"
            raise UsageError(f"option time_limit_s: {rule}, got {shown(time_limit_s)}")
        if now is not None:
            _check_clock(now)
        with self._turn(time_limit_s):
            memory = self._memory
            now = memory.view.clock if now is None else max(memory.view.clock, float(now))
            work = DecisionMaker(
                memory, self._options, self._pool, now, begin, time_limit_s, fresh, cancelled
            )
            decision, plan, settled = work.make()
            prices = work.prices or memory.prices
            with self._lock:
                overtaken = self._memory.sequence != memory.sequence
                after = dataclasses.replace(
                    self._memory,
                    view=self._memory.view.changed(
                        {change.job: change.after for change in decision.changes}, now
                    ),
                    plan=plan,
                    bound=decision.bound,
                    prices=prices,
                    settled=settled and not overtaken,
                    decisions=self._memory.decisions + 1,
                )
                if commit is not None:
                    commit(snapshot_of(after, self._options, tuple(self._batches)))
                self._memory = after
        seconds = time.perf_counter() - begin
        return dataclasses.replace(decision, overtaken=overtaken, seconds=seconds)

    @contextmanager
    def _turn(self, limit_s: float) -> Iterator[None]:
        """Wait for the decision under way, if there is one, but no longer than this one may take."""
        if not self._deciding.acquire(timeout=min(limit_s, threading.TIMEOUT_MAX)):
            raise TooManyError(
                f"another decision of this session is under way, for all of the {limit_s:g} s that "
                "this one may take; one at a time"
            )
        try:
            yield
        finally:
            self._deciding.release()


def _check_clock(now: float) -> None:
    if not (is_number(now) and -MAX_CLOCK <= now <= MAX_CLOCK):
        rule = "must be a finite number of seconds of magnitude at most 1e14"
        raise UsageError(f"option now: {rule}, got {shown(now)}")
