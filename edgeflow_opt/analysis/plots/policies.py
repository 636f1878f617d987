"""Pictures of a comparison of policies: sweeps, and how far from the clairvoyant bound they are."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import TYPE_CHECKING

from edgeflow_opt.analysis.plots.style import (
    INK,
    MUTED,
    PAPER,
    dress,
    legend,
    new_axes,
    series_style,
)
from edgeflow_opt.analysis.statistics import CONFIDENCE
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from edgeflow_opt.analysis.policy_comparison import PolicyComparison
    from edgeflow_opt.analysis.policy_rows import PolicyRow

#: Measures that lie in [0, 1].
_SHARES = frozenset({"dsr", "cloud_utilisation", "edge_utilisation"})

#: Measures in words for axes.
WORDS: Mapping[str, str] = {
    "dsr": "deadline satisfaction ratio",
    "met": "deadlines met",
    "met_weight": "weight of the jobs met",
    "late": "late jobs",
    "refused": "refused jobs",
    "unfinished": "unfinished jobs",
    "cloud_utilisation": "cloud utilisation",
    "edge_utilisation": "edge utilisation",
    "reconfigurations_per_job": "reconfigurations per job",
    "migrations_per_job": "migrations per job",
    "makespan": "makespan (s)",
    "mean_tardiness": "mean tardiness (s)",
    "decision_mean_s": "seconds per decision",
    "decision_p99_s": "seconds per decision, 99th percentile",
    "decision_max_s": "seconds of the longest decision",
    "cloud_gpus": "cloud GPUs",
    "edge_servers": "edge servers",
    "arrival_scale": "multiplier of inter-arrival times",
    "deadlines": "deadline factor",
    "merge_s": "least seconds between decisions",
    "head": "jobs",
    "overhead": "overhead model",
    "tide": "tide",
}


def plot_sweep(
    comparison: PolicyComparison,
    x: str | None = None,
    measure: str = "dsr",
    *,
    confidence: float = CONFIDENCE,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a measure over a swept setting: a line per policy, its confidence band, and the bound.

    Parameters
    ----------
    comparison
        Of policies.
    x
        Name of the setting; None = the only one that is swept.
    measure
        One of :data:`~edgeflow_opt.analysis.policy_rows.POLICY_MEASURES`.
    confidence
        Of the bands, by Student's t over traces and seeds (and settings other than `x`). Bands of
        shares are drawn within [0, 1] only.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says what is drawn.

    Returns
    -------
    ax
        The axes. Settings that are no numbers stand side by side in their order; the axis of
        powers of two, and of three numbers or more that at least double from one to the next, is
        logarithmic.

    Raises
    ------
    UsageError
        If `x` is not swept, or must be named since there are several.
    """
    swept = comparison.swept
    if x is None and len(swept) != 1:
        known = ", ".join(swept) or "none"
        raise UsageError(f"a sweep needs one swept setting as x; swept are: {known}")
    name = swept[0] if x is None else x
    if name not in swept:
        raise UsageError(f"setting {name!r} is not swept; swept are: {', '.join(swept) or 'none'}")
    points = comparison.means(measure, by=[name], confidence=confidence)
    values = list(dict.fromkeys(_key(p.settings[name]) for p in points))
    numeric = all(isinstance(v, int | float) for v in values)
    places = {v: float(v) if numeric else float(i) for i, v in enumerate(values)}
    ax = new_axes(7.0, 4.2) if ax is None else ax
    style = series_style(comparison.policies)
    for policy in comparison.policies:
        own = sorted((places[_key(p.settings[name])], p.mean) for p in points if p.policy == policy)
        if not own:
            continue
        at = [place for place, _ in own]
        look = style[policy]
        ax.fill_between(
            at,
            [_within(m.mean if m.low is None else m.low, measure) for _, m in own],
            [_within(m.mean if m.high is None else m.high, measure) for _, m in own],
            color=look["color"], alpha=0.16, linewidth=0,
        )  # fmt: skip
        ax.plot(at, [m.mean for _, m in own], linewidth=2, markersize=6, label=policy, **look)
    _draw_bound_line(ax, comparison, name, places, measure)
    if numeric:
        if _doubles(sorted(places.values())):
            ax.set_xscale("log", base=2)
        if len(places) <= 10:
            at = sorted(places.values())
            ax.set_xticks(at, [f"{value:g}" for value in at])
    else:
        ax.set_xticks(list(places.values()), [str(v) for v in places])
    count = max((p.mean.count for p in points), default=0)
    band = f", {100 * confidence:g} % confidence over {count} runs" if count > 1 else ""
    ax.set_xlabel(WORDS.get(name, name))
    ax.set_ylabel(WORDS.get(measure, measure))
    dress(ax, title or f"{WORDS.get(measure, measure).capitalize()}{band}", grid="both")
    legend(ax, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    return ax


def plot_policies(
    comparison: PolicyComparison,
    measure: str = "dsr",
    *,
    confidence: float = CONFIDENCE,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw each policy's mean with its interval and single runs, beside the clairvoyant bound.

    Parameters
    ----------
    comparison
        Of policies; its rows may carry bounds, which are shown for ``dsr`` and ``met``.
    measure
        One of :data:`~edgeflow_opt.analysis.policy_rows.POLICY_MEASURES`.
    confidence
        Of the intervals, as in :func:`plot_sweep`.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says what is drawn.
    """
    points = {p.policy: p.mean for p in comparison.means(measure, by=[], confidence=confidence)}
    names = [name for name in comparison.policies if name in points]
    ax = new_axes(7.0, 1.3 + 0.45 * max(1, len(names))) if ax is None else ax
    style = series_style(comparison.policies)
    for level, name in enumerate(reversed(names)):
        mean = points[name]
        runs = [
            v for r in comparison.rows if r.policy == name and (v := r.value(measure)) is not None
        ]
        if len(runs) > 1:
            ax.plot(runs, [level] * len(runs), "|", color=MUTED, markersize=12, alpha=0.7, zorder=1)
        colour = style[name]["color"]
        if mean.low is not None and mean.high is not None:
            ends = [_within(mean.low, measure), _within(mean.high, measure)]
            ax.plot(ends, [level, level], color=colour, linewidth=5, alpha=0.45,
                    solid_capstyle="butt", zorder=2)  # fmt: skip
        ax.plot([mean.mean], [level], style[name]["marker"], color=colour, markersize=9, zorder=3)
        ax.annotate(
            f"{mean.mean:.3g}", (mean.mean, level), xytext=(0, 9), textcoords="offset points",
            ha="center", fontsize=8.5, color=INK, zorder=4,
            # Keeps the line of the bound out of the number.
            bbox={"facecolor": PAPER, "linewidth": 0, "pad": 1.2},
        )  # fmt: skip
    bounds = [b for row in comparison.rows if (b := bound_of(row, measure)) is not None]
    if bounds:
        ax.axvline(statistics.fmean(bounds), color=INK, linestyle="--", linewidth=1.5, zorder=1.5,
                   label="mean of the clairvoyant bounds: no policy's mean is higher")  # fmt: skip
        legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1)
    ax.set_yticks(range(len(names)), list(reversed(names)))
    ax.set_ylim(-0.6, len(names) - 0.3)
    ax.margins(x=0.08)
    ax.set_xlabel(WORDS.get(measure, measure))
    dress(ax, grid="x")
    count = max((mean.count for mean in points.values()), default=0)
    band = f", {100 * confidence:g} % confidence over {count} runs" if count > 1 else ""
    ax.set_title(
        title or f"Policies{band}", loc="left", color=INK, fontsize=11, fontweight="bold",
        pad=24 if bounds else 6,
    )  # fmt: skip
    return ax


def _doubles(values: list[float]) -> bool:
    """Return whether values call for a logarithmic axis: powers of two, or three that double."""
    if len(values) < 2 or values[0] <= 0:
        return False
    if all(math.frexp(value)[0] == 0.5 for value in values):
        return True
    return len(values) >= 3 and all(b >= 2 * a for a, b in pairwise(values))


def _within(end: float, measure: str) -> float:
    """Return the end of an interval, of a share within [0, 1], which Student's t does not know."""
    return min(1.0, max(0.0, end)) if measure in _SHARES else end


def bound_of(row: PolicyRow, measure: str) -> float | None:
    """Return the bound of a row in terms of the measure; None where it bounds no such thing."""
    jobs = row.value("jobs")
    if row.bound is None or not jobs:
        return None
    return {"met": row.bound, "dsr": row.bound / jobs}.get(measure)


def _draw_bound_line(
    ax: Axes,
    comparison: PolicyComparison,
    name: str,
    places: Mapping[float | str, float],
    measure: str,
) -> None:
    """Draw the mean bound at each value of the swept setting."""
    found: dict[float, list[float]] = {}
    for row in comparison.rows:
        bound = bound_of(row, measure)
        if bound is not None:
            found.setdefault(places[_key(row.settings.get(name))], []).append(bound)
    if found:
        at = sorted(found)
        ax.plot(at, [statistics.fmean(found[p]) for p in at], color=INK, linewidth=1.5,
                linestyle="--", label="clairvoyant bound")  # fmt: skip


def _key(value: object) -> float | str:
    """Return a setting as a key and a label."""
    if isinstance(value, list | tuple):
        return f"{value[0]:g} to {value[1]:g}"
    return value if isinstance(value, int | float) else str(value)
