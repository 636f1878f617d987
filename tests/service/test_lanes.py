"""Threads of the service: kinds of work do not wait for one another."""

from __future__ import annotations

import asyncio
import threading

import pytest

from edgeflow_opt.service.lanes import Lane
from edgeflow_opt.service.refusals import TooManyError


def test_a_full_lane_refuses_and_holds_up_no_other() -> None:
    """Where all places are taken there is a refusal at once; another lane goes on."""

    async def story() -> None:
        full, free = Lane("full", 2, 3, refusal="come again"), Lane("free", 1)
        go_on = threading.Event()
        calls = [asyncio.create_task(full.run(go_on.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyError, match="come again"):
            await full.run(go_on.wait)
        assert await free.run(lambda: 7) == 7
        assert not any(call.done() for call in calls)
        go_on.set()
        assert await asyncio.gather(*calls) == [True, True, True]
        assert await full.run(lambda: 8) == 8

    asyncio.run(story())


def test_a_place_is_free_when_its_work_has_ended() -> None:
    """A caller that gives up leaves its place taken until the thread is free."""

    async def story() -> None:
        lane = Lane("lane", 1)
        begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            go_on.wait()

        call = asyncio.create_task(lane.run(work))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(TooManyError, match="too many requests"):
            await lane.run(ended.set)
        go_on.set()
        while not ended.is_set():
            try:
                await lane.run(ended.set)
            except TooManyError:
                await asyncio.sleep(0.01)

    asyncio.run(story())
