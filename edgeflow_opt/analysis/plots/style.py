"""The look of all pictures: colours, axes, time. Outside of notebooks pyplot has no part in it."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Text and axes; in a report these become the colours of the page.
INK = "#22262b"
#: Less important lines, readable on light and dark ground.
MUTED = "#7a828c"
#: The ground between blocks.
PAPER = "#fefefe"
#: What went wrong: vermilion of Okabe and Ito.
MISS = "#d55e00"
#: What went well: blue of Okabe and Ito.
GOOD = "#0072b2"

#: Series: Okabe and Ito (2008), told apart by all kinds of colour vision, without yellow (too light
#: for lines) and black (invisible on dark ground).
SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f7f7f")

#: Line styles that go with the series, so that colour is never the only difference.
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))

#: Markers that go with the series.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

#: Fills of blocks, light enough for dark text on them: the "light" scheme of Paul Tol (2021)
#: without its orange (too near to what means a miss) and grey (means not usable).
FILLS = ("#77aadd", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#aaaa00")

#: Formats of pictures by the ends of file names.
PICTURE_ENDS = (".png", ".svg", ".pdf")

#: Seconds of the units of time, largest first, with the steps that people count them in.
_UNITS: tuple[tuple[float, str, tuple[float, ...]], ...] = (
    (86400.0, "days", (0.5, 1, 2, 5, 7, 14, 28, 50, 100, 200, 365)),
    (3600.0, "hours", (0.25, 0.5, 1, 2, 3, 6, 12, 24)),
    (60.0, "minutes", (0.5, 1, 2, 5, 10, 15, 20, 30)),
    (1.0, "seconds", (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30)),
)


def new_axes(width: float = 8.0, height: float = 4.5) -> Axes:
    """Return the axes of a new figure, `width` x `height` inches; see :func:`new_figure`."""
    axes: Axes = new_figure(width, height).subplots()
    return axes


def new_figure(width: float, height: float) -> Figure:
    """Return a new figure, `width` x `height` inches, that no window knows of.

    In a Jupyter notebook it is one of pyplot's, so that its cell shows it, as people expect there.
    """
    load("matplotlib", "plot", "a picture")
    if _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained", facecolor="white")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def hide(picture: Axes | Figure) -> None:
    """Let no notebook cell show the figure of `picture`, which was made for a page."""
    if _in_notebook():
        from matplotlib import pyplot

        figure: Any = picture if hasattr(picture, "savefig") else figure_of(picture)
        pyplot.close(figure)


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook; a shell of IPython is none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def dress(
    ax: Axes, title: str | None = None, *, grid: Literal["x", "y", "both"] | None = "y"
) -> None:
    """Give `ax` the common look: few lines, title at the left.

    Parameters
    ----------
    ax
        The axes.
    title
        None = none.
    grid
        Direction of the grid, ``"x"``, ``"y"`` or ``"both"``; None = none.
    """
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=INK, which="both", labelsize=9)
    for text in (ax.xaxis.label, ax.yaxis.label):
        text.set_color(INK)
        text.set_fontsize(10)
    if grid is not None:
        ax.grid(axis=grid, color=MUTED, alpha=0.25, linewidth=0.7)
        ax.set_axisbelow(True)
    if title is not None:
        ax.set_title(title, loc="left", color=INK, fontsize=11, fontweight="bold")


def legend(ax: Axes, handles: Sequence[Any] | None = None, **settings: Any) -> None:
    """Add a legend without a frame, where it covers least."""
    chosen: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK, **settings}
    if handles is not None:
        chosen["handles"] = handles
    if handles is None and not ax.get_legend_handles_labels()[0]:
        return
    ax.legend(**chosen).get_title().set_color(INK)


def time_axis(ax: Axes, start: float, end: float) -> None:
    """Let the x axis of `ax` run from `start` to `end`, in the unit that suits the span.

    The axis keeps seconds as its data; only its labels are in the unit, counted from `start`.
    """
    from matplotlib.ticker import FuncFormatter

    span = end - start
    unit_s, unit, steps = next((u for u in _UNITS if span >= 2.5 * u[0]), _UNITS[-1])
    step = next((step for step in steps if span / unit_s <= 9 * step), span / unit_s)
    shown = [step * index for index in range(math.floor(span / unit_s / step * (1 + 1e-9)) + 1)]
    ax.set_xlim(start, end)
    ax.set_xticks([start + tick * unit_s for tick in shown])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{(value - start) / unit_s:.10g}"))
    since = "" if start == 0 else f" since t = {start:.10g} s"
    ax.set_xlabel(f"time in {unit}{since}")


def series_style(names: Sequence[str]) -> Mapping[str, dict[str, Any]]:
    """Return colour, line style and marker for each name, by its place."""
    return {
        name: {
            "color": SERIES[index % len(SERIES)],
            "linestyle": DASHES[index % len(DASHES)],
            "marker": MARKERS[index % len(MARKERS)],
        }
        for index, name in enumerate(names)
    }


def job_colour(index: int) -> str:
    """Return the fill of the job at a place of its instance: the same in every picture of it.

    The second round through the fills is darker, the third lighter, so that 21 jobs in a row all
    differ; more colours than that nobody tells apart.
    """
    fill = FILLS[index % len(FILLS)]
    towards, share = ((0, 0.0), (0, 0.2), (255, 0.55))[index // len(FILLS) % 3]
    parts = [int(fill[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{int(part * (1 - share) + towards * share):02x}" for part in parts)


def figure_of(ax: Axes) -> Figure:
    """Return the figure that `ax` belongs to."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def save(picture: Axes | Figure, path: str | Path, *, dpi: int = 150) -> None:
    """Write the figure of `picture` to `path`, whole or not at all.

    Parameters
    ----------
    picture
        Axes, whose whole figure is meant, or a figure.
    path
        File whose name ends in .png, .svg or .pdf.
    dpi
        Dots per inch of a PNG.

    Raises
    ------
    UsageError
        If the end of the name is another one, or the file cannot be written.
    """
    from edgeflow_opt.problem.files import write_bytes

    write_bytes(path, rendered(picture, picture_format(path), dpi=dpi))


def picture_format(path: str | Path) -> str:
    """Return the format that the end of a file name says: png, svg or pdf.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    end = Path(path).suffix.lower()
    if end not in PICTURE_ENDS:
        raise UsageError(f"picture '{path}': the name must end in one of {', '.join(PICTURE_ENDS)}")
    return end[1:]


def rendered(picture: Axes | Figure, kind: str, *, dpi: int = 150, **settings: Any) -> bytes:
    """Return the picture as a file of the given kind; the same picture gives the same bytes."""
    import matplotlib as mpl

    figure: Any = picture if hasattr(picture, "savefig") else figure_of(picture)
    # No date, no random ids: pictures can be compared and kept under version control.
    metadata: dict[str, Any] = {
        "png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None},
    }[kind]  # fmt: skip
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "edgeflow", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata, **settings)
    return buffer.getvalue()
