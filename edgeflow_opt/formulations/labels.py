"""Names of jobs and sites that survive the rules of LP and MPS files, and the way back."""

from __future__ import annotations

import string
from collections.abc import Iterable

#: Characters that stand for themselves. LP files give a meaning to most others, MPS to blanks.
_PLAIN = frozenset(string.ascii_letters + string.digits + "_.")

#: Escaped names are cut at this length: solvers differ in how much of a name they keep.
_MOST_CHARACTERS = 48


class Labels:
    """A label for each of some distinct texts: readable, stable, and never the same twice.

    Letters, digits, ``_`` and ``.`` stand for themselves; every other character becomes ``~`` and
    two hexadecimal digits for each byte of its UTF-8 form, so that ``"train 7"`` is ``train~207``.
    A text that would become too long is cut, and told apart by its number: ``aaaa~~12``. The
    empty text is ``~``.

    Parameters
    ----------
    texts
        The texts, in an order that does not change.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.labels = tuple(_label(text, number) for number, text in enumerate(texts))
        """The labels, in the order of the texts."""
        self._numbers = {label: number for number, label in enumerate(self.labels)}

    def number(self, label: str) -> int | None:
        """Return the number of the text that `label` stands for; None = of none."""
        return self._numbers.get(label)


def _label(text: str, number: int) -> str:
    pieces = [
        char if char in _PLAIN else "".join(f"~{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in text
    ]  # fmt: skip
    label = "".join(pieces) or "~"
    if len(label) <= _MOST_CHARACTERS:
        return label
    kept = ""
    for piece in pieces:
        if len(kept) + len(piece) > _MOST_CHARACTERS:
            break
        kept += piece
    return f"{kept}~~{number}"
