"""Calls that run here and now, or in processes of their own side by side."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.analysis.tether import end_with_parent

#: Waits for what a call returns, and returns it; asked again, it returns the same.
Result = Callable[[], Any]


class Crew(Protocol):
    """Who makes the calls."""

    room: int
    """How many calls may be under way beyond those that are waited for."""

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Result:
        """Begin a call."""
        ...


class Here:
    """Makes each call in this process, once its result is asked for."""

    room = 0

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Result:
        """Begin a call, see :class:`Crew`."""
        return functools.cache(functools.partial(function, *arguments))


class Processes:
    """Makes calls in a pool of processes.

    Parameters
    ----------
    pool
        A pool of pebble.
    workers
        Its size.
    """

    def __init__(self, pool: Any, workers: int) -> None:
        self._pool = pool
        self.room = 2 * workers

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Result:
        """Begin a call, see :class:`Crew`; function and arguments must be picklable."""
        result: Result = self._pool.schedule(function, args=arguments).result
        return result


def _prepare() -> None:
    """Make a worker ready: it ends with the main process, to which Ctrl-C is left."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def crew_of(workers: int) -> Iterator[Crew]:
    """Open a crew for so many calls at a time; what is under way when it ends early is stopped.

    Raises
    ------
    UsageError
        If there are to be processes and pebble is not installed.
    """
    if workers == 1:
        yield Here()
        return
    pebble = load("pebble", "suite", "a comparison with several workers")
    # A forked process would share threads and locks of the libraries in a broken state.
    context = multiprocessing.get_context("spawn")
    pool = pebble.ProcessPool(
        max_workers=workers, initializer=_prepare, context=context,
    )  # fmt: skip
    try:
        yield Processes(pool, workers)
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()
