"""Pictures of a comparison of solvers: performance profiles, gaps over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.analysis.plots.style import dress, legend, new_axes, series_style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from edgeflow_opt.analysis.comparison import Comparison

#: Ratios beyond this are not drawn: the profiles are flat there but for outliers.
_LARGEST_RATIO = 1000.0


def plot_profile(
    comparison: Comparison,
    measure: str = "seconds",
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the performance profiles of the solvers (Dolan, More 2002).

    Parameters
    ----------
    comparison
        Of solvers; one instance shows little, twenty begin to tell.
    measure
        ``"seconds"`` (to a proof) or ``"value"``; see
        :func:`edgeflow_opt.analysis.profiles.performance_profiles`.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says what is drawn.

    Returns
    -------
    ax
        The axes; x is the ratio to the best solver, logarithmic, y the share of runs.
    """
    profiles = comparison.performance_profiles(measure)
    ax = new_axes(7.0, 4.2) if ax is None else ax
    ratios = [ratio for profile in profiles for ratio in profile.ratios]
    largest = min(_LARGEST_RATIO, max(ratios, default=1.0))
    end = max(largest * 1.15, 1.2)
    style = series_style([profile.solver for profile in profiles])
    for profile in profiles:
        steps = sorted({1.0, *(r for r in profile.ratios if r <= end)})
        shares = [100 * profile.share(ratio) for ratio in steps]
        look = style[profile.solver]
        ax.plot(
            [*steps, end], [*shares, shares[-1]], drawstyle="steps-post", linewidth=2,
            color=look["color"], linestyle=look["linestyle"], clip_on=False,
            label=f"{profile.solver} ({len(profile.ratios)} of {profile.runs})",
        )  # fmt: skip
    what = {"seconds": "time to a proof", "value": "value"}[measure]
    ax.set_xscale("log", base=10)
    ax.set_xlim(1.0, end)
    _plain_log_ticks(ax, 1.0, end)
    ax.set_ylim(0, 102)
    ax.set_ylabel("share of runs (%)")
    ax.set_xlabel({
        "seconds": "time over that of the fastest solver",
        "value": "best value over own value",
    }[measure])  # fmt: skip
    dress(ax, title or f"Performance profile: {what}", grid="both")
    legend(ax, loc="center left", bbox_to_anchor=(1.01, 0.5), title="runs that succeed",
           title_fontsize=9, alignment="left", handlelength=3)  # fmt: skip
    return ax


def plot_gap(
    comparison: Comparison,
    kind: str = "primal",
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the mean gap of each solver over time, with the range over its runs as a band.

    Parameters
    ----------
    comparison
        Of solvers, with their traces.
    kind
        ``"primal"`` (to the best known value) or ``"proven"`` (to the solver's own bound); see
        :func:`edgeflow_opt.analysis.profiles.gap_curves`.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says what is drawn.

    Returns
    -------
    ax
        The axes; x is wall time in seconds, logarithmic, y the gap in per cent.
    """
    curves = comparison.gap_curves(kind)
    ax = new_axes(7.0, 4.2) if ax is None else ax
    times = [max(t, 1e-4) for curve in curves for t in curve.seconds]
    ends = [row.seconds for row in comparison.rows if row.seconds is not None]
    begin = min(times, default=1e-3) * 0.8
    end = max([*times, *ends, begin * 10]) * 1.1
    style = series_style(list(comparison.solvers))
    largest = 0.0
    for curve in curves:
        look = style[curve.solver]
        at = [begin, *(max(t, begin) for t in curve.seconds), end]
        mean, low, high = (
            [100.0, *(100 * g for g in gaps), 100 * gaps[-1]]
            for gaps in (curve.mean, curve.low, curve.high)
        )
        largest = max(largest, *mean)
        if curve.runs > 1:
            ax.fill_between(at, low, high, step="post", color=look["color"], alpha=0.12,
                            linewidth=0)  # fmt: skip
        ax.plot(
            at, mean, drawstyle="steps-post", linewidth=2, color=look["color"],
            linestyle=look["linestyle"],
            label=f"{curve.solver} ({100 * curve.mean[-1]:.3g} % at the end)",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(begin, end)
    _plain_log_ticks(ax, begin, end)
    ax.set_ylim(0, max(1.0, 1.04 * largest))
    ax.set_xlabel("seconds")
    ax.set_ylabel(
        {
            "primal": "gap to the best known value (%)",
            "proven": "gap to the own bound (% of the bound)",
        }[kind]
    )
    runs = max((curve.runs for curve in curves), default=0)
    what = {"primal": "Gap to the best known value", "proven": "Proven gap"}[kind]
    over = f", mean and range of {runs} runs" if runs > 1 else ""
    dress(ax, title or f"{what} over time{over}", grid="both")
    legend(ax, loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    if not curves:
        empty(ax, "no solver has a trace of this kind")
    return ax


def empty(ax: Axes, why: str) -> None:
    """Say in the middle of axes why nothing is drawn there."""
    from edgeflow_opt.analysis.plots.style import MUTED

    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=MUTED)


def _plain_log_ticks(ax: Axes, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers, few enough to be read."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    ticks = _ticks(low, high)
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.set_xticklabels([f"{tick:.10g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())


def _ticks(low: float, high: float) -> Sequence[float]:
    """Return three to nine numbers that people like from low to high, spread evenly in the log."""
    import math

    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [d * 10.0**e for e in range(first, last + 1) for d in digits]
        inside = [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
        if len(inside) >= 3:
            return inside
    from matplotlib.ticker import MaxNLocator

    ticks = [float(tick) for tick in MaxNLocator(nbins=5).tick_values(low, high)]
    return [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]
