"""What is simulated to compare policies: a trace on a cluster, made by settings and a seed."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.policy_rows import PolicyRow
from edgeflow_opt.errors import EdgeflowError

if TYPE_CHECKING:
    from edgeflow_opt.analysis.history import History
    from edgeflow_opt.problem import Job, Site
    from edgeflow_opt.workloads import Outage, Trace


#: Settings of a simulation, with what they are unless given.
SETTINGS: Mapping[str, Any] = {
    "cloud_gpus": 32, "edge_servers": 0, "tide": "constant", "overhead": "none",
    "deadlines": None, "arrival_scale": 1.0, "merge_s": 0.0, "head": None, "failures": None,
    "withdrawals": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated: a trace on a cluster, with all that is drawn by the seed.

    Parameters
    ----------
    jobs, sites, outages
        As in :func:`edgeflow_opt.simulate`.
    trace
        From which the jobs are made.
    digest
        Hash of the trace.
    """

    trace: Trace
    jobs: tuple[Job, ...]
    sites: tuple[Site, ...]
    outages: tuple[Outage, ...]
    digest: str


def scenario_of(trace: Trace, seed: int, settings: Mapping[str, Any]) -> Scenario:
    """Return what `settings` (:data:`SETTINGS`) make of a trace, with a seed for all draws."""
    from edgeflow_opt.workloads import cluster, draw_outages

    if settings["head"] is not None:
        trace = trace.head(settings["head"])
    trace = trace.scale_arrivals(settings["arrival_scale"])
    if settings["deadlines"] is not None:
        low, high = settings["deadlines"]
        trace = trace.with_deadlines(low, high, seed=seed)
    sites = cluster(
        settings["cloud_gpus"], settings["edge_servers"], tide=settings["tide"],
        start_s=trace.start, end_s=trace.end,
    )  # fmt: skip
    outages = tuple(
        outage
        for kind, name in (("cloud", "failures"), ("edge", "withdrawals"))
        if settings[name] is not None
        for outage in draw_outages(
            sites, kind, *settings[name], start_s=trace.start, end_s=trace.end, seed=seed
        )
    )
    return Scenario(
        trace=trace, jobs=trace.jobs(), sites=tuple(sites), outages=outages, digest=trace_digest(trace),
    )  # fmt: skip


def bound_of_scenario(scenario: Scenario, time_limit_s: float) -> float:
    """Return the proven bound on the met weight of any schedule, all arrivals known."""
    from edgeflow_opt.clairvoyant import clairvoyant_bound
    from edgeflow_opt.workloads import with_outages

    return clairvoyant_bound(
        scenario.jobs, with_outages(scenario.sites, scenario.outages),
        time_limit_s=time_limit_s, schedule=False,
    ).bound  # fmt: skip


def simulate_row(
    label: str,
    scenario: Scenario,
    policy: str,
    seed: int,
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    bound: float | None = None,
) -> tuple[PolicyRow, History | None]:
    """Simulate one policy; a failure of it becomes a row that says so.

    Parameters
    ----------
    label
        Name of the trace.
    scenario
        What is simulated.
    policy, options
        Name and options of the policy; the seed is added where the policy has one.
    seed, settings
        Those of the scenario.
    bound
        On the met jobs, where it is known.

    Returns
    -------
    row
        The row.
    history
        What was carried out; None where the policy failed.
    """
    from edgeflow_opt.analysis.history import History
    from edgeflow_opt.policies import POLICIES, make_policy, wants_all_counts
    from edgeflow_opt.simulation import simulate
    from edgeflow_opt.workloads import with_outages

    known: dict[str, Any] = {
        "trace": label, "policy": policy, "seed": seed, "settings": dict(settings),
        "digest": scenario.digest, "bound": bound,
    }  # fmt: skip
    given = dict(options)
    if "seed" in inspect.signature(POLICIES.get(policy)).parameters:
        given.setdefault("seed", seed)
    jobs = scenario.jobs
    if wants_all_counts(policy):
        jobs = scenario.trace.jobs(beyond_knee=True)
    try:
        result = simulate(
            jobs, scenario.sites, make_policy(policy, **given),
            overhead=settings["overhead"], merge_s=settings["merge_s"],
            outages=scenario.outages, name=policy,
        )  # fmt: skip
    except EdgeflowError as error:
        return PolicyRow(**known, message=str(error), error_code=error.exit_code), None
    row = PolicyRow(**known, metrics=result.metrics.to_dict())
    sites = with_outages(scenario.sites, scenario.outages)
    return row, History.of_simulation(jobs, sites, result)


def only_row(*arguments: Any) -> PolicyRow:
    """Return the row of :func:`simulate_row`, without the history, which is large."""
    return simulate_row(*arguments)[0]


def trace_digest(trace: Trace) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the jobs of a trace."""
    text = repr(trace.entries)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
