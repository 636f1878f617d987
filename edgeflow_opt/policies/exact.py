"""The policy `exact`: a rolling horizon over any solver of epoch problems."""

from __future__ import annotations

import bisect
import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import InvalidScheduleError, UsageError
from edgeflow_opt.formulations.carry_over import carried_over
from edgeflow_opt.formulations.plans import allocations_of, empty_plan, plan_of, trim
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.edgeflow_select import EdgeFlowSelectPolicy
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Limit,
    Running,
    Schedule,
    SolveStatus,
    check,
    evaluate,
)
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.problem.data import MAX_SLOTS, WORK_TOLERANCE
from edgeflow_opt.problem.values import MAX_MAGNITUDE, is_finite, is_whole, shown
from edgeflow_opt.solvers import SOLVERS, solve
from edgeflow_opt.solvers.kernels import BY_LEVELS, LEFTOVERS, PRICE
from edgeflow_opt.solvers.leftovers import hand_on_leftovers

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Allocation, Job
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan on the clock.

    Parameters
    ----------
    boundaries
        Slot boundaries, seconds.
    jobs
        Ids of the jobs that it knows.
    allocations
        What they hold, when.
    met
        Ids of the jobs that meet their deadlines by it.
    followed
        Whether it is carried out; else it only chose the jobs.
    """

    boundaries: tuple[float, ...]
    jobs: frozenset[str]
    allocations: tuple[Allocation, ...]
    met: frozenset[str]
    followed: bool


class ExactPolicy:
    """Solve an epoch problem at every event, and let it choose which jobs are to be met.

    At an arrival, a completion or a change of capacity all unfinished jobs become an
    :class:`~edgeflow_opt.problem.EpochProblem` on a grid that begins with short slots and grows to
    the last deadline; a solver plans it within a time limit, from the plan and the prices before.
    What is carried out of it is a matter of `follow`:

    * ``"select"``: the plan only chooses the jobs. First the selecting heuristic
      (:class:`~edgeflow_opt.policies.edgeflow_select.EdgeFlowSelectPolicy`) plans the event; where
      it meets every job that could be met at all, nothing is solved. Else the solver looks for a
      better set, and only one that is worth more by `margin` is taken. The heuristic then plans for
      this set, in continuous time and with left-over units handed on; where it cannot meet all of
      the set, the plan of the solver is followed itself.
    * ``"plan"``: the plan is followed at its own slot boundaries, by wake-ups and without solving
      again, until something happens that it did not know of. Units that it leaves over now are
      handed on (:mod:`edgeflow_opt.solvers.leftovers`).

    Every plan that is followed, changed or not, has passed the checker. Jobs past their deadline
    stay in the problem: they can only gain progress there.

    Exact for the jobs that are known is not best for those to come. Following the plan loses for
    three reasons: among plans with equally many met jobs the chosen set changes from event to
    event, and work on jobs that are dropped later is lost; a plan just in time for the known jobs
    has no room for the next arrival, where the heuristic spreads jobs over what is free now; and
    slots are coarse. Choosing only, and only where it pays, keeps what exactness is good for: the
    set of jobs. Jobs met on the testbed trace of ElasticFlow (195 jobs, deadlines of the trace, no
    overhead; the solver ``price`` at 0.2 s a decision, at most 48 slots), by cloud GPUs and edge
    servers:

    =================================== ======== ======== ======== ========
    ..                                  16, 0    16, 8    32, 0    32, 8
    =================================== ======== ======== ======== ========
    edgeflow-select                     123      131      152      153
    exact, follow = select              124..126 131      152      153
    clairvoyant, best schedule known    134      139      157      159
    =================================== ======== ======== ======== ========

    Generated traces under overload (16 GPUs; ``deterministic``, 5 exact iterations and 600 moves), jobs
    met in all:

    =================================== ============= ============== =============
    jobs, load, edge servers; traces    70, 2, 4; 12  60, 2.2, 2; 10 60, 4, 8; 10
    =================================== ============= ============== =============
    edgeflow-select                     732           533            504
    exact                               736           537            513
    exact, ``least_work=0.5``           738           537            515
    =================================== ============= ============== =============

    Of the 64 runs of ``exact`` 32 meet more jobs and two fewer, by one job each. A better set of the
    known jobs can always be worse for those to come; no more than one job a trace was lost by it.
    At light load all rules that know deadlines are equal.

    Parameters
    ----------
    solver
        Name of a solver of the registry. The default is the one that is soonest near its best:
        what is left for a proof seldom changes the set of jobs.
    time_limit_s
        Wall seconds for each solve, above 0; None = until it is optimal.
    slot_s
        Length of the first slots, seconds, above 0 (see :func:`rolling_grid`).
    max_slots
        Most slots of a grid, at least 1.
    seed
        Seed of the solver.
    workers
        Threads of the solver.
    levels
        Levels of the objective that are optimised (1 = deadlines met only, 5 = all); None = 1 where
        the plan only chooses, 5 where it is followed.
    leftovers
        Whether left-over units of a plan that is followed are handed on.
    warm_start
        Whether a solve begins from the plan and the prices before.
    stability
        In [0, 1): jobs that the plan before meets weigh up to this share of the lightest job more,
        all of them together, so that ties between sets of jobs keep the set. 0 = ties are free.
    least_work
        In [0, 1): jobs weigh up to this share of the lightest job more, all of them together, the
        less GPU time they need, so that of sets worth the same the one of less work is taken. 0 =
        no such preference.
    follow
        ``"select"`` or ``"plan"``, see above.
    margin
        By how much the set of the solver has to be worth more than that of the heuristic, in
        weights of the lightest job, at least 0; for ``"select"`` only.
    deterministic
        Whether solves are limited by work instead of wall time, so that the same trace has the same
        history on any machine. `time_limit_s` then only stops what would last for ever: a solve
        that it ends depends on the machine after all (None = it never does).
    solver_params
        Parameters of the solver by its own names; with `deterministic` they set the work. For
        ``price`` these are ``exact_iterations`` (100 unless given; 5 do here) and ``moves``.

    Raises
    ------
    UsageError
        If an option makes no sense or the solver is not known.
    """

    #: Modules whose kernels the policy calls, with the solver `auto`.
    kernels = (*BY_LEVELS, PRICE, LEFTOVERS)

    def __init__(
        self,
        *,
        solver: str = "price",
        time_limit_s: float | None = 1.0,
        slot_s: float = 60.0,
        max_slots: int = 96,
        seed: int = 0,
        workers: int = 1,
        levels: int | None = None,
        leftovers: bool = True,
        warm_start: bool = True,
        stability: float = 0.0,
        least_work: float = 0.0,
        follow: str = "select",
        margin: float = 0.5,
        deterministic: bool = False,
        solver_params: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0.0 < slot_s < math.inf:
            raise UsageError(f"option slot_s: must be a number of seconds above 0, got {slot_s!r}")
        if time_limit_s is not None and not 0.0 < time_limit_s < math.inf:
            raise UsageError(
                "option time_limit_s: must be a number of seconds above 0 or None, "
                f"got {time_limit_s!r}"
            )
        if levels is not None and levels not in range(1, 6):
            raise UsageError(f"option levels: must be from 1 to 5 or None, got {levels!r}")
        for name, count, least in (("workers", workers, 1), ("seed", seed, 0)):
            if count < least:
                raise UsageError(f"option {name}: must be at least {least}, got {count!r}")
        if not isinstance(max_slots, int) or max_slots < 1:
            raise UsageError(f"option max_slots: must be a whole number >= 1, got {max_slots!r}")
        if not 0.0 <= stability < 1.0:
            raise UsageError(f"option stability: must be at least 0 and below 1, got {stability!r}")
        if not 0.0 <= least_work < 1.0:
            raise UsageError(
                f"option least_work: must be at least 0 and below 1, got {least_work!r}"
            )
        if stability + least_work >= 1.0:
            raise UsageError(
                "options stability and least_work: must be below 1 together, "
                f"got {stability!r} and {least_work!r}"
            )
        if follow not in ("select", "plan"):
            raise UsageError(f"option follow: must be 'select' or 'plan', got {follow!r}")
        if not 0.0 <= margin < math.inf:
            raise UsageError(f"option margin: must be a number >= 0, got {margin!r}")
        if ":" not in solver and solver not in SOLVERS.names():
            SOLVERS.get(solver)  # says which there are
        self._solver = solver
        self._time_limit_s = time_limit_s
        self._slot_s = slot_s
        self._max_slots = max_slots
        self._seed = seed
        self._workers = workers
        self._levels = levels or (1 if follow == "select" else 5)
        self._leftovers = leftovers
        self._warm_start = warm_start
        self._stability = stability
        self._least_work = least_work
        self._margin = margin
        self._deterministic = deterministic
        self._solver_params = dict(solver_params or {})
        self._usual = EdgeFlowSelectPolicy() if follow == "select" else None
        self._plan: _Plan | None = None
        self._prices: CapacityPrices | None = None

    def decide(self, state: ClusterState) -> Decision:
        """Return what runs from now on; where a plan is followed, also when it changes next.

        Raises
        ------
        InvalidScheduleError
            If a plan fails the checker.
        KeyboardInterrupt
            If a solve was interrupted: the incumbent of an event is no result of a simulation.
        """
        old = self._plan
        if old is not None and old.followed and self._still_holds(old, state):
            rest = old.boundaries[bisect.bisect_right(old.boundaries, state.now) :]
            problem = self._problem(state, Grid((state.now, *rest)))
            arrays = arrays_of(problem)
            return self._follow(problem, arrays, carried_over(problem, arrays, old.allocations))
        if self._usual is not None:
            usual = self._usual.plan(state)
            if not _may_be_met(state, usual.met):
                self._plan = None
                return usual.decision
        end = max((s.job.deadline for s in state.jobs if s.job.deadline is not None), default=0)
        grid = rolling_grid(state.now, end, self._slot_s, self._max_slots)
        problem = self._problem(state, grid)
        arrays = arrays_of(problem)
        plan = self._solved(problem, arrays)
        if self._usual is None:
            return self._follow(problem, arrays, plan)
        self._plan = _kept(problem, arrays, plan, followed=False)
        weight = {seen.job.id: seen.job.weight for seen in state.jobs}
        found = _worth(self._plan.met, weight)
        margin = self._margin * min((w for w in weight.values() if w > 0.0), default=0.0)
        if found < _worth(usual.met, weight) + margin:
            return usual.decision
        chosen = self._usual.plan(state, self._plan.met)
        if _worth(chosen.met, weight) >= found * (1.0 - 1e-9):
            return chosen.decision
        return self._follow(problem, arrays, plan)

    def _follow(self, problem: EpochProblem, arrays: ProblemArrays, plan: IntArray) -> Decision:
        """Return the first slot of `plan`, left-over units handed on, and when its next one begins."""
        plan = trim(arrays, plan)
        if self._leftovers:
            plan = trim(arrays, hand_on_leftovers(arrays, plan))
        self._plan = _kept(problem, arrays, plan, followed=True)
        return _first_slot(problem, arrays, plan)

    def _still_holds(self, plan: _Plan, state: ClusterState) -> bool:
        """Whether nothing has happened that `plan` does not know of."""
        return (
            not state.arrived
            and not state.capacity_changed
            and state.now < plan.boundaries[-1]
            and plan.jobs == {seen.job.id for seen in state.jobs}
        )

    def _problem(self, state: ClusterState, grid: Grid) -> EpochProblem:
        """Return the epoch problem of all unfinished jobs."""
        return EpochProblem(
            grid=grid,
            sites=tuple(state.sites),
            jobs=tuple(_epoch_job(seen) for seen in state.jobs),
        )

    def _solved(self, problem: EpochProblem, arrays: ProblemArrays) -> IntArray:
        """Return the plan of the solver, or that from before if it is better."""
        held = empty_plan(arrays)
        if self._plan is not None and self._warm_start:
            held = carried_over(problem, arrays, self._plan.allocations)
        to_solve = self._steadied(problem)
        start = _schedule(to_solve, arrays, held)
        result = solve(
            to_solve,
            self._solver,
            time_limit_s=self._time_limit_s,
            seed=self._seed,
            workers=self._workers,
            deterministic=self._deterministic,
            levels=self._levels,
            params=self._solver_params,
            warm_start=start if held.max(initial=-1) >= 0 else None,
            prices=self._prices,
        )
        if self._warm_start:
            self._prices = result.prices or self._prices
        if result.limit is Limit.INTERRUPTED:
            raise KeyboardInterrupt
        assert start.objective is not None
        if result.objective is None or start.objective.better_than(result.objective):
            return held
        return plan_of(to_solve, arrays, result.schedule)

    def _steadied(self, problem: EpochProblem) -> EpochProblem:
        """Return `problem` with the jobs a little heavier that are preferred among equals."""
        held = self._plan.met if self._plan is not None and self._stability else frozenset()
        counted = [job for job in problem.jobs if job.deadline is not None and job.weight]
        if not counted or not (held or self._least_work):
            return problem
        share = min(job.weight for job in counted) / len(counted)
        size = {job.id: min(job.work * m.gpus / m.rate for m in job.modes) for job in counted}
        largest = max(size.values())
        extra = {
            job.id: share
            * (
                self._stability * (job.id in held)
                + self._least_work * (1.0 - size[job.id] / largest)
            )
            for job in counted
        }
        return problem.replace(
            jobs=tuple(
                dataclasses.replace(job, weight=job.weight + extra[job.id])
                if extra.get(job.id)
                else job
                for job in problem.jobs
            )
        )


def _may_be_met(state: ClusterState, met: Set[str]) -> bool:
    """Whether a job that is not in `met` could be met if it had the cluster to itself."""
    for seen in state.jobs:
        deadline = seen.job.deadline
        if deadline is None or seen.job.id in met or seen.job.weight == 0.0:
            continue
        fastest = max(mode.rate for mode in seen.job.modes)
        if seen.required_left <= fastest * (deadline - state.now):
            return True
    return False


def _worth(jobs: Set[str], weight: Mapping[str, float]) -> float:
    return math.fsum(weight[name] for name in jobs)


def _kept(problem: EpochProblem, arrays: ProblemArrays, plan: IntArray, *, followed: bool) -> _Plan:
    """Return `plan` for the events to come, once it has passed the checker."""
    schedule = _schedule(problem, arrays, plan)
    report = check(problem, schedule)
    if not report.valid:
        raise InvalidScheduleError(
            f"policy 'exact' at {problem.now!r} s: its plan fails the checker "
            f"({len(report.violations)} violations): {report.violations[0].message}"
        )
    return _Plan(
        boundaries=problem.grid.boundaries,
        jobs=frozenset(job.id for job in problem.jobs),
        allocations=schedule.allocations,
        met=frozenset(outcome.job for outcome in schedule.outcomes if outcome.met),
        followed=followed,
    )


def rolling_grid(now: float, end: float, slot_s: float, max_slots: int) -> Grid:
    """Return a grid from `now` to at least `end` whose slots double in length from time to time.

    Boundaries are multiples of ``slot_s * 2^k`` on the clock, not of `now`: as time goes on, grids
    refine those before them, so that a plan made on one can be carried over to the next.

    Parameters
    ----------
    now
        Seconds.
    end
        The time to reach; where it lies before the end of the first slot, that end. No grid goes
        beyond 1e15 s, the latest time of an instance, unless `end` does.
    slot_s
        Length of the first slots, seconds, above 0; the very first ends at a multiple of it.
    max_slots
        Most slots, at least 1. The last one is longer where they do not suffice.

    Raises
    ------
    UsageError
        If a number is not finite or out of its range.

    Examples
    --------
    >>> rolling_grid(30.0, 1500.0, slot_s=60.0, max_slots=8).boundaries
    (30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
    """
    for value in (now, end):
        if not (is_finite(value)):
            raise UsageError(
                f"rolling grid: now and end must be finite, got {shown(now)} and {shown(end)}"
            )
    if not (is_finite(slot_s) and slot_s > 0.0):
        raise UsageError(f"option slot_s: must be a number of seconds above 0, got {shown(slot_s)}")
    if not (is_whole(max_slots) and 1 <= max_slots <= MAX_SLOTS):
        raise UsageError(
            f"option max_slots: must be a whole number from 1 to {MAX_SLOTS}, got "
            f"{shown(max_slots)}"
        )
    # Boundaries have to differ on the clock, which may be at 1e15 s.
    slot_s = max(slot_s, 4.0 * math.ulp(now))
    first = now + slot_s
    if now < MAX_MAGNITUDE:
        first = min(first, MAX_MAGNITUDE)
    end = max(end, first)
    # The more slots of a length, the finer the grid; the search is for the most that reach the end.
    low, high = 1, max_slots
    while low < high:
        middle = (low + high + 1) // 2
        if _doubling(now, end, slot_s, max_slots, middle)[-1] >= end:
            low = middle
        else:
            high = middle - 1
    boundaries = _doubling(now, end, slot_s, max_slots, low)
    boundaries[-1] = max(boundaries[-1], end)
    if end <= MAX_MAGNITUDE:
        # An instance knows no later time.
        boundaries[-1] = min(boundaries[-1], MAX_MAGNITUDE)
    return Grid(tuple(boundaries))


def _doubling(
    now: float, end: float, slot_s: float, max_slots: int, per_length: int
) -> list[float]:
    """Return at most `max_slots` + 1 boundaries up to `end`, `per_length` slots of each length."""
    boundaries, length, count = [now], slot_s, 0
    while boundaries[-1] < end and len(boundaries) <= max_slots:
        number = math.floor(boundaries[-1] / length) + 1
        if count >= per_length and number % 2:
            length, count, number = 2.0 * length, 0, number // 2 + 1
        boundary = number * length
        # A first slot of next to nothing would be a decision for nothing.
        if boundary - boundaries[-1] < 1e-3 * length:
            boundary = (number + 1) * length
        boundaries.append(boundary)
        count += 1
    return boundaries


def _epoch_job(seen: JobState) -> Job:
    """Return a job as it is now: the work left, its mode, and where it ran."""
    mode = seen.mode
    return dataclasses.replace(
        seen.job,
        work=seen.required_left / (1.0 - WORK_TOLERANCE),
        running=None
        if mode is None
        else Running(site=mode.site, gpus=mode.gpus, loss_left_s=seen.loss_left_s),
        last_site=seen.last_site,
    )


def _schedule(problem: EpochProblem, arrays: ProblemArrays, plan: IntArray) -> Schedule:
    """Return `plan` as a schedule document."""
    allocations = allocations_of(problem, arrays, plan)
    value, outcomes = evaluate(problem, allocations)
    return Schedule(
        solver="exact",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=allocations,
        outcomes=outcomes,
    )


def _first_slot(problem: EpochProblem, arrays: ProblemArrays, plan: IntArray) -> Decision:
    """Return what `plan` says now, with a wake-up at the first boundary where it says otherwise."""
    allocation = {
        job.id: job.modes[plan[index, 0] - arrays.mode_start[index]]
        for index, job in enumerate(problem.jobs)
        if plan[index, 0] >= 0
    }
    changes = np.flatnonzero((plan != plan[:, :1]).any(axis=0))
    wake_up = problem.grid.boundaries[changes[0]] if len(changes) else None
    return Decision(allocation=allocation, wake_up=wake_up)
