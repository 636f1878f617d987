"""Sparse models: blocks are sorted into rows, and rows that keep earlier objectives are added."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflow_opt.formulations.sparse import ModelBuilder


def test_entries_come_out_by_rows_whatever_their_order() -> None:
    """Entries given in any order over several calls are the matrix that they say."""
    builder = ModelBuilder()
    x = builder.add_columns("x", 2)
    y = builder.add_columns("y", 1, integer=False, upper=0.5)
    first = builder.add_rows("first", 2, upper=[3.0, 4.0])
    second = builder.add_rows("second", 1, lower=-1.0)
    builder.add_entries(np.array([second[0], first[0]]), np.array([y[0], x[1]]), [7.0, 5.0])
    builder.add_entries(first, x, [1.0, 2.0])
    model = builder.build()
    dense = np.zeros((model.num_rows, model.num_columns))
    for row in range(model.num_rows):
        part = slice(model.starts[row], model.starts[row + 1])
        assert (np.diff(model.indices[part]) > 0).all()
        dense[row, model.indices[part]] = model.values[part]
    assert dense.tolist() == [[1, 5, 0], [0, 2, 0], [0, 0, 7]]
    assert model.row_upper.tolist() == [3, 4, np.inf]
    assert model.row_lower.tolist() == [-np.inf, -np.inf, -1]
    assert model.col_upper.tolist() == [1, 1, 0.5]
    assert model.integer.tolist() == [True, True, False]
    assert [(b.name, b.start, b.stop) for b in model.row_blocks] == [
        ("first", 0, 2),
        ("second", 2, 3),
    ]
    assert model.row_activity(np.array([1.0, 2.0, 3.0])).tolist() == [11, 4, 21]


def test_floors_become_soft_rows() -> None:
    """with_objective() adds one soft row per floor that holds what is kept, and changes no other."""
    builder = ModelBuilder()
    columns = builder.add_columns("x", 3)
    builder.add_entries(builder.add_rows("r", 1, upper=1.0).repeat(3), columns, 1.0)
    plain = builder.build()
    kept = np.array([0.0, 2.0, 3.0])
    model = plain.with_objective(np.array([1.0, 0.0, 0.0]), [(kept, 2.5)])
    assert model.num_rows == 2
    assert model.row_soft.tolist() == [False, True]
    assert model.row_lower.tolist() == [-np.inf, 2.5]
    assert model.row_upper.tolist() == [1.0, np.inf]
    x = np.array([1.0, 0.5, 0.25])
    assert model.row_activity(x)[1] == pytest.approx(kept @ x)
    assert model.row_activity(x)[0] == plain.row_activity(x)[0]
    assert model.objective.tolist() == [1, 0, 0]


def test_a_model_of_nothing_can_be_built() -> None:
    """No columns and no rows are a model of that size, not an error."""
    model = ModelBuilder().build()
    assert (model.num_rows, model.num_columns) == (0, 0)
    assert model.row_activity(np.zeros(0)).shape == (0,)
