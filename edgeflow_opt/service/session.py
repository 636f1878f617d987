"""Epoch sessions: the solver as a backend of another scheduler, decision by decision."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.exact import rolling_grid
from edgeflow_opt.problem import EpochProblem, Grid, Schedule, Site, SolveStatus
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.service.decision import SessionDecision, changes_between
from edgeflow_opt.service.ladder import CLIMB, RungNews, RungReport, climb
from edgeflow_opt.service.plans import KeptPlan, with_leftovers
from edgeflow_opt.service.pool import SolverPool, TaskError
from edgeflow_opt.service.reasons import hopeless_jobs, reasons_of, trivial_bound
from edgeflow_opt.service.state import ClusterView
from edgeflow_opt.solvers import SOLVERS, solve, warm_up

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job, Mode, Objective
    from edgeflow_opt.problem.arrays import BoolArray
    from edgeflow_opt.service.events import Event
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices

#: The rung that is always there: in this process, in milliseconds.
FLOOR = "edgeflow-select"

#: Share of the time allowed to the upper rungs that their solvers are told; the rest is for what
#: they overrun.
_TOLD_SHARE = 0.85

#: Time kept for the end of a decision: at least so many seconds, and this share of what the lower
#: rungs took.
_LEAST_RESERVE_S, _RESERVE_SHARE = 0.02, 0.7

#: Names of batches remembered.
_BATCHES = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How a session plans.

    Parameters
    ----------
    rungs
        The solvers above the floor, the quickest first; empty = the floor alone.
    slot_s, max_slots
        The grid: short slots first, growing to the last deadline
        (:func:`~edgeflow_opt.policies.exact.rolling_grid`).
    seed
        Of the solvers.
    leftovers
        Whether units that a plan leaves over now are handed on, where that is not below the floor.

    Raises
    ------
    UsageError
        If one makes no sense.
    """

    rungs: tuple[str, ...] = ("price", "auto")
    slot_s: float = 60.0
    max_slots: int = 96
    seed: int = 0
    leftovers: bool = True

    def __post_init__(self) -> None:
        for rung in self.rungs:
            if ":" not in rung and rung not in SOLVERS.names():
                SOLVERS.get(rung)  # says which there are
        if not (isinstance(self.slot_s, (int, float)) and 0.0 < self.slot_s < 1e15):
            raise UsageError(
                f"option slot_s: must be a number of seconds above 0, got {self.slot_s!r}"
            )
        for name, least, most in (("max_slots", 1, 10_000), ("seed", 0, 2**31 - 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                rule = f"must be a whole number from {least} to {most}"
                raise UsageError(f"option {name}: {rule}, got {value!r}")


@dataclasses.dataclass(frozen=True, slots=True)
class SessionMemory:
    """What a session knows; replaced as a whole, never changed.

    Parameters
    ----------
    view
        The cluster.
    plan
        The last plan; None = none yet.
    bound
        Its proven bound on level 1.
    prices
        Capacity prices of the last solve, from which the next one begins; None = none yet.
    settled
        Whether nothing has happened since the last plan, and all its rungs came to their ends.
    sequence
        Events taken so far.
    decisions
        Decisions made so far.
    """

    view: ClusterView
    plan: KeptPlan | None = None
    bound: float | None = None
    prices: CapacityPrices | None = None
    settled: bool = False
    sequence: int = 0
    decisions: int = 0


class EpochSession:
    """A cluster whose scheduler asks for decisions as things happen.

    ``session.update(events)`` tells what happened, ``session.decide(now, time_limit_s)`` says who
    gets what. A decision is taken to be carried out at once; where that is not so,
    :class:`~edgeflow_opt.service.events.JobPlaced` tells what a job really holds. Between events
    progress is reckoned by the rates of the modes.

    Every decision climbs a ladder of ever better plans, each passed by the checker, and the best one
    ready when time is up is taken: ``edgeflow-select``, and the last plan repaired, both in this
    process, in milliseconds; then the solvers of `rungs`, in a process of their own, whose hanging,
    crashing or running out of memory costs nothing but their rung. The plan is never worse than that
    of ``edgeflow-select`` on the same problem.

    Where nothing has happened since the last decision, its plan is followed without solving anew.

    Thread-safe. Events may come while a decision is made; it is then marked as overtaken. A session
    holds a process, so close it or use it as a context manager.

    Parameters
    ----------
    sites
        The sites, with what is known of their capacities.
    now
        Time of the clock, seconds.
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
        changes = {} if objective is None else {"objective": objective}
        problem = EpochProblem(
            grid=Grid((now, later_than(now))), sites=tuple(sites), jobs=tuple(jobs), **changes
        )
        self._options = options or SessionOptions()
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
        from edgeflow_opt.service.snapshot import read_snapshot

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
        events = tuple(events)
        with self._lock:
            if batch is not None and batch in self._batches:
                return 0
            view = self._memory.view.after(events)
            if commit is not None:
                commit()
            self._memory = dataclasses.replace(
                self._memory,
                view=view,
                settled=self._memory.settled and not events,
                sequence=self._memory.sequence + len(events),
            )
            if batch is not None:
                self._batches.append(batch)
        return len(events)

    def snapshot(self) -> dict[str, Any]:
        """Return all that the session knows as a document of format ``edgeflow-session/1``."""
        from edgeflow_opt.service.snapshot import snapshot_of

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
        """
        begin = time.perf_counter()
        if not _is_number(time_limit_s) or not 0.0 < time_limit_s < math.inf:
            rule = "must be a number of seconds above 0"
            raise UsageError(f"option time_limit_s: {rule}, got {time_limit_s!r}")
        if now is not None and not (_is_number(now) and -1e15 <= now <= 1e15):
            raise UsageError(f"option now: must be a finite number of seconds, got {now!r}")
        with self._deciding:
            memory = self._memory
            now = memory.view.clock if now is None else max(memory.view.clock, float(now))
            work = _Decision(
                memory, self._options, self._pool, now, begin, time_limit_s, fresh, cancelled
            )
            decision, plan, settled = work.make()
            prices = work.prices or memory.prices
            with self._lock:
                overtaken = self._memory.sequence != memory.sequence
                after = dataclasses.replace(
                    self._memory,
                    view=self._memory.view.placed(decision.allocation, now),
                    plan=plan,
                    bound=decision.bound,
                    prices=prices,
                    settled=settled and not overtaken,
                    decisions=self._memory.decisions + 1,
                )
                if commit is not None:
                    from edgeflow_opt.service.snapshot import snapshot_of

                    commit(snapshot_of(after, self._options, tuple(self._batches)))
                self._memory = after
        seconds = time.perf_counter() - begin
        return dataclasses.replace(decision, overtaken=overtaken, seconds=seconds)


class _Decision:
    """The making of one decision."""

    def __init__(
        self,
        memory: SessionMemory,
        options: SessionOptions,
        pool: SolverPool | None,
        now: float,
        begin: float,
        time_limit_s: float,
        fresh: bool,
        cancelled: threading.Event | None,
    ) -> None:
        self._memory = memory
        self._options = options
        self._pool = pool
        self._now = now
        self._begin = begin
        self._limit_s = time_limit_s
        self._cancelled = cancelled
        self._reports: list[RungReport] = []
        #: Capacity prices found; None = none.
        self.prices: CapacityPrices | None = None
        plan = memory.plan
        self._follows = (
            plan is not None and memory.settled and not fresh and now < plan.boundaries[-1]
        )

    def make(self) -> tuple[SessionDecision, KeptPlan | None, bool]:
        """Return the decision, what to remember of its plan, and whether it is settled."""
        view = self._memory.view
        problem = view.problem(self._grid())
        if not problem.jobs:
            return self._nothing(problem), None, True
        arrays = arrays_of(problem)
        floor = self._floor(problem)
        relaxed: tuple[str, ...] = ()
        fallback: tuple[EpochProblem, Schedule] | None = None
        best: Schedule | None = None
        plan = self._memory.plan
        if plan is not None:
            best = self._lower("plan", lambda: plan.on(problem, arrays))
        best = _better(best, floor)
        if best is None:
            # Deadlines that must be met, and a heuristic that misses one: it cannot prove that all do.
            loose = view.problem(problem.grid, must_meet=False)
            schedule = self._floor(loose)
            assert schedule is not None
            fallback = loose, schedule
        bounds = [self._carried_bound()]
        settled = self._follows
        if not self._follows:
            news, settled = self._upper(problem, best)
            for said in news:
                self.prices = said.prices or self.prices
                if said.schedule is not None:
                    bounds.append(said.schedule.bound)
                    if said.schedule.objective is not None:
                        best = _better(best, said.schedule)
        if best is None:
            assert fallback is not None
            relaxed = tuple(job.id for job in problem.jobs if job.must_meet)
            problem, best = fallback
            # Bounds of the hard problem say nothing of the loose one.
            arrays, floor, bounds = arrays_of(problem), best, [None]
        rung = best.solver
        if self._options.leftovers:
            best = with_leftovers(problem, arrays, best, floor)
        hopeless = hopeless_jobs(arrays)
        bounds.append(trivial_bound(problem, hopeless))
        best = _as_schedule(best, bounds)
        decision = self._decision(problem, best, rung, hopeless, relaxed)
        return decision, KeptPlan.of(problem, best), settled

    @property
    def _left_s(self) -> float:
        return self._limit_s - (time.perf_counter() - self._begin)

    def _grid(self) -> Grid:
        now, plan = self._now, self._memory.plan
        if self._follows:
            assert plan is not None
            return Grid((now, *(time for time in plan.boundaries if time > now)))
        deadlines = (held.job.deadline for held in self._memory.view.jobs.values())
        end = max((time for time in deadlines if time is not None), default=now)
        return rolling_grid(now, end, self._options.slot_s, self._options.max_slots)

    def _carried_bound(self) -> float | None:
        """Return the bound of the last plan where it still holds.

        Followed to one of its boundaries: what was carried out, and any plan from there on, are
        together a plan of the problem before, and meet there at least what that plan meets.
        """
        plan = self._memory.plan
        if self._follows and plan is not None and self._now in plan.boundaries:
            return self._memory.bound
        return None

    def _lower(self, rung: str, make: Callable[[], Schedule | None]) -> Schedule | None:
        """Return the plan of a rung in this process, and note what became of it."""
        began = time.perf_counter()
        schedule = make()
        seconds = time.perf_counter() - began
        usable = schedule is not None and schedule.objective is not None
        self._reports.append(
            RungReport(
                rung=rung,
                outcome="ready" if usable else "failed",
                seconds=seconds,
                value=schedule.objective.level_1 if schedule and schedule.objective else None,
                message="" if usable else "no plan that meets all deadlines that must be met",
            )
        )
        return schedule if usable else None

    def _floor(self, problem: EpochProblem) -> Schedule | None:
        return self._lower(FLOOR, lambda: solve(problem, FLOOR, time_limit_s=None).schedule)

    def _upper(self, problem: EpochProblem, start: Schedule | None) -> tuple[list[RungNews], bool]:
        """Return what the solvers found in time, and whether all came to their ends."""
        rungs = self._options.rungs
        used_s = time.perf_counter() - self._begin
        limit_s = self._left_s - max(_LEAST_RESERVE_S, _RESERVE_SHARE * used_s)
        if not rungs:
            return [], True
        news: list[RungNews] = []
        fault: TaskError | None = None
        if limit_s > 0:
            arguments: dict[str, Any] = {
                "problem": problem,
                "rungs": rungs,
                "time_limit_s": _TOLD_SHARE * limit_s,
                "seed": self._options.seed,
                "start": start,
                "prices": self._memory.prices,
            }
            if self._pool is None:
                climb(**arguments, tell=news.append)
            else:
                try:
                    self._pool.run(
                        CLIMB,
                        arguments,
                        limit_s=limit_s,
                        hear=news.append,
                        cancelled=self._cancelled,
                    )
                except TaskError as found:
                    fault = found
        self._report(news, fault)
        return news, fault is None and len(news) == len(rungs)

    def _report(self, news: list[RungNews], fault: TaskError | None) -> None:
        for said in news:
            schedule = said.schedule
            value = schedule.objective if schedule is not None else None
            message = said.message
            if schedule is not None and value is None:
                message = f"found no plan ({schedule.status})"
            self._reports.append(
                RungReport(
                    rung=said.rung,
                    outcome="failed" if value is None else "ready",
                    seconds=said.seconds,
                    value=None if value is None else value.level_1,
                    bound=None if schedule is None else schedule.bound,
                    message=message,
                )
            )
        for position, rung in enumerate(self._options.rungs[len(news) :]):
            outcome, message = "skipped", "no time was left"
            if fault is not None and position == 0:
                outcome = "late" if fault.kind in ("late", "busy") else "failed"
                message = str(fault)
            self._reports.append(
                RungReport(rung=rung, outcome=outcome, seconds=0.0, message=message)
            )

    def _nothing(self, problem: EpochProblem) -> SessionDecision:
        """Return the decision where there is no job."""
        empty = solve(problem, FLOOR, time_limit_s=None).schedule
        bound = None if problem.objective.mode == "weighted" else 0.0
        schedule = dataclasses.replace(empty, bound=bound)
        self._reports.append(RungReport(rung=FLOOR, outcome="ready", seconds=0.0, value=0.0))
        return self._decision(problem, schedule, FLOOR, hopeless_jobs(arrays_of(problem)), ())

    def _decision(
        self,
        problem: EpochProblem,
        schedule: Schedule,
        rung: str,
        hopeless: BoolArray,
        relaxed: tuple[str, ...],
    ) -> SessionDecision:
        now = problem.now
        allocation: dict[str, Mode] = {}
        until = problem.grid.end
        for a in schedule.allocations:
            if a.start == now:
                mode = problem.jobs[problem.job_index[a.job]].mode(a.site, a.gpus)
                assert mode is not None
                allocation[a.job] = mode
                until = min(until, a.end)
            else:
                until = min(until, a.start)
        held = {name: h.mode for name, h in self._memory.view.jobs.items()}
        reports = list(self._reports)
        for index in reversed(range(len(reports))):
            if reports[index].rung == rung and reports[index].outcome == "ready":
                reports[index] = dataclasses.replace(reports[index], outcome="used")
                break
        return SessionDecision(
            now=now,
            until=until,
            allocation=allocation,
            schedule=schedule,
            problem=problem,
            reasons=reasons_of(problem, schedule, hopeless),
            changes=changes_between(held, allocation),
            rung=rung,
            rungs=tuple(reports),
            relaxed=relaxed,
        )


def _better(held: Schedule | None, other: Schedule | None) -> Schedule | None:
    """Return the better plan; the one held where they are equal."""
    if held is None or held.objective is None:
        return other
    if other is None or other.objective is None:
        return held
    return other if other.objective.better_than(held.objective) else held


def _as_schedule(schedule: Schedule, bounds: Iterable[float | None]) -> Schedule:
    """Return a plan as the schedule of a decision, with the best bound known."""
    assert schedule.objective is not None
    value = schedule.objective.level_1
    known = [bound for bound in bounds if bound is not None]
    # A bound may lie below the value by rounding only.
    bound = max(value, min(known)) if known else None
    optimal = bound is not None and bound - value <= 1e-6 * abs(value)
    return dataclasses.replace(
        schedule,
        status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
        limit=None,
        bound=bound,
        seconds=0.0,
        levels=(),
    )


def later_than(now: float) -> float:
    """Return a time after `now`, for a grid that only has to be one."""
    return now + max(1.0, 4.0 * math.ulp(now))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
