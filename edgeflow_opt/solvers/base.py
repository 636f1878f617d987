"""What every solver takes and gives: options, capabilities, result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import is_whole, shown
from edgeflow_opt.solvers.progress import Progress

if TYPE_CHECKING:
    from edgeflow_opt.problem import (
        EpochProblem,
        LevelReport,
        Limit,
        ObjectiveValue,
        Schedule,
        SolveStatus,
    )
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.price.dual import DualResult

#: Time limit of a solve where none is given, seconds.
DEFAULT_TIME_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """What can be asked of every solver.

    Parameters
    ----------
    time_limit_s
        Wall seconds for the whole solve, model building included; above 0. None = no limit.
    seed
        Seed of everything random, at least 0.
    workers
        Threads that a solver may use, at least 1; default 2, one for bounds and one for plans.
    deterministic
        Same input, options and seed give the same schedule, at the price of speed: one worker and
        a limit on deterministic work instead of (and beside) wall time. A result that says limit
        `time` was ended by the clock after all, and need not come out again. Schedules hold the
        seconds that they took: compare their allocations.
    levels
        How many levels of the objective are optimised: 1 = met weight only, 5 = all (met,
        progress, leftover, cost, reconfigurations).
    warm_start
        A schedule to begin from: of this instance, or of an earlier one, of which is kept what fits
        (:func:`~edgeflow_opt.formulations.carry_over.carried_over`). None = the greedy's own.
    prices
        Capacity prices to begin from, of an earlier solve (``result.prices``); their grid may be
        another. `price`, `cpsat` and `auto` are then much sooner near their best; the other solvers
        have no use for them. None = a cold start.
    params
        Further parameters of the solver named, by its own names; unknown ones are refused.
    on_progress
        Called with every improvement, in the thread that solves; must be quick. KeyboardInterrupt
        raised in it ends the solve as Ctrl-C does; any other exception ends it too, is then the
        cause of a :class:`~edgeflow_opt.errors.CallbackError`, and what was found until then is the
        ``result`` of that. It is not called again.
    cancelled
        An event that ends the solve soon when somebody sets it, from any thread: the incumbent comes
        back with limit ``interrupted``, as on Ctrl-C. None = nobody will. It is never set here.
    """

    time_limit_s: float | None = DEFAULT_TIME_LIMIT_S
    seed: int = 0
    workers: int = 2
    deterministic: bool = False
    levels: int = 5
    warm_start: Schedule | None = None
    prices: CapacityPrices | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    on_progress: Callable[[Progress], None] | None = field(default=None, compare=False)
    cancelled: threading.Event | None = field(default=None, compare=False)


def take_flag(options: SolveOptions, name: str, *, default: bool, solver: str) -> bool:
    """Return the parameter `name` of a solver, which is true or false.

    Raises
    ------
    UsageError
        If it is anything else.
    """
    value = options.params.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"parameter {name!r} of solver '{solver}': must be true or false, "
                         f"got {value!r}")  # fmt: skip
    return value


def check_counts(options: SolveOptions, *names: str, solver: str) -> None:
    """Refuse parameters of a solver that have to be whole numbers, at least 0, and are not.

    Raises
    ------
    UsageError
        If one of `names` is given and is anything else.
    """
    for name in names:
        value = options.params.get(name, 0)
        if not is_whole(value) or value < 0:
            raise UsageError(f"parameter {name!r} of solver '{solver}': must be a whole number >= 0, "
                             f"got {shown(value)}")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a solver can do; what it cannot, it refuses before it starts.

    Parameters
    ----------
    summary
        One line for people.
    exact
        Whether it can prove optimality; a heuristic reports no bound.
    features
        The features of instances that it honours, of :data:`FEATURES`.
    requires
        The modules that must be importable.
    params
        Names and meanings of its own parameters (``SolveOptions.params``).
    kernels
        Modules of :data:`edgeflow_opt.solvers.kernels.MODULES` whose compiled kernels it calls on
        most instances; they are loaded before it starts, and no limit pays for their compilation.
    """

    summary: str
    exact: bool
    features: frozenset[str]
    requires: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()


#: Features of an instance that a solver may lack.
FEATURES: Mapping[str, str] = {
    "losses": "restart and migration losses",
    "must_meet": "deadlines that must be met",
    "moldable": "jobs that are not malleable",
    "best_effort": "jobs without a deadline",
    "weighted": "the weighted-sum objective",
    "constraints": "constraints beyond those of every instance",
}


def features_of(problem: EpochProblem) -> dict[str, str]:
    """Return the features that `problem` needs, each with an object that needs it, in words."""
    found: dict[str, str] = {}
    for job in problem.jobs:
        running_loss = job.running is not None and job.running.loss_left_s > 0
        if job.restart_s > 0 or job.migration_s > 0 or running_loss:
            found.setdefault("losses", f"job '{job.id}'")
        if job.must_meet:
            found.setdefault("must_meet", f"job '{job.id}'")
        if not job.malleable:
            found.setdefault("moldable", f"job '{job.id}'")
        if job.deadline is None:
            found.setdefault("best_effort", f"job '{job.id}'")
    if problem.objective.mode == "weighted":
        found["weighted"] = "the objective"
    for constraint in problem.constraints:
        found.setdefault("constraints", f"constraint '{constraint.type}'")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveResult:
    """A checked schedule with everything that the solver knows about it.

    Parameters
    ----------
    schedule
        The schedule document: solver, status, limit, objective, bound, allocations, outcomes. It
        has passed the independent checker.
    statistics
        Numbers for people and benchmarks: ``build_s``, ``solve_s``, ``num_rows``,
        ``num_columns`` and more, by solver.
    trace
        Improvements in their order, the last one as good as the result.
    options
        The options in effect, but for `on_progress` and `cancelled`, which belong to the call.
    prices
        Capacity prices behind the bound, to begin the next solve from; None where the solver has
        none.
    versions
        Versions of the package and the libraries that took part.
    """

    schedule: Schedule
    statistics: Mapping[str, Any] = field(default_factory=dict)
    trace: tuple[Progress, ...] = ()
    options: SolveOptions = field(default_factory=SolveOptions)
    versions: Mapping[str, str] = field(default_factory=dict)
    prices: CapacityPrices | None = None

    @property
    def status(self) -> SolveStatus:
        """Status of the schedule."""
        return self.schedule.status

    @property
    def levels(self) -> tuple[LevelReport, ...]:
        """Reports of the levels that were optimised, in their order."""
        return self.schedule.levels

    @property
    def limit(self) -> Limit | None:
        """The limit that stopped the solver; None = none."""
        return self.schedule.limit

    @property
    def value(self) -> float | None:
        """Level 1 reached: the met weight, or the weighted sum; None without a plan."""
        objective = self.schedule.objective
        return None if objective is None else objective.level_1

    @property
    def objective(self) -> ObjectiveValue | None:
        """All levels reached; None without a plan."""
        return self.schedule.objective

    @property
    def bound(self) -> float | None:
        """Proven bound on level 1; None from a heuristic."""
        return self.schedule.bound

    @property
    def gap(self) -> float | None:
        """Relative gap of level 1; see :attr:`edgeflow_opt.problem.Schedule.gap`."""
        return self.schedule.gap


class Solver(Protocol):
    """What the registry holds: a name, capabilities, and a way to solve.

    A solver proper gets a problem that it supports and a running clock, and returns a draft; the
    front door :func:`edgeflow_opt.solvers.solve` refuses what is not supported, checks the draft,
    and measures.
    """

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the solver can do."""
        ...

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Solve `problem`, whose flat view is `arrays`, until done or `control` says stop."""
        ...


@dataclass(slots=True, kw_only=True)
class Draft:
    """What a solver hands to the front door: its schedule before the checks.

    Parameters
    ----------
    status, limit
        As in the schedule.
    plan
        The plan matrix (see :mod:`edgeflow_opt.formulations.plans`); None = no plan.
    bound
        Proven bound on level 1; None from a heuristic.
    levels
        As in the schedule.
    statistics
        As in :class:`SolveResult`.
    dual
        Prices, bound and job costs of the price engine that belong together; None = none.
    """

    status: SolveStatus
    limit: Limit | None = None
    plan: IntArray | None = None
    bound: float | None = None
    levels: tuple[LevelReport, ...] = ()
    statistics: dict[str, Any] = field(default_factory=dict)
    dual: DualResult | None = None
