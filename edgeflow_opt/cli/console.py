"""What is shown to people and machines: tables and JSON documents on stdout, and nothing else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgeflow_opt.cli import failures
from edgeflow_opt.cli.failures import printable as printable

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table
    from rich.text import Text

    from edgeflow_opt.problem import EpochProblem

#: Columns where stdout is no terminal and COLUMNS is not set: rows stay on one line.
_PIPE_WIDTH = 200

#: Columns of running text at most, however wide the rows of a table may be.
_TEXT_WIDTH = 100

#: Colours of statuses and of words like them.
_STYLES = {
    "optimal": "green", "feasible": "yellow", "infeasible": "red", "no_solution": "red",
    "error": "red", "not supported": "red", "not run": "red", "available": "green",
    "valid": "green", "invalid": "red", "yes": "green", "met": "green", "late": "yellow",
    "unfinished": "red",
}  # fmt: skip


def console() -> Console:
    """Return the console on stdout as it is now; it interprets nothing in what it prints."""
    from rich.console import Console

    class PipedConsole(Console):
        """A console that lets the command see that its reader went away."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # sys.__stdout__ would escape the redirection that tests and callers make.
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return PipedConsole(
        file=sys.stdout, markup=False, highlight=False, emoji=False,
        width=_PIPE_WIDTH if piped else None,
    )  # fmt: skip


def show(*things: RenderableType) -> None:
    """Print tables and texts to stdout."""
    from rich.table import Table

    target = console()
    for index, thing in enumerate(things):
        if index > 0 and isinstance(thing, Table):
            target.print()
        width = min(_TEXT_WIDTH, target.width) if isinstance(thing, str) else None
        target.print(thing, width=width)


def show_json(document: Any) -> None:
    """Print one JSON document to stdout."""
    sys.stdout.write(json_text(document))
    sys.stdout.flush()


def json_text(document: Any) -> str:
    """Return `document` as the text of a file: NaN and infinities as null, a line feed at the end."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def table(*columns: str, title: str | None = None, left: tuple[str, ...] = ()) -> Table:
    """Return an empty table; all columns but those in `left` are flush right, as numbers are."""
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold",
        header_style="bold", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for column in columns:
        if column in left:
            made.add_column(column, justify="left", overflow="fold")
        else:
            made.add_column(column, justify="right", overflow="fold")
    return made


def facts(title: str, pairs: Sequence[tuple[str, str | Text]]) -> Group:
    """Return a list of names and values under a title."""
    return _titled_list(title, pairs, name_style="dim")


def meanings(title: str, pairs: Iterable[tuple[str, str]]) -> Group:
    """Return a list of names and what they mean under a title, set off from what is above."""
    shown = [(f"  {printable(name)}", printable(meaning)) for name, meaning in pairs]
    return _titled_list(f"\n{printable(title)}", shown, name_style="")


def _titled_list(title: str, pairs: Sequence[tuple[str, str | Text]], name_style: str) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2))
    made.add_column(style=name_style, no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, value)
    return Group(Text(title, style="bold"), made)


def word(text: str) -> Text:
    """Return a status or the like in its colour."""
    from rich.text import Text

    return Text(printable(text), style=_STYLES.get(text, ""))


def number(value: float | None, digits: int = 6) -> str:
    """Return a number for people: whole ones whole, others with `digits` significant digits."""
    if value is None:
        return "-"
    if value == int(value) if abs(value) < 1e15 else False:
        return f"{int(value):,}"
    return f"{value:,.{digits}g}"


def percent(share: float | None) -> str:
    """Return a share for people, in per cent."""
    if share is None:
        return "-"
    if share == 0:
        return "0 %"
    return f"{100 * share:.3g} %" if abs(share) < 9.995 else f"{100 * share:,.0f} %"


def seconds(value: float | None) -> str:
    """Return a duration in seconds for people."""
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def count(value: int, noun: str) -> str:
    """Return a number of things in words: ``1 job``, ``2 jobs``."""
    return f"{value:,} {noun}{'s' * (value != 1)}"


def size_of(problem: EpochProblem) -> str:
    """Return the size of an instance in words."""
    jobs, slots = count(len(problem.jobs), "job"), count(problem.grid.num_slots, "slot")
    return f"{jobs} x {slots} on {count(len(problem.sites), 'site')}"


@contextlib.contextmanager
def stdout_kept_pure() -> Iterator[None]:
    """Keep off stdout whatever is written there meanwhile, by Python or by native code.

    Plug-ins may print what they like, and HiGHS prints a banner from C that no option silences; the
    document on stdout must stay the only thing there. Python's output goes to stderr, that of
    native code nowhere, or to stderr with ``--debug``.
    """
    python_stdout = sys.stdout
    python_stdout.flush()
    saved: int | None = None
    with contextlib.suppress(OSError, ValueError):
        # A stdout that is no file (captured, closed) needs the Python part only.
        if python_stdout.fileno() == 1:
            saved = os.dup(1)
            if failures.show_tracebacks:
                os.dup2(2, 1)
            else:
                sink = os.open(os.devnull, os.O_WRONLY)
                os.dup2(sink, 1)
                os.close(sink)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = python_stdout
        if saved is not None:
            _flush_native_buffers()
            os.dup2(saved, 1)
            os.close(saved)


def _flush_native_buffers() -> None:
    """Empty the buffers of C's stdio, or they would come out on the stdout that is put back."""
    import ctypes

    # Where the C library cannot be reached this way (Windows), its buffers are left alone.
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
