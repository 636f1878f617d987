"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from edgeflow_opt.cli.console import count, number, percent, seconds

if TYPE_CHECKING:
    from edgeflow_opt.simulation import EventRecord
    from edgeflow_opt.solvers import Progress

#: Seconds between two plain lines, unless there is real news.
_PERIOD_S = 2.0

#: Columns kept for the name of the work in plain lines, so that those below each other align.
_NAME_WIDTH = 15

#: The plan that exact solvers begin with, in which nothing runs: no news to anybody.
_EMPTY_PLAN = "empty plan"

#: What takes a line: its text, and whether it is news that must not be passed over.
Show = Callable[[str, bool], None]


@contextlib.contextmanager
def status_line(name: str, quiet: bool) -> Iterator[Show | None]:
    """Show what goes on while the work within lasts.

    Parameters
    ----------
    name
        What the work is; stands before every line.
    quiet
        Show nothing.

    Yields
    ------
    show
        Takes a line, from any thread; None where nothing is shown.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _live_line(name) as show:
            yield show
    else:
        yield _plain_lines(name)


def _plain_lines(name: str) -> Show:
    """Return what prints every piece of news, and other lines now and then."""
    stream = sys.stderr
    printed_at = time.monotonic()

    def show(text: str, news: bool) -> None:
        nonlocal printed_at
        if not news and time.monotonic() < printed_at + _PERIOD_S:
            return
        printed_at = time.monotonic()
        with contextlib.suppress(OSError, ValueError):
            print(f"{name:<{_NAME_WIDTH}}  {text}", file=stream, flush=True)

    return show


@contextlib.contextmanager
def _live_line(name: str) -> Iterator[Show]:
    """Show the latest line in one place, with the time going on."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    start = time.perf_counter()
    latest = ["..."]
    lock = threading.Lock()

    def line() -> Text:
        with lock:
            text = latest[0]
        elapsed = f"{time.perf_counter() - start:.0f} s"
        return Text(f"{name}  {elapsed} | {text}", style="dim", overflow="ellipsis", no_wrap=True)

    def show(text: str, news: bool) -> None:
        del news
        with lock:
            latest[0] = text

    target = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    with Live(
        get_renderable=line, console=target, refresh_per_second=8, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    ):  # fmt: skip
        yield show


def progress_line(point: Progress, what: str = "met") -> str:
    """Return one improvement as a line: time, incumbent, bound, gap, source.

    Parameters
    ----------
    point
        The improvement.
    what
        What is counted: ``met`` for jobs, ``value`` for anything else.
    """
    from edgeflow_opt.problem import relative_gap

    gap = None
    if point.value is not None and point.bound is not None:
        gap = relative_gap(point.value, point.bound)
    return (
        f"{seconds(point.seconds):>6} s  {what} {number(point.value):>5}  "
        f"bound {number(point.bound):>7}  gap {percent(gap):>6}  {point.source}"
    )


@contextlib.contextmanager
def progress_of(
    name: str, quiet: bool, value_name: str | None = None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of a solve; yield what ``SolveOptions.on_progress`` takes.

    Parameters
    ----------
    name, quiet
        As in :func:`status_line`.
    value_name
        What level 1 counts; None = jobs met.
    """
    value: float | None = None
    what = "met" if value_name is None else "value"
    with status_line(name, quiet) as show:
        if show is None:
            yield None
            return

        def take(point: Progress) -> None:
            nonlocal value
            if point.source == _EMPTY_PLAN:
                return
            news, value = point.value != value, point.value
            show(progress_line(point, what), news)

        yield take


@contextlib.contextmanager
def events_of(
    name: str, num_jobs: int, quiet: bool
) -> Iterator[Callable[[EventRecord], None] | None]:
    """Show how far a simulation is; yield what ``on_event`` of it takes."""
    events = finished = 0
    with status_line(name, quiet) as show:
        if show is None:
            yield None
            return

        def take(record: EventRecord) -> None:
            nonlocal events, finished
            events += 1
            finished += len(record.completed) + len(record.refused)
            done = f"{finished:>6} of {count(num_jobs, 'job')} finished"
            show(f"{count(events, 'event'):>13}  {done}", False)

        yield take
        # What happens after the last decision is no event: the number of jobs would be too low.
        show(f"{count(events, 'event'):>13}  done", True)
