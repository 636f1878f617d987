"""Cells in processes of this machine, each with a limit that ends its process."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from edgeflow_opt.analysis.bench.cells import Cell, run_cell
from edgeflow_opt.analysis.bench.crew import Ended
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.analysis.tether import end_with_parent

#: What is said of cells that a pool held when it gave itself up.
_ALL_LOST = "a process died before it had begun a cell"


def _prepare() -> None:
    """Make a worker ready: kernels loaded off the clock, Ctrl-C left to the main process."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from edgeflow_opt.solvers import warm_up

    warm_up()


class ProcessCrew:
    """A pool of processes; one that dies or is over time is replaced, the others go on.

    Parameters
    ----------
    workers
        Number of processes.
    limit_s
        Wall seconds of a cell.
    """

    def __init__(self, workers: int, limit_s: float) -> None:
        self._pebble = load("pebble", "suite", "a suite")
        self.room = 2 * workers
        self._workers = workers
        self._limit_s = limit_s
        self._pool = self._made()
        self._cells: dict[Any, Cell] = {}

    def _made(self) -> Any:
        # A forked process would share threads and locks of the libraries in a broken state.
        return self._pebble.ProcessPool(
            max_workers=self._workers,
            initializer=_prepare,
            context=multiprocessing.get_context("spawn"),
        )

    def begin(self, cell: Cell) -> None:
        """Take a cell; returns at once."""
        if not self._pool.active:
            self._pool = self._made()
        future = self._pool.schedule(run_cell, args=[cell], timeout=self._limit_s)
        self._cells[future] = cell

    def ended(self) -> Iterator[Ended]:
        """Yield what has ended since, after waiting for at least one if any is under way."""
        done: set[Any] = set()
        while self._cells and not done:
            done, _ = concurrent.futures.wait(
                self._cells, timeout=1.0, return_when=concurrent.futures.FIRST_COMPLETED
            )
            if not self._pool.active:
                # A process died between cells, for which the pool gives itself up: of what it
                # holds, nothing more will come.
                done = set(self._cells)
        for future in done:
            cell = self._cells.pop(future)
            if not future.done():
                yield Ended(cell=cell, reason="died", message=_ALL_LOST)
                continue
            try:
                yield Ended(cell=cell, record=future.result())
            except TimeoutError:
                message = f"the cell took longer than {self._limit_s:g} s and was ended"
                yield Ended(cell=cell, reason="time", message=message)
            except self._pebble.ProcessExpired as problem:
                yield Ended(cell=cell, reason="died", message=f"its process died ({problem})")
            except BrokenProcessPool:
                yield Ended(cell=cell, reason="died", message=_ALL_LOST)

    def close(self, finished: bool) -> None:
        """Let the processes go; what still runs is ended unless all is `finished`."""
        if finished:
            self._pool.close()
        else:
            self._pool.stop()
        self._pool.join()
