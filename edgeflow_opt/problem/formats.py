"""The two file formats: ``edgeflow-epoch/1`` (instance) and ``edgeflow-schedule/1`` (schedule).

The wire structures below are the formats: JSON Schema is made from them, unknown keys are refused,
and what they say is turned into the data classes of :mod:`edgeflow_opt.problem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from edgeflow_opt.errors import Fault, InstanceError, ScheduleError
from edgeflow_opt.problem.constraints.registry import constraint_from_dict, constraint_to_dict
from edgeflow_opt.problem.data import Grid, Job, Mode, Running, Site
from edgeflow_opt.problem.epoch import EpochProblem
from edgeflow_opt.problem.files import read_bytes, write_text
from edgeflow_opt.problem.objective import Objective, ObjectiveValue, Weights
from edgeflow_opt.problem.parsing import convert_document, parse_json, whole_numbers
from edgeflow_opt.problem.schedule import (
    Allocation,
    LevelReport,
    Limit,
    Outcome,
    Schedule,
    SolveStatus,
)
from edgeflow_opt.problem.types import expect, explained, type_faults
from edgeflow_opt.problem.validation import part_faults
from edgeflow_opt.problem.values import plain

EPOCH_FORMAT = "edgeflow-epoch/1"
SCHEDULE_FORMAT = "edgeflow-schedule/1"

_Positive = Annotated[float, Meta(gt=0, le=1e15)]
_NonNegative = Annotated[float, Meta(ge=0, le=1e15)]
_Time = Annotated[float, Meta(ge=-1e15, le=1e15, description="seconds on one clock")]
_Count = Annotated[int, Meta(ge=1, le=10**15)]
_Units = Annotated[int, Meta(ge=0, le=10**15)]
_Level = Annotated[float, Meta(ge=-1e300, le=1e300)]
_Name = Annotated[str, Meta(min_length=1)]


class _Wire(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Base of the wire structures: no unknown keys."""


class WireMode(_Wire):
    """A way to run a job."""

    site: _Name
    gpus: _Count
    rate: Annotated[_Positive, Meta(description="iterations per second")]


class WireRunning(_Wire):
    """The mode in which a job runs at now."""

    site: _Name
    gpus: _Count
    loss_left_s: _NonNegative = 0.0


class WireJob(_Wire):
    """A job."""

    id: _Name
    deadline: Annotated[_Time | None, Meta(description="null = best effort")]
    work: Annotated[_Positive, Meta(description="iterations left")]
    modes: Annotated[tuple[WireMode, ...], Meta(min_length=1)]
    arrival: Annotated[
        _Time | UnsetType,
        Meta(description="no run before it; default min(now, deadline)"),
    ] = UNSET
    weight: Annotated[_NonNegative, Meta(description="worth of meeting the deadline")] = 1.0
    memory_gib: Annotated[_NonNegative, Meta(description="needed on one unit")] = 0.0
    running: Annotated[
        WireRunning | None, Meta(description="its mode at now, one of modes; null = idle")
    ] = None
    last_site: Annotated[
        _Name | None, Meta(description="site where it last ran; null = it never ran")
    ] = None
    restart_s: Annotated[
        _NonNegative,
        Meta(description="seconds without credit of a run begun on the site of the last one"),
    ] = 0.0
    migration_s: Annotated[
        _NonNegative, Meta(description="seconds without credit of a run begun on another site")
    ] = 0.0
    must_meet: Annotated[bool, Meta(description="the deadline is a hard constraint")] = False
    malleable: Annotated[bool, Meta(description="false = moldable: one mode, one run")] = True
    requested_gpus: Annotated[
        _Count | None, Meta(description="GPUs that its user asked for; null = nobody said")
    ] = None


class WireSite(_Wire):
    """A pool of units."""

    name: _Name
    kind: Literal["cloud", "edge"]
    capacity: Annotated[
        tuple[tuple[_Time, _Units], ...],
        Meta(min_length=1, description="steps [from time, units], each lasting until the next"),
    ]
    gpu_type: str = ""
    gpus_per_node: _Count | None = None
    memory_gib: Annotated[_NonNegative | None, Meta(description="of one unit")] = None
    price: Annotated[_NonNegative, Meta(description="of one GPU for one second")] = 1.0


class WireWeights(_Wire):
    """Weights of the levels in a weighted sum."""

    met: _NonNegative = 1.0
    progress: _NonNegative = 0.0
    leftover: _NonNegative = 0.0
    cost: _NonNegative = 0.0
    reconfigurations: _NonNegative = 0.0


class WireObjective(_Wire):
    """What is wanted."""

    mode: Literal["lexicographic", "weighted"] = "lexicographic"
    weights: WireWeights | None = None


#: A constraint of the package or of a plug-in: its type, and the parameters of that type.
WireConstraint = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "required": ["type"],
            "properties": {"type": {"type": "string", "description": "which constraint it is"}},
        }
    ),
]


class WireEpoch(_Wire):
    """An instance."""

    format: Literal["edgeflow-epoch/1"]
    now: _Time
    grid: Annotated[
        tuple[_Time, ...], Meta(min_length=2, description="slot boundaries, rising, from now")
    ]
    sites: Annotated[tuple[WireSite, ...], Meta(min_length=1)]
    jobs: tuple[WireJob, ...]
    objective: WireObjective = msgspec.field(default_factory=WireObjective)
    constraints: Annotated[
        tuple[WireConstraint, ...], Meta(description="what else a schedule must obey")
    ] = ()


class WireObjectiveValue(_Wire, omit_defaults=False):
    """The levels reached."""

    met_weight: _Level
    progress: _Level
    cost: _Level
    reconfigurations: _Units
    leftover: _Level | None = None
    weighted: _Level | None = None


class WireAllocation(_Wire):
    """A job holds a mode during [start, end)."""

    job: _Name
    start: _Time
    end: _Time
    site: _Name
    gpus: _Count


class WireOutcome(_Wire, omit_defaults=False):
    """What becomes of a job."""

    job: _Name
    met: bool | None
    completion: _Time | None


class WireLevel(_Wire, omit_defaults=False):
    """How far a level of the objective was taken."""

    level: Literal["met", "progress", "leftover", "cost", "reconfigurations", "weighted"]
    value: _Level
    bound: _Level | None
    optimal: bool


class WireSchedule(_Wire, omit_defaults=False):
    """A schedule."""

    format: Literal["edgeflow-schedule/1"]
    solver: str
    status: Literal["optimal", "feasible", "infeasible", "no_solution", "error"]
    limit: Literal["time", "iterations", "memory", "interrupted"] | None
    objective: WireObjectiveValue | None
    bound: _Level | None
    seconds: _NonNegative
    allocations: tuple[WireAllocation, ...]
    outcomes: tuple[WireOutcome, ...]
    levels: tuple[WireLevel, ...] = ()


def problem_from_dict(document: Any, source: str = "") -> EpochProblem:
    """Return the instance that a parsed JSON document describes.

    Raises
    ------
    InstanceError
        With every fault of the document.
    """
    try:
        wire = convert_document(document, WireEpoch, EPOCH_FORMAT, source, InstanceError)
    except InstanceError as error:
        raise InstanceError((*error.faults, *_faults_of_rest(document)), source) from None
    faults: tuple[Fault, ...] = ()
    if wire.grid[0] != wire.now:
        fault = Fault(
            "instance", "now", f"must equal the first boundary of the grid, {wire.grid[0]!r}",
            repr(wire.now), "start the grid at now",
        )  # fmt: skip
        faults = (fault,)
    weights = wire.objective.weights
    read = [constraint_from_dict(part, index) for index, part in enumerate(wire.constraints)]
    faults += tuple(chain.from_iterable(part for part in read if isinstance(part, tuple)))
    try:
        problem = EpochProblem(
            grid=Grid(wire.grid),
            sites=tuple(site_of_wire(site) for site in wire.sites),
            jobs=tuple(job_of_wire(job) for job in wire.jobs),
            objective=Objective(
                mode=wire.objective.mode,
                weights=None if weights is None else Weights(**msgspec.structs.asdict(weights)),
            ),
            constraints=tuple(part for part in read if not isinstance(part, tuple)),
        )
    except InstanceError as error:
        raise InstanceError((*faults, *error.faults), source) from None
    if faults:
        raise InstanceError(faults, source)
    return problem


def _faults_of_rest(document: Any) -> Iterator[Fault]:
    """Yield the faults of meaning of those sites and jobs of a document that have the right types."""
    if not isinstance(document, dict) or document.get("format") != EPOCH_FORMAT:
        return
    sites, jobs = (_objects(document.get(key)) for key in ("sites", "jobs"))
    names = [site.get("name") for site in sites]
    grid = next(_converted([document.get("grid")], tuple[_Time, ...]), ())
    # Without the names of all sites nothing can be said of the modes of jobs.
    complete = (
        bool(names)
        and len(names) == len(document["sites"])
        and all(isinstance(name, str) and name for name in names)
    )
    yield from part_faults(
        grid[0] if grid else None,
        (site_of_wire(wire) for wire in _converted(sites, WireSite)),
        (job_of_wire(wire) for wire in _converted(jobs if complete else (), WireJob)),
        [name for name in names if isinstance(name, str)],
        [job["id"] for job in jobs if isinstance(job.get("id"), str)],
    )
    for index, part in enumerate(_objects(document.get("constraints"))):
        found = constraint_from_dict(part, index)
        if isinstance(found, tuple):
            yield from found


def _objects(values: Any) -> list[dict[str, Any]]:
    """Return the JSON objects in a list; none where it is no list."""
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


def _converted(values: Iterable[Any], kind: Any) -> Iterator[Any]:
    """Yield those of `values` that have the right types, converted."""
    for value in values:
        with suppress(msgspec.ValidationError, OverflowError):
            yield msgspec.convert(whole_numbers(value), kind, strict=True)


def site_of_wire(wire: WireSite) -> Site:
    """Return the site that a wire structure describes."""
    return Site(
        name=wire.name,
        kind=wire.kind,
        capacity=wire.capacity,
        gpu_type=wire.gpu_type,
        gpus_per_node=wire.gpus_per_node,
        memory_gib=wire.memory_gib,
        price=wire.price,
    )


def job_of_wire(wire: WireJob) -> Job:
    """Return the job that a wire structure describes."""
    running = wire.running
    return Job(
        id=wire.id,
        deadline=wire.deadline,
        work=wire.work,
        modes=tuple(Mode(site=m.site, gpus=m.gpus, rate=m.rate) for m in wire.modes),
        arrival=None if wire.arrival is UNSET else wire.arrival,
        weight=wire.weight,
        memory_gib=wire.memory_gib,
        running=None
        if running is None
        else Running(site=running.site, gpus=running.gpus, loss_left_s=running.loss_left_s),
        last_site=wire.last_site,
        restart_s=wire.restart_s,
        migration_s=wire.migration_s,
        must_meet=wire.must_meet,
        malleable=wire.malleable,
        requested_gpus=wire.requested_gpus,
    )


def problem_to_dict(problem: EpochProblem) -> dict[str, Any]:
    """Return `problem` as a JSON-ready document; defaults are left out.

    Raises
    ------
    UsageError
        If `problem` is no instance.
    """
    expect("argument problem", problem, EpochProblem, "make one by EpochProblem(…)")
    weights = problem.objective.weights
    wire = WireEpoch(
        format="edgeflow-epoch/1",
        now=problem.now,
        grid=problem.grid.boundaries,
        sites=tuple(wire_site(site) for site in problem.sites),
        jobs=tuple(wire_job(job) for job in problem.jobs),
        objective=WireObjective(
            mode=problem.objective.mode,
            weights=None
            if weights is None
            else WireWeights(**{n: getattr(weights, n) for n in WireWeights.__struct_fields__}),
        ),
        constraints=tuple(constraint_to_dict(part) for part in problem.constraints),
    )
    document: dict[str, Any] = msgspec.to_builtins(wire)
    return document


def wire_site(site: Site) -> WireSite:
    """Return `site` as it is written."""
    return WireSite(**{name: getattr(site, name) for name in WireSite.__struct_fields__})


def wire_job(job: Job) -> WireJob:
    """Return `job` as it is written."""
    running = job.running
    return WireJob(
        id=job.id,
        deadline=job.deadline,
        work=job.work,
        modes=tuple(WireMode(site=m.site, gpus=m.gpus, rate=m.rate) for m in job.modes),
        arrival=UNSET if job.arrival is None else job.arrival,
        weight=job.weight,
        memory_gib=job.memory_gib,
        running=None
        if running is None
        else WireRunning(site=running.site, gpus=running.gpus, loss_left_s=running.loss_left_s),
        last_site=job.last_site,
        restart_s=job.restart_s,
        migration_s=job.migration_s,
        must_meet=job.must_meet,
        malleable=job.malleable,
        requested_gpus=job.requested_gpus,
    )


def schedule_from_dict(document: Any, source: str = "") -> Schedule:
    """Return the schedule that a parsed JSON document describes.

    Nothing is checked beyond the format; that is what
    :func:`~edgeflow_opt.problem.check` is for.

    Raises
    ------
    ScheduleError
        With every fault of the document.
    """
    wire = convert_document(document, WireSchedule, SCHEDULE_FORMAT, source, ScheduleError)
    value = wire.objective
    return Schedule(
        solver=wire.solver,
        status=SolveStatus(wire.status),
        limit=None if wire.limit is None else Limit(wire.limit),
        objective=None if value is None else ObjectiveValue(**msgspec.structs.asdict(value)),
        bound=wire.bound,
        seconds=wire.seconds,
        allocations=tuple(Allocation(**msgspec.structs.asdict(a)) for a in wire.allocations),
        outcomes=tuple(Outcome(**msgspec.structs.asdict(o)) for o in wire.outcomes),
        levels=tuple(LevelReport(**msgspec.structs.asdict(level)) for level in wire.levels),
    )


def schedule_to_dict(schedule: Schedule) -> dict[str, Any]:
    """Return `schedule` as a JSON-ready document; `levels` is present where they are told.

    Raises
    ------
    UsageError
        If `schedule` is no schedule.
    ScheduleError
        If its fields are of types of which no document can be made.
    """
    expect("argument schedule", schedule, Schedule, "of a result give result.schedule")
    with explained(ScheduleError, ("schedule", schedule, Schedule)):
        return _document_of(schedule)


def _document_of(schedule: Schedule) -> dict[str, Any]:
    value = schedule.objective
    levels = [
        {"level": r.level, "value": r.value, "bound": r.bound, "optimal": r.optimal}
        for r in schedule.levels
    ]
    return {
        "format": SCHEDULE_FORMAT,
        "solver": schedule.solver,
        "status": str(schedule.status),
        "limit": None if schedule.limit is None else str(schedule.limit),
        "objective": None
        if value is None
        else {
            "met_weight": value.met_weight,
            "progress": value.progress,
            "leftover": value.leftover,
            "cost": value.cost,
            "reconfigurations": value.reconfigurations,
            **({} if value.weighted is None else {"weighted": value.weighted}),
        },
        "bound": schedule.bound,
        "seconds": schedule.seconds,
        **({"levels": levels} if levels else {}),
        "allocations": [
            {"job": a.job, "start": a.start, "end": a.end, "site": a.site, "gpus": a.gpus}
            for a in schedule.allocations
        ],
        "outcomes": [
            {"job": o.job, "met": o.met, "completion": o.completion} for o in schedule.outcomes
        ],
    }


def dumps(document: dict[str, Any]) -> str:
    """Return a JSON-ready document as text: one object of a list a line, as people diff it."""
    return msgspec.json.format(_ENCODER.encode(document), indent=1).decode() + "\n"


def _encodable(value: Any) -> Any:
    """Return a number of numpy as one of Python."""
    found = plain(value)
    if found is value:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return found


_ENCODER = msgspec.json.Encoder(enc_hook=_encodable)


def read_problem(path: str | Path) -> EpochProblem:
    """Read an instance from a JSON file (gzip-compressed where the name ends in ``.gz``).

    Raises
    ------
    InstanceError
        If the file is unreadable or breaks the format; every fault is named.
    """
    data = read_bytes(path, InstanceError)
    return problem_from_dict(parse_json(data, str(path), InstanceError), str(path))


def write_problem(problem: EpochProblem, path: str | Path) -> None:
    """Write an instance to a JSON file: whole or not at all.

    Raises
    ------
    UsageError
        If `problem` is no instance.
    """
    write_text(path, dumps(problem_to_dict(problem)))


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule from a JSON file (gzip-compressed where the name ends in ``.gz``).

    Raises
    ------
    ScheduleError
        If the file is unreadable or breaks the format; every fault is named.
    """
    data = read_bytes(path, ScheduleError)
    return schedule_from_dict(parse_json(data, str(path), ScheduleError), str(path))


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule to a JSON file: whole or not at all.

    Raises
    ------
    UsageError
        If `schedule` is no schedule.
    ScheduleError
        If a field of it is of a type that the format has not; all are named, nothing is written.
    """
    expect("argument schedule", schedule, Schedule, "of a result give result.schedule")
    faults = tuple(type_faults(schedule, Schedule, "schedule"))
    if faults:
        raise ScheduleError(faults)
    write_text(path, dumps(schedule_to_dict(schedule)))


def json_schema(format_name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a format, made from the code.

    Parameters
    ----------
    format_name
        ``"edgeflow-epoch/1"`` or ``"edgeflow-schedule/1"``.
    """
    wire = {EPOCH_FORMAT: WireEpoch, SCHEDULE_FORMAT: WireSchedule}
    if format_name not in wire:
        from edgeflow_opt.errors import UsageError

        raise UsageError(f"format {format_name!r} is not known; known are {sorted(wire)}")
    schema = msgspec.json.schema(wire[format_name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format_name,
        **schema,
    }
