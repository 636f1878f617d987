"""Values of the objective: their order, their weighted sum, and gaps to a bound."""

from __future__ import annotations

import dataclasses

import pytest

from edgeflow_opt.problem import (
    ObjectiveValue,
    Schedule,
    SolveStatus,
    Weights,
    relative_gap,
)
from tests.problem.examples import example_schedule


@pytest.mark.parametrize(
    ("value", "bound", "gap"),
    [
        (10.0, 10.0, 0.0),
        (10.0, 11.0, 0.1),
        (10.0, 10.0 - 1e-9, 0.0),
        (1e-9, 2e-9, 1.0),
        (0.0, 1.0, None),
        (0.0, 1e-9, None),
        (0.0, 0.0, 0.0),
        (-2.0, -1.0, 0.5),
    ],
)
def test_relative_gap(value: float, bound: float, gap: float | None) -> None:
    """The gap is relative to the value, 0 where equal, None where that means nothing."""
    assert relative_gap(value, bound) == (None if gap is None else pytest.approx(gap))


def test_gap_of_a_schedule_without_bound_or_plan() -> None:
    """Without a bound, or without a plan, there is no gap."""
    schedule = example_schedule()
    assert schedule.gap == 0.0
    assert schedule.met == 1
    assert dataclasses.replace(schedule, bound=None).gap is None
    assert Schedule(solver="x", status=SolveStatus.NO_SOLUTION, bound=1.0).gap is None


@pytest.mark.parametrize(
    "worse",
    [
        {"met_weight": 1.0},
        {"progress": 0.1},
        {"leftover": 0.1},
        {"cost": 11.0},
        {"reconfigurations": 2},
    ],
)
def test_better_than_is_lexicographic(worse: dict[str, float]) -> None:
    """Each level decides where those before it are equal, whatever those after it say."""
    good = ObjectiveValue(met_weight=2.0, progress=0.5, leftover=0.5, cost=10.0, reconfigurations=1)
    bad = dataclasses.replace(good, **worse)
    assert good.better_than(bad)
    assert not bad.better_than(good)
    assert not good.better_than(good)


def test_better_than_ignores_rounding() -> None:
    """A difference of 1e-12 at a high level does not decide over a lower one."""
    one = ObjectiveValue(met_weight=2.0, cost=10.0)
    other = ObjectiveValue(met_weight=2.0 + 1e-12, cost=11.0)
    assert one.better_than(other)


def test_better_than_by_weighted_sum() -> None:
    """Where both have a weighted sum, it alone decides."""
    one = ObjectiveValue(met_weight=2.0, cost=10.0, weighted=1.0)
    other = ObjectiveValue(met_weight=1.0, cost=1.0, weighted=1.5)
    assert other.better_than(one)
    weights = Weights(met=1.0, progress=2.0, leftover=3.0, cost=0.1, reconfigurations=0.5)
    value = ObjectiveValue(
        met_weight=2.0, progress=0.5, leftover=0.25, cost=10.0, reconfigurations=4
    )
    assert value.weighted_sum(weights) == pytest.approx(2 + 1 + 0.75 - 1 - 2)
