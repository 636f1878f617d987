"""What a schedule claims of itself, against what its allocations have been found to be worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from edgeflow_opt.problem.schedule import SolveStatus
from edgeflow_opt.problem.violation import Violation

if TYPE_CHECKING:
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.objective import ObjectiveValue
    from edgeflow_opt.problem.schedule import Outcome, Schedule


#: Relative tolerance for reported numbers (levels, the bound).
REPORT_TOLERANCE = 1e-6


#: Completion times may be rounded to hundredths of a second. The tolerance does not grow with the
#: clock, which may count from 1970; only what a double can hold of such a time is granted.
COMPLETION_TOLERANCE_S = 0.005 + 1e-9


def shape_violations(problem: EpochProblem, schedule: Schedule) -> Iterator[Violation]:
    """Yield what does not fit together in the document as such."""
    has_plan = schedule.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
    if not has_plan:
        if schedule.allocations or schedule.outcomes or schedule.objective is not None:
            yield Violation(
                kind="status",
                message=f"status '{schedule.status}' goes with no allocations, no outcomes and a "
                "null objective",
            )
        return
    if schedule.objective is None:
        yield Violation(kind="status", message=f"status '{schedule.status}' needs an objective")
    ids = [outcome.job for outcome in schedule.outcomes]
    expected = [job.id for job in problem.jobs]
    if ids != expected:
        missing = sorted(set(expected) - set(ids))
        surplus = (Counter(ids) - Counter(expected)).total()
        yield Violation(
            kind="outcomes", job=missing[0] if missing else None,
            amount=float(len(missing) + surplus),
            message="outcomes must name every job once, in the order of the instance"
            + (f"; {len(missing)} are missing, '{missing[0]}' first" if missing else ""),
        )  # fmt: skip


def outcome_violations(
    recomputed: Sequence[Outcome], claimed: Sequence[Outcome]
) -> Iterator[Violation]:
    """Yield a violation wherever a claimed outcome differs from the recomputed one."""
    for true, said in zip(recomputed, claimed, strict=True):
        if true.met != said.met or (true.met is None) != (said.met is None):
            yield Violation(
                kind="met", job=true.job, time=true.completion,
                message=f"job '{true.job}' is said to be met = {said.met}, but it is {true.met}",
            )  # fmt: skip
        if (true.completion is None) is not (said.completion is None):
            yield Violation(
                kind="completion", job=true.job, time=true.completion,
                message=f"job '{true.job}' is said to complete at {said.completion}, but it does "
                f"at {true.completion}",
            )  # fmt: skip
        elif true.completion is not None and said.completion is not None:
            difference = abs(true.completion - said.completion)
            tolerance = COMPLETION_TOLERANCE_S + 4 * math.ulp(true.completion)
            # Written so that a claim of NaN is refused.
            if not difference <= tolerance:
                yield Violation(
                    kind="completion", job=true.job, time=true.completion, amount=difference,
                    message=f"job '{true.job}' is said to complete at {said.completion}, but it "
                    f"does at {true.completion}",
                )  # fmt: skip


def claim_tolerance(problem: EpochProblem, value: float) -> float:
    """Return by how much a level or a bound may differ from `value` and count as equal to it.

    The tolerance is 1e-6 max(|value|, u), where u is 1, or the unit of the weights where that is
    smaller: the largest weight of a job, times the weight of level 1 in a weighted sum.
    """
    unit = min(1.0, max((job.weight for job in problem.jobs if job.weight > 0.0), default=1.0))
    weights = problem.objective.weights
    if weights is not None and weights.met > 0.0:
        unit *= min(1.0, weights.met)
    return REPORT_TOLERANCE * max(unit, abs(value))


def claim_violations(
    problem: EpochProblem, schedule: Schedule, value: ObjectiveValue
) -> Iterator[Violation]:
    """Yield violations of the reported levels, the bound and the status."""
    said = schedule.objective
    assert said is not None
    for level in ("met_weight", "progress", "leftover", "cost", "reconfigurations", "weighted"):
        true_level, said_level = getattr(value, level), getattr(said, level)
        if said_level is None:
            continue
        if true_level is None:
            yield Violation(
                kind="objective",
                message=f"{level} is said to be {said_level:g}, but the objective of the instance "
                "is lexicographic and has none",
            )
            continue
        difference = abs(true_level - said_level)
        if not difference <= claim_tolerance(problem, true_level):
            yield Violation(
                kind="objective", amount=difference,
                message=f"{level} is said to be {said_level:g}, but it is {true_level:g}",
            )  # fmt: skip
    reached = value.level_1
    tolerance = claim_tolerance(problem, reached)
    if schedule.bound is not None and not math.isfinite(schedule.bound):
        yield Violation(
            kind="bound",
            message=f"bound must be a finite number, or null where there is none, not {schedule.bound}",
        )
    elif schedule.bound is not None and schedule.bound < reached - tolerance:
        yield Violation(
            kind="bound", amount=reached - schedule.bound,
            message=f"bound {schedule.bound:g} is below the value {reached:g} reached",
        )  # fmt: skip
    # A plain text is equal to it.
    if schedule.status == SolveStatus.OPTIMAL and (
        schedule.bound is None or schedule.bound > reached + tolerance
    ):
        yield Violation(
            kind="status",
            message=f"status 'optimal' needs a bound equal to the value {reached:g}, "
            f"not {schedule.bound}",
        )
