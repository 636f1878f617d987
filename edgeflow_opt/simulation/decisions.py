"""The rules of the cluster that every decision of a policy has to keep."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgeflow_opt.errors import PolicyError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.problem.values import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.simulation.ledger import JobLedger


def check_decision(
    policy: str,
    decision: Decision,
    now: float,
    active: Mapping[str, JobLedger],
    sites: Mapping[str, Site],
    capacity: Mapping[str, int],
) -> None:
    """Refuse a decision that breaks a rule.

    Parameters
    ----------
    policy
        Name of the policy.
    decision
        Its decision.
    now
        Seconds.
    active
        The unfinished jobs by id.
    sites, capacity
        The sites by name, and their usable units now.

    Raises
    ------
    PolicyError
        Naming policy, time, job or site, rule and amounts.
    """
    where = f"policy '{policy}' at {now!r} s"
    if not isinstance(decision, Decision):
        raise PolicyError(f"{where}: must return a Decision, got {shown(decision)}")
    for name in decision.refused:
        if name not in active:
            raise PolicyError(
                f"{where}: refuses job {shown(name)}, which is not an unfinished job of the cluster"
            )
        if name in decision.allocation:
            raise PolicyError(f"{where}: job {shown(name)} is both refused and given a mode")
    used = dict.fromkeys(capacity, 0)
    for name, mode in decision.allocation.items():
        ledger = active.get(name)
        if ledger is None:
            raise PolicyError(
                f"{where}: gives a mode to job {shown(name)}, which is not an unfinished job of "
                "the cluster (it has completed, was refused, or has not arrived)"
            )
        if mode is not ledger.mode:
            _check_mode(where, ledger.job, mode, sites)
        used[mode.site] += sites[mode.site].units(mode)
    for name, units in used.items():
        if units > capacity[name]:
            holders = [job for job, mode in decision.allocation.items() if mode.site == name]
            raise PolicyError(
                f"{where}: site '{name}' has {capacity[name]} units, but {units} are given to "
                f"{len(holders)} job{'' if len(holders) == 1 else 's'} ({shown(holders)})"
            )
    wake_up = decision.wake_up
    if wake_up is not None and not (now < wake_up < math.inf):
        raise PolicyError(
            f"{where}: wake_up must be a finite time after now or None, got {wake_up!r}"
        )


def _check_mode(where: str, job: Job, mode: Mode, sites: Mapping[str, Site]) -> None:
    if mode not in job.modes:
        raise PolicyError(
            f"{where}: job {shown(job.id)} is given {shown(mode)}, which is not one of its "
            f"{len(job.modes)} modes"
        )
    site = sites[mode.site]
    if not site.hosts(job):
        raise PolicyError(
            f"{where}: job {shown(job.id)} needs {job.memory_gib:g} GiB, a unit of site "
            f"'{site.name}' has {site.memory_gib:g} GiB"
        )
