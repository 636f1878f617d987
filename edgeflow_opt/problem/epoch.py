"""One epoch as a problem: jobs, sites, a grid, and what is wanted, valid once it exists."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem.objective import Objective
from edgeflow_opt.problem.validation import faults_of
from edgeflow_opt.problem.values import as_tuple

if TYPE_CHECKING:
    from edgeflow_opt.problem.constraints.base import Constraint
    from edgeflow_opt.problem.data import Grid, Job, Site


@dataclass(frozen=True, kw_only=True)
class EpochProblem:
    """One scheduling epoch: jobs, sites, a grid, and what is wanted.

    The constructor checks every rule of the instance format and reports all faults together; an
    instance that exists is valid.

    Parameters
    ----------
    grid
        Slot boundaries; ``grid.start`` is `now`.
    sites, jobs
        In the order of the instance.
    objective
        Lexicographic by default.
    constraints
        What else a schedule must obey: quotas, budgets, jobs to be kept apart (see
        :mod:`edgeflow_opt.problem.constraints`); none by default.

    Raises
    ------
    InstanceError
        If any rule of the format is broken; all faults are named.
    """

    grid: Grid
    sites: tuple[Site, ...]
    jobs: tuple[Job, ...]
    objective: Objective = field(default_factory=Objective)
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:

        for name in ("sites", "jobs", "constraints"):
            object.__setattr__(self, name, as_tuple(getattr(self, name)))
        faults = faults_of(self.grid, self.sites, self.jobs, self.objective, self.constraints)
        if faults:
            raise InstanceError(tuple(faults))
        now = self.now
        object.__setattr__(self, "jobs", tuple(_complete(job, now) for job in self.jobs))

    @property
    def now(self) -> float:
        """Time of the epoch, the first boundary of the grid."""
        return self.grid.start

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Index of each site by its name."""
        return {site.name: index for index, site in enumerate(self.sites)}

    @cached_property
    def job_index(self) -> dict[str, int]:
        """Index of each job by its id."""
        return {job.id: index for index, job in enumerate(self.jobs)}

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the jobs that have a deadline: the trivial bound on level 1."""
        return float(sum(job.weight for job in self.jobs if job.deadline is not None))

    def replace(self, **changes: Any) -> EpochProblem:
        """Return a validated copy with `changes` to its fields."""
        return dataclasses.replace(self, **changes)

    def as_moldable(self) -> EpochProblem:
        """Return a copy in which every job keeps one mode in one run."""
        return self.replace(
            jobs=tuple(dataclasses.replace(job, malleable=False) for job in self.jobs)
        )

    def __getstate__(self) -> dict[str, Any]:
        # Cached indices are rebuilt on demand: they would only make the pickle larger.
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def __str__(self) -> str:
        best_effort = sum(job.best_effort for job in self.jobs)
        lines = [
            f"EpochProblem: {len(self.jobs)} jobs x {self.grid.num_slots} slots",
            f"├─ grid: {self.grid.start:g} to {self.grid.end:g} s",
            f"├─ jobs: {len(self.jobs) - best_effort} with deadline, {best_effort} best effort",
        ]
        lines += [
            f"{'└' if site is self.sites[-1] else '├'}─ {site.kind} site '{site.name}': "
            f"{site.capacity_at(self.now)} units now"
            for site in self.sites
        ]
        if self.constraints:
            lines.insert(3, f"├─ constraints: {', '.join(c.type for c in self.constraints)}")
        return "\n".join(lines)


def _complete(job: Job, now: float) -> Job:
    """Fill in what is left open: the arrival, and the last site of a running job."""
    arrival, last_site = job.arrival, job.last_site
    if arrival is None:
        arrival = now if job.deadline is None else min(now, job.deadline)
    if job.running is not None:
        last_site = job.running.site
    if arrival == job.arrival and last_site == job.last_site:
        return job
    return dataclasses.replace(job, arrival=arrival, last_site=last_site)
