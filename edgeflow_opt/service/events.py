"""What happens in a cluster, as a session is told: events and their format ``edgeflow-events/1``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from edgeflow_opt.errors import EventError, Fault
from edgeflow_opt.problem import Job
from edgeflow_opt.problem.formats import WireJob, job_of_wire, wire_job
from edgeflow_opt.problem.parsing import convert_document, convert_part
from edgeflow_opt.problem.values import make_plain, shown

EVENTS_FORMAT = "edgeflow-events/1"

#: Largest magnitude of what a session takes for the time of its clock, seconds: from there on there
#: is room for plans, all of whose times have to be at most 1e15.
MAX_CLOCK = 1e14

_Time = Annotated[float, Meta(ge=-1e15, le=1e15, description="seconds on one clock")]
ClockTime = Annotated[
    float, Meta(ge=-MAX_CLOCK, le=MAX_CLOCK, description="seconds on the clock of the session")
]
_Positive = Annotated[float, Meta(gt=0, le=1e15)]
_Seconds = Annotated[float, Meta(ge=0, le=1e15)]
_Units = Annotated[int, Meta(ge=0, le=10**15)]
_Count = Annotated[int, Meta(ge=1, le=10**15)]
_Name = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened.

    Parameters
    ----------
    time
        When, seconds on the clock of the session, of magnitude at most 1e14. A time before what the session already knows
        counts as the latest time that it knows: the past is not written anew.
    """

    time: float

    def __post_init__(self) -> None:
        make_plain(self, (part.name for part in dataclasses.fields(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArrived(Event):
    """A job is there.

    Parameters
    ----------
    job
        The job as of `time`: its work is what is left, `running` and `last_site` say what it did
        before the session knew it.
    """

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCompleted(Event):
    """The job `job` (an id) has done its work and holds nothing any more."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCancelled(Event):
    """The job `job` (an id) is withdrawn and holds nothing any more."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgressed(Event):
    """How far a job is; between such events a session reckons by the rate of its mode.

    Parameters
    ----------
    job
        Its id.
    work_left
        Iterations left, above 0.
    """

    job: str
    work_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaced(Event):
    """What a job really holds, where that is not what the last decision said.

    Parameters
    ----------
    job
        Its id.
    site, gpus
        One of its modes; both None = it is idle.
    loss_left_s
        Seconds from `time` for which the run earns nothing; None = by the rule for its losses.
    """

    job: str
    site: str | None = None
    gpus: int | None = None
    loss_left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRevised(Event):
    """The owner of a job changes what is wanted of it.

    Parameters
    ----------
    job
        Its id.
    deadline
        The new deadline, seconds, not before an arrival that is still to come; None = best effort
        from now on.
    weight
        The new weight; None = as before.
    """

    job: str
    deadline: float | None
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCorrected(Event):
    """A measured rate of a job.

    Parameters
    ----------
    job
        Its id.
    site, gpus
        The mode that was measured.
    rate
        Iterations per second, above 0.
    scale_others
        Whether the rates of its other modes change in the same ratio.
    """

    job: str
    site: str
    gpus: int
    rate: float
    scale_others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChanged(Event):
    """The usable units of a site, from `time` on.

    Parameters
    ----------
    site
        Its name.
    capacity
        Steps ``(from time, units)``, the first at or before `time`: all that is known of it, in
        the place of what was known before.
    """

    site: str
    capacity: tuple[tuple[float, int], ...]


class _Wire(Struct, forbid_unknown_fields=True, kw_only=True, tag_field="type"):
    """Base of the wire structures of events: no unknown keys, the kind in ``type``."""

    event: ClassVar[type[Event]]
    time: ClockTime


class WireJobArrived(_Wire, tag="job_arrived"):
    """A job is there; its work is what is left."""

    event = JobArrived
    job: WireJob


class WireJobCompleted(_Wire, tag="job_completed"):
    """A job has done its work."""

    event = JobCompleted
    job: _Name


class WireJobCancelled(_Wire, tag="job_cancelled"):
    """A job is withdrawn."""

    event = JobCancelled
    job: _Name


class WireJobProgressed(_Wire, tag="job_progressed"):
    """How far a job is."""

    event = JobProgressed
    job: _Name
    work_left: Annotated[_Positive, Meta(description="iterations left")]


class WireJobPlaced(_Wire, tag="job_placed", omit_defaults=True):
    """What a job really holds."""

    event = JobPlaced
    job: _Name
    site: Annotated[_Name | None, Meta(description="null = idle")] = None
    gpus: _Count | None = None
    loss_left_s: _Seconds | None = None


class WireJobRevised(_Wire, tag="job_revised", omit_defaults=True):
    """What is wanted of a job."""

    event = JobRevised
    job: _Name
    deadline: Annotated[_Time | None, Meta(description="null = best effort")]
    weight: Annotated[_Seconds | None, Meta(description="null = as before")] = None


class WireRateCorrected(_Wire, tag="rate_corrected", omit_defaults=True):
    """A measured rate of a job in one of its modes."""

    event = RateCorrected
    job: _Name
    site: _Name
    gpus: _Count
    rate: Annotated[_Positive, Meta(description="iterations per second")]
    scale_others: Annotated[
        bool, Meta(description="the rates of its other modes change in the same ratio")
    ] = False


class WireCapacityChanged(_Wire, tag="capacity_changed"):
    """The usable units of a site from now on."""

    event = CapacityChanged
    site: _Name
    capacity: Annotated[
        tuple[tuple[_Time, _Units], ...],
        Meta(min_length=1, description="steps [from time, units], the first at or before time"),
    ]


_WireEvent = (
    WireJobArrived
    | WireJobCompleted
    | WireJobCancelled
    | WireJobProgressed
    | WireJobPlaced
    | WireJobRevised
    | WireRateCorrected
    | WireCapacityChanged
)

_KINDS: dict[str, type[_Wire]] = {
    str(kind.__struct_config__.tag): kind for kind in _Wire.__subclasses__()
}
_WIRE_OF: dict[type[Event], type[_Wire]] = {kind.event: kind for kind in _KINDS.values()}


class WireEvents(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Events, in the order in which they happened."""

    format: Literal["edgeflow-events/1"]
    events: tuple[_WireEvent, ...]
    batch: Annotated[
        _Name | None,
        Meta(
            description="name of this batch: a batch of a name that the session has taken already "
            "is not taken again, so that a request may be repeated"
        ),
    ] = None


class _Envelope(Struct, forbid_unknown_fields=True, kw_only=True):
    """The same before the single events are looked at."""

    format: Literal["edgeflow-events/1"]
    events: tuple[Any, ...]
    batch: _Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """Events that are taken all or none.

    Parameters
    ----------
    events
        In the order in which they happened.
    batch
        Name of the batch, by which a repetition is known; None = it has none.
    """

    events: tuple[Event, ...]
    batch: str | None = None


def events_to_dict(events: Iterable[Event], batch: str | None = None) -> dict[str, Any]:
    """Return events as a JSON-ready document of format ``edgeflow-events/1``."""
    wire = []
    for event in events:
        kind = _WIRE_OF[type(event)]
        values = {name: getattr(event, name) for name in kind.__struct_fields__}
        if isinstance(event, JobArrived):
            values["job"] = wire_job(event.job)
        wire.append(kind(**values))
    document: dict[str, Any] = {"format": EVENTS_FORMAT, "events": msgspec.to_builtins(wire)}
    if batch is not None:
        document["batch"] = batch
    return document


def events_from_dict(document: Any, source: str = "") -> EventBatch:
    """Return the events that a parsed JSON document describes.

    Raises
    ------
    EventError
        With every fault of the document.
    """
    wire = convert_document(document, _Envelope, EVENTS_FORMAT, source, EventError)
    faults: list[Fault] = []
    events: list[Event] = []
    for index, part in enumerate(wire.events):
        owner = f"event {index}"
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            faults.append(Fault(owner, "type", f"must be one of {', '.join(_KINDS)}", shown(kind)))
            continue
        rest = {key: value for key, value in part.items() if key != "type"}
        found = convert_part(rest, _KINDS[kind], owner)
        if isinstance(found, tuple):
            faults += found
            continue
        values: dict[str, Any] = {n: getattr(found, n) for n in found.__struct_fields__}
        if isinstance(found, WireJobArrived):
            values["job"] = job_of_wire(found.job)
        events.append(found.event(**values))
    if faults:
        raise EventError(tuple(faults), source)
    return EventBatch(events=tuple(events), batch=wire.batch)
