"""``edgeflow demo``: the package on its built-in workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import AsJson, Quiet, positive

if TYPE_CHECKING:
    from edgeflow_opt.analysis import Row

#: Solvers in the order of the table.
_SOLVERS = ("greedy", "edgeflow-select", "cpsat", "highs", "price", "auto")

#: The cluster on which the built-in trace is simulated.
_CLOUD_GPUS, _EDGE_SERVERS = 16, 4

#: Seconds a decision of the exact policy in the demonstration.
_DECISION_S = 0.1

#: What the simulation says and does not say.
_CLOSING = (
    "exact lets a solver choose at every event which jobs are to be met, as far as "
    f"{_DECISION_S:g} s a decision allow, where that beats the choice of edgeflow-select. It knows "
    "nothing of jobs to come, so it is no bound on what a policy can meet: 'edgeflow bound' and "
    "'edgeflow simulate --bound SECONDS' tell that. Reconfigurations cost no time here; 'edgeflow "
    "simulate --overhead' charges them."
)


def demo(
    time_limit: Annotated[float, positive("--time-limit", "Seconds a solve.")] = 2.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare exact and greedy schedules on the built-in workload.

    Runs in under a minute (plus a one-time compilation after installation).
    """
    from edgeflow_opt.analysis import compare
    from edgeflow_opt.analysis.comparison import installed_solvers
    from edgeflow_opt.cli.comparison import notes, rows_tables, watch_of, worst_exit_code
    from edgeflow_opt.cli.console import console, show, show_json, size_of
    from edgeflow_opt.cli.simulate import options_of
    from edgeflow_opt.cli.simulations import load_line, loads_of, results_tables, run_policies
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.policies import kernels_of_policies
    from edgeflow_opt.simulation import parse_overhead, simulation_document
    from edgeflow_opt.solvers import kernels_of
    from edgeflow_opt.workloads import cluster, demo_problem, demo_trace

    installed = installed_solvers()
    solvers = [name for name in _SOLVERS if name in installed]
    # What the simulation needs on top is left for later: the first table is not to wait for it.
    compile_once(quiet, *kernels_of(*solvers))
    problem, trace = demo_problem(), demo_trace()
    problems = {"demo": problem}
    comparison = compare(
        problems,
        solvers,
        time_limit_s=time_limit,
        watch=watch_of(problems, quiet, several_seeds=False),
    )
    rows = comparison.rows
    code = worst_exit_code(rows)
    if not as_json:
        show(
            f"One epoch: {size_of(problem)}",
            *rows_tables(rows), "", *notes(rows), reading(rows), "",
        )  # fmt: skip
    document: dict[str, Any] = {
        "format": "edgeflow-demo/1",
        "rows": [row.document() for row in rows],
    }
    if code != failures.EXIT_INTERRUPTED:
        sites = cluster(_CLOUD_GPUS, _EDGE_SERVERS, start_s=trace.start, end_s=trace.end)
        names = ("edgeflow", "edgeflow-select", "exact")
        compile_once(True, *kernels_of_policies(names))
        results, faults = run_policies(
            trace, sites, options_of(names, {}, {"time_limit_s": _DECISION_S}),
            overhead=parse_overhead("none"), quiet=quiet,
        )  # fmt: skip
        settings = {
            "cloud_gpus": _CLOUD_GPUS, "edge_servers": _EDGE_SERVERS, "overhead": "none",
            "tide": "constant", "time_limit_s": _DECISION_S,
            **loads_of(trace, _CLOUD_GPUS),
        }  # fmt: skip
        document["simulation"] = simulation_document(trace.name, settings, results)
        if not as_json:
            show(
                load_line(trace, settings, "A whole trace"),
                *results_tables(results, console().width),
                "",
                _CLOSING,
            )
        for fault in faults:
            failures.say(f"Error: {fault.policy}: {fault.message}")
            code = max(code, fault.exit_code)
    if as_json:
        show_json(document)
    raise typer.Exit(code)


def reading(rows: Sequence[Row]) -> str:
    """Return how to read the table, with its own figures."""
    from edgeflow_opt.cli.console import count

    text = (
        "met: jobs that complete by their deadline; bound: proven, no schedule meets more; gap: "
        "how far from it the schedule may be; cost: GPU-seconds held; reconf.: runs begun after the job "
        "has run before."
    )
    if any(row.status == "optimal" and row.limit == "time" for row in rows):
        text += (
            " optimal (time): the jobs met are proven, the limit ended work on what comes after."
        )
    met = {row.solver: row.met for row in rows if row.met is not None}
    if "greedy" not in met or len(met) < 2:
        return text
    best = max(met.values())
    finders = [name for name, value in met.items() if value == best]
    proven = any(row.status == "optimal" and row.met == best for row in rows)
    text += (
        f" {count(best, 'job')} on time is {'proven optimal' if proven else 'the best found'}, reached by "
        f"{' and '.join(filter(None, [', '.join(finders[:-1]), finders[-1]]))}; the greedy "
        f"reaches {met['greedy']}"
    )
    if "edgeflow-select" in met:
        text += f", with job selection {met['edgeflow-select']}"
    return f"{text}, in milliseconds and without proof."
