"""What is wanted of a schedule, and how much of it one reaches: the levels of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeflow_opt.problem.values import make_plain


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


def relative_gap(value: float, bound: float) -> float | None:
    """Return ``(bound - value) / |value|``.

    0 where that is at most 1e-6 or rounding has put the bound below the value, None where the value
    is 0 and the bound is not: such a gap means nothing.
    """
    difference = bound - value
    if difference <= 1e-6 * abs(value):
        return 0.0
    return None if value == 0 else difference / abs(value)
