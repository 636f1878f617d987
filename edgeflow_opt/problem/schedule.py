"""What a solver answers: a schedule, its allocations and outcomes, and what is claimed of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from edgeflow_opt.problem.objective import ObjectiveValue, relative_gap

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Job


class SolveStatus(StrEnum):
    """What a solver has to say; which limit stopped it is told apart (:class:`Limit`)."""

    OPTIMAL = "optimal"
    """Level 1 is proven optimal, within 1e-6."""
    FEASIBLE = "feasible"
    """There is a schedule, without proof of optimality."""
    INFEASIBLE = "infeasible"
    """It is proven that no schedule exists (a job that must be met cannot be)."""
    NO_SOLUTION = "no_solution"
    """None was found, and nothing is proven."""
    ERROR = "error"
    """The solver failed."""


class Limit(StrEnum):
    """The limit that stopped a solver."""

    TIME = "time"
    ITERATIONS = "iterations"
    MEMORY = "memory"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A job holds a mode during ``[start, end)``.

    Parameters
    ----------
    job
        Id of the job.
    start, end
        Seconds, start < end; units are held to the end.
    site, gpus
        One of the job's modes.
    """

    job: str
    start: float
    end: float
    site: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a job under a schedule.

    Parameters
    ----------
    job
        Id of the job.
    met
        Whether it completes by its deadline; None for best effort.
    completion
        Time at which its credit reaches ``work * (1 - 1e-6)``; None if not by the horizon.
    """

    job: str
    met: bool | None
    completion: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """How far one level of the objective was taken.

    Parameters
    ----------
    level
        met, progress, leftover, cost, reconfigurations, or weighted.
    value
        Value reached by the schedule.
    bound
        Proven bound on it, given the levels before; None = none known.
    optimal
        Whether it is proven best, given the values of the levels before.
    """

    level: str
    value: float
    bound: float | None
    optimal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A plan for one epoch problem, with what its solver says of it.

    Parameters
    ----------
    solver
        Name of the solver.
    status, limit
        See :class:`SolveStatus` and :class:`Limit`; limit None = no limit was hit.
    objective
        The levels reached; None without a plan.
    bound
        Proven upper bound on level 1 (on the weighted sum where the objective is one); None from a
        heuristic.
    seconds
        Wall time of the solve, model building included.
    allocations
        Sorted by start, then in the order of the jobs.
    outcomes
        One per job, in the order of the instance; empty without a plan.
    levels
        How far each level of the objective was taken, in their order; empty where not told.
    """

    solver: str
    status: SolveStatus
    limit: Limit | None = None
    objective: ObjectiveValue | None = None
    bound: float | None = None
    seconds: float = 0.0
    allocations: tuple[Allocation, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    levels: tuple[LevelReport, ...] = ()

    @property
    def gap(self) -> float | None:
        """Relative gap of level 1, ``(bound - value) / |value|``.

        0 where bound and value are equal, None without a bound, without a plan, or where a value
        of 0 leaves it undefined.
        """
        if self.bound is None or self.objective is None:
            return None
        return relative_gap(self.objective.level_1, self.bound)

    @property
    def met(self) -> int:
        """Number of jobs that meet their deadline."""
        return sum(outcome.met is True for outcome in self.outcomes)


def in_order(allocations: Iterable[Allocation], jobs: Sequence[Job]) -> tuple[Allocation, ...]:
    """Return `allocations` in the order of a schedule document: by start, then by job."""
    position = {job.id: index for index, job in enumerate(jobs)}
    return tuple(sorted(allocations, key=lambda a: (a.start, position[a.job])))
