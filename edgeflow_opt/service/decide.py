"""The making of one decision: the climb of the ladder, and what is told of it."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from edgeflow_opt.policies.exact import rolling_grid
from edgeflow_opt.problem import EpochProblem, Grid, Schedule, SolveStatus
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.service.decision import SessionDecision, changes_between
from edgeflow_opt.service.ladder import CLIMB, RungNews, RungReport, climb
from edgeflow_opt.service.plans import KeptPlan, until_the_next_event, with_leftovers
from edgeflow_opt.service.pool import SolverPool, TaskError
from edgeflow_opt.service.reasons import hopeless_jobs, reasons_of, trivial_bound
from edgeflow_opt.solvers import solve

if TYPE_CHECKING:
    from edgeflow_opt.problem import Mode
    from edgeflow_opt.problem.arrays import BoolArray, ProblemArrays
    from edgeflow_opt.service.memory import SessionMemory
    from edgeflow_opt.service.options import SessionOptions
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices

#: The rung that is always there: in this process, in milliseconds.
FLOOR = "edgeflow-select"

#: Share of the time allowed to the upper rungs that their solvers are told; the rest is for what
#: they overrun.
_TOLD_SHARE = 0.85

#: Relative difference of two values that is none.
_ROUNDING = 1e-9

#: Time kept for the end of a decision: at least so many seconds, and this share of what the lower
#: rungs took.
_LEAST_RESERVE_S, _RESERVE_SHARE = 0.02, 0.7


class DecisionMaker:
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
        if self._follows and best is not None and self._selects:
            # Another plan for the same jobs would give up what the one followed has begun.
            best = _more_met(best, floor)
        else:
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
        if self._selects and not self._follows and floor is not None:
            best = self._realised(problem, arrays, best, floor)
            rung = best.solver
        if self._options.leftovers:
            best = with_leftovers(problem, arrays, best, floor)
        hopeless = hopeless_jobs(arrays)
        bounds.append(trivial_bound(problem, hopeless))
        best = _as_schedule(best, bounds)
        decision = self._decision(problem, best, rung, hopeless, relaxed)
        return decision, KeptPlan.of(problem, best), settled

    def _realised(
        self, problem: EpochProblem, arrays: ProblemArrays, best: Schedule, floor: Schedule
    ) -> Schedule:
        """Return a plan of the selecting heuristic: for its own set of jobs, or for that of `best`.

        For the latter where it is worth more by the margin; `best` itself where the heuristic cannot
        meet all of it. Never below the floor on level 1.
        """
        value = _level_1(best)
        weights = [job.weight for job in problem.jobs if job.deadline is not None and job.weight]
        margin = self._options.margin * min(weights, default=0.0)
        if problem.objective.weights is not None:
            margin *= problem.objective.weights.met
        usual = until_the_next_event(problem, arrays, FLOOR)
        if usual is not None:
            mine = _level_1(usual)
            if value < mine + margin and mine >= _level_1(floor) - _ROUNDING * abs(mine):
                return usual
        chosen = until_the_next_event(problem, arrays, best.solver, best)
        if chosen is not None and _level_1(chosen) >= value - _ROUNDING * abs(value):
            return chosen
        return best

    @property
    def _selects(self) -> bool:
        """Whether solvers only choose the jobs."""
        return self._options.follow == "select"

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
        together a plan of the problem before, and meet there at least what that plan meets. Of a
        weighted sum that is so only where nothing but met weight counts: what was carried out has
        been paid for, and progress is measured by the work that is left.
        """
        plan, weights = self._memory.plan, self._memory.view.objective.weights
        if weights is not None and any(
            (weights.progress, weights.leftover, weights.cost, weights.reconfigurations)
        ):
            return None
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


def _level_1(schedule: Schedule) -> float:
    assert schedule.objective is not None
    return schedule.objective.level_1


def _more_met(held: Schedule, other: Schedule | None) -> Schedule:
    """Return the plan of more value on level 1; the one held where they are equal."""
    if other is None or other.objective is None:
        return held
    least = _level_1(held)
    return other if _level_1(other) > least + _ROUNDING * abs(least) else held


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
