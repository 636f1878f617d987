"""A page of cards, tables and pictures, and its way to HTML: nothing in it comes from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from edgeflow_opt._version import __version__
from edgeflow_opt.analysis.extras import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table.

    Parameters
    ----------
    text
        What is shown.
    key
        What the column is sorted by: a number, a text, or None (sorted to the end).
    tone
        ``"good"``, ``"bad"``, ``"dim"`` or empty.
    """

    text: str
    key: float | str | None = None
    tone: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the cell is sorted as a number."""
        return isinstance(self.key, int | float)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOf:
    """A table of a page.

    Parameters
    ----------
    columns
        Heads of the columns.
    rows
        Cells, as many a row as there are columns.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers: nothing else, and at least one."""
        found = []
        for index in range(len(self.columns)):
            keyed = [row[index] for row in self.rows if row[index].key is not None]
            found.append(bool(keyed) and all(cell.numeric for cell in keyed))
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of a page.

    Parameters
    ----------
    svg
        Inline SVG (:func:`inline_svg`).
    caption
        What it shows and how to read it.
    """

    svg: str
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    title
        Its heading.
    text
        A paragraph under it; may be empty.
    table
        A table; None = none.
    pictures
        Pictures, side by side where there is room.
    wide
        One picture below the other instead, each as wide as it likes.
    """

    title: str
    text: str = ""
    table: TableOf | None = None
    pictures: tuple[Picture, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report.

    Parameters
    ----------
    title, subtitle
        At its head.
    cards
        Facts at a glance: (name, value).
    sections
        Its parts in their order.
    details
        Facts for reproduction: (name, value).
    """

    title: str
    subtitle: str
    cards: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    details: tuple[tuple[str, str], ...] = field(default_factory=tuple)


def joined(pages: Sequence[Page], title: str | None = None) -> Page:
    """Return several pages (at least one) as one, under the title of the first unless given."""
    if len(pages) == 1:
        return pages[0]
    return Page(
        title=title or "Results",
        subtitle="; ".join(page.subtitle for page in pages),
        cards=tuple(card for page in pages for card in page.cards),
        sections=tuple(section for page in pages for section in page.sections),
        details=tuple(dict.fromkeys(fact for page in pages for fact in page.details)),
    )


def html_of(page: Page) -> str:
    """Return the page as one HTML file: styles, script and pictures are in it.

    Raises
    ------
    UsageError
        If jinja2 is not installed.
    """
    jinja2 = load("jinja2", "report", "a report")
    folder = resources.files("edgeflow_opt.analysis.report")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(read("page.html.j2"))
    text: str = template.render(
        page=page, style=read("page.css"), script=read("page.js"), version=__version__
    )
    return text + "\n"


#: Parts of an SVG file that are not wanted within a page.
_HEAD = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' (width|height)="([\d.]+)pt"')
_IDS = re.compile(r'(\bid="|href="#|url\(#)')


def inline_svg(picture: Axes | Figure, name: str, label: str) -> str:
    """Return a picture as SVG within a page: text as text, in the colours of the page.

    Parameters
    ----------
    picture
        Axes or a figure.
    name
        Prefix of all ids in it, unique within the page.
    label
        What it shows, for those who do not see it.
    """
    from markupsafe import escape

    from edgeflow_opt.analysis.plots.style import INK, PAPER, hide, rendered

    text = rendered(picture, "svg", transparent=True).decode()
    hide(picture)
    text = _METADATA.sub("", _HEAD.sub("", text))
    text = _IDS.sub(lambda found: f"{found.group(1)}{name}-", text)
    text = text.replace(INK, "currentColor").replace(PAPER, "var(--page)")
    sizes = dict(_SIZE.findall(text[: text.index(">", text.index("<svg"))]))
    width = float(sizes["width"]) * 96 / 72
    text = _SIZE.sub("", text, count=len(sizes))
    head = f'<svg role="img" aria-labelledby="{name}-label" style="max-width:{width:.0f}px"'
    text = text.replace("<svg", head, 1)
    first = text.index(">", text.index("<svg")) + 1
    return f'{text[:first]}<title id="{name}-label">{escape(label)}</title>{text[first:]}'


def filled(table: TableOf) -> TableOf:
    """Return a table without the columns in which nothing stands."""
    kept = [
        index
        for index in range(len(table.columns))
        if not table.rows or any(row[index].text not in ("", "-") for row in table.rows)
    ]
    return TableOf(
        columns=tuple(table.columns[index] for index in kept),
        rows=tuple(tuple(row[index] for index in kept) for row in table.rows),
    )


def text_cell(text: object, tone: str = "") -> Cell:
    """Return a cell with a text that is sorted as such."""
    return Cell(text=str(text), key=str(text), tone=tone)


def number_cell(value: float | None, text: str | None = None, tone: str = "") -> Cell:
    """Return a cell with a number; None is a dash that is sorted to the end."""
    if value is None:
        return Cell(text="-", tone="dim")
    return Cell(text=number(value) if text is None else text, key=float(value), tone=tone)


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for people: whole ones whole, others with `digits` significant digits."""
    if value is None:
        return "-"
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 10.0**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float | None) -> str:
    """Return a share in per cent."""
    return "-" if share is None else f"{100 * share:.3g} %"


def seconds(value: float | None) -> str:
    """Return a duration in seconds with as many digits as matter."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def p_value(value: float | None) -> str:
    """Return a p-value; very small ones only as that."""
    if value is None:
        return "-"
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def setting(value: Any) -> str:
    """Return a setting for people."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value, 6)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " to ".join(setting(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} = {setting(v)}" for k, v in value.items()) or "none"
    return str(value)
