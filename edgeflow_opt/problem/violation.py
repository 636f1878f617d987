"""What the checker finds: the rules that a schedule breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that a schedule breaks.

    Parameters
    ----------
    kind
        Name of the rule, one of ``unknown_job, unknown_site, unknown_mode, bad_interval,
        outside_horizon, off_grid, overlap, before_arrival, capacity, memory, not_malleable,
        must_meet, outcomes, met, completion, objective, bound, status, bad_stall``, or the type of a
        constraint.
    job, site
        Whom it concerns; None where it concerns none in particular.
    time
        When it begins, seconds; None where it has no time.
    amount
        By how much: units of capacity, seconds, GiB, or the difference of two numbers.
    message
        In words.
    """

    kind: str
    message: str
    job: str | None = None
    site: str | None = None
    time: float | None = None
    amount: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the checker found.

    Parameters
    ----------
    valid
        Whether there is no violation.
    met_weight
        Sum of the weights of the jobs that meet their deadlines under the allocations, recomputed.
    met
        Number of those jobs.
    violations
        All violations.
    """

    valid: bool
    met_weight: float
    met: int
    violations: tuple[Violation, ...]

    def kinds(self) -> set[str]:
        """Return the kinds of the violations found."""
        return {violation.kind for violation in self.violations}

    def document(self) -> dict[str, Any]:
        """Return the report in format ``edgeflow-check/1``."""
        return {
            "format": "edgeflow-check/1",
            "valid": self.valid,
            "met_weight": self.met_weight,
            "met": self.met,
            "violations": [
                {
                    "kind": v.kind, "job": v.job, "site": v.site, "time": v.time,
                    "amount": v.amount, "message": v.message,
                }
                for v in self.violations
            ],
        }  # fmt: skip
