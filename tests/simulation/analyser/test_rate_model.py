"""The fitted model of rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.simulation.analyser import RateModel, fit_rates, left_out_errors
from edgeflow_opt.workloads import DEFAULT_CATALOG
from tests.effort import examples


@given(
    st.floats(0.01, 10.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 0.5),
    st.sets(st.sampled_from([1, 2, 3, 4, 8, 16, 32, 64]), min_size=4),
)
@example(0.0625, 1e-05, 0.5, {3, 4, 8, 16})
@settings(max_examples=examples(60))
def test_a_true_model_is_found_again(shared, serial, exchange, counts) -> None:
    """Rates that follow the model exactly are predicted exactly, everywhere."""
    model = RateModel(shared_s=shared, serial_s=serial, exchange_s=exchange)
    found = fit_rates({gpus: model.rate(gpus) for gpus in counts})
    for gpus in (1, 2, 6, 16, 64):
        assert found.rate(gpus) == pytest.approx(model.rate(gpus), rel=1e-4)


@given(
    st.floats(0.1, 100.0),
    st.dictionaries(st.integers(2, 64), st.floats(0.1, 100.0), max_size=6),
)
@example(0.5, {2: 6.0, 5: 1.0})
@settings(max_examples=examples(60))
def test_no_small_change_of_the_coefficients_is_better(on_one, others) -> None:
    """The fit is a least-squares optimum over coefficients of at least 0 (which is convex).

    But for points to which a model that takes no time on one GPU is closest: it is never given.
    """
    measured = {1: on_one, **others}
    found = fit_rates(measured)

    def error(shared: float, serial: float, exchange: float) -> float:
        return sum(
            (rate * (shared / g + serial + exchange * np.log2(g)) - 1.0) ** 2
            for g, rate in measured.items()
        )

    best = (found.shared_s, found.serial_s, found.exchange_s)
    assert min(best) >= 0.0
    least = error(*best)
    counts, rates = np.array(list(measured)), np.array(list(measured.values()))
    terms = rates * np.log2(counts)
    no_time = terms.sum() / (terms**2).sum() if others else 0.0
    assume(error(0.0, 0.0, no_time) >= least)
    for index in range(3):
        for step in (1e-4, -1e-4):
            other = list(best)
            other[index] += step
            if other[index] >= 0.0:
                assert error(*other) >= least - 1e-9


def test_few_points_give_simple_models() -> None:
    """One point gives perfect scaling, two points Amdahl's law."""
    assert fit_rates({2: 3.0}).rate(8) == pytest.approx(12.0)
    two = fit_rates({1: 1.0, 4: 2.0})
    assert two.exchange_s == 0.0
    assert two.rate(4) == pytest.approx(2.0)
    assert two.rate(64) < 3.0


def test_published_rates_are_predicted_from_three_points() -> None:
    """Measured on 1, 8 and 32 GPUs, the rates left out are off by 4 % on average, at most 20 %."""
    errors = [
        abs(error)
        for profile in DEFAULT_CATALOG.profiles
        for error in left_out_errors(dict(profile.rates), (1, 8, 32)).values()
    ]
    assert len(errors) > 50
    assert np.mean(errors) < 0.04
    assert max(errors) < 0.20


@pytest.mark.parametrize("measured", [{}, {1: 0.0}, {0: 1.0}, {1: float("inf")}])
def test_senseless_measurements_are_refused(measured) -> None:
    """Without a point, or with one out of its range, there is no model."""
    with pytest.raises(UsageError, match="rate model"):
        fit_rates(measured)
