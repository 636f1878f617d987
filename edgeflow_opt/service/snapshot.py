"""Sessions as documents: the format ``edgeflow-session/1``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from edgeflow_opt.errors import EventError, Fault, InstanceError, UsageError
from edgeflow_opt.problem import EpochProblem, Grid, problem_from_dict, problem_to_dict
from edgeflow_opt.problem.formats import WireEpoch
from edgeflow_opt.problem.parsing import convert_document
from edgeflow_opt.service.events import MAX_CLOCK
from edgeflow_opt.service.memory import SessionMemory
from edgeflow_opt.service.options import SessionOptions
from edgeflow_opt.service.plans import KeptPlan
from edgeflow_opt.service.state import ClusterView, HeldJob, later_than
from edgeflow_opt.solvers.capacity_prices import CapacityPrices

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job

SESSION_FORMAT = "edgeflow-session/1"

_Time = Annotated[float, Meta(ge=-1e15, le=2e15, description="seconds on one clock")]
_Positive = Annotated[float, Meta(gt=0, le=1e15)]
_Level = Annotated[float, Meta(ge=-1e300, le=1e300)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]


class _Wire(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of the wire structures: no unknown keys."""


class WireHeld(_Wire):
    """What is known of a job beside what was said of it."""

    left: Annotated[_Positive, Meta(description="credit needed to complete, as of since")]
    since: _Time
    site: str | None
    gpus: int | None
    loss_until: _Time
    last_site: str | None


class WirePlan(_Wire):
    """The last plan, on the clock."""

    boundaries: Annotated[tuple[_Time, ...], Meta(min_length=2)]
    runs: dict[str, tuple[tuple[_Time, _Time, str, int], ...]]


class WireSessionOptions(_Wire):
    """How the session plans."""

    rungs: tuple[str, ...] = ("price", "auto")
    slot_s: _Positive = 60.0
    max_slots: Annotated[int, Meta(ge=1, le=10_000)] = 96
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    leftovers: bool = True
    follow: Literal["plan", "select"] = "select"
    margin: Annotated[float, Meta(ge=0, le=1e15)] = 0.5


class WireSession(_Wire):
    """A session."""

    format: Literal["edgeflow-session/1"]
    cluster: Annotated[
        WireEpoch, Meta(description="clock, sites, objective, and the jobs as they came")
    ]
    held: Annotated[tuple[WireHeld, ...], Meta(description="one for each job, in their order")]
    plan: WirePlan | None
    bound: _Level | None
    prices: Annotated[str | None, Meta(description="capacity prices, edgeflow-prices/1 as text")]
    settled: bool
    sequence: _Count
    decisions: _Count
    batches: tuple[str, ...]
    options: WireSessionOptions


@dataclass(frozen=True, slots=True)
class Found:
    """What a document holds."""

    memory: SessionMemory
    options: SessionOptions
    batches: tuple[str, ...]


def snapshot_of(
    memory: SessionMemory, options: SessionOptions, batches: tuple[str, ...]
) -> dict[str, Any]:
    """Return all that a session knows as a JSON-ready document."""
    view, plan = memory.view, memory.plan
    cluster = EpochProblem(
        grid=Grid((view.clock, later_than(view.clock))),
        sites=tuple(view.sites.values()),
        jobs=tuple(held.job for held in view.jobs.values()),
        objective=view.objective,
    )
    document = {
        "format": SESSION_FORMAT,
        "cluster": problem_to_dict(cluster),
        "held": [
            {
                "left": held.left,
                "since": held.since,
                "site": None if held.mode is None else held.mode.site,
                "gpus": None if held.mode is None else held.mode.gpus,
                "loss_until": held.loss_until,
                "last_site": held.last_site,
            }
            for held in view.jobs.values()
        ],
        "plan": None
        if plan is None
        else {
            "boundaries": list(plan.boundaries),
            "runs": {job: [list(run) for run in runs] for job, runs in plan.runs.items()},
        },
        "bound": memory.bound,
        "prices": None if memory.prices is None else memory.prices.to_json(),
        "settled": memory.settled,
        "sequence": memory.sequence,
        "decisions": memory.decisions,
        "batches": list(batches),
        "options": msgspec.to_builtins(
            WireSessionOptions(
                **{n: getattr(options, n) for n in WireSessionOptions.__struct_fields__}
            )
        ),
    }
    # Lists for tuples: equal to what comes back from a file.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def read_snapshot(document: Any, source: str = "") -> Found:
    """Return the session that a parsed JSON document describes.

    Raises
    ------
    EventError
        With every fault of the document.
    """
    wire = convert_document(document, WireSession, SESSION_FORMAT, source, EventError)
    try:
        # Not `wire.cluster`: its own parser tells faults by the names of jobs and sites.
        cluster = problem_from_dict(document["cluster"], source)
        prices = None if wire.prices is None else CapacityPrices.from_json(wire.prices)
        options = SessionOptions(**msgspec.structs.asdict(wire.options))
    except InstanceError as error:
        raise EventError(error.faults, source) from None
    except UsageError as error:
        raise EventError((Fault("session", "options or prices", str(error)),), source) from None
    faults: list[Fault] = []
    if cluster.constraints:
        fault = Fault(
            "session", "cluster.constraints", "sessions know none", remedy="leave them out"
        )
        raise EventError((fault,), source)
    if not abs(cluster.now) <= MAX_CLOCK:
        rule = "magnitude must be at most 1e14"
        raise EventError((Fault("session", "cluster.now", rule, f"{cluster.now:g}"),), source)
    if len(wire.held) != len(cluster.jobs):
        rule = f"must be as many as cluster.jobs, {len(cluster.jobs)}"
        fault = Fault("session", "held", rule, str(len(wire.held)), "give one for each job")
        raise EventError((fault,), source)
    jobs = {}
    for job, held in zip(cluster.jobs, wire.held, strict=True):
        found = _held_job(job, held)
        if isinstance(found, Fault):
            faults.append(found)
        else:
            jobs[job.id] = found
    names = {site.name for site in cluster.sites}
    for job, held in zip(cluster.jobs, wire.held, strict=True):
        if held.last_site is not None and held.last_site not in names:
            rule = "last_site must be a site"
            faults.append(Fault(f"job {job.id!r}", "held", rule, repr(held.last_site)))
    plan = wire.plan
    if plan is not None and any(a >= b for a, b in itertools.pairwise(plan.boundaries)):
        faults.append(Fault("session", "plan.boundaries", "must rise"))
    if faults:
        raise EventError(tuple(faults), source)
    view = ClusterView(
        clock=cluster.now,
        sites={site.name: site for site in cluster.sites},
        jobs=jobs,
        objective=cluster.objective,
    )
    memory = SessionMemory(
        view=view,
        plan=None if plan is None else KeptPlan(boundaries=plan.boundaries, runs=plan.runs),
        bound=wire.bound,
        prices=prices,
        settled=wire.settled,
        sequence=wire.sequence,
        decisions=wire.decisions,
    )
    return Found(memory=memory, options=options, batches=wire.batches)


def _held_job(job: Job, held: WireHeld) -> HeldJob | Fault:
    mode = None
    if held.site is not None or held.gpus is not None:
        mode = job.mode(held.site or "", held.gpus or 0)
        if mode is None:
            rule = "site and gpus must be one of the job's modes"
            return Fault(f"job {job.id!r}", "held", rule, f"({held.site}, {held.gpus})")
    return HeldJob(
        job=job,
        left=held.left,
        since=held.since,
        mode=mode,
        loss_until=held.loss_until,
        last_site=held.last_site,
    )
