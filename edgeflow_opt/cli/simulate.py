"""``edgeflow simulate``: a whole trace under online policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli import failures
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
    range_of,
    whole,
)
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.simulation import Overhead
    from edgeflow_opt.workloads import Trace


def simulate(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="CSV or CSV.gz of a known format; - = stdin.")
    ],
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME,...", help="See 'edgeflow policies'.")
    ],
    cloud_gpus: Annotated[int, whole("--cloud-gpus", "GPUs of the cloud.", 0, 10**9)],
    edge_servers: Annotated[int, whole("--edge-servers", "Edge servers in all.", 0, 10**9)],
    overhead: Annotated[
        str,
        typer.Option(
            "--overhead",
            metavar="MODEL",
            help="Time lost by reconfiguration: none, elasticflow, or RESTART_S,MIGRATION_S.",
        ),
    ] = "none",
    tide: Annotated[
        str,
        typer.Option(
            "--tide",
            metavar="NAME",
            help="Usable edge servers over time: constant, daily, or a CSV file with the columns "
            "time_s and either units (usable servers) or load (their own work, 0 to 1).",
        ),
    ] = "constant",
    deadlines: Annotated[
        str,
        typer.Option(
            "--deadlines",
            metavar="trace|LO,HI",
            help="As in the trace, or re-drawn as submission + U[LO, HI] x duration.",
        ),
    ] = "trace",
    arrival_scale: Annotated[
        float, positive("--arrival-scale", "Multiplier of the inter-arrival times.", "X")
    ] = 1.0,
    merge: Annotated[
        float,
        typer.Option("--merge", metavar="S", help="Least seconds between two decisions."),
    ] = 0.0,
    head: Annotated[int | None, whole("--head", "Only the first jobs of the trace.", 1)] = None,
    seed: Seed = 0,
    solver: Annotated[
        str | None,
        typer.Option("--solver", "-s", metavar="NAME", help="Solver of the exact policies."),
    ] = None,
    time_limit: Annotated[
        float | None,
        positive("--time-limit", "Seconds a decision of the exact policies (default 1)."),
    ] = None,
    policy_option: Annotated[
        list[str] | None,
        typer.Option(
            "--policy-option",
            metavar="[POLICY.]NAME=VALUE",
            help="Option of every policy that has it, or of one; repeatable.",
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Drop and count bad rows of the trace.")
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a whole trace under online policies, event by event.

    Every history passes the independent checker. Ctrl-C keeps the policies that are through.
    """  # fmt: skip
    from edgeflow_opt.cli.console import console, json_text, show, show_json, stdout_kept_pure
    from edgeflow_opt.cli.simulations import load_line, loads_of, results_tables, run_policies
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem.files import write_text
    from edgeflow_opt.simulation import simulation_document
    from edgeflow_opt.workloads import cluster

    names = names_of(policy, "--policy")
    if not 0.0 <= merge < float("inf"):
        raise UsageError(f"option --merge: must be a finite number >= 0, got {merge:g}")
    if cloud_gpus + edge_servers == 0:
        raise UsageError("options --cloud-gpus, --edge-servers: at least one must be above 0")
    factors = None if deadlines == "trace" else range_of(deadlines, "--deadlines")
    losses = _overhead_of(overhead)
    check_output(output, trace, tide)
    with stdout_kept_pure():
        options = options_of(names, assignments_of(policy_option, "--policy-option"), {
            "solver": solver, "time_limit_s": time_limit, "seed": seed,
        })  # fmt: skip
    jobs = _read_trace(trace, skip_bad_rows)
    if head is not None:
        jobs = jobs.head(head)
    jobs = jobs.scale_arrivals(arrival_scale)
    if factors is not None:
        jobs = jobs.with_deadlines(*factors, seed=seed)
    sites = cluster(cloud_gpus, edge_servers, tide=tide, start_s=jobs.start, end_s=jobs.end)
    settings = {
        "cloud_gpus": cloud_gpus,
        "edge_servers": edge_servers,
        "overhead": overhead,
        "tide": tide,
        "deadlines": deadlines,
        "arrival_scale": arrival_scale,
        "merge_s": merge,
        "head": head,
        "seed": seed,
        "policy_options": options,
        "skipped_rows": jobs.skipped,
        **loads_of(jobs, cloud_gpus),
    }
    # Loading the kernels is no part of the first decision.
    compile_once(quiet)
    results, faults = run_policies(
        jobs, sites, options, overhead=losses, merge_s=merge, quiet=quiet
    )
    document = simulation_document(jobs.name, settings, results)
    document["failures"] = [fault.document() for fault in faults]
    if output is not None:
        write_text(output, json_text(document))
    if as_json:
        show_json(document)
    else:
        show(load_line(jobs, settings), *results_tables(results, console().width))
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


def _read_trace(path: str, skip_bad_rows: bool) -> Trace:
    from edgeflow_opt.cli.inputs import STDIN, bytes_on_stdin
    from edgeflow_opt.errors import TraceError
    from edgeflow_opt.workloads import read_trace, trace_from_bytes

    if path != STDIN:
        return read_trace(path, skip_bad_rows=skip_bad_rows)
    return trace_from_bytes(bytes_on_stdin(TraceError), "stdin", skip_bad_rows=skip_bad_rows)
