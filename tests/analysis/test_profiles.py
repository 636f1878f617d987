"""Performance profiles and gaps over time."""

from __future__ import annotations

import pytest

from edgeflow_opt.analysis.profiles import gap_curves, performance_profiles
from edgeflow_opt.errors import UsageError
from tests.analysis.helpers import row, two_solvers


def test_profile_of_values_by_hand() -> None:
    """Shares are those of the definition: 1, 3/4, 1/4 of the best value on three instances."""
    exact, quick = two_solvers().performance_profiles("value")
    assert exact.ratios == (1.0,) * 6
    assert quick.ratios == (1.0, 1.0, 1.25, 1.25, 4.0, 4.0)
    assert [quick.share(tau) for tau in (1, 1.25, 3.99, 4)] == [
        pytest.approx(1 / 3), pytest.approx(2 / 3), pytest.approx(2 / 3), 1.0,
    ]  # fmt: skip


def test_only_proofs_succeed_in_time() -> None:
    """In the profile of times a heuristic never succeeds, and a proof of infeasibility does."""
    rows = [
        row("i", "a", status="optimal", value=3.0, seconds=2.0),
        row("i", "b", status="optimal", value=3.0, seconds=4.0),
        row("i", "h", value=3.0, seconds=0.1),
        row("j", "a", status="infeasible", seconds=1.0),
        row("j", "b", status="no_solution", seconds=9.0),
    ]
    a, b, h = performance_profiles(rows)
    assert (a.ratios, b.ratios, h.ratios) == ((1.0, 1.0), (2.0,), ())
    assert (a.share(1), b.share(1), b.share(2), h.share(1e9)) == (1.0, 0.0, 0.5, 0.0)


def test_time_to_a_proof_ends_with_the_proof() -> None:
    """A solver that goes on to the levels below is not slower for that."""
    polished = row(
        "i", "a", status="optimal", value=3.0, seconds=5.0,
        trace=((0.1, 2.0, 4.0), (0.5, 3.0, 4.0), (1.0, 3.0, 3.0)),
    )  # fmt: skip
    a, b = performance_profiles([polished, row("i", "b", status="optimal", value=3.0, seconds=4.0)])
    assert (polished.proof_s, a.ratios, b.ratios) == (1.0, (1.0,), (4.0,))


def test_values_of_zero() -> None:
    """Where nobody has more than 0 all who have a schedule are best."""
    rows = [row("i", "a", value=0.0), row("i", "b", value=0.0), row("i", "c", status="error")]
    assert [p.ratios for p in performance_profiles(rows, "value")] == [(1.0,), (1.0,), ()]


def test_primal_gap_by_hand() -> None:
    """The curve is the mean over the runs, 1 before the first schedule; so is its integral."""
    exact, quick = two_solvers().gap_curves("primal")
    assert exact.seconds == (0.5, 1.5, 2.0)
    # Lesser values are 8 of 10, 6 of 6 and 1 of 4.
    assert exact.mean == (pytest.approx((0.2 + 0.0 + 0.75) / 3), 0.0, 0.0)
    assert (exact.low[0], exact.high[0]) == (0.0, 0.75)
    assert exact.integral(2.0) == pytest.approx(0.5 + 0.95 / 3)
    assert exact.integral(0.2) == pytest.approx(0.2)
    assert quick.mean == (pytest.approx(0.95 / 3),)


def test_proven_gap_needs_a_bound() -> None:
    """A heuristic has no curve of proven gaps; that of an exact solver ends in 0."""
    (exact,) = two_solvers().gap_curves("proven")
    assert exact.solver == "exact"
    assert exact.mean[0] == pytest.approx((4 / 12 + 2 / 8 + 5 / 6) / 3)
    assert exact.mean[-1] == 0.0


def test_unknown_names() -> None:
    """Measures and kinds that are not known are refused with those that are."""
    with pytest.raises(UsageError, match="known are seconds, value"):
        performance_profiles([], "cost")
    with pytest.raises(UsageError, match="known are primal, proven"):
        gap_curves([], "dual")


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.2), (1.0, 1.35), (1.0, 30.0), (1e-3, 2e3)])
def test_ticks_are_few_round_numbers(low: float, high: float) -> None:
    """A logarithmic axis has three to nine labels within its range, of at most three digits."""
    from edgeflow_opt.analysis.plots.curves import _ticks

    ticks = _ticks(low, high)
    assert 3 <= len(ticks) <= 9
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
    assert all(float(f"{tick:.3g}") == pytest.approx(tick) for tick in ticks)
