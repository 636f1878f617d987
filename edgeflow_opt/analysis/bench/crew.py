"""Who runs the cells of a suite, and what they tell of a cell that ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from edgeflow_opt.analysis.bench.cells import Cell
from edgeflow_opt.analysis.bench.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one attempt at a cell ended.

    Parameters
    ----------
    cell
        The cell.
    record
        Its record; None where its process ended without one.
    reason
        ``"time"`` or ``"died"`` where there is no record.
    message
        The reason in words.
    """

    cell: Cell
    record: Record | None = None
    reason: str = ""
    message: str = ""


class Crew(Protocol):
    """Who runs cells: processes of this machine, or a cluster."""

    @property
    def room(self) -> int:
        """Cells that may be waiting or running at a time."""
        ...

    def begin(self, cell: Cell) -> None:
        """Take a cell; returns at once."""
        ...

    def ended(self) -> Iterator[Ended]:
        """Yield what has ended since, after waiting for at least one if any is under way."""
        ...

    def close(self, finished: bool) -> None:
        """Let everybody go; what still runs is ended unless all is `finished`."""
        ...
