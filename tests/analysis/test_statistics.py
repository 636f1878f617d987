"""Means with confidence and paired tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgeflow_opt.analysis.statistics import holm, mean_of, paired_tests
from edgeflow_opt.errors import UsageError


def test_interval_is_that_of_student() -> None:
    """The interval is the one that scipy gives for the same values."""
    values = [3.0, 5.0, 4.0, 8.0]
    mean = mean_of(values, 0.9)
    low, high = stats.t.interval(0.9, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean.low, mean.high) == (pytest.approx(low), pytest.approx(high))
    assert mean.half_width == pytest.approx(high - 5.0)


def test_interval_covers_as_often_as_it_says() -> None:
    """Of intervals of 80 % about 80 % hold the true mean."""
    draws = np.random.default_rng(1).normal(2.0, 1.0, (800, 5))
    means = [mean_of(list(sample), 0.8) for sample in draws]
    covered = sum(m.low is not None and m.low <= 2.0 <= (m.high or 0) for m in means)
    assert 0.76 < covered / 800 < 0.84


def test_one_value_has_no_interval() -> None:
    """A single value is its own mean, without an interval; none is refused."""
    assert mean_of([2.0]).half_width is None
    with pytest.raises(UsageError, match="at least one value"):
        mean_of([])
    with pytest.raises(UsageError, match="confidence"):
        mean_of([1.0, 2.0], 1.0)


def test_holm_by_hand() -> None:
    """The corrected values are those of the textbook; unknown ones stay so and do not count."""
    assert holm([0.01, None, 0.04, 0.03]) == [
        pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06),
    ]  # fmt: skip
    assert holm([0.6, 0.9]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_order(p_values: list[float]) -> None:
    """Corrected values are never smaller than the given ones, at most 1, and in the same order."""
    adjusted = holm(p_values)
    assert all(a is not None and p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda i: (p_values[i], i))
    ranked = [adjusted[i] for i in order]
    assert ranked == sorted(a for a in ranked if a is not None)


def test_pairs_agree_with_scipy() -> None:
    """The p-values are scipy's on the units that both contenders have."""
    a = {f"u{i}": float(v) for i, v in enumerate([1, 4, 2, 8, 5, 7])}
    b = {f"u{i}": float(v) for i, v in enumerate([0, 1, 3, 3, 1, 2])} | {"other": 9.0}
    (test,) = paired_tests({"a": a, "b": b}, "value")
    shared = list(a)
    x, y = [a[u] for u in shared], [b[u] for u in shared]
    assert test.p_t == pytest.approx(stats.ttest_rel(x, y).pvalue)
    assert test.p_wilcoxon == pytest.approx(stats.wilcoxon(x, y).pvalue)
    assert (test.wins, test.ties, test.losses, test.count) == (5, 0, 1, 6)
    assert test.p_adjusted == test.p_wilcoxon


def test_no_difference() -> None:
    """Equal contenders are told apart by no test."""
    same = {"u": 1.0, "v": 2.0}
    (test,) = paired_tests({"a": same, "b": dict(same)}, "value")
    assert (test.p_t, test.p_wilcoxon, test.ties) == (1.0, 1.0, 2)


def test_differences_without_spread() -> None:
    """Where every unit tells the same difference a t-test has no scale, and says nothing."""
    units = range(3)
    a, b = ({f"u{i}": first + i for i in units} for first in (1.0, 3.0))
    (test,) = paired_tests({"a": a, "b": b}, "value")
    assert test.p_t is None
    assert (test.difference.mean, test.losses, test.p_wilcoxon) == (-2.0, 3, 0.25)


def test_reference_and_pairs_without_units() -> None:
    """With a reference all are held against it; pairs without a common unit are left out."""
    values = {"a": {"u": 1.0}, "b": {"u": 2.0}, "c": {"w": 1.0}}
    tests = paired_tests(values, "value", reference="b")
    assert [(t.first, t.second) for t in tests] == [("a", "b")]
    assert tests[0].p_adjusted is None
    with pytest.raises(UsageError, match="reference 'x' is not compared"):
        paired_tests(values, "value", reference="x")
