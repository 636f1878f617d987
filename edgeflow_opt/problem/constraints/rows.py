"""Constraints as sparse linear rows over what is held and who is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays
    from edgeflow_opt.problem.constraints.base import Constraint
    from edgeflow_opt.problem.epoch import EpochProblem

#: Relative amount by which a row may be passed, for rounding.
ROW_TOLERANCE = 1e-9


def _no_numbers() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class LinearRows:
    """sum value x[mode, slot] + sum met_value z[met_job] <= upper, row by row.

    Entries of one row for the same mode and slot, or the same job, are added up.

    Parameters
    ----------
    upper
        (R,) what the row may reach at most.
    row, mode, slot, value
        (E,) row, mode (numbered through over all jobs), slot and coefficient, at least 0, of what
        is held.
    met_row, met_job, met_value
        (F,) row, job and coefficient, of any sign, of the jobs met.
    blocks
        (name, first row, row after the last) of the constraints that the rows come from.
    """

    upper: FloatArray
    row: IntArray = field(default_factory=_no_numbers)
    mode: IntArray = field(default_factory=_no_numbers)
    slot: IntArray = field(default_factory=_no_numbers)
    value: FloatArray = field(default_factory=lambda: np.zeros(0))
    met_row: IntArray = field(default_factory=_no_numbers)
    met_job: IntArray = field(default_factory=_no_numbers)
    met_value: FloatArray = field(default_factory=lambda: np.zeros(0))
    blocks: tuple[tuple[str, int, int], ...] = ()

    @property
    def num_rows(self) -> int:
        """Number of rows R."""
        return len(self.upper)

    @property
    def limits(self) -> FloatArray:
        """(R,) what the rows may reach, rounding granted."""
        result: FloatArray = self.upper + ROW_TOLERANCE * np.maximum(1.0, np.abs(self.upper))
        return result

    def held(self, arrays: ProblemArrays, plan: IntArray) -> BoolArray:
        """Return (E,) which entries a plan matrix holds."""
        result: BoolArray = plan[arrays.mode_job[self.mode], self.slot] == self.mode
        return result

    def reached(self, held: BoolArray, met: BoolArray) -> FloatArray:
        """Return (R,) what the rows reach: `held` (E,) by entries, `met` (n,) by jobs."""
        size = self.num_rows
        sums = np.bincount(self.row, self.value * held, minlength=size)
        jobs = np.bincount(self.met_row, self.met_value * met[self.met_job], minlength=size)
        result: FloatArray = np.asarray(sums + jobs, dtype=np.float64)
        return result


def no_rows() -> LinearRows:
    """Return no rows at all."""
    return LinearRows(upper=np.zeros(0))


def rows_of(problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
    """Return the rows of all constraints of an instance.

    Raises
    ------
    UsageError
        If a constraint fails, or gives rows that make no sense; it is named.
    """
    parts: list[LinearRows] = []
    blocks: list[tuple[str, int, int]] = []
    first = 0
    for index, constraint in enumerate(problem.constraints):
        part = _checked(constraint, index, problem, arrays)
        stop = first + part.num_rows
        blocks.append((constraint.type, first, stop))
        parts.append(part)
        first = stop
    if not parts:
        return no_rows()
    offsets = [start for _, start, _ in blocks]

    def joined(name: str, shift: bool = False) -> Any:
        return np.concatenate(
            [getattr(p, name) + (o if shift else 0) for p, o in zip(parts, offsets, strict=True)]
        )

    row, mode, slot, value = _added_up(
        joined("row", shift=True), joined("mode"), joined("slot"), joined("value"), arrays.num_slots
    )
    nothing = np.zeros(len(joined("met_row")), dtype=np.int64)
    met_row, met_job, _, met_value = _added_up(
        joined("met_row", shift=True), joined("met_job"), nothing, joined("met_value"), 1
    )
    return LinearRows(
        upper=joined("upper"), row=row, mode=mode, slot=slot, value=value,
        met_row=met_row, met_job=met_job, met_value=met_value, blocks=tuple(blocks),
    )  # fmt: skip


def _added_up(
    row: IntArray, first: IntArray, second: IntArray, value: FloatArray, width: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return entries sorted by row, those of the same place added up, and those of 0 left out."""
    tall = int(first.max(initial=0)) + 1
    place, inverse = np.unique((row * tall + first) * width + second, return_inverse=True)
    sums = np.bincount(inverse, value, minlength=len(place)).astype(np.float64)
    place, sums = place[sums != 0.0], sums[sums != 0.0]
    pair = place // width
    return pair // tall, pair % tall, place % width, sums


def _checked(
    constraint: Constraint, index: int, problem: EpochProblem, arrays: ProblemArrays
) -> LinearRows:
    """Return the rows of one constraint, its arrays of the right types."""
    owner = f"constraints[{index}] ({constraint.type})"
    try:
        rows: Any = constraint.rows(problem, arrays)
    except Exception as problem_found:
        raise UsageError(
            f"{owner}: its rows cannot be had ({type(problem_found).__name__}: {problem_found})"
        ) from problem_found
    if not isinstance(rows, LinearRows):
        raise UsageError(f"{owner}: rows() must return LinearRows, got {type(rows).__name__}")
    upper = np.asarray(rows.upper, dtype=np.float64)
    numbers = {
        name: np.asarray(getattr(rows, name), dtype=np.int64)
        for name in ("row", "mode", "slot", "met_row", "met_job")
    }
    values = {
        name: np.asarray(getattr(rows, name), dtype=np.float64) for name in ("value", "met_value")
    }
    lengths = [len(numbers["row"]), len(numbers["met_row"])]
    for names, length in (
        (("mode", "slot", "value"), lengths[0]),
        (("met_job", "met_value"), lengths[1]),
    ):
        for name in names:
            if len(numbers.get(name, values.get(name, ()))) != length:
                raise UsageError(f"{owner}: {name} must have {length} entries, as its rows have")
    for name, most in (
        ("row", len(upper)), ("met_row", len(upper)), ("mode", arrays.num_modes),
        ("slot", arrays.num_slots), ("met_job", arrays.num_jobs),
    ):  # fmt: skip
        found = numbers[name]
        if len(found) and not 0 <= found.min() <= found.max() < most:
            raise UsageError(f"{owner}: {name} must be numbers from 0 to {most - 1}")
    if not all(np.isfinite(v).all() for v in (upper, *values.values())):
        raise UsageError(f"{owner}: upper, value and met_value must be finite numbers")
    if (values["value"] < 0.0).any():
        raise UsageError(
            f"{owner}: value must be at least 0: what is held can be limited, not demanded; to "
            "demand that jobs are met use met_value"
        )
    arrays_by_name: dict[str, Any] = {"upper": upper, **numbers, **values}
    return LinearRows(**arrays_by_name)


def rows_by_slot(
    arrays: ProblemArrays, modes: IntArray, value: FloatArray, most: float
) -> LinearRows:
    """Return one row for each slot: what `modes` add up to in it is at most `most`.

    Parameters
    ----------
    arrays
        The instance.
    modes, value
        (E,) the modes that count, and what one of them counts.
    most
        The same for all slots.
    """
    return joined_rows([(modes, value)], arrays.num_slots, most)


def joined_rows(
    groups: Sequence[tuple[IntArray, FloatArray]], num_slots: int, most: float
) -> LinearRows:
    """Return one row for each group and slot; see :func:`rows_by_slot`."""
    slots = np.arange(num_slots)
    row, mode, slot, value = [], [], [], []
    for number, (modes, values) in enumerate(groups):
        row.append(np.tile(number * num_slots + slots, len(modes)))
        mode.append(np.repeat(modes, num_slots))
        slot.append(np.tile(slots, len(modes)))
        value.append(np.repeat(values.astype(np.float64), num_slots))
    return LinearRows(
        upper=np.full(len(groups) * num_slots, float(most)),
        row=np.concatenate([_no_numbers(), *row]),
        mode=np.concatenate([_no_numbers(), *mode]),
        slot=np.concatenate([_no_numbers(), *slot]),
        value=np.concatenate([np.zeros(0), *value]),
    )
