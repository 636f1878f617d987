"""What a simulation may be given: the rules of the instance format, and a few of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from edgeflow_opt.errors import Fault, InstanceError, UsageError
from edgeflow_opt.problem.data import Grid, Job, Site
from edgeflow_opt.problem.objective import Objective
from edgeflow_opt.problem.types import expect, type_faults
from edgeflow_opt.problem.validation import faults_of, parts_faults
from edgeflow_opt.problem.values import MAX_MAGNITUDE, as_tuple, is_number, shown
from edgeflow_opt.simulation.analyser.options import Analyser
from edgeflow_opt.workloads.outages import Outage

#: The methods of :class:`~edgeflow_opt.simulation.overhead.Overhead`.
_OVERHEAD_METHODS = ("run_loss", "event_loss", "as_seen")


def check_options(
    *,
    policy: Any,
    overhead: Any,
    merge_s: Any,
    reveal_future: Any,
    outages: Any,
    placement: Any,
    analyser: Any,
    check: Any,
    log: Any,
    on_event: Any,
    name: Any,
) -> None:
    """Refuse options of a simulation that make no sense.

    Raises
    ------
    UsageError
        With the name of the option, the rule and the value.
    """
    if not isinstance(policy, str) and not callable(getattr(policy, "decide", None)):
        raise UsageError(
            f"option policy: must be a policy or the name of one, got {shown(policy)}; a policy "
            "has a method decide(state)"
        )
    if overhead is not None and not all(
        callable(getattr(overhead, method, None)) for method in _OVERHEAD_METHODS
    ):
        raise UsageError(
            f"option overhead: must be a model of overhead, its name or None, got {shown(overhead)}; "
            f"a model has the methods {', '.join(_OVERHEAD_METHODS)}"
        )
    if not (is_number(merge_s) and 0.0 <= merge_s <= MAX_MAGNITUDE):
        raise UsageError(
            f"option merge_s: must be a number from 0 to {MAX_MAGNITUDE:g}, got {shown(merge_s)}"
        )
    for flag, value in (("reveal_future", reveal_future), ("check", check), ("log", log)):
        if not isinstance(value, bool):
            raise UsageError(f"option {flag}: must be true or false, got {shown(value)}")
    for fault in type_faults(as_tuple(outages), tuple[Outage, ...], "option outages"):
        raise UsageError(str(fault))
    if analyser is not None:
        expect("option analyser", analyser, Analyser, "make one by Analyser(…)")
    if on_event is not None and not callable(on_event):
        raise UsageError(f"option on_event: must be a function, got {shown(on_event)}")
    for option, value in (("placement", placement), ("name", name)):
        if value is not None and not isinstance(value, str):
            raise UsageError(f"option {option}: must be a text or None, got {shown(value)}")


def check_inputs(
    jobs: Iterable[Job], sites: Iterable[Site]
) -> tuple[tuple[Job, ...], tuple[Site, ...]]:
    """Refuse jobs and sites that cannot be simulated, naming all faults together.

    Returns
    -------
    jobs, sites
        As tuples.

    Raises
    ------
    InstanceError
        If a rule of the instance format is broken, a job has no arrival or a past (`running`,
        `last_site`), or a job must meet its deadline or is moldable, which an online policy
        cannot warrant.
    """
    all_jobs, all_sites = as_tuple(jobs), as_tuple(sites)
    faults = [*parts_faults("jobs", all_jobs, Job), *parts_faults("sites", all_sites, Site)]
    if faults:
        raise InstanceError(tuple(faults), "simulation")
    for job in all_jobs:
        owner = f"job {shown(job.id)}"
        if job.arrival is None:
            faults.append(Fault(owner, "arrival", "a simulation needs it", "null", "give its time"))
        if job.running is not None or job.last_site is not None:
            field = "running" if job.running is not None else "last_site"
            faults.append(
                Fault(owner, field, "a simulated job has not run before", remedy="set it to null")
            )
        if job.must_meet is True:
            faults.append(
                Fault(owner, "must_meet", "no online policy can warrant it", "true", "drop it")
            )
        if job.malleable is False:
            faults.append(
                Fault(owner, "malleable", "the simulated cluster re-allocates every job at every "
                      "event", "false", "set it to true or solve the instance instead")
            )  # fmt: skip
    # Only tells the rules where the time begins.
    arrivals = [job.arrival for job in all_jobs if _is_time(job.arrival)]
    firsts = [site.capacity[0] for site in all_sites if _is_filled(site.capacity)]
    steps = [first[0] for first in firsts if _is_filled(first) and _is_time(first[0])]
    start = min(arrivals) if arrivals else max(steps, default=0.0)
    grid = Grid((start, start + 1.0))
    faults += faults_of(grid, all_sites, all_jobs, Objective())
    if faults:
        raise InstanceError(tuple(faults), "simulation")

    return all_jobs, all_sites


def _is_time(value: Any) -> TypeGuard[float]:
    return is_number(value) and abs(value) <= MAX_MAGNITUDE


def _is_filled(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) > 0
