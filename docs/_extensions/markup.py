"""Small pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Return a text as it stands in a cell of a table: one line, no column ends in it."""
    return " ".join(str(text).split()).replace("|", r"\|")


def plain(text: str) -> str:
    """Return a text in which nothing is markup."""
    for sign in "\\`*_<>[]$":
        text = text.replace(sign, "\\" + sign)
    return text


def code(text: str) -> str:
    """Return a text in typewriter letters; empty where it is."""
    return f"`{text}`" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
