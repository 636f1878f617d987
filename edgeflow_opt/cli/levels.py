"""The levels of the objective for people: their names, units and directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.analysis.rows import value_name as value_name

if TYPE_CHECKING:
    from rich.table import Table

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.objective import Weights
    from edgeflow_opt.solvers import SolveResult

#: The levels in their order.
LEVELS = ("met", "progress", "leftover", "cost", "reconfigurations")


def levels_table(problem: EpochProblem, result: SolveResult) -> Table:
    """Return the value of every level, and how far it was taken; the result has a plan."""
    from edgeflow_opt.cli.console import number, table, word

    value = result.objective
    assert value is not None
    reached = {
        "weighted": value.weighted,
        "met": value.met_weight,
        "progress": value.progress,
        "leftover": value.leftover,
        "cost": value.cost,
        "reconfigurations": value.reconfigurations,
    }
    reports = {report.level: report for report in result.levels}
    made = table("level", "value", "bound", "proven best", "meaning", title="Levels of the objective",
                 left=("level", "meaning"))  # fmt: skip
    weights = problem.objective.weights
    for level in (*(["weighted"] if weights is not None else []), *LEVELS):
        report = reports.get(level)
        meaning = _sum_in_words(weights) if level == "weighted" else _meaning(level, problem)
        made.add_row(
            level,
            number(reached[level]),
            number(None if report is None else report.bound),
            word("-" if report is None else "yes" if report.optimal else "no"),
            meaning,
        )
    return made


def _meaning(level: str, problem: EpochProblem) -> str:
    """Return what a level counts, in which unit, and which direction is better."""
    equal = all(job.weight == 1 for job in problem.jobs)
    unit = "in jobs" if equal else "in jobs x weight"
    at_cost = " x price" if any(site.price != 1 for site in problem.sites) else ""
    return {
        "met": f"done by their deadlines, {unit}; more is better",
        "progress": f"work done by their deadlines on unmet jobs, {unit}; more is better",
        "leftover": f"the same by the horizon, best effort included, {unit}; more is better",
        "cost": f"GPU-seconds{at_cost}; less is better",
        "reconfigurations": "restarts and migrations; less is better",
    }[level]


def _sum_in_words(weights: Weights | None) -> str:
    """Return the weighted sum with its weights, zero ones left out."""
    from edgeflow_opt.cli.console import number

    if weights is None:
        return ""
    terms = []
    for level in LEVELS:
        weight = getattr(weights, level)
        if weight:
            sign = "- " if level in ("cost", "reconfigurations") else "+ "
            terms.append(f"{sign}{number(weight)} x {level}")
    return f"{' '.join(terms).removeprefix('+ ') or '0'}; more is better"
