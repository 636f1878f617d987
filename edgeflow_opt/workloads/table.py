"""Tables of comma-separated values: typed cells, and every fault with its row and column.

Rows are numbered as in a spreadsheet: the header is row 1. Blank lines are passed over.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from edgeflow_opt.errors import Fault, TraceError
from edgeflow_opt.problem.values import MAX_MAGNITUDE, shown

#: A longer line is no row of a table of jobs, rates or capacities.
MAX_LINE_BYTES = 1 << 20

#: Faults gathered before reading stops: more of them help nobody, and memory is finite.
MAX_FAULTS = 1000


@dataclass(slots=True)
class Row:
    """One row of a table: cells by column, and the faults found in them so far.

    The accessors never raise: a bad cell leaves a fault in `faults` and a stand-in of the right
    type, so that all cells of a row are looked at before it is refused.

    Parameters
    ----------
    number
        As in a spreadsheet; the header is row 1.
    cells
        Text by column, stripped of blanks around it.
    faults
        What is wrong with the row.
    misshapen
        The cells do not fit the columns: their contents are not looked at.
    """

    number: int
    cells: Mapping[str, str]
    faults: list[Fault] = field(default_factory=list)
    misshapen: bool = False

    @property
    def name(self) -> str:
        """How faults name the row."""
        return f"row {self.number}"

    def refuse(self, column: str, rule: str, value: str = "", remedy: str = "") -> None:
        """Note a fault."""
        self.faults.append(Fault(self.name, column, rule, value, remedy))

    def text(self, column: str) -> str:
        """Return the text of a cell, which must not be blank."""
        value = self.cells.get(column, "")
        if self.misshapen:
            return ""
        if not value:
            self.refuse(column, "must not be blank")
        return value

    def number_in(
        self,
        column: str,
        *,
        positive: bool = False,
        nonnegative: bool = False,
        whole: bool = False,
        most: float = MAX_MAGNITUDE,
    ) -> float:
        """Return the number in a cell; NaN where it is none or breaks a rule.

        Parameters
        ----------
        column
            Name of the column.
        positive, nonnegative, whole
            Rules that it must keep; 2.0 is whole.
        most
            Largest magnitude.
        """
        text = self.cells.get(column, "")
        if self.misshapen:
            return math.nan
        if not text:
            self.refuse(column, "must not be blank")
            return math.nan
        try:
            # float() would also take 1_000 and the digits of other scripts.
            value = float(text) if text.isascii() and "_" not in text else None
        except ValueError:
            value = None
        if value is None:
            self.refuse(column, "must be a number", shown(text))
        elif not math.isfinite(value):
            self.refuse(column, "must be a finite number", shown(text))
        elif abs(value) > most:
            self.refuse(column, f"magnitude must be at most {most:g}", shown(text))
        elif whole and value != int(value):
            self.refuse(column, "must be a whole number", shown(text))
        elif positive and not value > 0:
            self.refuse(column, "must be above 0", shown(text))
        elif nonnegative and not value >= 0:
            self.refuse(column, "must be at least 0", shown(text))
        else:
            return value
        return math.nan

    def count_in(self, column: str) -> int:
        """Return the whole number of at least 1 in a cell; 1 where there is none."""
        value = self.number_in(column, positive=True, whole=True)
        return 1 if math.isnan(value) else int(value)


class Table:
    """The header and the rows of a CSV document.

    Parameters
    ----------
    data
        The document, UTF-8 text with or without byte order mark.
    source
        Where it came from, for messages.

    Raises
    ------
    TraceError
        If it is empty, not text, not UTF-8 or not CSV.
    """

    def __init__(self, data: bytes, source: str = "") -> None:
        self.source = source
        if not data.strip():
            raise self.error(Fault("file", "", "is empty", remedy="give a table with a header"))
        if b"\0" in data:
            raise self.error(Fault("file", "", "is binary, not a table of text"))
        _refuse_long_lines(data, source)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as problem:
            number = data.count(b"\n", 0, problem.start) + 1
            raise self.error(
                Fault(
                    f"row {number}", "", "is not UTF-8 text", f"byte {data[problem.start]:#04x}",
                    "save the file as UTF-8",
                )
            ) from None  # fmt: skip
        self._reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = self._next()
        while header is not None and not any(header):
            header = self._next()
        #: Names of the columns, in their order.
        self.columns: tuple[str, ...] = tuple(header or ())

    def refuse_doubles(self, columns: Iterable[str]) -> None:
        """Refuse a header in which one of `columns` stands more than once.

        Raises
        ------
        TraceError
            Naming those.
        """
        twice = [column for column in columns if self.columns.count(column) > 1]
        if twice:
            rule, remedy = "stands more than once", "keep one"
            raise self.error(*(Fault("header", column, rule, remedy=remedy) for column in twice))

    def error(self, *faults: Fault) -> TraceError:
        """Return the error that reports `faults` of this table."""
        return TraceError(faults, self.source)

    def rows(self) -> Iterator[Row]:
        """Yield the rows; one of another length than the header has a fault already.

        Raises
        ------
        TraceError
            If the text is not CSV (a quote that is not closed, a cell of more than 128 KiB): what
            follows cannot be told apart, so such a fault cannot be skipped.
        """
        width = len(self.columns)
        while (cells := self._next()) is not None:
            if len(cells) == width and any(cells):
                row = Row(self._reader.line_num, dict(zip(self.columns, cells, strict=True)))
                if any("\n" in cell or "\r" in cell for cell in cells):
                    row.refuse("", "a cell holds a line break", remedy="look for a stray quote")
                    row.misshapen = True
                yield row
            elif any(cells):
                row = Row(self._reader.line_num, {}, misshapen=True)
                row.refuse("", f"must have {width} cells as the header has", f"{len(cells)} cells")
                yield row

    def _next(self) -> list[str] | None:
        """Return the next record with its cells stripped; None at the end."""
        try:
            record = next(self._reader, None)
        except csv.Error as problem:
            fault = Fault(
                f"row {self._reader.line_num}", "", f"is not CSV ({problem})",
                remedy="look for a quote that is not closed",
            )  # fmt: skip
            raise self.error(fault) from None
        return None if record is None else [cell.strip() for cell in record]


def _refuse_long_lines(data: bytes, source: str) -> None:
    """Refuse a line that would make a row of millions of cells before anything could be said."""
    if len(data) <= MAX_LINE_BYTES:
        return
    content = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero((content == ord("\n")) | (content == ord("\r")))
    lengths = np.diff(ends, prepend=-1, append=len(data))
    if lengths.max() > MAX_LINE_BYTES:
        longest = int(lengths.argmax())
        begin = int(ends[longest - 1]) + 1 if longest else 0
        number = data.count(b"\n", 0, begin) + 1
        fault = Fault(f"row {number}", "", "is longer than 1 MiB, so the file is no table")
        raise TraceError((fault,), source)
