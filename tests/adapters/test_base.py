"""The turns of a session and a cluster that follows it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from edgeflow_opt.adapters import AdapterError, Cluster, advance, follow
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Job
from edgeflow_opt.service import (
    EpochSession,
    Event,
    JobArrived,
    JobCompleted,
    JobPlaced,
    SessionDecision,
    SessionOptions,
)
from edgeflow_opt.service.state import ClusterView
from tests.service.clusters import job, sites


class ToyCluster:
    """A cluster in memory: its clock moves by a step per look, and a job may refuse to start."""

    def __init__(self, jobs: list[Job], step_s: float = 100.0, refuses: str = "") -> None:
        self.clock = 0.0
        self.step_s = step_s
        self.refuses = refuses
        self.left = {job.id: job.work for job in jobs}
        self.waiting = list(jobs)
        self.rates: dict[str, float] = {}
        self.faults = 0

    def now(self) -> float:
        return self.clock

    def observe(self, view: ClusterView) -> list[Event]:
        if self.faults:
            self.faults -= 1
            raise AdapterError("the cluster does not answer")
        self.clock += self.step_s
        events: list[Event] = []
        for name, rate in list(self.rates.items()):
            self.left[name] -= rate * self.step_s
            if self.left[name] <= 0.0 and name in view.jobs:
                del self.rates[name]
                events.append(JobCompleted(time=self.clock, job=name))
        events += [JobArrived(time=self.clock, job=job) for job in self.waiting]
        self.waiting = []
        return events

    def carry_out(self, decision: SessionDecision) -> list[Event]:
        self.rates = {name: mode.rate for name, mode in decision.allocation.items()}
        if self.refuses not in self.rates:
            return []
        del self.rates[self.refuses]
        return [JobPlaced(time=self.clock, job=self.refuses)]


@pytest.fixture
def session() -> Iterator[EpochSession]:
    """Return a session that decides in this process, in milliseconds."""
    with EpochSession(sites(), options=SessionOptions(rungs=()), isolated=False) as made:
        yield made


def test_a_cluster_that_follows_comes_to_the_end_of_its_jobs(session: EpochSession) -> None:
    """Turn by turn the jobs are placed, and are done when their work is."""
    cluster = ToyCluster([job("a"), job("b", work=100.0)])
    assert isinstance(cluster, Cluster)
    first = advance(cluster, session)
    assert set(first.allocation) == {"a", "b"}
    for _ in range(10):
        advance(cluster, session)
    assert not session.view.jobs
    assert not cluster.rates


def test_what_could_not_be_placed_is_known_to_the_session(session: EpochSession) -> None:
    """After a turn the session holds what the cluster did, not what was decided."""
    cluster = ToyCluster([job("a"), job("b")], refuses="b")
    decision = advance(cluster, session)
    assert "b" in decision.allocation
    assert session.view.jobs["b"].mode is None
    assert session.view.jobs["a"].mode == decision.allocation["a"]


def test_the_loop_goes_on_after_faults_of_the_cluster(session: EpochSession) -> None:
    """Faults are told and the next look is taken; without somebody to tell they are raised."""
    cluster = ToyCluster([job("a")])
    cluster.faults = 2
    stop = threading.Event()
    told: list[AdapterError] = []
    follow(
        cluster,
        session,
        interval_s=0.01,
        stop=stop,
        on_decision=lambda decision: stop.set(),
        on_error=told.append,
    )
    assert len(told) == 2
    assert session.decisions == 1
    cluster.faults = 1
    with pytest.raises(AdapterError, match="does not answer"):
        follow(cluster, session, interval_s=0.01, stop=threading.Event())


def test_a_cluster_that_can_tell_of_changes_is_waited_for(session: EpochSession) -> None:
    """The seconds that may be waited at most go to the cluster, and the loop sleeps none itself."""
    cluster = ToyCluster([job("a", work=450.0)], step_s=10.0)
    stop = threading.Event()
    waits: list[float] = []

    def wait(limit_s: float) -> None:
        waits.append(limit_s)
        if len(waits) == 3:
            stop.set()

    follow(cluster, session, interval_s=1e6, stop=stop, wait=wait)
    assert len(waits) == 3
    assert all(0.0 <= limit_s < 1e6 for limit_s in waits)


def test_an_interval_that_is_none_is_refused(session: EpochSession) -> None:
    """The loop must not turn without a pause."""
    with pytest.raises(UsageError, match="option interval_s: must be a number of seconds above 0"):
        follow(ToyCluster([]), session, interval_s=0.0)
