"""Rounding bounds down to what sums of weights can reach at all."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.solvers.bounds import FLOAT_SLACK, attainable_step, rounded_down
from tests.effort import examples

WEIGHTS = st.lists(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 0.1, 1e-3, 1e9, 1e13]), max_size=6
)


def _sums(weights: list[float]) -> list[float]:
    return sorted({sum(c) for k in range(len(weights) + 1)
                   for c in itertools.combinations(weights, k)})  # fmt: skip


@settings(max_examples=examples(100))
@given(WEIGHTS, st.floats(0.0, 1.2), st.sampled_from([0.0, FLOAT_SLACK]))
def test_no_attainable_value_within_the_bound_is_lost(
    weights: list[float], share: float, slack: float
) -> None:
    """What some set of jobs is worth, and is no more than the bound, is no more after rounding."""
    bound = share * sum(weights)
    rounded = rounded_down(bound, weights, slack)
    below = [value for value in _sums(weights) if value <= bound]
    assert rounded >= below[-1] - 1e-9 * max(1.0, below[-1])
    assert 0.0 <= rounded <= sum(weights)


@settings(max_examples=examples(100))
@given(WEIGHTS)
def test_every_attainable_value_stays_itself(weights: list[float]) -> None:
    """A bound that is attained is not rounded below its value, and with slack not above the next."""
    for value in _sums(weights):
        assert rounded_down(value, weights) == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "step"),
    [
        ([], None),
        ([0.0], None),
        ([1.0, 1.0], 1.0),
        ([2.0, 4.0, 0.0], 2.0),
        ([0.5, 0.75], 0.25),
        ([0.1], None),
        ([1.0, 1e-5], None),
        ([3.0, 2.0**60], None),
    ],
)
def test_the_step_is_the_largest_common_one(weights: list[float], step: float | None) -> None:
    """Steps are found where they are exact in floating point, and only there."""
    assert attainable_step(weights) == step


@pytest.mark.parametrize(
    ("bound", "weights", "slack", "rounded"),
    [
        (2.9, [1.0] * 5, 0.0, 2.0),
        (3.0 - 1e-12, [1.0] * 5, 0.0, 3.0),
        (3.0 - 1e-7, [1.0] * 5, FLOAT_SLACK, 3.0),
        (3.0 - 1e-5, [1.0] * 5, FLOAT_SLACK, 2.0),
        (2.9, [1.0, 2.0, 0.1], 0.0, 2.9),
        (7.9, [2.0] * 3, 0.0, 6.0),
        (-1.0, [1.0], 0.0, 0.0),
        (float("inf"), [1.0, 1.5], 0.0, 2.5),
    ],
)
def test_bounds_are_rounded_to_the_next_attainable_value(
    bound: float, weights: list[float], slack: float, rounded: float
) -> None:
    """Down to the next multiple of the step, never above the total weight or below 0."""
    assert rounded_down(bound, weights, slack) == pytest.approx(rounded)
