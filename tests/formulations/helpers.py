"""An independent way from a sparse model to its optimum: scipy, without any solver of the package."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.sparse import SparseModel
from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays


def maximum(model: SparseModel, *, relaxed: bool = False) -> float | None:
    """Return the optimum of `model`, or of its LP relaxation; None if it has no solution."""
    if not model.num_columns:
        fits = (model.row_lower <= 0).all() and (model.row_upper >= 0).all()
        return 0.0 if fits else None
    matrix = csr_array(
        (model.values, model.indices, model.starts), shape=(model.num_rows, model.num_columns)
    )
    # HiGHS gives up on a few tiny models in presolve, and solves them without it.
    for presolve in (True, False):
        answer = milp(
            -model.objective,
            constraints=[LinearConstraint(matrix, model.row_lower, model.row_upper)],
            bounds=Bounds(model.col_lower, model.col_upper),
            integrality=np.zeros(model.num_columns) if relaxed else model.integer.astype(np.int64),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if answer.status in (0, 2):
            break
    if answer.status == 2:
        return None
    assert answer.status == 0, answer.message
    return float(-answer.fun)


def best_levels(arrays: ProblemArrays) -> tuple[float, ...] | None:
    """Return the lexicographic optimum of the malleable model in the terms of evaluate()."""
    tight = build_malleable(arrays)
    top = maximum(tight.model.with_objective(tight.objectives["met"]))
    if top is None:
        return None
    below = build_malleable(arrays, LEVELS)
    floors: list[tuple[FloatArray, float]] = []
    values: list[float] = []
    for level in LEVELS:
        value = maximum(below.model.with_objective(below.objectives[level], floors))
        assert value is not None
        values.append(value)
        floors.append((below.objectives[level], value - 1e-6 * max(1.0, abs(value))))
    # The tight model of level 1 and the model of all levels agree on level 1.
    assert abs(values[0] - top) <= 1e-6 * max(1.0, top)
    return tuple(values)


def without_rows(model: SparseModel, name: str) -> SparseModel:
    """Return `model` with the rows of the block `name` made void; it must have some."""
    lower, upper = model.row_lower.copy(), model.row_upper.copy()
    blocks = [block for block in model.row_blocks if block.name == name]
    assert sum(block.stop - block.start for block in blocks) > 0
    for block in blocks:
        lower[block.start : block.stop] = -np.inf
        upper[block.start : block.stop] = np.inf
    return dataclasses.replace(model, row_lower=lower, row_upper=upper)


def assert_satisfies(model: SparseModel, x: FloatArray) -> None:
    """Assert that the point `x` obeys the rows, the bounds and the integrality of `model`."""
    assert (x >= model.col_lower).all()
    assert (x <= model.col_upper).all()
    assert (x[model.integer] == np.rint(x[model.integer])).all()
    activity = model.row_activity(x)
    row_of = np.repeat(np.arange(model.num_rows), np.diff(model.starts))
    size = np.ones(model.num_rows)
    np.maximum.at(size, row_of, np.abs(model.values))
    for block in model.row_blocks:
        rows = slice(block.start, block.stop)
        slack = 1e-9 * size[rows]
        assert (activity[rows] >= model.row_lower[rows] - slack).all(), block.name
        assert (activity[rows] <= model.row_upper[rows] + slack).all(), block.name


def undominated(arrays: ProblemArrays) -> ProblemArrays:
    """Return `arrays` with dominance switched off: every usable mode is kept."""
    return dataclasses.replace(arrays, mode_kept=arrays.mode_usable)
