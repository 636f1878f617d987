"""A mixed-integer model as sparse numpy arrays, neutral to solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A named range of rows or columns.

    Parameters
    ----------
    name
        What the rows or columns are, in the terms of the formulation.
    start, stop
        Range, half-open.
    """

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class SparseModel:
    """maximise c x subject to row_lower <= A x <= row_upper, 0 <= x <= col_upper.

    Parameters
    ----------
    objective
        (N,) c.
    col_lower, col_upper
        (N,) bounds of the columns, all within [0, 1].
    integer
        (N,) whether the column is binary; the others are continuous.
    row_lower, row_upper
        (R,) bounds of the rows, infinite where there is none. A row with a real coefficient has one
        finite bound only, so that it can be rounded in a safe direction.
    row_soft
        (R,) rows that only keep an objective value: they may be relaxed a little by rounding.
    starts, indices, values
        A by rows (CSR): entries of row r are ``starts[r] : starts[r+1]``.
    row_blocks, col_blocks
        What the rows and columns are.
    """

    objective: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    integer: BoolArray
    row_lower: FloatArray
    row_upper: FloatArray
    row_soft: BoolArray
    starts: IntArray
    indices: IntArray
    values: FloatArray
    row_blocks: tuple[Block, ...]
    col_blocks: tuple[Block, ...]

    @property
    def num_rows(self) -> int:
        """Number of rows R."""
        return len(self.row_lower)

    @property
    def num_columns(self) -> int:
        """Number of columns N."""
        return len(self.objective)

    def row_activity(self, x: FloatArray) -> FloatArray:
        """Return (R,) the value A x."""
        products = self.values * x[self.indices]
        cumulative = np.concatenate([[0.0], np.cumsum(products)])
        result: FloatArray = cumulative[self.starts[1:]] - cumulative[self.starts[:-1]]
        return result

    def with_objective(
        self,
        objective: FloatArray,
        floors: Sequence[tuple[FloatArray, float]] = (),
        at_least: float | None = None,
    ) -> SparseModel:
        """Return the model with another objective and with rows that keep earlier ones.

        Parameters
        ----------
        objective
            (N,) the new c.
        floors
            Pairs of an objective (N,) and the value that it must keep at least, up to rounding.
        at_least
            What the new objective itself must reach, strictly; None = nothing.
        """
        soft = [True] * len(floors)
        if at_least is not None:
            floors, soft = [*floors, (objective, at_least)], [*soft, False]
        starts, indices, values = [self.starts], [self.indices], [self.values]
        size = len(self.values)
        for vector, _ in floors:
            columns = np.nonzero(vector)[0]
            size += len(columns)
            starts.append(np.array([size], dtype=np.int64))
            indices.append(columns)
            values.append(vector[columns])
        least = np.array([floor for _, floor in floors], dtype=np.float64)
        count = self.num_rows
        return SparseModel(
            objective=objective,
            col_lower=self.col_lower,
            col_upper=self.col_upper,
            integer=self.integer,
            row_lower=np.concatenate([self.row_lower, least]),
            row_upper=np.concatenate([self.row_upper, np.full(len(least), np.inf)]),
            row_soft=np.concatenate([self.row_soft, np.array(soft, dtype=np.bool_)]),
            starts=np.concatenate(starts),
            indices=np.concatenate(indices),
            values=np.concatenate(values),
            row_blocks=(*self.row_blocks, Block("keep", count, count + len(least))),
            col_blocks=self.col_blocks,
        )


class ModelBuilder:
    """Collects blocks of columns, rows and entries, and sorts them into a :class:`SparseModel`."""

    def __init__(self) -> None:
        self._num_columns = 0
        self._num_rows = 0
        self._columns: list[tuple[FloatArray, FloatArray, BoolArray]] = []
        self._rows: list[tuple[FloatArray, FloatArray]] = []
        self._entries: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._row_blocks: list[Block] = []
        self._col_blocks: list[Block] = []

    def add_columns(
        self,
        name: str,
        count: int,
        *,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = 1.0,
        integer: bool = True,
    ) -> IntArray:
        """Add `count` columns and return their indices."""
        first = self._num_columns
        self._num_columns += count
        self._columns.append(
            (
                np.broadcast_to(np.asarray(lower, dtype=np.float64), (count,)),
                np.broadcast_to(np.asarray(upper, dtype=np.float64), (count,)),
                np.full(count, integer),
            )
        )
        self._col_blocks.append(Block(name, first, first + count))
        return np.arange(first, first + count, dtype=np.int64)

    def add_rows(
        self,
        name: str,
        count: int,
        *,
        lower: npt.ArrayLike = -np.inf,
        upper: npt.ArrayLike = np.inf,
    ) -> IntArray:
        """Add `count` rows and return their indices."""
        first = self._num_rows
        self._num_rows += count
        self._rows.append(
            (
                np.broadcast_to(np.asarray(lower, dtype=np.float64), (count,)),
                np.broadcast_to(np.asarray(upper, dtype=np.float64), (count,)),
            )
        )
        self._row_blocks.append(Block(name, first, first + count))
        return np.arange(first, first + count, dtype=np.int64)

    def add_entries(self, rows: IntArray, columns: IntArray, values: npt.ArrayLike) -> None:
        """Add matrix entries; each (row, column) at most once over all calls."""
        data = np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape)
        self._entries.append((rows, columns, data))

    def build(self) -> SparseModel:
        """Return the model, its objective all zero."""

        def joined(parts: list[npt.NDArray[np.float64]]) -> FloatArray:
            return np.concatenate(parts) if parts else np.zeros(0)

        rows = np.concatenate([e[0] for e in self._entries] or [np.zeros(0, dtype=np.int64)])
        columns = np.concatenate([e[1] for e in self._entries] or [np.zeros(0, dtype=np.int64)])
        values = joined([e[2] for e in self._entries])
        order = np.lexsort((columns, rows))
        counts = np.bincount(rows, minlength=self._num_rows)
        return SparseModel(
            objective=np.zeros(self._num_columns),
            col_lower=joined([c[0] for c in self._columns]),
            col_upper=joined([c[1] for c in self._columns]),
            integer=np.concatenate([c[2] for c in self._columns] or [np.zeros(0, dtype=np.bool_)]),
            row_lower=joined([r[0] for r in self._rows]),
            row_upper=joined([r[1] for r in self._rows]),
            row_soft=np.zeros(self._num_rows, dtype=np.bool_),
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            indices=columns[order],
            values=values[order],
            row_blocks=tuple(self._row_blocks),
            col_blocks=tuple(self._col_blocks),
        )
