"""Cells on a Dask cluster; a worker that dies has its cells run by others."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator
from typing import Any

from edgeflow_opt.analysis.bench.cells import Cell, run_cell
from edgeflow_opt.analysis.bench.crew import Ended
from edgeflow_opt.analysis.bench.records import Record
from edgeflow_opt.analysis.extras import load
from edgeflow_opt.errors import UsageError

logger = logging.getLogger(__name__)

#: Topic on which workers tell that they begin a cell.
_TOPIC = "edgeflow-bench"

#: Seconds to wait for the scheduler.
_CONNECT_S = 15

#: Seconds between two looks at cells that may be over time.
_LOOK_S = 1.0


def _run_on_worker(cell: Cell) -> Record:
    """Run a cell on a worker, having told that it begins."""
    from distributed import get_worker

    from edgeflow_opt.solvers import warm_up

    # A fresh worker loads the kernels first; the limit of the cell does not pay for that.
    warm_up()
    worker = get_worker()
    worker.log_event(_TOPIC, {"cell": cell.id, "worker": worker.address})
    return run_cell(cell)


class DaskCrew:
    """The workers of a Dask scheduler.

    A cell over its limit is recorded as such; its worker is restarted (by its nanny) to get rid of
    it, and other cells there are run again. Without a nanny the cell goes on there, unheard.

    Parameters
    ----------
    address
        Of the scheduler, such as ``tcp://host:8786``.
    limit_s
        Wall seconds of a cell.
    """

    def __init__(self, address: str, limit_s: float) -> None:
        distributed = load("distributed", "dask", "a suite on a cluster")
        try:
            self._client = distributed.Client(
                address, timeout=_CONNECT_S, set_as_default=False, name="edgeflow-bench"
            )
        except (OSError, TimeoutError, ValueError, ImportError) as problem:
            raise UsageError(
                f"option dask: no scheduler answers at {address!r} ({problem}); "
                "start one with 'dask scheduler' and name its address"
            ) from None
        self._limit_s = limit_s
        self._cells: dict[str, tuple[Cell, Any]] = {}
        self._begun: dict[str, tuple[float, str]] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._attempt = 0
        self._client.subscribe_topic(_TOPIC, self._note)

    @property
    def room(self) -> int:
        """Cells that may be waiting or running at a time: twice the threads of the cluster."""
        return max(2, 2 * sum(self._client.nthreads().values()))

    def begin(self, cell: Cell) -> None:
        """Take a cell; returns at once."""
        # A cell of the same id may be in the memory of the cluster from an earlier run.
        self._attempt += 1
        key = f"edgeflow-{cell.id}-{time.time_ns()}-{self._attempt}"
        future = self._client.submit(_run_on_worker, cell, key=key, pure=False, retries=0)
        self._cells[key] = (cell, future)
        future.add_done_callback(lambda ended: self._done.put(ended.key))

    def ended(self) -> Iterator[Ended]:
        """Yield what has ended since, after waiting for at least one if any is under way."""
        while self._cells:
            try:
                key = self._done.get(timeout=_LOOK_S)
            except queue.Empty:
                late = self._late()
                if late is None:
                    continue
                yield late
                return
            if key not in self._cells:
                continue
            cell, future = self._cells.pop(key)
            self._begun.pop(cell.id, None)
            try:
                yield Ended(cell=cell, record=future.result())
            except Exception as problem:
                message = f"its workers died or failed ({type(problem).__name__}: {problem})"
                yield Ended(cell=cell, reason="died", message=message)
            return

    def close(self, finished: bool) -> None:
        """Leave the cluster; what still waits there is withdrawn unless all is `finished`."""
        if not finished:
            self._client.cancel([future for _, future in self._cells.values()], force=True)
        self._client.unsubscribe_topic(_TOPIC)
        self._client.close()

    def _note(self, event: Any) -> None:
        _, message = event
        self._begun[message["cell"]] = (time.monotonic(), message["worker"])

    def _late(self) -> Ended | None:
        """Return the end of a cell that is over its limit, having got rid of it; None = none is."""
        alive = self._client.nthreads()
        for key, (cell, future) in self._cells.items():
            since, worker = self._begun.get(cell.id, (float("inf"), ""))
            if time.monotonic() - since <= self._limit_s:
                continue
            if worker not in alive:
                # It died with the cell, which others will begin anew.
                del self._begun[cell.id]
                continue
            del self._cells[key], self._begun[cell.id]
            self._client.cancel([future], force=True)
            self._restart(worker)
            message = f"the cell took longer than {self._limit_s:g} s and was ended"
            return Ended(cell=cell, reason="time", message=message)
        return None

    def _restart(self, worker: str) -> None:
        """Start a worker anew, if it has a nanny and is still there."""
        try:
            self._client.restart_workers([worker], raise_for_error=False)
        except (KeyError, ValueError, TimeoutError) as problem:
            logger.warning("worker %s could not be restarted: %r", worker, problem)
