"""What the service takes and gives over HTTP: the bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from edgeflow_opt.problem.formats import (
    WireEpoch,
    WireJob,
    WireObjective,
    WireSchedule,
    WireSite,
)
from edgeflow_opt.service.events import ClockTime
from edgeflow_opt.service.snapshot import WireSession, WireSessionOptions

_Limit = Annotated[float, Meta(ge=0.05, le=1e6, description="wall seconds")]
_Seed = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class _Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of requests: no unknown keys."""


class SolveRequest(_Request):
    """Solve an instance."""

    problem: WireEpoch
    solver: Annotated[str, Meta(min_length=1)] = "auto"
    time_limit_s: _Limit = 5.0
    seed: _Seed = 0
    levels: Annotated[int, Meta(ge=1, le=5, description="levels of the objective")] = 5
    params: Annotated[dict[str, Any], Meta(description="parameters of the solver")] = {}


class CheckRequest(_Request):
    """Check a schedule against its instance."""

    problem: WireEpoch
    schedule: WireSchedule


class BoundRequest(_Request):
    """Bound level 1 of an instance."""

    problem: WireEpoch
    solver: Annotated[str, Meta(min_length=1)] = "price"
    time_limit_s: _Limit = 5.0
    seed: _Seed = 0


class ExplainRequest(_Request):
    """Tell why deadlines are missed, and what would save each job."""

    problem: WireEpoch
    schedule: WireSchedule | None = None
    jobs: Annotated[
        tuple[str, ...] | None, Meta(description="ids; null = all that miss their deadlines")
    ] = None
    time_limit_s: _Limit = 10.0


class SessionRequest(_Request):
    """Begin a session; with a snapshot from what that holds, else from sites and jobs."""

    sites: tuple[WireSite, ...] = ()
    jobs: tuple[WireJob, ...] = ()
    now: ClockTime = 0.0
    objective: WireObjective | None = None
    options: WireSessionOptions | None = None
    snapshot: WireSession | None = None


class DecideRequest(_Request):
    """Decide who gets what."""

    now: Annotated[ClockTime | None, Meta(description="null = the latest time known")] = None
    time_limit_s: _Limit = 1.0
    fresh: Annotated[bool, Meta(description="solve anew even where nothing has happened")] = False


class Answer(Struct, kw_only=True):
    """A schedule, and which rung it comes from."""

    format: Literal["edgeflow-answer/1"]
    id: str
    rung: Annotated[
        str, Meta(description="the solver asked for, or the one below that stands in for it")
    ]
    message: Annotated[str, Meta(description="why it is not the solver asked for; else empty")]
    schedule: WireSchedule


class WireViolation(Struct, kw_only=True):
    """One rule that a schedule breaks."""

    kind: str
    job: str | None
    site: str | None
    time: float | None
    amount: float | None
    message: str


class CheckAnswer(Struct, kw_only=True):
    """The report of the checker."""

    format: Literal["edgeflow-check/1"]
    valid: bool
    met_weight: float
    met: int
    violations: tuple[WireViolation, ...]


class BoundAnswer(Struct, kw_only=True):
    """A proven bound on level 1, and the best value found."""

    solver: str
    status: str
    bound: float | None
    value: float | None
    gap: float | None
    seconds: float


class SessionAnswer(Struct, kw_only=True):
    """A session."""

    id: str
    clock: float
    jobs: int
    sequence: Annotated[int, Meta(description="events taken so far")]
    decisions: int


class EventsAnswer(Struct, kw_only=True):
    """What became of a batch of events."""

    taken: Annotated[int, Meta(description="0 for a batch that was taken before")]
    sequence: int


class WireMode(Struct, kw_only=True):
    """A mode that a job holds."""

    site: str
    gpus: int
    rate: float


class WirePlace(Struct, kw_only=True):
    """Where a job is."""

    site: str
    gpus: int


class WireChange(Struct, kw_only=True):
    """What has to be done for a job."""

    job: str
    kind: Literal["start", "stop", "resize", "move"]
    before: WirePlace | None
    after: WirePlace | None


class WireReason(Struct, kw_only=True):
    """Why a job gets what it gets."""

    job: str
    code: Literal[
        "met", "reserved", "left_over", "waits", "passed", "hopeless", "overload", "not_arrived"
    ]
    message: str
    start: float | None
    completion: float | None
    met: bool | None


class WireRung(Struct, kw_only=True):
    """What became of a rung."""

    rung: str
    outcome: Literal["used", "ready", "late", "failed", "skipped"]
    seconds: float
    value: float | None
    bound: float | None
    message: str


class DecisionAnswer(Struct, kw_only=True):
    """A decision."""

    format: Literal["edgeflow-decision/1"]
    now: float
    until: float
    allocation: dict[str, WireMode]
    changes: tuple[WireChange, ...]
    reasons: tuple[WireReason, ...]
    value: float
    bound: float | None
    gap: float | None
    rung: str
    rungs: tuple[WireRung, ...]
    relaxed: tuple[str, ...]
    overtaken: bool
    seconds: float
    schedule: WireSchedule


class WireFault(Struct, kw_only=True):
    """One thing that is wrong with an input."""

    object: str
    field: str
    rule: str
    value: str
    remedy: str


class ProblemDetails(Struct, kw_only=True):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    faults: tuple[WireFault, ...] = ()
