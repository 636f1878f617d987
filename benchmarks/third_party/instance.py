"""One instance of a related problem: a plan master whose columns are given."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.formulations.plan_columns import PlanColumns
    from edgeflow_opt.problem.arrays import FloatArray


class FormatError(ValueError):
    """A file is not in the format that its reader knows; the message names file, place and rule."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenPlans:
    """Groups of which each chooses one plan, within resources.

    Parameters
    ----------
    name
        Of the file.
    columns
        The plans.
    value
        (N,) worth of each plan, in whole numbers: `scale` times those of the file; larger is
        better, so that costs are negated.
    scale
        A power of ten.
    capacity
        (R,) what there is of each resource.
    num_groups
        Number of groups; each must choose.
    minimise
        Whether the problem is stated as one of costs.
    """

    name: str
    columns: PlanColumns
    value: FloatArray
    scale: int
    capacity: FloatArray
    num_groups: int
    minimise: bool

    def stated(self, value: float) -> float:
        """Return `value` of the model in the terms of the file."""
        return (-value if self.minimise else value) / self.scale


def numbers_of(path: Path) -> list[float]:
    """Return the numbers of a file up to the first word that is none.

    Raises
    ------
    FormatError
        If the file cannot be read as text.
    """
    try:
        words = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as fault:
        raise FormatError(f"{path}: cannot be read as text ({fault})") from None
    found = []
    for word in words:
        try:
            found.append(float(word))
        except ValueError:
            break
    return found


def whole_scale(values: list[float]) -> int:
    """Return the least power of ten, at most 10^6, that makes all `values` whole numbers."""
    for power in range(7):
        scale = 10**power
        if all((Fraction(str(value)) * scale).denominator == 1 for value in values):
            return scale
    raise FormatError("values with more than six decimals have no whole multiples that are exact")


class Numbers:
    """Takes numbers off a list, and says what was missing.

    Parameters
    ----------
    path
        The file, for messages.
    numbers
        What it holds.
    """

    def __init__(self, path: Path, numbers: list[float]) -> None:
        self._path, self._numbers, self._at = path, numbers, 0

    @property
    def left(self) -> int:
        """How many are left."""
        return len(self._numbers) - self._at

    def take(self, count: int, what: str) -> list[float]:
        """Return the next `count` numbers, which are `what`."""
        if self.left < count:
            raise FormatError(
                f"{self._path}: {what}: must be {count} numbers, the file has {self.left} left"
            )
        self._at += count
        return self._numbers[self._at - count : self._at]

    def count(self, what: str) -> int:
        """Return the next number, a whole one of at least 1."""
        value = self.take(1, what)[0]
        if value != int(value) or value < 1:
            raise FormatError(f"{self._path}: {what}: must be a whole number >= 1, got {value:g}")
        return int(value)
