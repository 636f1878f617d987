"""The sessions of a service: deleted, stopped and asked while a decision is under way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.problem import EpochProblem, Grid, problem_to_dict
from edgeflow_opt.service import SolverPool
from edgeflow_opt.service.hub import SessionHub
from edgeflow_opt.service.pool import TaskError
from edgeflow_opt.service.refusals import NoSuchSessionError, TooManyError
from edgeflow_opt.service.settings import ServiceSettings
from edgeflow_opt.service.store import SessionStore
from tests.service.clusters import job, sites


class _Hanging(SolverPool):
    """A pool of no process, whose tasks go on until they are cancelled."""

    begun = threading.Event()

    def run(
        self,
        task: str,
        arguments: Mapping[str, Any],
        *,
        limit_s: float,
        hear: Callable[[Any], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> Any:
        """Wait to be cancelled."""
        assert cancelled is not None
        self.begun.set()
        assert cancelled.wait(60.0)
        raise TaskError("cancelled", "the task was cancelled")


def _begin(hub: SessionHub) -> str:
    problem = EpochProblem(grid=Grid((0.0, 1.0)), sites=sites(), jobs=(job("a"),))
    document = problem_to_dict(problem)
    body = {"sites": document["sites"], "jobs": document["jobs"], "options": {"rungs": ["price"]}}
    name: str = hub.begin(json.dumps(body).encode())["id"]
    return name


LONG = b'{"time_limit_s": 50}'


def test_a_deleted_session_stays_deleted(tmp_path: Path) -> None:
    """A session deleted during a decision is gone, on the disk too, and the decision says so."""
    pool = _Hanging()
    store = SessionStore(tmp_path / "sessions.db")
    hub = SessionHub(ServiceSettings(), store, pool)
    name, other = _begin(hub), _begin(hub)
    pool.begun.clear()
    with ThreadPoolExecutor(1) as threads:
        decision = threads.submit(hub.decide, name, LONG)
        assert pool.begun.wait(60.0)
        hub.delete(name)
        with pytest.raises(NoSuchSessionError, match=f"'{name}' was deleted meanwhile"):
            decision.result(60.0)
    with pytest.raises(NoSuchSessionError, match="was deleted meanwhile"):
        store.add_events(name, {})
    with pytest.raises(NoSuchSessionError, match="there is no session"):
        hub.delete(name)
    store.close()
    store = SessionStore(tmp_path / "sessions.db")
    again = SessionHub(ServiceSettings(), store, pool)
    assert [one["id"] for one in again.all()] == [other]
    store.close()


def test_decisions_of_one_session_wait_within_their_limits() -> None:
    """A second decision is refused when its time is up; when the service stops the first answers."""
    pool = _Hanging()
    hub = SessionHub(ServiceSettings(), SessionStore(None), pool)
    name = _begin(hub)
    pool.begun.clear()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(hub.decide, name, LONG)
        assert pool.begun.wait(60.0)
        with pytest.raises(TooManyError, match="another decision of this session is under way"):
            hub.decide(name, b'{"time_limit_s": 0.05}')
        assert not first.done()
        hub.stop()
        assert first.result(60.0)["value"] == 1.0
    assert hub.decide(_begin(hub), LONG)["value"] == 1.0
