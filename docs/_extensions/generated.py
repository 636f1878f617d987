"""Pages that are made from the code: a line ``<!-- generated: NAME ARGUMENT -->`` becomes text.

What can be told from registries, schemas and the command line is told by them, so that no list in
the documentation can be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import api_pages
import command_line
import http_routes
import pictures
import registries
import schemas
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
_MARK = re.compile(r"^<!-- generated: (?P<name>[\w-]+)(?: (?P<argument>\S+))? -->$", re.MULTILINE)


def _file_of_checkout(path: str) -> str:
    """Return a Markdown file of the checkout, its links turned to those of the pages."""
    text = (ROOT / path).read_text(encoding="utf-8")
    folder = path.rpartition("/")[0]

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if re.match(r"\w+:|#", target):
            return match[0]
        name = str(Path(folder, target).resolve().relative_to(Path.cwd())) if folder else target
        if name not in PAGES_OF_FILES:
            return match["text"].strip("[]")
        return f"{match['text']}({PAGES_OF_FILES[name]})"

    return re.sub(r"(?P<text>\[[^\]]+\])\((?P<target>[^)\s]+)\)", link, text)


def _below_a_heading(path: str) -> str:
    """Return a Markdown file of the checkout without its title, as part of a page with another."""
    return _file_of_checkout(path).partition("\n")[2]


#: Pages that show Markdown files of the checkout.
PAGES_OF_FILES = {
    "models/README.md": "/mathematics/symbols.md",
    "models/malleable/README.md": "/mathematics/malleable.md",
    "models/moldable/README.md": "/mathematics/moldable.md",
    "models/plan/README.md": "/mathematics/plan.md",
    "benchmarks/README.md": "/guides/reproducing.md",
    "CHANGELOG.md": "/changelog.md",
}

GENERATORS: dict[str, Callable[..., str]] = {
    "api": api_pages.page,
    "api-index": api_pages.index,
    "command-line": command_line.page,
    "constraints": registries.constraints,
    "entry-points": registries.entry_points,
    "extras": registries.extras,
    "exit-codes": registries.exit_codes,
    "file": _file_of_checkout,
    "file-without-title": _below_a_heading,
    "picture": pictures.gantt,
    "policies": registries.policies,
    "routes": http_routes.page,
    "schema": schemas.page,
    "solvers": registries.solvers,
    "suites": registries.suites,
    "trace-formats": registries.trace_formats,
}


def fill_in(text: str, page: str) -> str:
    """Return the text of a page with its generated parts filled in.

    Raises
    ------
    ExtensionError
        If a mark names nothing that can be generated.
    """

    def part(match: re.Match[str]) -> str:
        generator = GENERATORS.get(match["name"])
        if generator is None:
            known = ", ".join(GENERATORS)
            raise ExtensionError(
                f"page {page}: nothing is generated as {match['name']!r}; known: {known}"
            )
        return generator(*filter(None, [match["argument"]]))

    return _MARK.sub(part, text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill in the generated parts of every page when it is read."""

    def read(app: Sphinx, page: str, source: list[str]) -> None:
        source[0] = fill_in(source[0], page)
        if "<!-- generated:" in source[0]:
            raise ExtensionError(
                f"page {page}: a mark of generated text stands in a line with more"
            )
        if _MARK.search(Path(app.env.doc2path(page)).read_text(encoding="utf-8")):
            app.env.note_reread()  # the code may have changed though the page has not

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
