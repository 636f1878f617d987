"""Means with confidence, and paired tests corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError

#: Confidence of intervals where none is given.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean with a confidence interval.

    Parameters
    ----------
    mean
        Of the values.
    low, high
        Interval by Student's t; None from fewer than two values.
    count
        Number of values.
    confidence
        Of the interval, above 0 and below 1.
    """

    mean: float
    low: float | None
    high: float | None
    count: int
    confidence: float = CONFIDENCE

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval; None where there is none."""
        return None if self.high is None else self.high - self.mean


def mean_of(values: Sequence[float], confidence: float = CONFIDENCE) -> Mean:
    """Return the mean of `values`, with the interval ``mean +- t s / sqrt(n)``.

    The interval supposes independent values of about normal distribution; for the values of a
    deterministic solver under several seeds it means nothing.

    Raises
    ------
    UsageError
        If there is no value, or the confidence is not between 0 and 1.
    """
    if not values:
        raise UsageError("a mean needs at least one value; none is left")
    _check_confidence(confidence)
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Mean(mean=mean, low=None, high=None, count=count, confidence=confidence)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (count - 1))
    half = _student(confidence, count - 1) * deviation / math.sqrt(count)
    return Mean(mean=mean, low=mean - half, high=mean + half, count=count, confidence=confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """Two contenders on the same units (instances, or seeds).

    Parameters
    ----------
    first, second
        Names of the contenders.
    measure
        What is compared.
    difference
        Mean of first minus second over the pairs, with its interval (of one comparison alone: not
        corrected for the number of comparisons).
    wins, ties, losses
        Pairs in which the first has the larger, the same, or the smaller value.
    p_t
        Two-sided p-value of the paired t-test; None from fewer than two pairs, and where all
        differences are the same but not 0: without spread the test has nothing to go by.
    p_wilcoxon
        Two-sided p-value of Wilcoxon's signed-rank test (pairs without a difference by Pratt's
        rule); None from fewer than two pairs.
    p_adjusted
        `p_wilcoxon` corrected by Holm's step-down rule for all comparisons made together.
    """

    first: str
    second: str
    measure: str
    difference: Mean
    wins: int
    ties: int
    losses: int
    p_t: float | None
    p_wilcoxon: float | None
    p_adjusted: float | None

    @property
    def count(self) -> int:
        """Number of pairs."""
        return self.difference.count


def means_by_unit(
    measured: Iterable[tuple[str, str, float | None]],
) -> dict[str, dict[str, float]]:
    """Return the mean of each unit by contender, from (contender, unit, value or None).

    A unit of which a value is missing is left out of its contender, so that it is in none of its
    pairs.
    """
    found: dict[str, dict[str, list[float | None]]] = {}
    for contender, unit, value in measured:
        found.setdefault(contender, {}).setdefault(unit, []).append(value)
    means: dict[str, dict[str, float]] = {}
    for contender, units in found.items():
        means[contender] = {}
        for unit, values in units.items():
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                means[contender][unit] = math.fsum(known) / len(known)
    return means


def paired_tests(
    values: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    reference: str | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[PairedTest, ...]:
    """Compare contenders pair by pair on the units that both have.

    Parameters
    ----------
    values
        By contender and unit. Units must be independent of each other.
    measure
        Name of what is compared.
    reference
        The contender that the others are compared with; None = all pairs.
    confidence
        Of the intervals.

    Returns
    -------
    tests
        In the order of the contenders; pairs of contenders without a common unit are left out.

    Raises
    ------
    UsageError
        If the reference is not among the contenders, or the confidence makes no sense.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal
    of Statistics 6, 65-70. Demsar, J. (2006). Statistical comparisons of classifiers over multiple
    data sets. Journal of Machine Learning Research 7, 1-30.
    """
    _check_confidence(confidence)
    if reference is not None and reference not in values:
        raise UsageError(
            f"reference {reference!r} is not compared; compared are {', '.join(values) or 'none'}"
        )
    if reference is None:
        pairs = list(combinations(values, 2))
    else:
        pairs = [(name, reference) for name in values if name != reference]
    raw = []
    for first, second in pairs:
        units = [unit for unit in values[first] if unit in values[second]]
        if units:
            differences = [values[first][unit] - values[second][unit] for unit in units]
            raw.append((first, second, differences, *_p_values(differences)))
    adjusted = holm([p_wilcoxon for *_, p_wilcoxon in raw])
    return tuple(
        PairedTest(
            first=first,
            second=second,
            measure=measure,
            difference=mean_of(differences, confidence),
            wins=sum(d > 0 for d in differences),
            ties=sum(d == 0 for d in differences),
            losses=sum(d < 0 for d in differences),
            p_t=p_t,
            p_wilcoxon=p_wilcoxon,
            p_adjusted=p_adjusted,
        )
        for (first, second, differences, p_t, p_wilcoxon), p_adjusted in zip(
            raw, adjusted, strict=True
        )
    )


def holm(p_values: Iterable[float | None]) -> list[float | None]:
    """Return p-values corrected by Holm's rule; None stays None and does not count.

    The i-th smallest of m becomes ``max over k <= i of min(1, (m - k + 1) p_(k))``.
    """
    given = list(p_values)
    known = sorted((p, index) for index, p in enumerate(given) if p is not None)
    adjusted: list[float | None] = [None] * len(given)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[index] = largest
    return adjusted


def _p_values(differences: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the p-values of the paired t-test and of Wilcoxon's test."""
    if len(differences) < 2:
        return None, None
    if all(d == 0 for d in differences):
        return 1.0, 1.0
    stats = load("scipy.stats", "analysis", "a paired test")
    p_t: float | None
    if max(differences) - min(differences) <= 1e-12 * max(abs(d) for d in differences):
        p_t = None
    else:
        p_t = float(stats.ttest_1samp(differences, 0.0).pvalue)
    p_wilcoxon = float(stats.wilcoxon(differences, zero_method="pratt", method="auto").pvalue)
    return p_t, p_wilcoxon


def _student(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t."""
    stats = load("scipy.stats", "analysis", "a confidence interval")
    return float(stats.t.ppf(0.5 + confidence / 2.0, freedom))


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence: must be above 0 and below 1, got {confidence!r}")
