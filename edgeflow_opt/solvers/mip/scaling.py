"""Rows scaled so that the absolute tolerances of solvers that compute in floating point fit them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.mip.rounding import suffices_alone

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.solvers.mip.rounding import Rounding

#: Rows with real coefficients are scaled to this largest coefficient.
ROW_SCALE = 100.0


def scaled_rows(model: SparseModel, rounding: Rounding, tightening: float) -> SparseModel:
    """Return `model` with rows of real coefficients scaled, and tightened where pessimistic.

    Parameters
    ----------
    rounding
        ``pessimistic``: what helps to fulfil a real row is made smaller, so that a solution within
        the tolerances of a solver obeys the row as it was.
    tightening
        Relative amount of that.
    """
    row_of = np.repeat(np.arange(model.num_rows), np.diff(model.starts))
    largest = np.zeros(model.num_rows)
    np.maximum.at(largest, row_of, np.abs(model.values))
    whole = np.ones(model.num_rows, dtype=np.bool_)
    np.logical_and.at(whole, row_of, model.values == np.floor(model.values))
    whole &= largest <= ROW_SCALE
    scale = np.where(whole | (largest == 0.0), 1.0, ROW_SCALE / np.where(largest > 0, largest, 1))
    values = model.values * scale[row_of]
    if rounding == "pessimistic":
        # Real rows are of the form a x >= 0 with one negative entry, what is needed, or of
        # constraints, a x <= b.
        tighten = ~whole[row_of] & ~model.row_soft[row_of] & (values > 0)
        tighten &= ~suffices_alone(model)
        helps = np.where(np.isfinite(model.row_upper[row_of]), 1.0, -1.0)
        values = np.where(tighten, values * (1.0 + helps * tightening), values)
    return dataclasses.replace(
        model, row_lower=model.row_lower * scale, row_upper=model.row_upper * scale, values=values
    )
