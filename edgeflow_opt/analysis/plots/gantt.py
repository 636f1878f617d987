"""The Gantt chart of a schedule or of the history of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.history import History, history_of
from edgeflow_opt.analysis.plots.placement import Block, place
from edgeflow_opt.analysis.plots.style import (
    GOOD,
    INK,
    MISS,
    MUTED,
    PAPER,
    dress,
    figure_of,
    job_colour,
    legend,
    new_axes,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edgeflow_opt.problem import EpochProblem, Schedule, Site
    from edgeflow_opt.solvers import SolveResult

#: Least share of the chart's height that a site has, however few its units are.
_LEAST_SHARE = 0.14

#: Height of the strip of deadlines, and space between sections, as shares of that of all sites.
_STRIP, _SPACE = 0.17, 0.035

#: Up to so many blocks are divided by lines, and so many missed jobs named in the strip.
_DIVIDED, _NAMED = 400, 30


def plot_gantt(
    problem: EpochProblem | History,
    schedule: Schedule | SolveResult | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw who holds what when: cloud GPUs and edge servers over time, deadlines, misses.

    A section per site with a row per unit (a GPU in the cloud, a server on the edge), its capacity
    as a line; above it nothing can be used. A job has the same colour in all charts of its
    instance; blocks of jobs that miss their deadline are hatched. The strip below has a mark at
    every deadline. Which of the equal units a block stands on is up to the chart.

    Parameters
    ----------
    problem, schedule
        The instance and its schedule; or a :class:`History` alone.
    ax
        Where to draw; None = a figure of its own.
    title
        None = one that says how many deadlines are met.

    Returns
    -------
    ax
        The axes; its x data are seconds.

    Raises
    ------
    UsageError
        If there is no plan, or matplotlib is not installed.
    """
    history = history_of(problem, schedule)
    if ax is None:
        units = sum(max(history.capacity(site)[1]) for site in history.sites)
        ax = new_axes(9.5, min(8.0, 3.4 + 0.05 * units + 0.25 * len(history.sites)))
    time_axis(ax, history.start, history.end)
    sections = _sections(history)
    colours = {job.id: job_colour(index) for index, job in enumerate(history.jobs)}
    ticks: list[tuple[float, str]] = []
    placed: list[tuple[Block, float, float]] = []
    for site, blocks, rows, base, height in sections:
        scale = height / rows
        _draw_capacity(ax, history, site, rows, base, scale)
        placed += [(b, base + b.low * scale, base + b.high * scale) for b in blocks]
        ticks.append((base + height / 2, _site_in_words(history, site)))
    _draw_blocks(ax, history, placed, colours)
    ticks += _draw_strip(ax, history, colours)
    ax.set_ylim(-_STRIP - _SPACE, sections[-1][3] + sections[-1][4] + _SPACE / 2)
    ax.set_yticks([place for place, _ in ticks], [text for _, text in ticks])
    with_deadline = sum(outcome.met is not None for outcome in history.outcomes)
    met = with_deadline - len(history.missed)
    dress(ax, grid=None)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_title(
        title or f"{history.name}: {met} of {with_deadline} deadlines met",
        loc="left", color=INK, fontsize=11, fontweight="bold", pad=24,
    )  # fmt: skip
    _draw_legend(ax, history)
    return ax


def _sections(history: History) -> list[tuple[Site, list[Block], int, float, float]]:
    """Return (site, blocks, rows, base, height) of the sections, the first site on top."""
    found = []
    for site in history.sites:
        runs = [
            (a.job, a.start, a.end, a.gpus if site.kind == "cloud" else 1)
            for a in history.allocations
            if a.site == site.name
        ]
        times, units = history.capacity(site)
        blocks = place(runs, list(zip(times, units, strict=True)))
        found.append((site, blocks, max([1, *units, *(b.high for b in blocks)])))
    total = sum(rows for *_, rows in found)
    shares = [max(rows / total, _LEAST_SHARE) for *_, rows in found]
    sections = []
    base = 0.0
    for (site, blocks, rows), share in reversed(list(zip(found, shares, strict=True))):
        height = share / sum(shares)
        sections.append((site, blocks, rows, base, height))
        base += height + _SPACE
    return sections


def _site_in_words(history: History, site: Site) -> str:
    units = history.capacity(site)[1]
    noun = "GPU" if site.kind == "cloud" else "server"
    low, high = min(units), max(units)
    count = f"{high}" if low == high else f"{low} to {high}"
    name = site.name if len(site.name) <= 18 else site.name[:17] + "…"
    return f"{name}\n{count} {noun}{'s' * (high != 1)}"


def _draw_capacity(
    ax: Axes, history: History, site: Site, rows: int, base: float, scale: float
) -> None:
    """Draw the usable units as a line, and what is not usable as hatched ground."""
    times, units = history.capacity(site)
    times, levels = [*times, history.end], [base + u * scale for u in [*units, units[-1]]]
    top = base + rows * scale
    ax.fill_between(
        times, levels, top, step="post", facecolor="none", edgecolor=MUTED, alpha=0.45,
        hatch="....", linewidth=0, zorder=0.5,
    )  # fmt: skip
    ax.plot(times, levels, drawstyle="steps-post", color=INK, linewidth=1.3, zorder=3)
    ax.plot([history.start, history.end], [base, base], color=MUTED, linewidth=0.8, zorder=3)


def _draw_blocks(
    ax: Axes,
    history: History,
    placed: list[tuple[Block, float, float]],
    colours: dict[str, str],
) -> None:
    """Draw all blocks at once, those of missed jobs hatched, and names where they fit."""
    from matplotlib.collections import PolyCollection

    if not placed:
        return
    missed = history.missed

    def corners(block: Block, low: float, high: float) -> list[tuple[float, float]]:
        return [(block.start, low), (block.end, low), (block.end, high), (block.start, high)]

    fine = len(placed) > _DIVIDED
    ax.add_collection(
        PolyCollection(
            [corners(*item) for item in placed],
            facecolors=[colours[block.job] for block, *_ in placed],
            edgecolors=PAPER,
            linewidths=0.25 if fine else 0.7,
            zorder=1,
        ),
        autolim=False,
    )
    late = [corners(*item) for item in placed if item[0].job in missed]
    if late:
        ax.add_collection(
            PolyCollection(
                late, facecolors="none", edgecolors=MISS, hatch="///",
                linewidths=0.0 if fine else 0.9, zorder=1.5,
            ),
            autolim=False,
        )  # fmt: skip
    _name_blocks(ax, history, placed)


def _name_blocks(ax: Axes, history: History, placed: list[tuple[Block, float, float]]) -> None:
    """Write the ids of jobs into blocks that are large enough for them."""
    box = ax.get_position()
    width, height = figure_of(ax).get_size_inches() * 72.0
    points_a_second = box.width * width / (history.end - history.start)
    points_a_unit = box.height * height / (ax_height(history))
    for block, low, high in placed:
        across = (block.end - block.start) * points_a_second
        size = min(9.0, 0.8 * (high - low) * points_a_unit)
        if size >= 5.0 and across >= 0.68 * size * len(block.job) + 3:
            ax.text(
                (block.start + block.end) / 2, (low + high) / 2, block.job, color="#111111",
                fontsize=size, ha="center", va="center_baseline", zorder=2, clip_on=True,
                bbox={"facecolor": "#ffffff", "alpha": 0.75, "linewidth": 0, "pad": 0.6}
                if block.job in history.missed else None,
            )  # fmt: skip


def ax_height(history: History) -> float:
    """Return the height of the chart in units of that of all sites."""
    return 1.0 + _STRIP + _SPACE * (len(history.sites) + 1)


def _draw_strip(ax: Axes, history: History, colours: dict[str, str]) -> list[tuple[float, str]]:
    """Draw the deadlines: met ones above, missed ones below; return the labels of the rows."""
    levels = {True: -_SPACE - 0.28 * _STRIP, False: -_SPACE - 0.78 * _STRIP}
    many = sum(outcome.met is not None for outcome in history.outcomes) > 60
    counts = {True: 0, False: 0}
    for met, level in levels.items():
        jobs = [
            (job.deadline, job.id)
            for job, outcome in zip(history.jobs, history.outcomes, strict=True)
            if job.deadline is not None and outcome.met is met
        ]
        counts[met] = len(jobs)
        inside = [(t, name) for t, name in jobs if history.start <= t <= history.end]
        if not inside:
            continue
        times = [t for t, _ in inside]
        if many:
            half = 0.2 * _STRIP
            ax.vlines(
                times, level - half, level + half, color=GOOD if met else MISS,
                linewidth=1.0, alpha=0.6,
            )  # fmt: skip
            continue
        ax.scatter(
            times, [level] * len(times), s=30, zorder=4, clip_on=False,
            marker="v" if met else "X",
            c=[colours[name] for _, name in inside],
            edgecolors=INK if met else MISS, linewidths=0.8,
        )  # fmt: skip
        if not met and len(inside) <= _NAMED:
            _name_misses(ax, history, inside, level)
    beyond = sum(job.deadline is not None and job.deadline > history.end for job in history.jobs)
    note = f"\n({beyond} later)" if beyond else ""
    return [
        (levels[True], f"{counts[True]} met"),
        (levels[False], f"{counts[False]} missed{note}"),
    ]


def _name_misses(ax: Axes, history: History, marks: list[tuple[float, str]], level: float) -> None:
    """Name missed jobs beside their marks, as long as names do not run into the next mark."""
    width = figure_of(ax).get_size_inches()[0] * 72.0 * ax.get_position().width
    second = width / (history.end - history.start)
    marks = sorted(marks)
    for (time, name), following in zip(marks, [*marks[1:], (history.end, "")], strict=True):
        if (following[0] - time) * second > 4.8 * len(name) + 12:
            ax.annotate(
                name, (time, level), xytext=(6, 0), textcoords="offset points", fontsize=7.5,
                color=INK, va="center", annotation_clip=False,
            )  # fmt: skip


def _draw_legend(ax: Axes, history: History) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Line2D([], [], color=INK, linewidth=1.3, label="capacity")]
    if any(len(set(history.capacity(site)[1])) > 1 for site in history.sites):
        handles.append(
            Patch(facecolor="none", edgecolor=MUTED, hatch="....", linewidth=0, label="not usable")
        )
    if history.missed:
        handles.append(
            Patch(facecolor="none", edgecolor=MISS, hatch="////", label="misses its deadline")
        )
    legend(
        ax, handles, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(handles),
        borderaxespad=0.1, handlelength=1.8, columnspacing=1.4,
    )  # fmt: skip
