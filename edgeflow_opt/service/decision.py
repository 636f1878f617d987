"""What a session decides: who gets what now, for how long, why, and how good that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from edgeflow_opt.problem import relative_gap, schedule_to_dict

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Mode, Schedule
    from edgeflow_opt.service.ladder import RungReport

DECISION_FORMAT = "edgeflow-decision/1"


class ReasonCode(StrEnum):
    """Why a job gets what it gets now."""

    MET = "met"
    """It runs now, and by the plan it meets its deadline."""
    RESERVED = "reserved"
    """It waits now; units are reserved later, and by the plan it meets its deadline."""
    LEFT_OVER = "left_over"
    """It runs on units that no job needs to meet its deadline; it does not meet one itself."""
    WAITS = "waits"
    """It has no deadline, and there are no units for it now."""
    PASSED = "passed"
    """Its deadline has passed, and nothing is left over."""
    HOPELESS = "hopeless"
    """It cannot meet its deadline even with all sites to itself, and nothing is left over."""
    OVERLOAD = "overload"
    """It could meet its deadline alone, but is not among the jobs chosen, and nothing is left over."""
    NOT_ARRIVED = "not_arrived"
    """It arrives later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReason:
    """Why a job gets what it gets.

    Parameters
    ----------
    job
        Its id.
    code
        See :class:`ReasonCode`; stable.
    message
        The same in words, with times.
    start
        When it next holds units by the plan, seconds; None = never within it.
    completion
        When it completes by the plan, seconds; None = not within it.
    met
        Whether that is by its deadline; None for best effort.
    """

    job: str
    code: ReasonCode
    message: str
    start: float | None
    completion: float | None
    met: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What has to be done for a job when a decision is carried out.

    Parameters
    ----------
    job
        Its id.
    kind
        ``start`` (from idle), ``stop`` (to idle), ``resize`` (another number of GPUs on the same
        site) or ``move`` (another site).
    before, after
        Modes; None = idle.
    """

    job: str
    kind: Literal["start", "stop", "resize", "move"]
    before: Mode | None
    after: Mode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDecision:
    """A decision; its plan has passed the independent checker.

    Parameters
    ----------
    now
        When it begins to hold, seconds.
    until
        When to ask again if nothing happens before, seconds: the plan changes something then, or
        ends.
    allocation
        Mode of every job that shall hold units from `now` on; jobs left out hold none.
    schedule
        The look-ahead plan, a schedule of `problem`, with the proven bound on level 1.
    problem
        The epoch problem that was solved: what the session knew at `now`.
    reasons
        One per job, in the order of `problem`.
    changes
        What is other than before, in the same order.
    rung
        The rung of the ladder that the plan comes from.
    rungs
        What became of each rung.
    relaxed
        Ids of the jobs that must meet their deadlines, where no rung found a plan in which all do;
        in `problem` they need not.
    overtaken
        Whether events came in while it was made, of which it knows nothing.
    seconds
        Wall time.
    """

    now: float
    until: float
    allocation: Mapping[str, Mode]
    schedule: Schedule
    problem: EpochProblem
    reasons: tuple[JobReason, ...]
    changes: tuple[Change, ...]
    rung: str
    rungs: tuple[RungReport, ...]
    relaxed: tuple[str, ...] = ()
    overtaken: bool = False
    seconds: float = 0.0

    @property
    def value(self) -> float:
        """Level 1 reached: the met weight, or the weighted sum."""
        assert self.schedule.objective is not None
        return self.schedule.objective.level_1

    @property
    def bound(self) -> float | None:
        """Proven bound on level 1 for `problem`; None where the objective has no trivial one."""
        return self.schedule.bound

    @property
    def gap(self) -> float | None:
        """Relative gap of level 1; None where it means nothing."""
        return None if self.bound is None else relative_gap(self.value, self.bound)

    def document(self) -> dict[str, Any]:
        """Return the decision as a JSON-ready document of format ``edgeflow-decision/1``."""
        return {
            "format": DECISION_FORMAT,
            "now": self.now,
            "until": self.until,
            "allocation": {
                job: {"site": mode.site, "gpus": mode.gpus, "rate": mode.rate}
                for job, mode in self.allocation.items()
            },
            "changes": [
                {
                    "job": change.job,
                    "kind": change.kind,
                    "before": _mode_document(change.before),
                    "after": _mode_document(change.after),
                }
                for change in self.changes
            ],
            "reasons": [
                {
                    "job": r.job, "code": str(r.code), "message": r.message, "start": r.start,
                    "completion": r.completion, "met": r.met,
                }
                for r in self.reasons
            ],
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "rung": self.rung,
            "rungs": [
                {
                    "rung": r.rung, "outcome": r.outcome, "seconds": r.seconds, "value": r.value,
                    "bound": r.bound, "message": r.message,
                }
                for r in self.rungs
            ],
            "relaxed": list(self.relaxed),
            "overtaken": self.overtaken,
            "seconds": self.seconds,
            "schedule": schedule_to_dict(self.schedule),
        }  # fmt: skip


def _mode_document(mode: Mode | None) -> dict[str, Any] | None:
    return None if mode is None else {"site": mode.site, "gpus": mode.gpus}


def changes_between(
    jobs: Mapping[str, Mode | None], allocation: Mapping[str, Mode]
) -> tuple[Change, ...]:
    """Return what `allocation` changes of what `jobs` hold."""
    changes = []
    for job, before in jobs.items():
        after = allocation.get(job)
        kind: Literal["start", "stop", "resize", "move"]
        if before is None and after is not None:
            kind = "start"
        elif before is not None and after is None:
            kind = "stop"
        elif (
            before is None
            or after is None
            or (before.site, before.gpus) == (after.site, after.gpus)
        ):
            continue
        else:
            kind = "resize" if before.site == after.site else "move"
        changes.append(Change(job=job, kind=kind, before=before, after=after))
    return tuple(changes)
