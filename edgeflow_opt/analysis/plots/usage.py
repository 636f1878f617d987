"""How far a site is used over time, beside the tide of its capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.analysis.history import History, history_of
from edgeflow_opt.analysis.plots.style import (
    GOOD,
    INK,
    dress,
    legend,
    new_axes,
    new_figure,
    time_axis,
)
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edgeflow_opt.problem import EpochProblem, Schedule, Site
    from edgeflow_opt.solvers import SolveResult

#: Histories with more changes than this are drawn as means over that many equal bins.
_MOST_STEPS = 1500
_BINS = 400

_FloatArray = NDArray[np.float64]


def plot_usage(
    problem: EpochProblem | History,
    schedule: Schedule | SolveResult | None = None,
    *,
    site: str | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the units of a site that are held over time, under its capacity.

    Parameters
    ----------
    problem, schedule
        The instance and its schedule; or a :class:`History` alone.
    site
        Name of the site; None = the first.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says how much is used.

    Returns
    -------
    ax
        The axes; its x data are seconds. Of long histories the means over equal bins are drawn.

    Raises
    ------
    UsageError
        If there is no such site, or matplotlib is not installed.
    """
    load("matplotlib", "plot", "a picture")
    from matplotlib.ticker import MaxNLocator

    history = history_of(problem, schedule)
    names = [s.name for s in history.sites]
    if site is not None and site not in names:
        raise UsageError(f"site {site!r} is not known; known are {', '.join(names)}")
    chosen = history.sites[0 if site is None else names.index(site)]
    ax = new_axes(9.5, 3.0) if ax is None else ax
    times, held = history.usage(chosen)
    steps, units = history.capacity(chosen)
    total = _integral(steps, units, history.start, history.end)
    used = _integral(times, held, history.start, history.end)
    noun = "GPUs" if chosen.kind == "cloud" else "servers"
    if title is None:
        share = f"{100 * used / total:.0f} % used" if total else "nothing usable"
        title = f"{history.name}, {chosen.name}: {share}"
    if len(times) > _MOST_STEPS or len(steps) > _MOST_STEPS:
        edges = np.linspace(history.start, history.end, _BINS + 1)
        drawn = _binned(times, held, edges)
        ax.fill_between(
            edges, [*drawn, drawn[-1]], step="post", color=GOOD, alpha=0.55, linewidth=0,
            label="held (mean of each bin)",
        )  # fmt: skip
        tide = _binned(steps, units, edges)
        ax.plot(
            edges, [*tide, tide[-1]], drawstyle="steps-post", color=INK, linewidth=1.3,
            label="capacity",
        )  # fmt: skip
    else:
        ax.fill_between(
            [*times, history.end], [*held, held[-1]], step="post", color=GOOD, alpha=0.55,
            linewidth=0, label="held",
        )  # fmt: skip
        ax.plot(
            [*steps, history.end], [*units, units[-1]], drawstyle="steps-post", color=INK,
            linewidth=1.3, label="capacity",
        )  # fmt: skip
    time_axis(ax, history.start, history.end)
    ax.set_ylim(0, 1.05 * max([1, *units, *held]))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.set_ylabel(noun)
    dress(ax, title)
    legend(ax, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.1)
    return ax


def usage_figure(
    problem: EpochProblem | History, schedule: Schedule | SolveResult | None = None
) -> Figure:
    """Return a figure with a panel for each site, one above the other; see :func:`plot_usage`."""
    history = history_of(problem, schedule)
    count = len(history.sites)
    figure = new_figure(9.5, 0.6 + 2.2 * count)
    panels = figure.subplots(count, 1, squeeze=False)[:, 0]
    for ax, site in zip(panels, history.sites, strict=True):
        plot_usage(history, site=site.name, ax=ax)
        if ax is not panels[-1]:
            ax.set_xlabel("")
    return figure


def used_share(history: History, site: Site) -> float | None:
    """Return unit-seconds held over unit-seconds usable; None where nothing is usable."""
    total = _integral(*history.capacity(site), history.start, history.end)
    return _integral(*history.usage(site), history.start, history.end) / total if total else None


def _integral(times: list[float], values: list[int], start: float, end: float) -> float:
    """Return the integral of a step function over the span."""
    edges = np.clip([*times, max(end, times[-1])], start, end)
    return float(np.sum(np.diff(edges) * np.asarray(values, dtype=float)))


def _binned(times: list[float], values: list[int], edges: _FloatArray) -> _FloatArray:
    """Return the mean of a step function over each bin."""
    at = np.asarray(times, dtype=float)
    levels = np.asarray(values, dtype=float)
    integral = np.concatenate([[0.0], np.cumsum(np.diff(at) * levels[:-1])])
    place = np.clip(np.searchsorted(at, edges, side="right") - 1, 0, None)
    upto = integral[place] + (edges - at[place]) * levels[place]
    means: _FloatArray = np.diff(upto) / np.diff(edges)
    return means
