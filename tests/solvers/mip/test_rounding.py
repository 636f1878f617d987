"""From real rows to whole ones: optimistic loses nothing, pessimistic admits nothing wrong."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plans import plan_of
from edgeflow_opt.formulations.sparse import ModelBuilder, SparseModel
from edgeflow_opt.problem import EpochProblem, Schedule
from edgeflow_opt.problem.arrays import FloatArray, arrays_of
from edgeflow_opt.solvers.mip.rounding import (
    INT_INFINITY,
    MAX_ROW_SUM,
    IntegerModel,
    integer_model,
    power_of_two_scale,
)
from tests.effort import examples
from tests.strategies import problems_with_schedules

#: Credits of all sizes, relative to the work.
SHARES = st.one_of(st.floats(1e-9, 1.5), st.sampled_from([0.1, 0.2, 0.5, 0.7, 1.0, 1 / 3]))
WORKS = st.one_of(
    st.floats(1e-9, 1e15), st.sampled_from([1.0, 3.0, 1e12, 1e-9, 100.0 * (1 - 1e-6)])
)


def _work_model(work: float, credits: list[float], share_work: float | None) -> SparseModel:
    """Build sum credit x >= work z, and where asked share_work p <= sum credit x."""
    builder = ModelBuilder()
    x = builder.add_columns("x", len(credits))
    z = builder.add_columns("z", 1)
    row = builder.add_rows("work", 1, lower=0.0)
    builder.add_entries(row.repeat(len(credits)), x, np.minimum(credits, work))
    builder.add_entries(row, z, -work)
    if share_work is not None:
        p = builder.add_columns("p", 1, integer=False)
        row = builder.add_rows("share", 1, lower=0.0)
        builder.add_entries(row.repeat(len(credits)), x, np.minimum(credits, share_work))
        builder.add_entries(row, p, -share_work)
    return builder.build()


def _activities(model: SparseModel, values: list[int | Fraction], x: tuple[int, ...]) -> list[int]:
    result = []
    for row in range(model.num_rows):
        part = range(int(model.starts[row]), int(model.starts[row + 1]))
        result.append(sum(values[e] * x[model.indices[e]] for e in part))
    return result  # type: ignore[return-value]


def _admits(model: SparseModel, whole: IntegerModel, x: tuple[int, ...]) -> bool:
    """Whether the whole rows admit `x`, in exact arithmetic."""
    sums = _activities(model, whole.values.tolist(), x)
    return all(
        low <= total <= high
        for low, total, high in zip(
            whole.row_lower.tolist(), sums, whole.row_upper.tolist(), strict=True
        )
    )


def _is_real(model: SparseModel, x: tuple[int, ...]) -> bool:
    """Whether the real rows, all of the form a x >= 0, admit `x`, in exact arithmetic."""
    return all(t >= 0 for t in _activities(model, list(map(Fraction, model.values)), x))


@settings(max_examples=examples(100))
@given(WORKS, st.lists(SHARES, min_size=1, max_size=6))
def test_whole_rows_err_on_the_safe_side(work: float, shares: list[float]) -> None:
    """Optimistic rows admit every real point, pessimistic ones none that the real row refuses."""
    model = _work_model(work, [share * work for share in shares], None)
    optimistic = integer_model(model, "optimistic")
    pessimistic = integer_model(model, "pessimistic")
    for x in itertools.product((0, 1), repeat=model.num_columns):
        real = _is_real(model, x)
        if real:
            assert _admits(model, optimistic, x)
        if _admits(model, pessimistic, x):
            assert real


@settings(max_examples=examples(100))
@given(WORKS, st.lists(SHARES, min_size=1, max_size=6))
def test_rounding_moves_a_row_by_next_to_nothing(work: float, shares: list[float]) -> None:
    """Points clear of the row by 1e-7 of the work are judged alike in both directions."""
    model = _work_model(work, [share * work for share in shares], None)
    for rounding in ("optimistic", "pessimistic"):
        whole = integer_model(model, rounding)  # type: ignore[arg-type]
        for x in itertools.product((0, 1), repeat=len(shares)):
            done = float(np.minimum(np.array(shares) * work, work) @ np.array(x))
            if abs(done - work) > 1e-7 * work:
                assert _admits(model, whole, (*x, 1)) == (done > work)


@pytest.mark.parametrize("rounding", ["optimistic", "pessimistic"])
@settings(max_examples=examples(100))
@given(work=WORKS, shares=st.lists(SHARES, min_size=1, max_size=8), factor=st.floats(1.0, 1.1))
def test_sums_stay_small(rounding: str, work: float, shares: list[float], factor: float) -> None:
    """The coefficients of a row sum to 2^30 at most, but for what rounding up adds to each."""
    model = _work_model(work, [share * work for share in shares], work * factor)
    whole = integer_model(model, rounding)  # type: ignore[arg-type]
    sums = np.add.reduceat(np.abs(whole.values * whole.col_upper[model.indices]), model.starts[:-1])
    assert (sums <= MAX_ROW_SUM + np.diff(model.starts)).all()
    assert (whole.steps == 1)[model.integer].all()


@settings(max_examples=examples(100))
@given(WORKS, st.lists(SHARES, min_size=1, max_size=5))
def test_every_share_of_work_has_its_steps(work: float, shares: list[float]) -> None:
    """In both directions a plan may claim the share of work that it does, rounded to a step."""
    model = _work_model(work * (1 - 1e-6), [share * work for share in shares], work)
    for rounding in ("optimistic", "pessimistic"):
        whole = integer_model(model, rounding)  # type: ignore[arg-type]
        steps = int(whole.steps[-1])
        assert steps >= 2**17
        for x in itertools.product((0, 1), repeat=len(shares)):
            share = min(1.0, float(np.minimum(np.array(shares), 1.0) @ np.array(x)))
            assert _admits(model, whole, (*x, 0, int(share * steps * (1 - 1e-12))))
            # One step and the roundings of the row more than it does are refused.
            above = int(share * steps) + len(shares) + 2
            assert above > steps or not _admits(model, whole, (*x, 0, above))


def test_whole_rows_are_kept_as_they_are() -> None:
    """Rows of small whole numbers keep their coefficients and sides in both directions."""
    builder = ModelBuilder()
    x = builder.add_columns("x", 3)
    rows = builder.add_rows("capacity", 1, upper=5.0)
    builder.add_entries(rows.repeat(3), x, [2.0, 3.0, 4.0])
    balance = builder.add_rows("balance", 1, lower=1.0, upper=1.0)
    builder.add_entries(balance.repeat(3), x, [1.0, -1.0, 1.0])
    model = builder.build()
    for rounding in ("optimistic", "pessimistic"):
        whole = integer_model(model, rounding)  # type: ignore[arg-type]
        assert whole.values.tolist() == [2, 3, 4, 1, -1, 1]
        assert whole.row_upper.tolist() == [5, 1]
        assert whole.row_lower.tolist() == [-INT_INFINITY, 1]
        assert whole.hint is None


@settings(max_examples=examples(100))
@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5).map(float)), min_size=1, max_size=8)
)
def test_objectives_are_rounded_by_direction(costs: list[float]) -> None:
    """Optimistic objectives are no smaller than real ones, pessimistic no larger; both nearly so."""
    builder = ModelBuilder()
    builder.add_columns("x", len(costs))
    model = builder.build().with_objective(np.array(costs))
    up, down = integer_model(model, "optimistic"), integer_model(model, "pessimistic")
    real = [Fraction(c) for c in costs]
    for c, high, low in zip(real, up.objective.tolist(), down.objective.tolist(), strict=True):
        assert low / Fraction(down.objective_scale) <= c <= high / Fraction(up.objective_scale)
    size = max(1.0, float(np.abs(costs).sum()))
    assert np.abs(up.objective / up.objective_scale - costs).max() <= 1e-9 * size
    assert np.abs(down.objective / down.objective_scale - costs).max() <= 1e-9 * size


@settings(max_examples=examples(80))
@given(problems_with_schedules(max_jobs=3, max_slots=4), st.integers(1, 4))
def test_hints_stay_feasible(drawn: tuple[EpochProblem, Schedule], kept: int) -> None:
    """A plan given as hint, its own levels kept, obeys all whole rows of the optimistic model."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    built = build_malleable(arrays, LEVELS)
    plan = plan_of(problem, arrays, schedule)
    dropped = (plan >= 0) & ~arrays.mode_kept[np.maximum(plan, 0)]
    x = built.encode(np.where(dropped.any(axis=1)[:, None], -1, plan))
    floors: list[tuple[FloatArray, float]] = []
    for level in LEVELS[:kept]:
        vector = built.objectives[level]
        if vector.any():
            value = float(vector @ x)
            floors.append((vector, value - 5e-8 * max(1.0, abs(value))))
    model = built.model.with_objective(built.objectives[LEVELS[kept]], floors)
    whole = integer_model(model, "optimistic", x)
    assert whole.hint is not None
    assert (whole.hint >= whole.col_lower).all()
    assert (whole.hint <= whole.col_upper).all()
    assert _admits(model, whole, tuple(whole.hint.tolist()))


def test_scales_are_powers_of_two_as_large_as_allowed() -> None:
    """power_of_two_scale() gives the largest 2^k with 2^k total <= most; 1 for an empty row."""
    totals = np.array([1.0, 3.0, 1e-12, 1e18, 0.0])
    scale = power_of_two_scale(totals, 2.0**30)
    assert (scale * totals <= 2.0**30).all()
    assert (2 * scale * totals > 2.0**30)[:4].all()
    assert scale[4] == 1.0
    assert (np.frexp(scale)[0] == 0.5).all()
