"""``edgeflow simulate``: a whole trace under online policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.imperfections import (
    LearnAfter,
    MeasuredGpus,
    Placement,
    ProfilingTime,
    RateError,
    analyser_of,
    placement_of,
)
from edgeflow_opt.cli.options import (
    AsJson,
    Output,
    Quiet,
    Seed,
    assignments_of,
    check_output,
    names_of,
    one_of,
    positive,
)
from edgeflow_opt.cli.traces import (
    ArrivalScale,
    CloudGpus,
    Deadlines,
    EdgeServers,
    Failures,
    Head,
    SkipBadRows,
    Tide,
    TraceFile,
    Withdrawals,
    scene_of,
)
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.simulation import Overhead


def simulate(
    trace: TraceFile,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME,...", help="See 'edgeflow policies'.")
    ],
    cloud_gpus: CloudGpus,
    edge_servers: EdgeServers,
    overhead: Annotated[
        str,
        typer.Option(
            "--overhead",
            metavar="MODEL",
            help="Time lost by reconfiguration: none, elasticflow, or RESTART_S,MIGRATION_S.",
        ),
    ] = "none",
    tide: Tide = "constant",
    deadlines: Deadlines = "trace",
    arrival_scale: ArrivalScale = 1.0,
    merge: Annotated[
        float,
        typer.Option("--merge", metavar="S", help="Least seconds between two decisions."),
    ] = 0.0,
    head: Head = None,
    failures_of_nodes: Failures = None,
    withdrawals: Withdrawals = None,
    placement: Placement = None,
    rate_error: RateError = 0.0,
    measured_gpus: MeasuredGpus = None,
    learn_after: LearnAfter = "60",
    profiling_time: ProfilingTime = None,
    seed: Seed = 0,
    solver: Annotated[
        str | None,
        typer.Option("--solver", "-s", metavar="NAME", help="Solver of the exact policies."),
    ] = None,
    time_limit: Annotated[
        float | None,
        positive("--time-limit", "Seconds a decision of the exact policies (default 1)."),
    ] = None,
    bound: Annotated[
        float | None,
        positive(
            "--bound",
            "Also bound what any schedule can meet, in so many seconds, and show the "
            "share of it that each policy meets.",
        ),
    ] = None,
    policy_option: Annotated[
        list[str] | None,
        typer.Option(
            "--policy-option",
            metavar="[POLICY.]NAME=VALUE",
            help="Option of every policy that has it, or of one; repeatable.",
        ),
    ] = None,
    skip_bad_rows: SkipBadRows = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write an HTML report, with charts."),
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a whole trace under online policies, event by event.

    Every history passes the independent checker. Ctrl-C keeps the policies that are through.
    """  # fmt: skip
    from edgeflow_opt.analysis.extras import require_report
    from edgeflow_opt.clairvoyant import clairvoyant_bound
    from edgeflow_opt.cli.console import console, json_text, show, show_json, stdout_kept_pure
    from edgeflow_opt.cli.simulations import load_line, loads_of, results_tables, run_policies
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.policies import kernels_of_policies
    from edgeflow_opt.problem.files import write_text
    from edgeflow_opt.simulation import simulation_document
    from edgeflow_opt.solvers.kernels import CLAIRVOYANT
    from edgeflow_opt.workloads import with_outages

    names = names_of(policy, "--policy")
    if not 0.0 <= merge < float("inf"):
        raise UsageError(f"option --merge: must be a finite number >= 0, got {merge:g}")
    losses = _overhead_of(overhead)
    placed = placement_of(placement)
    analyser, estimation = analyser_of(rate_error, measured_gpus, learn_after, profiling_time, seed)
    check_output(output, trace, tide)
    check_output(report, trace, tide)
    if report is not None:
        require_report()
    with stdout_kept_pure():
        options = options_of(names, assignments_of(policy_option, "--policy-option"), {
            "solver": solver, "time_limit_s": time_limit, "seed": seed,
        })  # fmt: skip
    scene = scene_of(
        trace, cloud_gpus=cloud_gpus, edge_servers=edge_servers, tide=tide, deadlines=deadlines,
        arrival_scale=arrival_scale, head=head, failures=failures_of_nodes,
        withdrawals=withdrawals, skip_bad_rows=skip_bad_rows, seed=seed,
    )  # fmt: skip
    jobs = scene.trace
    left = with_outages(scene.sites, scene.outages)
    settings = {
        **scene.settings,
        "overhead": overhead,
        "merge_s": merge,
        "placement": placed,
        **estimation,
        "policy_options": options,
        **loads_of(jobs, cloud_gpus),
    }
    # Loading the kernels is no part of the first decision.
    compile_once(quiet, *kernels_of_policies(names), *([] if bound is None else [CLAIRVOYANT]))
    results, faults = run_policies(
        jobs, scene.sites, options, overhead=losses, merge_s=merge, outages=scene.outages,
        placement=placed, analyser=analyser, quiet=quiet,
    )  # fmt: skip
    document = simulation_document(jobs.name, settings, results)
    most = None
    if bound is not None and not any(f.exit_code == failures.EXIT_INTERRUPTED for f in faults):
        with stdout_kept_pure():
            most = clairvoyant_bound(jobs.jobs(), left, time_limit_s=bound, schedule=False)
        document["bound"] = most.to_dict()
        for row, result in zip(document["results"], results, strict=True):
            row["share_of_bound"] = most.share(result.metrics.met_weight)
    document["failures"] = [fault.document() for fault in faults]
    if output is not None:
        write_text(output, json_text(document))
    if report is not None:
        from edgeflow_opt.analysis.history import History
        from edgeflow_opt.analysis.policy_comparison import policies_from_document
        from edgeflow_opt.analysis.report import write_report

        histories = [
            History.of_simulation(jobs.jobs(beyond_knee=True), left, result) for result in results
        ]
        write_report(policies_from_document(document), report, histories=histories)
    if as_json:
        show_json(document)
    else:
        show(load_line(jobs, settings), *results_tables(results, console().width, most))
    for fault in faults:
        failures.say(f"Error: {fault.policy}: {fault.message}")
    raise typer.Exit(max((fault.exit_code for fault in faults), default=failures.EXIT_SOLVED))


def options_of(
    names: Sequence[str], given: dict[str, Any], shared: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the options of each policy, having made each policy once to see that they fit.

    Parameters
    ----------
    names
        The policies.
    given
        What ``--policy-option`` says: ``NAME`` is for every policy that has such an option,
        ``POLICY.NAME`` for one.
    shared
        Options of the command by the name that policies give them; None = not given. A policy
        without such an option does not get it.

    Raises
    ------
    UsageError
        If a policy or an option is not known, or no policy has an option that was given.
    """
    import inspect

    from edgeflow_opt.policies import POLICIES, make_policy

    known = {
        one_of("policy", name, POLICIES.names()): set(
            inspect.signature(POLICIES.get(name)).parameters
        )
        for name in names
    }
    options: dict[str, dict[str, Any]] = {
        name: {key: value for key, value in shared.items() if value is not None and key in has}
        for name, has in known.items()
    }
    for key, value in shared.items():
        if value is not None and key != "seed" and not any(key in o for o in options.values()):
            flag = {"time_limit_s": "--time-limit"}.get(key, f"--{key}")
            raise UsageError(f"option {flag}: none of the policies {', '.join(names)} has it")
    for key, value in given.items():
        owner, dot, option = key.partition(".")
        if dot:
            one_of("option --policy-option: policy", owner, names)
            options[owner][option] = value
            continue
        takers = [name for name, has in known.items() if key in has]
        if not takers:
            every = sorted(set().union(*known.values()))
            one_of("option --policy-option:", key, every)
        for name in takers:
            options[name][key] = value
    for name in names:
        make_policy(name, **options[name])
    return options


def _overhead_of(text: str) -> Overhead:
    """Return the model of losses; ``jobs`` is not offered, since jobs of traces state no losses.

    Raises
    ------
    UsageError
        If it is none of the models.
    """
    from edgeflow_opt.simulation import parse_overhead

    try:
        if text != "jobs":
            return parse_overhead(text)
    except UsageError:
        pass
    raise UsageError(
        "option --overhead: must be none, elasticflow or RESTART_S,MIGRATION_S with seconds >= 0, "
        f"got {text!r}; for example 30,180"
    )
