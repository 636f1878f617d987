"""From real coefficients to whole ones, in a direction that is safe.

A row a x >= b over x >= 0 is multiplied by a power of two (exact in floating point) and rounded.
*Optimistic* rounding (a up, b down) keeps every solution of the real row: the optimum of an
optimistic model is a bound. *Pessimistic* rounding (a down, b up) admits none that the real row
refuses: a solution of a pessimistic model obeys the real rows. Rows that are whole already are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray

Rounding = Literal["optimistic", "pessimistic"]

#: Most that the coefficients of a row may sum to: sums past 2^31 have overflowed in presolve.
MAX_ROW_SUM = 2.0**30

#: Most that the coefficients of the objective may sum to.
MAX_OBJECTIVE_SUM = 2.0**40

#: Most steps into which a continuous column of range [0, 1] is cut.
MAX_STEPS = 2.0**20

#: Largest power of two used as a scale: beyond it floating point ends.
_MAX_EXPONENT = 1000.0

#: Stands for an infinite side of a row.
INT_INFINITY = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class IntegerModel:
    """A :class:`~edgeflow_opt.formulations.sparse.SparseModel` in whole numbers.

    Parameters
    ----------
    objective, objective_scale
        (N,) whole coefficients; the real objective is theirs divided by the scale.
    col_lower, col_upper
        (N,) whole bounds; continuous columns count in steps.
    steps
        (N,) steps a unit of the column: 1 for binaries.
    row_lower, row_upper
        (R,) whole bounds, +-:data:`INT_INFINITY` where there is none.
    values
        Whole coefficients, laid out as in the real model.
    hint
        (N,) the hint in whole numbers; None = none was given.
    """

    objective: IntArray
    objective_scale: float
    col_lower: IntArray
    col_upper: IntArray
    steps: IntArray
    row_lower: IntArray
    row_upper: IntArray
    values: IntArray
    hint: IntArray | None


def power_of_two_scale(total: FloatArray, most: float) -> FloatArray:
    """Return the largest powers of two, at most 2^1000, by which `total` stays within `most`."""
    with np.errstate(divide="ignore", over="ignore"):
        exponent = np.minimum(np.floor(np.log2(most / total)), _MAX_EXPONENT)
    return np.asarray(np.exp2(np.where(total > 0.0, exponent, 0.0)))


def suffices_alone(model: SparseModel) -> BoolArray:
    """Return which entries alone fulfil their row a x >= 0, whatever its negative entry needs.

    Formulations cut coefficients at what is needed. Rounding such a coefficient down and the need
    up would make a row that holds with equality impossible, so both are kept equal.
    """
    row_of = np.repeat(np.arange(model.num_rows), np.diff(model.starts))
    needed = np.zeros(model.num_rows)
    np.maximum.at(needed, row_of, -model.values)
    result: BoolArray = (
        (model.row_lower[row_of] == 0.0) & (model.values > 0) & (model.values == needed[row_of])
    )
    return result


def integer_model(
    model: SparseModel, rounding: Rounding, hint: FloatArray | None = None
) -> IntegerModel:
    """Return `model` in whole numbers, rounded in the given direction.

    Parameters
    ----------
    model
        The model; each continuous column has one row of the form a x - b p >= 0.
    rounding
        See the module.
    hint
        (N,) a solution. The rows that only keep an objective value (``row_soft``) are set so that
        it stays feasible in whole numbers too.
    """
    row_of = np.repeat(np.arange(model.num_rows), np.diff(model.starts))
    column = model.indices
    totals = np.zeros(model.num_rows)
    np.add.at(totals, row_of, np.abs(model.values))
    optimistic = np.full(model.num_rows, rounding == "optimistic") | model.row_soft
    # The row of a continuous column p is measured in steps of p, so that p has the coefficient -1.
    # Its value only steers the search, and is recomputed for every plan: such rows are rounded
    # optimistically, so that shares that are equal in truth are not told apart.
    owns = ~model.integer[column] & (model.values < 0) & ~model.row_soft[row_of]
    optimistic[row_of[owns]] = True
    steps = np.ones(model.num_columns)
    fine = power_of_two_scale(totals[row_of[owns]] / -model.values[owns], MAX_ROW_SUM)
    steps[column[owns]] = np.clip(fine, 1.0, MAX_STEPS)
    values = model.values / steps[column]
    whole = _whole_rows(model, values, row_of) & (totals <= MAX_ROW_SUM)
    scale = np.where(whole, 1.0, power_of_two_scale(totals, MAX_ROW_SUM))
    scale[row_of[owns]] = -1.0 / values[owns]
    whole[row_of[owns]] = False
    scaled = values * scale[row_of]
    lower, upper = model.row_lower * scale, model.row_upper * scale
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    assert not (has_lower & has_upper & ~whole).any(), "a real row has two sides"
    # Up helps a row with a lower side, down one with an upper side.
    up = optimistic == has_lower
    values_int = np.where(up[row_of], np.ceil(scaled), np.floor(scaled))
    values_int[owns] = -1.0
    alone = suffices_alone(model) & ~whole[row_of] & ~optimistic[row_of]
    needed = np.zeros(model.num_rows)
    np.maximum.at(needed, row_of, -values_int * steps[column])
    values_int = np.where(alone, needed[row_of], values_int)
    lower_int = np.where(optimistic, np.floor(lower), np.ceil(lower))
    upper_int = np.where(optimistic, np.ceil(upper), np.floor(upper))
    objective = model.objective / steps
    total = np.array(float(np.abs(model.objective).sum()))
    objective_scale = 1.0
    if (objective != np.floor(objective)).any() or total > MAX_OBJECTIVE_SUM:
        objective_scale = float(power_of_two_scale(total, MAX_OBJECTIVE_SUM))
    objective_int = (np.ceil if rounding == "optimistic" else np.floor)(objective * objective_scale)
    whole_hint = None
    if hint is not None:
        whole_hint = np.floor(hint * steps + 1e-9)
        products = values_int * whole_hint[column]
        activity = np.bincount(row_of, products, minlength=model.num_rows)
        short = np.maximum(0.0, lower_int - activity)
        whole_hint[column[owns]] -= short[row_of[owns]]
        products = values_int * whole_hint[column]
        activity = np.bincount(row_of, products, minlength=model.num_rows)
        lower_int = np.where(model.row_soft, np.minimum(lower_int, activity), lower_int)
    return IntegerModel(
        objective=objective_int.astype(np.int64),
        objective_scale=objective_scale,
        col_lower=np.ceil(model.col_lower * steps).astype(np.int64),
        col_upper=np.floor(model.col_upper * steps).astype(np.int64),
        steps=steps.astype(np.int64),
        row_lower=np.where(has_lower, lower_int, -INT_INFINITY).astype(np.int64),
        row_upper=np.where(has_upper, upper_int, INT_INFINITY).astype(np.int64),
        values=values_int.astype(np.int64),
        hint=None if whole_hint is None else whole_hint.astype(np.int64),
    )


def _whole_rows(model: SparseModel, values: FloatArray, row_of: IntArray) -> BoolArray:
    """Return which rows have whole coefficients and sides."""
    whole = np.ones(model.num_rows, dtype=np.bool_)
    np.logical_and.at(whole, row_of, values == np.floor(values))
    for side in (model.row_lower, model.row_upper):
        whole &= ~np.isfinite(side) | (side == np.floor(side))
    return whole
