"""What a trace format is: columns that tell it, and how a row becomes a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgeflow_opt.workloads.table import Row
from edgeflow_opt.workloads.trace import TraceJob


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """A trace format, recognised by its columns.

    Parameters
    ----------
    name
        For people and for the registry.
    columns
        Columns that a header of this format has, in any order; others are passed over.
    job_of
        Makes the job of a row. What is wrong with the row it notes by the row's own accessors and
        :meth:`~edgeflow_opt.workloads.table.Row.refuse`; then what it returns is left unused.
    draws
        Whether what the trace leaves open is drawn at random: `job_of` then gets the seed too.
    """

    name: str
    columns: tuple[str, ...]
    job_of: Callable[..., TraceJob]
    draws: bool = False

    def job(self, row: Row, seed: int) -> TraceJob:
        """Return the job of a row."""
        return self.job_of(row, seed) if self.draws else self.job_of(row)
