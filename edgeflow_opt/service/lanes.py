"""Threads of the service, apart for each kind of work: none of them can wait for those of another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from edgeflow_opt.service.refusals import TooManyError

T = TypeVar("T")


class Lane:
    """Threads for one kind of work that blocks; idle ones end with the lane.

    Parameters
    ----------
    name
        Of the threads.
    threads
        Number of threads, at least 1; they are started as they are needed.
    places
        Most calls under way or waiting; None = as many as threads, so that none waits.
    refusal
        What is told where there is no place.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        places: int | None = None,
        refusal: str = "too many requests are under way; come again",
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, f"edgeflow-{name}")
        self._places = threading.BoundedSemaphore(threads if places is None else places)
        self._refusal = refusal

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, called in a thread of this lane.

        Raises
        ------
        TooManyError
            If there is no place; otherwise what `work` raises.
        """
        if not self._places.acquire(blocking=False):
            raise TooManyError(self._refusal)
        try:
            future = self._threads.submit(work)
        except BaseException:
            self._places.release()
            raise
        # Not when the caller gives up: the thread is taken until the work has come to its end.
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)
