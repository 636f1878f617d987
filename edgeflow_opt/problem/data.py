"""What an epoch consists of: modes, jobs, sites and the grid.

All classes are frozen, slotted, comparable and picklable, and hold plain Python values only. Times
are seconds on one clock, rates iterations per second, work iterations.
"""

from __future__ import annotations

import bisect
import dataclasses
from dataclasses import dataclass
from typing import Literal

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import (
    MAX_MAGNITUDE,
    is_number,
    is_whole,
    make_plain,
    plain,
    shown,
)

#: A job completes when its credit reaches ``work * (1 - WORK_TOLERANCE)``.
WORK_TOLERANCE = 1e-6

#: Most slots of a uniform grid: more is a mistake that would fill the memory.
MAX_SLOTS = 10_000_000

SiteKind = Literal["cloud", "edge"]


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
        :class:`~edgeflow_opt.problem.EpochProblem`.
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
