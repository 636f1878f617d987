"""``edgeflow explain``: why deadlines are missed, and what would save them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.options import (
    DEFAULT_TIME_LIMIT_S,
    AsJson,
    Output,
    Quiet,
    check_output,
    positive,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from edgeflow_opt.analysis.explain import Explanation, JobExplanation

#: How to read the table of the worth of capacity.
_MARGINALS_READ = (
    "by prices: rate at which the bound of the relaxation rises per unit over the span, at the margin;"
    " a guess.\n"
    "re-solved: verified gain of one whole unit; a-b = at least a, at most b; - = no time."
)

#: Rows of a table for people; the JSON document has all.
_SHOWN = 40


def explain(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="File in format edgeflow-epoch/1; - = stdin.")
    ],
    schedule: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCHEDULE]", help="Schedule to explain (default: one by the solver auto)."
        ),
    ] = None,
    job: Annotated[
        list[str] | None,
        typer.Option("--job", metavar="ID", help="Explain this job only; repeatable."),
    ] = None,
    time_limit: Annotated[
        float, positive("--time-limit", "Seconds for all, the solves that it takes included.")
    ] = DEFAULT_TIME_LIMIT_S,
    marginals: Annotated[
        bool,
        typer.Option("--marginals/--no-marginals", help="Tell what one more unit is worth."),
    ] = True,
    output: Output = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell why jobs miss their deadlines, what would save each, and what capacity is worth.

    Every remedy is verified by a schedule of the changed instance. Where hard deadlines contradict
    each other, a minimal set of them is named, and the exit code is 3.
    """
    from edgeflow_opt.analysis.explain import KERNELS
    from edgeflow_opt.analysis.explain import explain as run
    from edgeflow_opt.cli.console import json_text, show, show_json, stdout_kept_pure
    from edgeflow_opt.cli.inputs import only_one_stdin, read_instance, read_plan
    from edgeflow_opt.cli.warm_up import compile_once
    from edgeflow_opt.problem.files import write_text

    only_one_stdin([instance, schedule])
    check_output(output, instance, *([schedule] if schedule else []))
    problem = read_instance(instance)
    plan = None if schedule is None else read_plan(schedule)
    compile_once(quiet, *KERNELS)
    with stdout_kept_pure():
        found = run(problem, plan, jobs=job or None, time_limit_s=time_limit, marginals=marginals)
    document = found.document()
    if output is not None:
        write_text(output, json_text(document))
    if as_json:
        show_json(document)
    else:
        show(*_report(found))
    status = str(found.schedule.status)
    code = {"infeasible": failures.EXIT_INFEASIBLE, "no_solution": failures.EXIT_NO_SOLUTION}
    if found.interrupted:
        raise typer.Exit(failures.EXIT_INTERRUPTED)
    raise typer.Exit(code.get(status, failures.EXIT_SOLVED))


def _report(found: Explanation) -> list[RenderableType]:
    from edgeflow_opt.cli.console import facts, number, seconds, word

    value = found.schedule.objective
    pairs: list[tuple[str, str | Text]] = [("schedule", word(str(found.schedule.status)))]
    if value is not None:
        pairs.append(("met weight", number(value.met_weight)))
        pairs.append(("proven bound", number(found.schedule.bound)))
        missed = sum(not job.met for job in found.jobs)
        pairs.append(("explained", f"{missed} missed of {len(found.jobs)} jobs asked for"))
    if found.conflict is not None:
        minimal = "minimal" if found.conflict.minimal else "not yet minimal: time ran out"
        pairs.append(("conflict", f"{found.conflict.text} ({minimal})"))
    elif value is None:
        pairs.append(("conflict", "none was found"))
    pairs.append(("seconds", seconds(found.seconds)))
    if not found.complete:
        why = "interrupted" if found.interrupted else "time ran out"
        pairs.append(
            ("note", f"{why}: a longer --time-limit may find more, or less costly, remedies")
        )
    things: list[RenderableType] = [facts("Explanation", pairs)]
    if found.jobs:
        things.append(_jobs_table(found.jobs))
    if len(found.jobs) > _SHOWN:
        things.append(f"... and {len(found.jobs) - _SHOWN} more jobs; --json shows all")
    if len(found.jobs) == 1 and found.jobs[0].contention:
        things.append(_contention_table(found.jobs[0]))
    if len(found.jobs) == 1 and found.jobs[0].conflict is not None:
        conflict = found.jobs[0].conflict
        things.append(
            facts("Conflict", [("minimal" if conflict.minimal else "so far", conflict.text)])
        )
    if found.marginals:
        things.append(_marginals_table(found))
        things.append(_MARGINALS_READ)
    return things


def _jobs_table(jobs: tuple[JobExplanation, ...]) -> Table:
    from edgeflow_opt.cli.console import number, printable, table

    made = table(
        "job", "weight", "deadline", "completes", "why", "what would save it",
        title="Jobs", left=("job", "why", "what would save it"),
    )  # fmt: skip
    for job in jobs[:_SHOWN]:
        remedies = [
            r.text + (" (proven least)" if r.proven_least and r.kind != "replan" else "")
            for r in job.remedies
        ]
        if not remedies and not job.met:
            remedies = ["nothing was found" if job.complete else "not looked for: no time"]
        made.add_row(
            printable(job.job), number(job.weight), number(job.deadline),
            number(job.completion), printable(job.reason),
            "\n".join(printable(text) for text in remedies),
        )  # fmt: skip
    return made


def _contention_table(job: JobExplanation) -> Table:
    from edgeflow_opt.cli.console import number, printable, table

    made = table(
        "site", "from", "to", "needed", "free", "capacity", "held by (unit-seconds)",
        title=f"Contention for '{printable(job.job)}'", left=("site", "held by (unit-seconds)"),
    )  # fmt: skip
    for span in job.contention:
        holders = ", ".join(f"{h.job} ({number(h.unit_seconds)})" for h in span.holders)
        made.add_row(
            printable(span.site), number(span.start), number(span.end), number(span.needed),
            number(span.free), number(span.capacity), printable(holders),
        )  # fmt: skip
    return made


def _marginals_table(found: Explanation) -> Table:
    from edgeflow_opt.cli.console import number, printable, table

    made = table(
        "site", "from", "to", "by prices", "re-solved",
        title="Worth of one more unit, in met weight", left=("site",),
    )  # fmt: skip
    for m in found.marginals:
        gain = "-"
        if m.gain_at_least is not None:
            most = number(m.gain_at_most, 4)
            gain = f"{number(m.gain_at_least, 4)}-{most}, not closed in time"
            if m.gain_at_least == m.gain_at_most:
                gain = most
        made.add_row(
            printable(m.site), number(m.start), number(m.end), number(m.price, 3), gain
        )  # fmt: skip
    return made
