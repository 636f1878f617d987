"""A quota of GPUs for a group of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from edgeflow_opt.problem.constraints.base import Constraint
from edgeflow_opt.problem.constraints.members import (
    count_faults,
    excesses,
    member_faults,
    site_faults,
)

if TYPE_CHECKING:
    from edgeflow_opt.errors import Fault
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.problem.constraints.rows import LinearRows
    from edgeflow_opt.problem.data import Grid, Job, Site
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.schedule import Allocation, Outcome
    from edgeflow_opt.problem.violation import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuota(Constraint):
    r"""At any time the jobs of a group together hold at most so many GPUs.

    .. math::

        \sum_{j \in J} \sum_{m \text{ on } k} \text{gpus}_m \, x_{jsm} \le q \quad \forall s .

    Parameters
    ----------
    gpus
        The quota q, at least 0.
    jobs
        Ids of the group J; None = all jobs.
    site
        Name of the site k; None = all sites together.
    """

    type: ClassVar[str] = "group_quota"

    gpus: int
    jobs: tuple[str, ...] | None = None
    site: str | None = None

    def faults(self, grid: Grid, sites: Sequence[Site], jobs: Sequence[Job]) -> Iterator[Fault]:
        """Yield what is wrong with the parameters."""
        yield from count_faults(self.type, "gpus", self.gpus)
        yield from member_faults(self.type, self.jobs, jobs, all_by_default=True)
        yield from site_faults(self.type, self.site, sites)

    def rows(self, problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
        """Return a row for each slot."""
        from edgeflow_opt.problem.constraints.rows import rows_by_slot
        from edgeflow_opt.problem.constraints.selection import modes_of

        modes = modes_of(problem, arrays, self.jobs, self.site)
        return rows_by_slot(arrays, modes, arrays.mode_gpus[modes].astype(float), self.gpus)

    def violations(
        self,
        problem: EpochProblem,
        allocations: Sequence[Allocation],
        outcomes: Sequence[Outcome],
    ) -> Iterator[Violation]:
        """Yield a breach for each interval in which the group holds too many GPUs."""
        group = None if self.jobs is None else set(self.jobs)
        holds = (
            (a.start, a.end, a.gpus)
            for a in allocations
            if (group is None or a.job in group) and self.site in (None, a.site)
        )
        who = "all jobs" if self.jobs is None else f"the {len(self.jobs)} jobs of a group"
        where = "" if self.site is None else f" on site '{self.site}'"
        for start, end, excess in excesses(holds, self.gpus):
            yield self.violation(
                f"{who} may hold {self.gpus} GPUs{where} and hold up to {excess} more from "
                f"{start:g} to {end:g}",
                site=self.site,
                time=start,
                amount=float(excess),
            )
