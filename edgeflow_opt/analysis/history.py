"""What was held when, in one form for plans of an epoch and histories of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.problem import Allocation, EpochProblem, Job, Outcome, Schedule, Site
    from edgeflow_opt.simulation import SimulationResult
    from edgeflow_opt.solvers import SolveResult


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Allocations on sites over a span of time, with what became of the jobs.

    Parameters
    ----------
    name
        For titles.
    jobs, sites
        In the order of the instance or the trace.
    allocations
        What every job holds, when.
    outcomes
        One per job, in the order of `jobs`.
    start, end
        The span, seconds, start < end.
    """

    name: str
    jobs: tuple[Job, ...]
    sites: tuple[Site, ...]
    allocations: tuple[Allocation, ...]
    outcomes: tuple[Outcome, ...]
    start: float
    end: float

    @classmethod
    def of_schedule(cls, problem: EpochProblem, schedule: Schedule | SolveResult) -> History:
        """Return the history that a schedule plans, over the grid of its instance.

        Raises
        ------
        UsageError
            If it has no plan, or is that of another instance.
        """
        from edgeflow_opt.problem import Schedule

        plan = schedule if isinstance(schedule, Schedule) else schedule.schedule
        if not plan.outcomes and problem.jobs:
            raise UsageError(
                f"schedule of '{plan.solver}': has no plan (status {plan.status}); "
                "there is nothing to draw"
            )
        if [outcome.job for outcome in plan.outcomes] != [job.id for job in problem.jobs]:
            raise UsageError(
                f"schedule of '{plan.solver}': its jobs are not those of the instance; "
                "give the instance that it was made for"
            )
        strange = {a.site for a in plan.allocations} - {site.name for site in problem.sites}
        if strange:
            raise UsageError(
                f"schedule of '{plan.solver}': its site '{min(strange)}' is not one of the "
                "instance; give the instance that it was made for"
            )
        return cls(
            name=plan.solver, jobs=problem.jobs, sites=problem.sites,
            allocations=plan.allocations, outcomes=plan.outcomes,
            start=problem.grid.start, end=problem.grid.end,
        )  # fmt: skip

    @classmethod
    def of_simulation(
        cls, jobs: Sequence[Job], sites: Sequence[Site], result: SimulationResult
    ) -> History:
        """Return the history of a simulation, to the last completion, deadline or allocation."""
        start = min((job.arrival for job in jobs if job.arrival is not None), default=0.0)
        ends = [job.deadline for job in jobs if job.deadline is not None]
        ends += [a.end for a in result.allocations]
        return cls(
            name=result.policy, jobs=tuple(jobs), sites=tuple(sites),
            allocations=result.allocations, outcomes=result.outcomes,
            start=start, end=max([start + 1.0, *ends]),
        )  # fmt: skip

    @property
    def missed(self) -> frozenset[str]:
        """Ids of the jobs whose deadline is not met."""
        return frozenset(outcome.job for outcome in self.outcomes if outcome.met is False)

    def usage(self, site: Site) -> tuple[list[float], list[int]]:
        """Return times, rising, and the units of `site` held from each to the next."""
        changes: dict[float, int] = {self.start: 0}
        for a in self.allocations:
            if a.site == site.name:
                units = a.gpus if site.kind == "cloud" else 1
                changes[a.start] = changes.get(a.start, 0) + units
                changes[a.end] = changes.get(a.end, 0) - units
        times = sorted(changes)
        held, units_held = [], 0
        for time in times:
            units_held += changes[time]
            held.append(units_held)
        return times, held

    def capacity(self, site: Site) -> tuple[list[float], list[int]]:
        """Return times within the span, the start first, and the usable units from each on."""
        inside = [(t, units) for t, units in site.capacity if self.start < t < self.end]
        times = [self.start, *(t for t, _ in inside)]
        return times, [site.capacity_at(self.start), *(units for _, units in inside)]


def history_of(
    given: EpochProblem | History, schedule: Schedule | SolveResult | None = None
) -> History:
    """Return `given` if it is a history, else that of the schedule of the instance `given`.

    Raises
    ------
    UsageError
        If an instance comes without its schedule.
    """
    if isinstance(given, History):
        return given
    if schedule is None:
        raise UsageError("a picture of an instance needs a schedule of it too")
    return History.of_schedule(given, schedule)
