"""What the reports say: of a comparison of solvers, and of policies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgeflow_opt.analysis.comparison import Comparison
from edgeflow_opt.analysis.history import History
from edgeflow_opt.analysis.policy_comparison import PolicyComparison
from edgeflow_opt.analysis.report.page import (
    Cell,
    Page,
    Picture,
    Section,
    TableOf,
    filled,
    html_of,
    inline_svg,
    number,
    number_cell,
    p_value,
    percent,
    seconds,
    setting,
    text_cell,
)
from edgeflow_opt.analysis.rows import Row
from edgeflow_opt.analysis.statistics import Mean, PairedTest

#: Most pairs of contenders that are all compared; beyond, all are held against the first.
_MOST_PAIRS = 15

#: Most histories that are drawn, since each is a large picture.
_MOST_HISTORIES = 6

#: How paired tests are read.
_TESTS = (
    "Mean difference (first minus second) over the {units} that both have, with its 95 % interval "
    "by Student's t; p-values of the paired t-test and of Wilcoxon's signed-rank test, the latter "
    "also corrected for all comparisons of the table by Holm's rule. Small p-values speak against "
    "chance; large ones are no proof of equality."
)

_TONES = {"optimal": "good", "infeasible": "bad", "no_solution": "bad", "error": "bad"}


def write_report(
    given: Comparison | PolicyComparison,
    path: str | Path,
    *,
    title: str | None = None,
    histories: Sequence[History] = (),
) -> None:
    """Write the report of a comparison: one HTML file, whole or not at all.

    Parameters
    ----------
    given
        A comparison of solvers or of policies.
    path
        File to write.
    title
        None = one that says what is compared.
    histories
        What policies carried out, to be drawn; at most six are.

    Raises
    ------
    UsageError
        If a library is missing, or the file cannot be written.
    """
    from edgeflow_opt.problem.files import write_text

    if isinstance(given, Comparison):
        page = comparison_page(given, title=title)
    else:
        page = policies_page(given, title=title, histories=histories)
    write_text(path, html_of(page))


def comparison_page(comparison: Comparison, *, title: str | None = None) -> Page:
    """Return the report of a comparison of solvers."""
    rows = comparison.rows
    optimal = {row.instance for row in rows if row.status in ("optimal", "infeasible")}
    settings = comparison.settings
    cards = [
        ("instances", number(len(comparison.instances))),
        ("solvers", number(len(comparison.solvers))),
        ("seeds", number(len(comparison.seeds))),
        ("runs", number(len(rows))),
        ("instances settled by a proof", f"{len(optimal)} of {len(comparison.instances)}"),
    ]
    if settings.get("time_limit_s") is not None:
        cards.append(("time limit", f"{setting(settings['time_limit_s'])} s"))
    failed = [row for row in rows if row.message is not None]
    sections = [_solvers_section(comparison), _curves_section(comparison)]
    sections += _tests_section(comparison)
    sections.append(Section(title="All runs", table=filled(_rows_table(comparison))))
    if failed:
        sections.append(_failures_section(failed))
    return Page(
        title=title or "Comparison of solvers",
        subtitle=_few(comparison.solvers, "solvers") + " on " + _few(comparison.instances, "instances"),
        cards=tuple(cards),
        sections=tuple(sections),
        details=(
            *((name, setting(value)) for name, value in settings.items()),
            *((f"version of {name}", value) for name, value in comparison.versions.items()),
        ),
    )  # fmt: skip


def policies_page(
    comparison: PolicyComparison,
    *,
    title: str | None = None,
    histories: Sequence[History] = (),
) -> Page:
    """Return the report of a comparison of policies, with what they carried out."""
    rows = comparison.rows
    swept = comparison.swept
    cards = [
        ("traces", number(len(comparison.traces))),
        ("policies", number(len(comparison.policies))),
        ("seeds", number(len(comparison.seeds))),
        ("simulations", number(len(rows))),
    ]
    best = max(comparison.means("dsr", by=[]), key=lambda p: p.mean.mean, default=None)
    if best is not None:
        cards.append(("most deadlines met by", f"{best.policy} ({best.mean.mean:.3f})"))
    sections = [_means_section(comparison), *_policy_pictures(comparison)]
    sections += _policy_tests(comparison)
    sections += [_history_section(h, index) for index, h in enumerate(histories[:_MOST_HISTORIES])]
    sections.append(Section(title="All simulations", table=filled(_simulations_table(comparison))))
    fixed = {n: v for row in rows[:1] for n, v in row.settings.items() if n not in swept}
    return Page(
        title=title or "Comparison of policies",
        subtitle=_few(comparison.policies, "policies") + " on " + _few(comparison.traces, "traces"),
        cards=tuple(cards),
        sections=tuple(sections),
        details=(
            *((name, setting(value)) for name, value in fixed.items()),
            *((f"version of {name}", value) for name, value in comparison.versions.items()),
        ),
    )


def _few(names: Sequence[str], what: str) -> str:
    """Return names in a row, or how many there are."""
    return ", ".join(names) if len(names) <= 6 else f"{len(names)} {what}"


def _solvers_section(comparison: Comparison) -> Section:
    lines = comparison.summary()
    most = max((line["best"] for line in lines), default=0)
    table = TableOf(
        columns=("solver", "runs", "failed", "proven", "best known", "mean value", "mean gap",
                 "runs with a gap", "mean cost", "mean reconf.", "mean seconds"),
        rows=tuple(
            (
                text_cell(line["solver"]),
                number_cell(line["rows"]),
                number_cell(line["failed"], tone="bad" if line["failed"] else ""),
                number_cell(line["optimal"]),
                number_cell(line["best"], tone="good" if line["best"] == most else ""),
                number_cell(line["value"]),
                number_cell(line["gap"], percent(line["gap"])),
                number_cell(line["gap_rows"]),
                number_cell(line["cost"]),
                number_cell(line["reconfigurations"]),
                number_cell(line["seconds"], seconds(line["seconds"])),
            )
            for line in lines
        ),
    )  # fmt: skip
    return Section(
        title="Solvers",
        text="best known: runs with the best value that any run has on their instance. Means are "
        "over the runs that have the figure; a heuristic proves no bound and so has no gap.",
        table=table,
    )


def _curves_section(comparison: Comparison) -> Section:
    from edgeflow_opt.analysis.plots import plot_gap, plot_profile

    pictures = [
        Picture(
            svg=inline_svg(plot_gap(comparison), "gap", "Gap to the best known value over time"),
            caption="Gap to the best known value over time: the mean of the runs, with their range "
            "as a band. The lower and the further left, the sooner good schedules are there.",
        )
    ]
    if comparison.gap_curves("proven"):
        pictures.append(
            Picture(
                svg=inline_svg(plot_gap(comparison, "proven"), "proven", "Proven gap over time"),
                caption="Gap to each solver's own proven bound over time. 0 is a proof of "
                "optimality; heuristics prove nothing and are not drawn.",
            )
        )
    pictures.append(
        Picture(
            svg=inline_svg(plot_profile(comparison, "value"), "value", "Profile of values"),
            caption="Share of runs whose value is within a factor of the best value of any solver. "
            "At 1: how often a solver is best.",
        )
    )
    if any(profile.ratios for profile in comparison.performance_profiles("seconds")):
        pictures.append(
            Picture(
                svg=inline_svg(plot_profile(comparison), "time", "Profile of times to a proof"),
                caption="Share of runs that a solver settles by a proof within a factor of the "
                "fastest time. The height at the right is the share that it settles at all.",
            )
        )
    return Section(title="Over all runs", pictures=tuple(pictures))


def _tests_section(comparison: Comparison) -> list[Section]:
    names = comparison.solvers
    if len(names) < 2:
        return []
    many = len(names) * (len(names) - 1) // 2 > _MOST_PAIRS
    reference = names[0] if many else None
    single = len(comparison.instances) == 1
    units = "seeds" if single else "instances (means over the seeds)"
    tests = comparison.paired_tests("value", reference=reference)
    tests += comparison.paired_tests("seconds", reference=reference)
    return [
        Section(
            title="Paired differences", text=_TESTS.format(units=units), table=_tests_table(tests)
        )
    ]


def _tests_table(tests: Sequence[PairedTest]) -> TableOf:
    return TableOf(
        columns=("measure", "first", "second", "pairs", "more", "same", "less", "mean difference",
                 "95 % interval", "p (t)", "p (Wilcoxon)", "p (Holm)"),
        rows=tuple(
            (
                text_cell(test.measure),
                text_cell(test.first),
                text_cell(test.second),
                number_cell(test.count),
                number_cell(test.wins),
                number_cell(test.ties),
                number_cell(test.losses),
                number_cell(test.difference.mean, number(test.difference.mean, 3)),
                _interval(test.difference),
                number_cell(test.p_t, p_value(test.p_t)),
                number_cell(test.p_wilcoxon, p_value(test.p_wilcoxon)),
                number_cell(
                    test.p_adjusted, p_value(test.p_adjusted),
                    tone="good" if test.p_adjusted is not None and test.p_adjusted < 0.05 else "",
                ),
            )
            for test in tests
        ),
    )  # fmt: skip


def _interval(mean: Mean) -> Cell:
    if mean.low is None:
        return Cell(text="-", tone="dim")
    return Cell(text=f"{number(mean.low, 3)} to {number(mean.high, 3)}", key=mean.low)


def _rows_table(comparison: Comparison) -> TableOf:
    best = {name: comparison.best_value(name) for name in comparison.instances}
    counted = {row.value_name for row in comparison.rows} - {None}
    value = counted.pop() if len(counted) == 1 else "value"

    def cells(row: Row) -> tuple[Cell, ...]:
        top = row.value is not None and row.value == best[row.instance]
        status = "not supported" if row.refused else row.status
        return (
            text_cell(row.instance),
            text_cell(row.solver),
            number_cell(row.seed),
            number_cell(row.met, "-" if row.met is None else f"{row.met}/{row.num_jobs}"),
            number_cell(row.value, tone="good" if top else ""),
            number_cell(row.bound),
            number_cell(row.gap, percent(row.gap)),
            number_cell(row.cost),
            number_cell(row.reconfigurations),
            number_cell(row.seconds, seconds(row.seconds)),
            text_cell(
                status + (f" ({row.limit})" if row.limit else ""), _TONES.get(row.status, "")
            ),
        )

    return TableOf(
        columns=("instance", "solver", "seed", "met", str(value), "bound", "gap", "cost", "reconf.",
                 "seconds", "status"),
        rows=tuple(cells(row) for row in comparison.rows),
    )  # fmt: skip


def _failures_section(rows: Sequence[Row]) -> Section:
    return Section(
        title="Runs without a result",
        table=TableOf(
            columns=("instance", "solver", "seed", "why"),
            rows=tuple(
                (text_cell(row.instance), text_cell(row.solver), number_cell(row.seed),
                 text_cell(row.message, "note"))
                for row in rows
            ),
        ),
    )  # fmt: skip


def _means_section(comparison: PolicyComparison) -> Section:
    measures = ("dsr", "late", "refused", "unfinished", "cloud_utilisation", "edge_utilisation",
                "reconfigurations_per_job", "decision_mean_s", "decision_max_s")  # fmt: skip
    found = {
        (point.policy, measure): point.mean
        for measure in measures
        for point in comparison.means(measure, by=[])
    }

    def cell(policy: str, measure: str) -> Cell:
        mean = found.get((policy, measure))
        if mean is None:
            return number_cell(None)
        scale = 1000.0 if measure.startswith("decision") else 1.0
        text = number(mean.mean * scale, 3)
        if mean.half_width:
            text += f" ± {number(mean.half_width * scale, 2)}"
        return number_cell(mean.mean, text)

    return Section(
        title="Policies",
        text="Means over all simulations, with the half width of their 95 % intervals (Student's t; "
        "they suppose that seeds are independent draws). Times of decisions in milliseconds.",
        table=TableOf(
            columns=("policy", "deadline satisfaction", "late", "refused", "unfinished",
                     "cloud utilisation", "edge utilisation", "reconf. a job", "ms a decision",
                     "ms, longest"),
            rows=tuple(
                (text_cell(policy), *(cell(policy, measure) for measure in measures))
                for policy in comparison.policies
            ),
        ),
    )  # fmt: skip


def _policy_pictures(comparison: PolicyComparison) -> list[Section]:
    from edgeflow_opt.analysis.plots import plot_policies, plot_sweep
    from edgeflow_opt.analysis.plots.policies import WORDS

    pictures = []
    if comparison.means("dsr", by=[]):
        pictures.append(
            Picture(
                svg=inline_svg(plot_policies(comparison), "policies", "Policies by deadlines met"),
                caption="Mean deadline satisfaction ratio of each policy with its confidence "
                "interval; thin marks are single simulations.",
            )
        )
        for name in comparison.swept:
            label = f"Deadline satisfaction over {WORDS.get(name, name)}"
            pictures.append(
                Picture(
                    svg=inline_svg(plot_sweep(comparison, name), f"sweep-{name}", label),
                    caption=f"{label}: means, with their confidence bands.",
                )
            )
    return [Section(title="Deadlines met", pictures=tuple(pictures))] if pictures else []


def _policy_tests(comparison: PolicyComparison) -> list[Section]:
    names = comparison.policies
    if len(names) < 2:
        return []
    many = len(names) * (len(names) - 1) // 2 > _MOST_PAIRS
    tests = comparison.paired_tests("dsr", reference=names[0] if many else None)
    units = "traces and seeds (means over sweeps)"
    return [
        Section(
            title="Paired differences", text=_TESTS.format(units=units), table=_tests_table(tests)
        )
    ]


def _history_section(history: History, index: int) -> Section:
    from edgeflow_opt.analysis.plots import plot_gantt, usage_figure

    name = f"h{index}"
    return Section(
        title=f"What {history.name} carried out",
        wide=True,
        pictures=(
            Picture(
                svg=inline_svg(plot_gantt(history), f"{name}-gantt", f"Gantt chart of {history.name}"),
                caption="A row per unit, a colour per job; hatched jobs miss their deadline. The "
                "strip below has a mark at every deadline.",
            ),
            Picture(
                svg=inline_svg(usage_figure(history), f"{name}-usage", f"Usage by {history.name}"),
                caption="Units held over time, under the capacity of each site.",
            ),
        ),
    )  # fmt: skip


def _simulations_table(comparison: PolicyComparison) -> TableOf:
    swept = comparison.swept

    def swept_cell(value: object) -> Cell:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return number_cell(float(value))
        return text_cell(setting(value))

    return TableOf(
        columns=("trace", *(name.replace("_", " ") for name in swept), "seed", "policy", "jobs",
                 "met", "deadline satisfaction", "bound", "late", "refused", "unfinished",
                 "cloud util.", "edge util.", "reconf. a job", "ms a decision", "note"),
        rows=tuple(
            (
                text_cell(row.trace),
                *(swept_cell(row.settings.get(name)) for name in swept),
                number_cell(row.seed),
                text_cell(row.policy),
                *(number_cell(row.value(m)) for m in ("jobs", "met")),
                number_cell(row.value("dsr"), number(row.value("dsr"), 3)),
                number_cell(row.bound),
                *(number_cell(row.value(m)) for m in ("late", "refused", "unfinished")),
                *(number_cell(row.value(m), percent(row.value(m)))
                  for m in ("cloud_utilisation", "edge_utilisation")),
                number_cell(row.value("reconfigurations_per_job")),
                number_cell(
                    None if (mean := row.value("decision_mean_s")) is None else 1000 * mean
                ),
                text_cell(row.message or "", "bad" if row.message else ""),
            )
            for row in comparison.rows
        ),
    )  # fmt: skip
