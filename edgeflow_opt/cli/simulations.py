"""Simulations under several policies, and their results for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.interrupts import interrupts_kept, until_pressed
from edgeflow_opt.errors import EdgeflowError, is_ctrl_c

if TYPE_CHECKING:
    from rich.table import Table

    from edgeflow_opt.clairvoyant import ClairvoyantBound
    from edgeflow_opt.problem import Job, Site
    from edgeflow_opt.simulation import Metrics, Overhead, SimulationResult
    from edgeflow_opt.simulation.analyser import Analyser, EstimationMetrics
    from edgeflow_opt.simulation.placement import PlacementMetrics
    from edgeflow_opt.workloads import Outage, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFailure:
    """A policy that did not come to the end of the trace.

    Parameters
    ----------
    policy
        Its name.
    message
        Why.
    exit_code
        Exit code that it stands for.
    """

    policy: str
    message: str
    exit_code: int

    def document(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"policy": self.policy, "message": self.message}


def run_policies(
    trace: Trace,
    sites: Sequence[Site],
    policies: Mapping[str, Mapping[str, Any]],
    *,
    overhead: Overhead,
    merge_s: float = 0.0,
    outages: Sequence[Outage] = (),
    placement: str | None = None,
    analyser: Analyser | None = None,
    quiet: bool = False,
) -> tuple[list[SimulationResult], list[PolicyFailure]]:
    """Simulate under each policy in turn; one that fails does not keep the others from running.

    Parameters
    ----------
    trace
        Its jobs are simulated; policies that say so (``beyond_knee``) see the slower GPU counts
        beyond the knee among the modes too.
    sites, overhead, merge_s, outages, placement, analyser
        As in :func:`edgeflow_opt.simulation.simulate`.
    policies
        Options by name of policy.
    quiet
        No progress on stderr.

    Returns
    -------
    results
        Of the policies that came to the end.
    faults
        Of the others. Ctrl-C ends the policy that runs and leaves out those after it.
    """
    from edgeflow_opt.cli.console import stdout_kept_pure
    from edgeflow_opt.cli.progress import events_of
    from edgeflow_opt.policies import make_policy, wants_all_counts
    from edgeflow_opt.simulation import simulate

    results: list[SimulationResult] = []
    faults: list[PolicyFailure] = []
    jobs: dict[bool, tuple[Job, ...]] = {}
    for name, options in policies.items():
        try:
            beyond_knee = wants_all_counts(name)
            if beyond_knee not in jobs:
                jobs[beyond_knee] = trace.jobs(beyond_knee=beyond_knee)
            with (
                stdout_kept_pure(),
                events_of(name, len(trace), quiet) as on_event,
                interrupts_kept() as pressed,
            ):
                results.append(
                    simulate(
                        jobs[beyond_knee],
                        sites,
                        make_policy(name, **options),
                        overhead=overhead,
                        merge_s=merge_s,
                        outages=outages,
                        placement=placement,
                        analyser=analyser,
                        name=name,
                        on_event=until_pressed(pressed, on_event),
                    )
                )
        except EdgeflowError as error:
            faults.append(PolicyFailure(policy=name, message=str(error), exit_code=error.exit_code))
        except (KeyboardInterrupt, SystemError) as problem:
            if not is_ctrl_c(problem):
                raise
            faults.append(
                PolicyFailure(
                    policy=name, message="interrupted", exit_code=failures.EXIT_INTERRUPTED
                )
            )
            break
    return results, faults


def load_line(trace: Trace, settings: Mapping[str, Any], name: str | None = None) -> str:
    """Return what was simulated, with its load, in one line: differences need overload.

    Parameters
    ----------
    trace, settings
        What was simulated, and the options of the cluster as in the document.
    name
        Name of the trace for people; None = its own.
    """
    from edgeflow_opt.cli.console import count, number, printable

    skipped = f" ({count(trace.skipped, 'bad row')} skipped)" if trace.skipped else ""
    return printable(
        f"{trace.name if name is None else name}: {count(len(trace), 'job')}{skipped} on "
        f"{count(settings['cloud_gpus'], 'cloud GPU')} and "
        f"{count(settings['edge_servers'], 'edge server')} (tide {settings['tide']}), load {number(settings['arrival_load'], 2)} while jobs arrive, "
        f"overhead {settings['overhead']}"
    )


def loads_of(trace: Trace, cloud_gpus: int) -> dict[str, float | None]:
    """Return the loads of a trace for the settings of a document; None where there is no cloud."""
    loads = {
        "offered_load": trace.offered_load(cloud_gpus),
        "arrival_load": trace.arrival_load(cloud_gpus),
    }
    return {name: value if math.isfinite(value) else None for name, value in loads.items()}


def results_tables(
    results: Sequence[SimulationResult], width: int, bound: ClairvoyantBound | None = None
) -> list[Table]:
    """Return the results for people: a column for each policy, as many a table as `width` holds.

    Parameters
    ----------
    results
        One per policy.
    width
        Columns of the terminal.
    bound
        The clairvoyant bound, of which each policy's share is shown; None = not known.
    """
    from edgeflow_opt.cli.console import number, percent, printable, table

    def fixed(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    lines: list[tuple[str, Callable[[Metrics], str]]] = [
        ("deadlines met", lambda m: f"{m.met}/{m.jobs}"),
        ("deadline satisfaction ratio", lambda m: fixed(m.dsr, 3)),
        *(
            [
                (
                    f"share of the bound, {number(bound.bound)}",
                    lambda m: percent(bound.share(m.met_weight)),
                )
            ]
            if bound is not None
            else []
        ),
        ("late", lambda m: number(m.late)),
        ("refused", lambda m: number(m.refused)),
        ("unfinished", lambda m: number(m.unfinished)),
        ("cloud utilisation", lambda m: percent(m.cloud_utilisation)),
        ("edge utilisation", lambda m: percent(m.edge_utilisation)),
        ("reconfigurations a job", lambda m: fixed(m.reconfigurations_per_job, 1)),
        ("migrations a job", lambda m: fixed(m.migrations_per_job, 1)),
        *(
            [("interruptions", lambda m: number(m.interruptions))]
            if any(result.metrics.interruptions for result in results)
            else []
        ),
        ("decisions", lambda m: number(m.events)),
        ("ms a decision, mean", lambda m: number(1000 * m.decision_s.mean, 3)),
        ("ms a decision, longest", lambda m: number(1000 * m.decision_s.max, 3)),
    ]
    placed: list[tuple[str, Callable[[PlacementMetrics], str]]] = [
        ("repacks a job", lambda p: fixed(p.repacks_per_job, 1)),
        ("fragmentation", lambda p: percent(p.fragmentation)),
        ("delayed for want of a place", lambda p: number(p.delayed_jobs)),
        ("shrunk for want of a place", lambda p: number(p.shrunk_jobs)),
        ("runs on too many nodes", lambda p: number(p.spread_runs)),
    ]
    estimated: list[tuple[str, Callable[[EstimationMetrics], str]]] = [
        ("error of rates at first", lambda e: percent(e.mean_error)),
        ("rates corrected", lambda e: number(e.learned)),
        ("not done when foreseen", lambda e: number(e.overdue)),
    ]
    label, cell = 27, max((len(result.policy) for result in results), default=0) + 2
    step = max(1, (width - label) // max(cell, 10))
    tables = []
    for first in range(0, len(results), step):
        chosen = results[first : first + step]
        made = table("", *(printable(result.policy) for result in chosen), left=("",))
        for name, text in lines:
            made.add_row(name, *(text(result.metrics) for result in chosen))
        if all(result.placement is not None for result in chosen):
            for name, told in placed:
                made.add_row(name, *(told(r.placement) for r in chosen if r.placement is not None))
        if all(result.estimation is not None for result in chosen):
            for name, said in estimated:
                made.add_row(
                    name, *(said(r.estimation) for r in chosen if r.estimation is not None)
                )
        tables.append(made)
    return tables
