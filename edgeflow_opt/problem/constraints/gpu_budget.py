"""A budget of GPU-seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from edgeflow_opt.errors import Fault
from edgeflow_opt.problem.constraints.base import Constraint
from edgeflow_opt.problem.constraints.members import member_faults, site_faults
from edgeflow_opt.problem.values import shown

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.problem.constraints.rows import LinearRows
    from edgeflow_opt.problem.data import Grid, Job, Site
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.schedule import Allocation, Outcome
    from edgeflow_opt.problem.violation import Violation

#: Relative amount by which a budget may be passed, for rounding.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuBudget(Constraint):
    r"""Within a span of time so many GPU-seconds are held at most: dear power, a tenant's budget.

    .. math::

        \sum_{j \in J} \sum_s \sum_{m \text{ on } k}
        \bigl| [t_s, t_{s+1}) \cap [a, b) \bigr| \, \text{gpus}_m \, x_{jsm} \le B .

    Parameters
    ----------
    gpu_seconds
        The budget B, at least 0.
    start, end
        The span [a, b), seconds on the clock of the instance; None = from its beginning, to its
        horizon.
    jobs
        Ids of the jobs J; None = all jobs.
    site
        Name of the site k; None = all sites together.
    """

    type: ClassVar[str] = "gpu_budget"

    gpu_seconds: float
    start: float | None = None
    end: float | None = None
    jobs: tuple[str, ...] | None = None
    site: str | None = None

    def faults(self, grid: Grid, sites: Sequence[Site], jobs: Sequence[Job]) -> Iterator[Fault]:
        """Yield what is wrong with the parameters."""
        bad: set[str] = set()
        for name, least in (("gpu_seconds", 0.0), ("start", -1e15), ("end", -1e15)):
            value = getattr(self, name)
            if value is None and name != "gpu_seconds":
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and least <= value <= 1e15):
                bad.add(name)
                yield Fault(
                    self.type, name, f"must be a number from {least:g} to 1e15", shown(value)
                )
        start, end = self._span
        if bad.isdisjoint({"start", "end"}) and start >= end:
            yield Fault(self.type, "end", f"must be after start = {start!r}", shown(end))
        yield from member_faults(self.type, self.jobs, jobs, all_by_default=True)
        yield from site_faults(self.type, self.site, sites)

    @property
    def _span(self) -> tuple[float, float]:
        return (
            -math.inf if self.start is None else self.start,
            math.inf if self.end is None else self.end,
        )

    def rows(self, problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
        """Return the one row."""
        import numpy as np

        from edgeflow_opt.problem.constraints.rows import LinearRows
        from edgeflow_opt.problem.constraints.selection import modes_of

        modes = modes_of(problem, arrays, self.jobs, self.site)
        start, end = self._span
        times = np.clip(arrays.boundaries, start, end)
        seconds = np.diff(times)
        slots = np.flatnonzero(seconds > 0.0)
        mode, slot = np.repeat(modes, len(slots)), np.tile(slots, len(modes))
        return LinearRows(
            upper=np.array([self.gpu_seconds], dtype=np.float64),
            row=np.zeros(len(mode), dtype=np.int64),
            mode=mode,
            slot=slot,
            value=arrays.mode_gpus[mode] * seconds[slot],
        )

    def violations(
        self,
        problem: EpochProblem,
        allocations: Sequence[Allocation],
        outcomes: Sequence[Outcome],
    ) -> Iterator[Violation]:
        """Yield the breach of the budget, if it is passed."""
        group = None if self.jobs is None else set(self.jobs)
        start, end = self._span
        used = math.fsum(
            a.gpus * max(0.0, min(a.end, end) - max(a.start, start))
            for a in allocations
            if (group is None or a.job in group) and self.site in (None, a.site)
        )
        if used > self.gpu_seconds + _TOLERANCE * max(1.0, self.gpu_seconds):
            yield self.violation(
                f"{self.gpu_seconds:g} GPU-seconds may be held, and {used:g} are",
                site=self.site,
                time=self.start,
                amount=used - self.gpu_seconds,
            )
