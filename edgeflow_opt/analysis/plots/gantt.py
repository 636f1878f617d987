"""The Gantt chart of a schedule or of the history of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
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

#: Space between sections as a share of the height of all sites.
_SPACE = 0.035

#: Up to so many blocks are divided by lines.
_DIVIDED = 400

#: Points of height that a row of marks takes in the strip of deadlines.
_LANE = 10.5

#: Most rows of marks of missed jobs; where more would be needed, marks are lines and names a list.
_LANES = 8

#: Most rows of names in that list, and the size of all names of missed jobs.
_LIST_ROWS, _NAME_SIZE = 3, 7.5


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
    every deadline, and the names of the jobs that miss theirs: beside the marks where they fit,
    else as a list in the order of deadlines. Which of the equal units a block stands on is up to the chart.

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
        height = min(8.0, 3.2 + 0.05 * units + 0.25 * len(history.sites))
        ax = new_axes(9.5, height)
        # What names take is added to the height of the picture, not taken from the sites.
        more = _LANE * _strip_of(ax, history).rows / 72.0
        figure_of(ax).set_size_inches(9.5, height + more)
    strip = _strip_of(ax, history)
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
    ticks += _draw_strip(ax, history, strip, colours)
    ax.set_ylim(-strip.height - _SPACE, sections[-1][3] + sections[-1][4] + _SPACE / 2)
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
    points_a_unit = box.height * height / (_strip_of(ax, history).height + _sites_height(history))
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


def _sites_height(history: History) -> float:
    """Return the height of the chart without the strip, in units of that of all sites."""
    return 1.0 + _SPACE * (len(history.sites) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """Mark of a missed job: when, its name, its row from the top, and whether the name is right."""

    time: float
    name: str
    lane: int
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strip:
    """The strip of deadlines.

    Parameters
    ----------
    missed
        Deadlines and names of the missed jobs within the chart, by deadline.
    marks
        Where their marks and names stand; None = there are too many, marks are lines.
    listed
        Rows of the list of names that takes the place of names beside the marks.
    height
        In units of the height of all sites.
    """

    missed: tuple[tuple[float, str], ...]
    marks: tuple[_Mark, ...] | None
    listed: tuple[str, ...]
    height: float

    @property
    def lanes(self) -> int:
        """Rows of marks of missed jobs, at least 1."""
        return max((mark.lane + 1 for mark in self.marks or ()), default=1)

    @property
    def lanes_in_all(self) -> float:
        """Height of the strip in rows: those of missed jobs, and of the met ones above."""
        return 4.0 if self.marks is None else 2.7 + self.lanes

    @property
    def rows(self) -> int:
        """Rows of marks and of the list that a chart without misses has not."""
        return self.lanes - 1 + len(self.listed)


def _deadlines(history: History, met: bool) -> list[tuple[float, str]]:
    """Return the deadlines and names of the jobs that are met, or that are not, by deadline."""
    return sorted(
        (job.deadline, job.id)
        for job, outcome in zip(history.jobs, history.outcomes, strict=True)
        if job.deadline is not None and outcome.met is met
    )


def _strip_of(ax: Axes, history: History) -> _Strip:
    box = ax.get_position()
    width, height = figure_of(ax).get_size_inches() * 72.0
    width, height = width * box.width, height * box.height
    every = _deadlines(history, met=False)
    missed = [item for item in every if history.start <= item[0] <= history.end]
    marks = _stacked(missed, history, width)
    listed: tuple[str, ...] = ()
    if marks is None:
        listed = _listed([name for _, name in every], width)
    strip = _Strip(missed=tuple(missed), marks=marks, listed=listed, height=0.0)
    points = min(strip.lanes_in_all * _LANE, 0.45 * height)
    return replace(strip, height=points * _sites_height(history) / (height - points))


def _width_of(name: str) -> float:
    """Return about how many points a name takes, with the space before the next."""
    return 0.64 * _NAME_SIZE * len(name) + 5.0


def _stacked(
    missed: list[tuple[float, str]], history: History, width: float
) -> tuple[_Mark, ...] | None:
    """Return marks in as few rows as let all names be read; None where too many are needed.

    `width` is that of the chart in points.
    """
    point_s = (history.end - history.start) / width
    half = 5.0
    ends: list[float] = []
    marks = []
    for time, name in missed:
        room = _width_of(name) * point_s
        right = time + half * point_s + room <= history.end
        low = time - half * point_s - (0.0 if right else room)
        high = time + half * point_s + (room if right else 0.0)
        lane = next((k for k, end in enumerate(ends) if end <= low), len(ends))
        if lane == _LANES:
            return None
        ends[lane : lane + 1] = [high]
        marks.append(_Mark(time=time, name=name, lane=lane, right=right))
    return tuple(marks)


def _listed(names: list[str], width: float) -> tuple[str, ...]:
    """Return a list of names in a few rows of a width in points, and how many have no room."""
    most = int(width / (0.57 * _NAME_SIZE))
    rows = ["Missed, by deadline: "]
    for index, name in enumerate(names):
        rest = f"and {len(names) - index:,} more"
        last = len(rows) == _LIST_ROWS
        word = name if index == len(names) - 1 else f"{name}, "
        if len(rows[-1]) + len(word) + (len(rest) if last else 0) > most:
            if last:
                rows[-1] += rest
                break
            rows.append("")
        rows[-1] += word
    return tuple(rows)


def _draw_strip(
    ax: Axes, history: History, strip: _Strip, colours: dict[str, str]
) -> list[tuple[float, str]]:
    """Draw the deadlines: met ones above, missed ones below; return the labels of the rows."""
    lane = strip.height / strip.lanes_in_all
    top = -_SPACE - lane
    first = top - 1.9 * lane
    met = _deadlines(history, met=True)
    times = [t for t, _ in met if history.start <= t <= history.end]
    if len(met) + len(strip.missed) > 60 or strip.marks is None:
        _draw_lines(ax, times, top, 0.8 * lane, GOOD)
    elif times:
        shown = [colours[name] for t, name in met if history.start <= t <= history.end]
        ax.scatter(
            times, [top] * len(times), s=30, zorder=4, clip_on=False, marker="v", c=shown,
            edgecolors=INK, linewidths=0.8,
        )  # fmt: skip
    middle = first
    if strip.marks is None:
        _draw_lines(ax, [t for t, _ in strip.missed], first, 0.8 * lane, MISS)
        ax.annotate(
            "\n".join(strip.listed), (0.0, 0.0), xycoords="axes fraction", xytext=(0, -36),
            textcoords="offset points", va="top", ha="left", fontsize=_NAME_SIZE, color=INK,
            linespacing=1.35, annotation_clip=False,
        )  # fmt: skip
    elif strip.marks:
        middle -= 0.5 * (strip.lanes - 1) * lane
        _draw_marks(ax, strip.marks, first, lane, colours)
    later = sum(job.deadline is not None and job.deadline > history.end for job in history.jobs)
    note = f"\n({later} later)" if later else ""
    missed = len(_deadlines(history, met=False))
    return [(top, f"{len(met)} met"), (middle, f"{missed} missed{note}")]


def _draw_lines(ax: Axes, times: list[float], level: float, half: float, colour: str) -> None:
    """Draw deadlines that are too many for marks as lines."""
    ax.vlines(times, level - half, level + half, color=colour, linewidth=1.0, alpha=0.6)


def _draw_marks(
    ax: Axes, marks: tuple[_Mark, ...], first: float, lane: float, colours: dict[str, str]
) -> None:
    """Draw the marks of missed jobs with their names, the first row in the height `first`."""
    ax.scatter(
        [mark.time for mark in marks], [first - mark.lane * lane for mark in marks], s=26,
        zorder=4, clip_on=False, marker="X", c=[colours[mark.name] for mark in marks],
        edgecolors=MISS, linewidths=0.8,
    )  # fmt: skip
    for mark in marks:
        ax.annotate(
            mark.name, (mark.time, first - mark.lane * lane),
            xytext=(5 if mark.right else -5, 0), textcoords="offset points",
            fontsize=_NAME_SIZE, color=INK, va="center_baseline",
            ha="left" if mark.right else "right", annotation_clip=False,
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
