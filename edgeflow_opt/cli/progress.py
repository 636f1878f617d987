"""Progress of a solve on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from edgeflow_opt.cli.console import number, percent, seconds

if TYPE_CHECKING:
    from edgeflow_opt.solvers import Progress

#: Seconds between two plain lines that tell of a better bound only.
_BOUND_PERIOD_S = 1.0


def progress_line(point: Progress) -> str:
    """Return one improvement as a line: time, incumbent, bound, gap, source."""
    from edgeflow_opt.problem import relative_gap

    known = point.value is not None and point.bound is not None
    gap = relative_gap(point.value, point.bound) if known else None  # type: ignore[arg-type]
    return (
        f"{seconds(point.seconds):>7} s  met {number(point.value):>6}  "
        f"bound {number(point.bound):>7}  gap {percent(gap):>6}  {point.source}"
    )


@contextlib.contextmanager
def progress_of(name: str, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress of a solve while it lasts.

    Parameters
    ----------
    name
        What is being solved, and by which solver.
    quiet
        Show nothing.

    Yields
    ------
    callback
        For ``SolveOptions.on_progress``; None where nothing is shown.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _live_line(name) as callback:
            yield callback
    else:
        yield _plain_lines(name)


def _plain_lines(name: str) -> Callable[[Progress], None]:
    """Return a callback that prints every better value, and better bounds now and then."""
    value: float | None = None
    printed_s = -_BOUND_PERIOD_S
    stream = sys.stderr

    def show(point: Progress) -> None:
        nonlocal value, printed_s
        if point.value == value and point.seconds < printed_s + _BOUND_PERIOD_S:
            return
        value, printed_s = point.value, point.seconds
        with contextlib.suppress(OSError, ValueError):
            print(f"{name}  {progress_line(point)}", file=stream, flush=True)

    return show


@contextlib.contextmanager
def _live_line(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show the latest improvement in one line, with the time going on."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    start = time.perf_counter()
    latest: list[Progress] = []
    lock = threading.Lock()

    def line() -> Text:
        elapsed = seconds(time.perf_counter() - start)
        with lock:
            last = latest[-1] if latest else None
        told = f"no schedule yet, {elapsed} s" if last is None else progress_line(last).strip()
        return Text(
            f"{name}  {elapsed} s  |  {told}", style="dim", overflow="ellipsis", no_wrap=True
        )

    def take(point: Progress) -> None:
        with lock:
            latest[:] = [point]

    target = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    with Live(
        get_renderable=line, console=target, refresh_per_second=8, transient=True,
        redirect_stdout=False, redirect_stderr=False,
    ):  # fmt: skip
        yield take
