"""What a simulation may be given: the rules of the instance format, and a few of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.errors import Fault, InstanceError
from edgeflow_opt.problem.data import Grid, Objective
from edgeflow_opt.problem.validation import faults_of, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.problem import Job, Site


def check_inputs(jobs: Sequence[Job], sites: Sequence[Site]) -> None:
    """Refuse jobs and sites that cannot be simulated, naming all faults together.

    Raises
    ------
    InstanceError
        If a rule of the instance format is broken, a job has no arrival or a past (`running`,
        `last_site`), or a job must meet its deadline or is moldable, which an online policy
        cannot warrant.
    """
    faults = []
    for job in jobs:
        owner = f"job {shown(job.id)}"
        if job.arrival is None:
            faults.append(Fault(owner, "arrival", "a simulation needs it", "null", "give its time"))
        if job.running is not None or job.last_site is not None:
            field = "running" if job.running is not None else "last_site"
            faults.append(
                Fault(owner, field, "a simulated job has not run before", remedy="set it to null")
            )
        if job.must_meet:
            faults.append(
                Fault(owner, "must_meet", "no online policy can warrant it", "true", "drop it")
            )
        if not job.malleable:
            faults.append(
                Fault(owner, "malleable", "the simulated cluster re-allocates every job at every "
                      "event", "false", "set it to true or solve the instance instead")
            )  # fmt: skip
    arrivals = [job.arrival for job in jobs if isinstance(job.arrival, (int, float))]
    start = min(arrivals, default=None)
    if start is None or not abs(start) <= 1e15:
        # The grid only tells the rules where the time begins.
        start = max((site.capacity[0][0] for site in sites if site.capacity), default=0.0)
    grid = Grid((start, start + 1.0))
    faults += faults_of(grid, tuple(sites), tuple(jobs), Objective())
    if faults:
        raise InstanceError(tuple(faults), "simulation")
