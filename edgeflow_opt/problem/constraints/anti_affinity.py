"""Jobs that are to be kept apart."""

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
class AntiAffinity(Constraint):
    r"""Of a set of jobs at most so many run on one site at a time.

    .. math::

        \sum_{j \in J} \sum_{m \text{ on } k} x_{jsm} \le n \quad \forall k, s .

    Parameters
    ----------
    jobs
        Ids of the jobs J.
    most
        The number n, at least 0; 1 = never two of them together.
    site
        Name of the only site that it concerns; None = every site for itself.
    """

    type: ClassVar[str] = "anti_affinity"

    jobs: tuple[str, ...]
    most: int = 1
    site: str | None = None

    def faults(self, grid: Grid, sites: Sequence[Site], jobs: Sequence[Job]) -> Iterator[Fault]:
        """Yield what is wrong with the parameters."""
        yield from member_faults(self.type, self.jobs, jobs, all_by_default=False)
        yield from count_faults(self.type, "most", self.most)
        yield from site_faults(self.type, self.site, sites)

    def _sites(self, problem: EpochProblem) -> list[str]:
        return [site.name for site in problem.sites if self.site in (None, site.name)]

    def rows(self, problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
        """Return a row for each site and slot."""
        import numpy as np

        from edgeflow_opt.problem.constraints.rows import joined_rows
        from edgeflow_opt.problem.constraints.selection import modes_of

        groups = []
        for site in self._sites(problem):
            modes = modes_of(problem, arrays, self.jobs, site)
            groups.append((modes, np.ones(len(modes))))
        return joined_rows(groups, arrays.num_slots, self.most)

    def violations(
        self,
        problem: EpochProblem,
        allocations: Sequence[Allocation],
        outcomes: Sequence[Outcome],
    ) -> Iterator[Violation]:
        """Yield a breach for each site and interval on which too many of the jobs run."""
        group = set(self.jobs)
        for site in self._sites(problem):
            holds = ((a.start, a.end, 1) for a in allocations if a.job in group and a.site == site)
            for start, end, excess in excesses(holds, self.most):
                yield self.violation(
                    f"of {len(group)} jobs to be kept apart {self.most} may run on site '{site}' "
                    f"at a time, and up to {excess} more do from {start:g} to {end:g}",
                    site=site,
                    time=start,
                    amount=float(excess),
                )
