"""A number of jobs of a group that have to be met, whichever they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from edgeflow_opt.errors import Fault
from edgeflow_opt.problem.constraints.base import Constraint
from edgeflow_opt.problem.constraints.members import count_faults, member_faults
from edgeflow_opt.problem.values import shown

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.problem.constraints.rows import LinearRows
    from edgeflow_opt.problem.data import Grid, Job, Site
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.schedule import Allocation, Outcome
    from edgeflow_opt.problem.violation import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastMet(Constraint):
    r"""Of a group of jobs at least so many meet their deadlines: a promise to a tenant.

    .. math::

        -\sum_{j \in J} z_j \le -n .

    Where that is impossible the instance has no schedule, as with a job that must be met. Heuristics
    that miss it find no solution.

    Parameters
    ----------
    jobs
        Ids of the group J; those without a deadline do not count.
    least
        The number n, at least 0.
    """

    type: ClassVar[str] = "least_met"

    jobs: tuple[str, ...]
    least: int

    def faults(self, grid: Grid, sites: Sequence[Site], jobs: Sequence[Job]) -> Iterator[Fault]:
        """Yield what is wrong with the parameters."""
        yield from member_faults(self.type, self.jobs, jobs, all_by_default=False)
        bad = list(count_faults(self.type, "least", self.least))
        yield from bad
        if not bad and isinstance(self.jobs, tuple):
            most = sum(job.id in self.jobs and job.deadline is not None for job in jobs)
            if self.least > most:
                yield Fault(
                    self.type, "least", f"must be at most {most}, its jobs with a deadline",
                    shown(self.least),
                )  # fmt: skip

    def rows(self, problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
        """Return the one row."""
        import numpy as np

        from edgeflow_opt.problem.constraints.rows import LinearRows

        members = [
            index
            for index, job in enumerate(problem.jobs)
            if job.id in self.jobs and job.deadline is not None
        ]
        return LinearRows(
            upper=np.array([-float(self.least)]),
            met_row=np.zeros(len(members), dtype=np.int64),
            met_job=np.array(members, dtype=np.int64),
            met_value=np.full(len(members), -1.0),
        )

    def violations(
        self,
        problem: EpochProblem,
        allocations: Sequence[Allocation],
        outcomes: Sequence[Outcome],
    ) -> Iterator[Violation]:
        """Yield the breach, if too few are met."""
        met = sum(outcome.met is True and outcome.job in self.jobs for outcome in outcomes)
        if met < self.least:
            yield self.violation(
                f"of {len(self.jobs)} jobs {self.least} must be met, and {met} are",
                amount=float(self.least - met),
            )
