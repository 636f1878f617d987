"""The tables for people."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from benchmarks.criteria import Judgement
from benchmarks.records import Record
from benchmarks.registry import Target

_RUNS_HEAD = (
    f"  {'load':>4} {'solver':<16} {'runs':>4} {'value':>9} {'bound':>9} {'open':>6} "
    f"{'gap %':>7} {'worst':>7} {'last':>6} {'end':>6} {'over':>5} {'MB':>6}  note"
)
_TARGETS_HEAD = (
    f"{'target':<17} {'solver':<15} {'goal':<24} {'within':>7} {'median':>8} {'worst':>8} "
    f"{'unit':<14} {'runs':>7}  {'':<6} load average"
)


def runs_table(target: Target, records: Sequence[Record]) -> str:
    """Return the contenders of a target side by side, a line for each load.

    Value, bound and what is open between them are medians over the seeds, gaps median and worst;
    ``last`` is the second of the last improvement of either, ``end`` that of the answer, both
    medians, ``over`` the worst overshoot of the limit; memory is that of the process.
    """
    limits = sorted({record.limit_s for record in records if record.limit_s is not None})
    within = " to ".join(f"{limit:g}" for limit in limits)
    loads = [record.load_average for record in records]
    busy = f"; load average {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    lines = [
        f"{target.name}: {target.criterion.what}, limit {within} s{busy}",
        _RUNS_HEAD,
    ]
    for load in dict.fromkeys(record.instance["load"] for record in records):
        for solver in dict.fromkeys(record.solver for record in records):
            group = [r for r in records if r.solver == solver and r.instance["load"] == load]
            if group:
                lines.append(_line(load, solver, group))
    return "\n".join(lines)


def _line(load: float, solver: str, group: Sequence[Record]) -> str:
    gaps = [100.0 * r.gap if r.gap is not None else math.inf for r in group]
    notes = [r.note for r in group if r.note]
    marks = [
        *(r.status for r in group if not r.ran or r.status == "failed"),
        *("LATE" for r in group if r.late),
    ]
    note = "; ".join([*dict.fromkeys(marks), *notes[:1]])
    over = max(r.overshoot_s for r in group)
    return (
        f"  {load:4.1f} {solver:<16} {len(group):4d} {_median(r.value for r in group):>9} "
        f"{_median(r.bound for r in group):>9} {_median(r.open for r in group):>6} "
        f"{_figure(statistics.median(gaps)):>7} {_figure(max(gaps)):>7} "
        f"{statistics.median(r.settled_s for r in group):6.2f} "
        f"{statistics.median(r.seconds for r in group):6.2f} "
        f"{f'{over:.2f}' if over > 0 else '-':>5} "
        f"{_median((r.peak_mb for r in group), digits=0):>6}  {note[:100]}"
    ).rstrip()


def targets_table(judged: Iterable[tuple[Target, Judgement, str]]) -> str:
    """Return target, what was reached, and whether that is enough; the text is the busyness."""
    lines = [_TARGETS_HEAD]
    for target, judgement, busy in judged:
        lines.append(
            f"{target.name:<17} {target.subject:<15} {target.criterion.what:<24} "
            f"{f'{target.limit_s:g} s':>7} {_figure(judgement.median):>8} "
            f"{_figure(judgement.worst):>8} {target.criterion.unit:<14} "
            f"{f'{judgement.good}/{judgement.runs}':>7}  "
            f"{'met' if judgement.met else 'missed':<6} {busy}"
        )
    return "\n".join(lines)


def _median(values: Iterable[float | None], digits: int = 1) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    middle = statistics.median(known)
    return f"{middle:.{digits}f}".removesuffix(".0")


def _figure(value: float) -> str:
    return "-" if math.isinf(value) else f"{value:.2f}"
