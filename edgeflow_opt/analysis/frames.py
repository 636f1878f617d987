"""Tables of results in the formats of others: data frames, CSV, Parquet, LaTeX, HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

#: Extra that brings pandas, Parquet and the tables of LaTeX and HTML.
_EXTRA = "analysis"


class Tabular(ABC):
    """What has a table to give away; subclasses say what is in it.

    Every method that takes a path returns the text where the path is None.
    """

    __slots__ = ()

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """Return the rows of the table, flat, all with the same columns."""

    @abstractmethod
    def columns(self) -> Mapping[str, str]:
        """Return the types of the columns by name, as pandas knows them."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return everything as a document, ready for JSON."""

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame, one line a row; what is not known is missing (``pd.NA``)."""
        pandas = load("pandas", _EXTRA, "a data frame")
        frame = pandas.DataFrame(self.records(), columns=list(self.columns()))
        return frame.astype(dict(self.columns()))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV, and write them to `path` if one is given."""
        return _kept(str(self.to_pandas().to_csv(index=False)), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the document as JSON, and write it to `path` if one is given."""
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(self.document()), indent=1).decode() + "\n"
        return _kept(text, path)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows to `path` as Parquet.

        Raises
        ------
        UsageError
            If pyarrow is not installed, or the file cannot be written.
        """
        load("pyarrow", _EXTRA, "a Parquet file")
        import io

        from edgeflow_opt.problem.files import write_bytes

        buffer = io.BytesIO()
        self.to_pandas().to_parquet(buffer, index=False)
        write_bytes(path, buffer.getvalue())

    def to_latex(self, path: str | Path | None = None, columns: Sequence[str] | None = None) -> str:
        r"""Return the rows as a LaTeX table with the rules of booktabs (``\usepackage{booktabs}``).

        Parameters
        ----------
        path
            File to write; None = none.
        columns
            Columns in their order; None = those that differ from row to row and are numbers or
            names that fit a page.
        """
        load("jinja2", _EXTRA, "a LaTeX table")
        frame = self._printed(columns)
        numeric = self.to_pandas()[list(frame)].select_dtypes("number").columns
        text = frame.to_latex(
            index=False, escape=True, column_format="".join("lr"[c in numeric] for c in frame)
        )
        return _kept(text, path)

    def to_html(self, path: str | Path | None = None, columns: Sequence[str] | None = None) -> str:
        """Return the rows as a bare HTML table; a whole page is what ``report`` makes.

        Parameters
        ----------
        path, columns
            As in :meth:`to_latex`.
        """
        text = self._printed(columns).to_html(index=False, border=0, escape=True) + "\n"
        return _kept(text, path)

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        return self.to_html()

    def save(self, path: str | Path) -> None:
        """Write the rows to `path` in the format that the end of its name says.

        Raises
        ------
        UsageError
            If the end is none of .csv, .json, .parquet, .tex, .html, or the file cannot be written.
        """
        writers: dict[str, Callable[[str | Path], object]] = {
            ".csv": self.to_csv, ".json": self.to_json, ".parquet": self.to_parquet,
            ".tex": self.to_latex, ".html": self.to_html,
        }  # fmt: skip
        writer = writers.get(Path(path).suffix.lower())
        if writer is None:
            raise UsageError(
                f"output '{path}': the end of the name must say the format; "
                f"known are {', '.join(writers)}"
            )
        writer(path)

    def _printed(self, columns: Sequence[str] | None) -> pd.DataFrame:
        """Return the columns asked for as texts for people."""
        frame = self.to_pandas()
        if columns is None:
            columns = [c for c in frame if c not in self._unprinted() and frame[c].notna().any()]
        unknown = [c for c in columns if c not in frame]
        if unknown:
            raise UsageError(f"column {unknown[0]!r} is not known; known are {', '.join(frame)}")
        return frame[list(columns)].map(shown)

    def _unprinted(self) -> frozenset[str]:
        """Return the columns that are left out of printed tables unless asked for."""
        return frozenset()


def shown(value: Any) -> str:
    """Return a value of a table for people: whole numbers whole, others with 4 digits."""
    import pandas as pd

    if value is None or value is pd.NA or value != value:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.4g}"


def _kept(text: str, path: str | Path | None) -> str:
    """Write `text` where a path is given, whole or not at all, and return it."""
    if path is not None:
        from edgeflow_opt.problem.files import write_text

        write_text(path, text)
    return text
