"""What is decided: the data classes of an epoch problem and of a schedule.

All classes are frozen, slotted, comparable and picklable, and hold plain Python values only. Times
are seconds on one clock, rates iterations per second, work iterations.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from edgeflow_opt.problem.constraints.base import Constraint

#: A job completes when its credit reaches ``work * (1 - WORK_TOLERANCE)``.
WORK_TOLERANCE = 1e-6

#: Largest magnitude of any number in an instance.
MAX_MAGNITUDE = 1e15

#: Most slots of a uniform grid: more is a mistake that would fill the memory.
MAX_SLOTS = 10_000_000

SiteKind = Literal["cloud", "edge"]

_PLAIN = frozenset({int, float, str, bool, type(None)})


def plain(value: Any) -> Any:
    """Return `value` in plain Python: lists and arrays as tuples, numbers of numpy as such of Python.

    What is none of these comes back as it is, for the validation to judge.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([item if type(item) in _PLAIN else plain(item) for item in value])
    # Numbers, texts and arrays of numpy, and what is like them.
    to_plain = getattr(value, "tolist", None)
    return plain(to_plain()) if callable(to_plain) and not isinstance(value, type) else value


def as_tuple(parts: Any) -> Any:
    """Return several objects, given in whatever way, as a tuple; what is none of that as it is."""
    if not isinstance(parts, Iterable) or isinstance(parts, (str, bytes, Mapping)):
        return parts
    # An array without dimensions says that it can be walked through, and cannot.
    return parts if getattr(parts, "shape", None) == () else tuple(parts)


def make_plain(part: Any, names: Iterable[str]) -> None:
    """Put the fields of a frozen object in plain Python."""
    for name in names:
        value = getattr(part, name)
        if type(value) not in _PLAIN:
            object.__setattr__(part, name, plain(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to run a job (the term of multi-mode RCPSP): a site, a number of GPUs, a rate.

    Parameters
    ----------
    site
        Name of the site.
    gpus
        GPUs used, at least 1. On a cloud site the mode takes that many units; on an edge site it
        takes one unit (one server), of whose GPUs it uses `gpus`.
    rate
        Iterations per second, positive.
    """

    site: str
    gpus: int
    rate: float

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The mode in which a job runs at `now`.

    Parameters
    ----------
    site, gpus
        One of the job's modes.
    loss_left_s
        Seconds from `now` during which the run, if continued, still earns no credit.
    """

    site: str
    gpus: int
    loss_left_s: float = 0.0

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A training job with work to do, usually by a deadline.

    Parameters
    ----------
    id
        Name, unique within the problem.
    deadline
        Absolute time in seconds; None = best effort, never counted as met or missed.
    work
        Iterations left to do, positive.
    modes
        The ways to run it, at least one, no (site, gpus) twice.
    arrival
        No run before this time. None = ``min(now, deadline)``, filled in by
        :class:`EpochProblem`.
    weight
        Worth of meeting the deadline, at least 0.
    memory_gib
        Device memory needed on one unit, GiB, at least 0.
    running
        Its mode at `now`; None = idle.
    last_site
        Name of the site where it last ran; None = it never ran. Filled in from `running`.
    restart_s
        Seconds without credit when a run begins on the site of the last one.
    migration_s
        Seconds without credit when a run begins on another site than the last one.
    must_meet
        The deadline is a hard constraint.
    malleable
        False = moldable: one mode, one run (the one that is running, if any).
    requested_gpus
        GPUs that its user asked for, at least 1; None = nobody said. No rule of the problem depends
        on it: it is there for policies that hold the requested count whatever else is free.
    """

    id: str
    deadline: float | None
    work: float
    modes: tuple[Mode, ...]
    arrival: float | None = None
    weight: float = 1.0
    memory_gib: float = 0.0
    running: Running | None = None
    last_site: str | None = None
    restart_s: float = 0.0
    migration_s: float = 0.0
    must_meet: bool = False
    malleable: bool = True
    requested_gpus: int | None = None

    def __post_init__(self) -> None:
        if type(self.modes) is not tuple:
            object.__setattr__(self, "modes", plain(self.modes))
        make_plain(self, _FIELDS_OF_JOBS)

    @property
    def required(self) -> float:
        """Credit at which the job completes: ``work * (1 - 1e-6)`` iterations."""
        return self.work * (1.0 - WORK_TOLERANCE)

    @property
    def best_effort(self) -> bool:
        """Whether the job has no deadline."""
        return self.deadline is None

    def mode(self, site: str, gpus: int) -> Mode | None:
        """Return the mode on `site` with `gpus` GPUs, or None where the job has none."""
        for mode in self.modes:
            if mode.gpus == gpus and mode.site == site:
                return mode
        return None


#: All but the modes, which put themselves in plain Python; there are many jobs.
_FIELDS_OF_JOBS = tuple(part.name for part in dataclasses.fields(Job) if part.name != "modes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A pool of units whose usable number is a step function of time.

    Parameters
    ----------
    name
        Unique within the problem.
    kind
        ``"cloud"``: units are GPUs, a mode takes `gpus` of them. ``"edge"``: units are servers, a
        mode takes one.
    capacity
        Steps ``(from time, units)``, times rising, the first at or before `now`, each lasting
        until the next, the last for ever.
    gpu_type
        For people; may be empty.
    gpus_per_node
        Matters for placement only; None = unknown.
    memory_gib
        Device memory of one unit; None = unlimited.
    price
        Cost of holding one GPU for one second, at least 0 (default 1: cost counts GPU-seconds).
    """

    name: str
    kind: SiteKind
    capacity: tuple[tuple[float, int], ...]
    gpu_type: str = ""
    gpus_per_node: int | None = None
    memory_gib: float | None = None
    price: float = 1.0

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)

    def units(self, mode: Mode) -> int:
        """Return the units that `mode` takes on this site."""
        return mode.gpus if self.kind == "cloud" else 1

    def hosts(self, job: Job) -> bool:
        """Whether one unit has the memory that `job` needs."""
        return self.memory_gib is None or job.memory_gib <= self.memory_gib

    def capacity_at(self, time: float) -> int:
        """Return the usable units at `time` (at or after the first step)."""
        steps = self.capacity
        return steps[max(0, bisect.bisect_right(steps, time, key=lambda step: step[0]) - 1)][1]

    def least_capacity(self, start: float, end: float) -> int:
        """Return the least number of usable units at any time in ``[start, end)``."""
        inside = [units for time, units in self.capacity if start < time < end]
        return min([self.capacity_at(start), *inside])


@dataclass(frozen=True, slots=True)
class Grid:
    """Slot boundaries; modes change only there.

    Parameters
    ----------
    boundaries
        Times ``t_0 = now < t_1 < ... < t_T`` in seconds, at least two, slots of any lengths.
    """

    boundaries: tuple[float, ...]

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)

    @classmethod
    def uniform(cls, now: float, slot_s: float, num_slots: int) -> Grid:
        """Return `num_slots` slots of `slot_s` seconds each from `now`.

        Raises
        ------
        UsageError
            If a number makes no sense.
        """
        from edgeflow_opt.errors import UsageError
        from edgeflow_opt.problem.validation import is_number, is_whole, shown

        for name, value in (("now", now), ("slot_s", slot_s)):
            if not (is_number(value) and abs(value) <= MAX_MAGNITUDE):
                raise UsageError(
                    f"Grid.uniform, {name}: must be a number of magnitude at most 1e15, got "
                    f"{shown(value)}"
                )
        if not (is_whole(num_slots) and 1 <= num_slots <= MAX_SLOTS):
            raise UsageError(
                f"Grid.uniform, num_slots: must be a whole number from 1 to {MAX_SLOTS}, got "
                f"{shown(num_slots)}"
            )
        return cls(tuple(now + slot_s * index for index in range(num_slots + 1)))

    @property
    def num_slots(self) -> int:
        """Number of slots T."""
        return len(self.boundaries) - 1

    @property
    def start(self) -> float:
        """The first boundary, `now`."""
        return self.boundaries[0]

    @property
    def end(self) -> float:
        """The last boundary, the horizon."""
        return self.boundaries[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the levels in a weighted sum: met and progress gain, the rest costs.

    value = met * met_weight + progress * progress + leftover * leftover
            - cost * cost - reconfigurations * reconfigurations

    None is negative, and met >= progress + leftover, since a job nearly done must not be worth more
    than one done in time.
    """

    met: float = 1.0
    progress: float = 0.0
    leftover: float = 0.0
    cost: float = 0.0
    reconfigurations: float = 0.0

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is wanted: levels in lexicographic order, or their weighted sum.

    Parameters
    ----------
    mode
        ``"lexicographic"``: met weight, then progress, then leftover, then least cost, then
        fewest reconfigurations. ``"weighted"``: the weighted sum.
    weights
        Given with ``"weighted"`` only.
    """

    mode: Literal["lexicographic", "weighted"] = "lexicographic"
    weights: Weights | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveValue:
    """The levels of the objective as reached by a schedule.

    Parameters
    ----------
    met_weight
        Level 1, sum of w_j over the jobs that complete by their deadline.
    progress
        Level 2, sum over unmet jobs with a deadline of w_j min(1, credit by the deadline / work).
    leftover
        Level 3, work done late or without a deadline (more is better): sum over unmet and best-effort jobs of w_j min(1, credit by the
        horizon / work). None = not stated (in documents of other programs).
    cost
        Level 4, sum over allocations of gpus * seconds held * price of the site.
    reconfigurations
        Level 5, runs that begin after the job has run before, other than the continuation of the
        running mode.
    weighted
        The weighted sum of the levels, where the objective is one; None where it is lexicographic.
    """

    met_weight: float
    progress: float = 0.0
    leftover: float | None = 0.0
    cost: float = 0.0
    reconfigurations: int = 0
    weighted: float | None = None

    @property
    def level_1(self) -> float:
        """What `bound` bounds: the weighted sum where there is one, else the met weight."""
        return self.met_weight if self.weighted is None else self.weighted

    def key(self) -> tuple[float, float, float, float, float]:
        """Return the lexicographic key; larger is better."""
        return (
            self.met_weight,
            self.progress,
            self.leftover or 0.0,
            -self.cost,
            -float(self.reconfigurations),
        )

    def better_than(self, other: ObjectiveValue) -> bool:
        """Whether this value is better than `other`, beyond rounding.

        Differences below 1e-9 of the met weight or the weighted sum, and below 1e-7 of a level
        below, do not count: relative to the larger of the two, so that the unit of weights does not
        matter.
        """
        if self.weighted is not None and other.weighted is not None:
            return self.weighted > other.weighted + 1e-9 * abs(other.weighted)
        for index, (mine, theirs) in enumerate(zip(self.key(), other.key(), strict=True)):
            tolerance = 1e-9 if index == 0 else 1e-7
            if abs(mine - theirs) > tolerance * max(abs(mine), abs(theirs)):
                return mine > theirs
        return False

    def weighted_sum(self, weights: Weights) -> float:
        """Return the weighted sum of the levels (see :class:`Weights`)."""
        return (
            weights.met * self.met_weight
            + weights.progress * self.progress
            + weights.leftover * (self.leftover or 0.0)
            - weights.cost * self.cost
            - weights.reconfigurations * self.reconfigurations
        )


@dataclass(frozen=True, kw_only=True)
class EpochProblem:
    """One scheduling epoch: jobs, sites, a grid, and what is wanted.

    The constructor checks every rule of the instance format and reports all faults together; an
    instance that exists is valid.

    Parameters
    ----------
    grid
        Slot boundaries; ``grid.start`` is `now`.
    sites, jobs
        In the order of the instance.
    objective
        Lexicographic by default.
    constraints
        What else a schedule must obey: quotas, budgets, jobs to be kept apart (see
        :mod:`edgeflow_opt.problem.constraints`); none by default.

    Raises
    ------
    InstanceError
        If any rule of the format is broken; all faults are named.
    """

    grid: Grid
    sites: tuple[Site, ...]
    jobs: tuple[Job, ...]
    objective: Objective = field(default_factory=Objective)
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        from edgeflow_opt.errors import InstanceError
        from edgeflow_opt.problem.validation import faults_of

        for name in ("sites", "jobs", "constraints"):
            object.__setattr__(self, name, as_tuple(getattr(self, name)))
        faults = faults_of(self.grid, self.sites, self.jobs, self.objective, self.constraints)
        if faults:
            raise InstanceError(tuple(faults))
        now = self.now
        object.__setattr__(self, "jobs", tuple(_complete(job, now) for job in self.jobs))

    @property
    def now(self) -> float:
        """Time of the epoch, the first boundary of the grid."""
        return self.grid.start

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Index of each site by its name."""
        return {site.name: index for index, site in enumerate(self.sites)}

    @cached_property
    def job_index(self) -> dict[str, int]:
        """Index of each job by its id."""
        return {job.id: index for index, job in enumerate(self.jobs)}

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the jobs that have a deadline: the trivial bound on level 1."""
        return float(sum(job.weight for job in self.jobs if job.deadline is not None))

    def replace(self, **changes: Any) -> EpochProblem:
        """Return a validated copy with `changes` to its fields."""
        return dataclasses.replace(self, **changes)

    def as_moldable(self) -> EpochProblem:
        """Return a copy in which every job keeps one mode in one run."""
        return self.replace(
            jobs=tuple(dataclasses.replace(job, malleable=False) for job in self.jobs)
        )

    def __getstate__(self) -> dict[str, Any]:
        # Cached indices are rebuilt on demand: they would only make the pickle larger.
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def __str__(self) -> str:
        best_effort = sum(job.best_effort for job in self.jobs)
        lines = [
            f"EpochProblem: {len(self.jobs)} jobs x {self.grid.num_slots} slots",
            f"├─ grid: {self.grid.start:g} to {self.grid.end:g} s",
            f"├─ jobs: {len(self.jobs) - best_effort} with deadline, {best_effort} best effort",
        ]
        lines += [
            f"{'└' if site is self.sites[-1] else '├'}─ {site.kind} site '{site.name}': "
            f"{site.capacity_at(self.now)} units now"
            for site in self.sites
        ]
        if self.constraints:
            lines.insert(3, f"├─ constraints: {', '.join(c.type for c in self.constraints)}")
        return "\n".join(lines)


def _complete(job: Job, now: float) -> Job:
    """Fill in what is left open: the arrival, and the last site of a running job."""
    arrival, last_site = job.arrival, job.last_site
    if arrival is None:
        arrival = now if job.deadline is None else min(now, job.deadline)
    if job.running is not None:
        last_site = job.running.site
    if arrival == job.arrival and last_site == job.last_site:
        return job
    return dataclasses.replace(job, arrival=arrival, last_site=last_site)


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


def relative_gap(value: float, bound: float) -> float | None:
    """Return ``(bound - value) / |value|``.

    0 where that is at most 1e-6 or rounding has put the bound below the value, None where the value
    is 0 and the bound is not: such a gap means nothing.
    """
    difference = bound - value
    if difference <= 1e-6 * abs(value):
        return 0.0
    return None if value == 0 else difference / abs(value)


def in_order(allocations: Iterable[Allocation], jobs: Sequence[Job]) -> tuple[Allocation, ...]:
    """Return `allocations` in the order of a schedule document: by start, then by job."""
    position = {job.id: index for index, job in enumerate(jobs)}
    return tuple(sorted(allocations, key=lambda a: (a.start, position[a.job])))
