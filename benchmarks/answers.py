"""What every contender says about an instance, so that all are measured alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a contender says about an instance.

    Parameters
    ----------
    status
        As in :class:`benchmarks.records.Record`.
    value, bound
        Met weight of the schedule, which has passed the checker, and the proven bound.
    seconds
        Seconds that count; None = all that the call took.
    figures, versions, note
        As in the record.
    """

    status: str
    value: float | None = None
    bound: float | None = None
    seconds: float | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


#: Solves an instance within a limit, seconds.
Contender = Callable[["EpochProblem", float], Answer]
