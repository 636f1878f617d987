"""What the session is told of Slurm, and what Slurm is told, against programs that only play it."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.adapters import AdapterError, advance
from edgeflow_opt.adapters.slurm import SlurmCluster, SlurmPrograms
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Mode
from edgeflow_opt.service import (
    CapacityChanged,
    EpochSession,
    Event,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    JobRevised,
    RateCorrected,
    SessionOptions,
)
from tests.adapters.slurm.fake import DEADLINE, FakeSlurm, comment, node, record, running

KINDS: dict[str, Any] = {"cloud": "cloud", "edge": "edge"}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Return programs that play a Slurm of 6 GPUs in the cloud and a server at the edge."""
    monkeypatch.setattr("edgeflow_opt.adapters.slurm.orders._SETTLING_S", 0.0)
    return FakeSlurm(tmp_path)


class Driven:
    """A cluster, its session, and what it complained of."""

    def __init__(self, slurm: FakeSlurm, session: EpochSession, **options: Any) -> None:
        self.troubles: list[str] = []
        self.session = session
        settings: dict[str, Any] = {"patience_s": 0.5, "poll_s": 0.05, **options}
        self.cluster = SlurmCluster(
            KINDS, programs=slurm.programs(), on_trouble=self.troubles.append, **settings
        )

    def look(self) -> list[Event]:
        """Return what the cluster tells, and let the session know."""
        events = self.cluster.observe(self.session.view)
        self.session.update(events)
        return events

    def kinds(self) -> list[str]:
        """Return the kinds of what the cluster tells."""
        return [type(event).__name__ for event in self.look()]

    def order(self, **wanted: tuple[str, int] | None) -> list[Event]:
        """Have jobs (j1=...) placed after a look; return what came out otherwise."""
        self.look()
        decided = self.session.decide(self.cluster.now())
        allocation = {
            name.removeprefix("j"): Mode(site=place[0], gpus=place[1], rate=1.0)
            for name, place in wanted.items()
            if place is not None
        }
        decided = dataclasses.replace(decided, allocation=allocation)
        for job in decided.problem.jobs:
            site, gpus = wanted.get(f"j{job.id}") or (None, None)
            placed = JobPlaced(time=decided.now, job=job.id, site=site, gpus=gpus)
            self.session.update([placed])
        self.session.update(events := list(self.cluster.carry_out(decided)))
        return events


@pytest.fixture
def session(slurm: FakeSlurm) -> Iterator[EpochSession]:
    """Return a session that knows the sites, and decides in this process."""
    sites = SlurmCluster(KINDS, programs=slurm.programs()).sites()
    options = SessionOptions(rungs=())
    with EpochSession(sites, now=time.time(), options=options, isolated=False) as made:
        yield made


def test_partitions_are_sites(slurm: FakeSlurm) -> None:
    """Cloud counts GPUs and edge nodes; what is down or held by others is taken off."""
    slurm.set(record(1, comment=""), running(2, 1, comment="", nodes="c1"))
    nodes = (
        node("c1", "cloud", 4, 1, "MIXED"),
        node("c2", "cloud", 2, state="IDLE+DRAIN"),
        node("e1", "edge", 1),
        node("e2", "edge", 1, 1),
        node("login", "edge", 0),
    )
    slurm.set(nodes="\n".join(nodes))
    cloud, edge = SlurmCluster(KINDS, programs=slurm.programs()).sites()
    assert (cloud.name, cloud.kind, cloud.capacity[0][1]) == ("cloud", "cloud", 3)
    assert (edge.name, edge.kind, edge.capacity[0][1]) == ("edge", "edge", 1)


def test_partitions_that_make_no_sense_are_refused(slurm: FakeSlurm) -> None:
    """A partition without GPUs, and two with a node in common, are told with the way out."""
    with pytest.raises(UsageError, match=r"partition 'x': has no node with GPUs; .* cloud, edge"):
        SlurmCluster({"x": "cloud"}, programs=slurm.programs()).sites()
    slurm.set(nodes=node("c1", "cloud,edge", 4))
    with pytest.raises(UsageError, match=r"partitions 'cloud' and 'edge' share node 'c1'"):
        SlurmCluster(KINDS, programs=slurm.programs()).sites()
    with pytest.raises(UsageError, match="at least one partition"):
        SlurmCluster({})
    with pytest.raises(UsageError, match="patience_s: must be a number of seconds above 0"):
        SlurmCluster(KINDS, patience_s=0.0)
    with pytest.raises(UsageError, match="margin_s: must be a number of seconds, at least 0"):
        SlurmCluster(KINDS, margin_s=-1.0)


def test_jobs_come_and_go(slurm: FakeSlurm, session: EpochSession) -> None:
    """Arrivals, ends of each kind and jobs that Slurm has forgotten are told once."""
    driven = Driven(slurm, session, margin_s=100.0)
    slurm.set(record(1), record(2), record(3), record(4), record(9, comment="not ours"))
    arrivals = driven.look()
    assert all(isinstance(event, JobArrived) for event in arrivals)
    assert list(session.view.jobs) == ["1", "2", "3", "4"]
    assert session.view.jobs["1"].job.deadline == DEADLINE - 100.0
    assert driven.look() == []
    slurm.set(
        record(1, job_state="COMPLETED"),
        record(2, job_state="TIMEOUT"),
        record(4, job_state="COMPLETING"),
    )
    done, failed, forgotten = driven.look()
    assert isinstance(done, JobCompleted)
    assert isinstance(failed, JobCancelled)
    assert isinstance(forgotten, JobCancelled)
    assert (done.job, failed.job, forgotten.job) == ("1", "2", "3")
    assert list(session.view.jobs) == ["4"]


def test_a_job_that_runs_already_is_taken_as_it_is(slurm: FakeSlurm, session: EpochSession) -> None:
    """After a restart without memory, progress is reckoned from the start of the run."""
    driven = Driven(slurm, session)
    began = int(time.time()) - 50
    slurm.set(running(1, 2, start_time=began, restart_cnt=1), record(2, restart_cnt=1))
    driven.look()
    job = session.view.jobs["1"]
    assert job.mode == Mode(site="cloud", gpus=2, rate=1.75)
    # 300 iterations, less those of 50 seconds and a bit at 1.75 after 5 seconds of restart.
    assert 200.0 < job.left <= 300.0 - 45.0 * 1.75
    assert session.view.jobs["2"].last_site == "cloud"


def test_what_owners_change_is_told(slurm: FakeSlurm, session: EpochSession) -> None:
    """Deadline, weight, work left, rates and modes that are written anew reach the session."""
    driven = Driven(slurm, session)
    slurm.set(first := record(1))
    driven.look()
    slurm.set(first | {"deadline": first["deadline"] + 60})
    assert driven.kinds() == ["JobRevised"]
    slurm.set(first | {"deadline": first["deadline"] + 60, "comment": comment(120.0, weight=3)})
    revised, progressed = driven.look()
    assert isinstance(revised, JobRevised)
    assert revised.weight == 3.0
    assert isinstance(progressed, JobProgressed)
    assert progressed.work_left == 120.0
    faster = comment(120.0, weight=3).replace("1.75", "1.9")
    slurm.set(first | {"deadline": first["deadline"] + 60, "comment": faster})
    (corrected,) = driven.look()
    assert isinstance(corrected, RateCorrected)
    assert (corrected.site, corrected.gpus, corrected.rate) == ("cloud", 2, 1.9)
    other = comment(120.0, modes=[{"site": "cloud", "gpus": 4, "rate": 3}])
    slurm.set(first | {"comment": other})
    assert driven.kinds() == ["JobCancelled", "JobArrived"]
    assert [mode.gpus for mode in session.view.jobs["1"].job.modes] == [4]
    assert abs(session.view.jobs["1"].left - 120.0) < 1.0


def test_jobs_at_fault_are_told_once_and_left_alone(
    slurm: FakeSlurm, session: EpochSession
) -> None:
    """A marked job that cannot be taken is named with its fault, and others are not held up."""
    driven = Driven(slurm, session)
    slurm.set(
        record(1, comment='{"edgeflow": {"work": 5}}'),
        record(2, tres_per_job="gres:gpu:4"),
        record(3, array_job_id=3),
        record(4, comment=comment(modes=[{"site": "cloud", "gpus": 5, "rate": 1}])),
        record(5, deadline=int(time.time()) - 5),
        running(6, gpus=3),
        record(7, dependency="afterok:6(unfulfilled)"),
        record(8),
    )
    for _ in range(2):
        driven.look()
        assert list(session.view.jobs) == ["8"]
    said = "\n".join(driven.troubles)
    assert len(driven.troubles) == 6
    assert "job 1, comment, modes: is missing" in said
    assert "job 2: a total number of GPUs (--gpus) cannot be changed" in said
    assert "job 3: parts of an array" in said
    assert "job 4: none of its modes fits" in said
    assert "job 5: its --deadline has passed" in said
    assert "job 6: it runs on 3 GPUs of 'cloud', which is none of its modes" in said
    assert set(driven.cluster.refused) == {1, 2, 3, 4, 5, 6}


def test_a_description_of_ones_own(slurm: FakeSlurm, session: EpochSession) -> None:
    """With a callback, jobs need no comment."""
    from edgeflow_opt.problem import Job

    def describe(job: Any) -> Job | None:
        modes = (Mode(site="cloud", gpus=1, rate=2.0),)
        ours = job.user == "ada"
        return Job(id=str(job.id), deadline=job.deadline, work=9.0, modes=modes) if ours else None

    driven = Driven(slurm, session, describe=describe)
    slurm.set(record(1, comment="", user_name="ada"), record(2))
    driven.look()
    assert list(session.view.jobs) == ["1"]


def test_a_start_says_all_that_slurm_needs(slurm: FakeSlurm, session: EpochSession) -> None:
    """Nodes, GPUs, tasks and processors are set, and nothing that could delete the job."""
    driven = Driven(slurm, session)
    slurm.set(
        record(1, tasks_per_node=2, cpus_per_task=4, time_limit=9000),
        record(2, deadline=0),
        nodes="\n".join([node("c1", "cloud", 1), node("c2", "cloud", 1), node("e1", "edge", 1)]),
        hosts={"c1,c2": ["c1", "c2"]},
    )
    assert driven.order(j1=("cloud", 2), j2=("edge", 1)) == []
    orders = sorted(slurm.orders())
    assert orders[:2] == ["scontrol release 1", "scontrol release 2"]
    assert orders[2] == (
        "scontrol update JobId=1 Partition=cloud NumNodes=2-2 NumTasks=4 NumCPUs=16 Gres=gpu:1 "
        "ReqNodeList=c1,c2 StartTime=now TimeMin=0 TimeLimit=UNLIMITED"
    )
    assert orders[3] == (
        "scontrol update JobId=2 Partition=edge NumNodes=1-1 NumTasks=1 NumCPUs=1 Gres=gpu:1 "
        "ReqNodeList=e1 StartTime=now"
    )
    assert driven.look() == []


def test_a_limit_of_slurms_own_is_lifted(slurm: FakeSlurm, session: EpochSession) -> None:
    """The whole minutes that Slurm makes of the time to a deadline go; a limit of the owner stays."""
    driven = Driven(slurm, session)
    began = DEADLINE - 150
    slurm.set(
        running(1, 1, "c1", start_time=began, time_limit=2),
        running(2, 1, "c1", start_time=began, time_limit=1),
        record(3, time_limit=60),
    )
    driven.order(j1=("cloud", 1), j2=("cloud", 1), j3=("edge", 1))
    assert [order for order in slurm.orders() if "TimeLimit" in order] == [
        "scontrol update JobId=1 TimeLimit=UNLIMITED"
    ]


def test_stops_come_before_starts(slurm: FakeSlurm, session: EpochSession) -> None:
    """A job is stopped before another gets its GPUs; one whose mode stays is not touched."""
    driven = Driven(slurm, session, patience_s=10.0)
    slurm.set(running(1, 1, "c2"), running(2, 2, "c1"), record(3), running(4, comment="other"))
    assert driven.order(j1=("edge", 1), j2=("cloud", 2), j3=("cloud", 1)) == []
    orders = slurm.orders()
    assert orders[0] == "scontrol requeuehold 1"
    assert [order for order in orders if "release" in order] == [
        "scontrol release 1",
        "scontrol release 3",
    ]
    assert not any("=2 " in order or "=4 " in order for order in orders)
    assert driven.order(j2=("cloud", 2), j3=("cloud", 1)) == []
    assert slurm.job(1)["job_state"] == "PENDING"


def test_what_fails_for_one_job_is_told_and_the_others_go_on(
    slurm: FakeSlurm, session: EpochSession
) -> None:
    """Refused stops, stubborn jobs, lack of nodes and starts that do not come are events."""
    driven = Driven(slurm, session)
    slurm.set(running(1, 2), record(2), refuses=["requeuehold"])
    (failed,) = driven.order(j2=("cloud", 2))
    assert isinstance(failed, JobPlaced)
    assert (failed.job, failed.site, failed.gpus) == ("1", "cloud", 2)
    assert "could not be stopped" in driven.troubles[-1]
    assert "Access/permission denied" in driven.troubles[-1]
    assert slurm.job(2)["job_state"] == "RUNNING"

    slurm.set(running(1, 2), record(2), refuses=[], stubborn=True)
    (failed,) = driven.order(j1=("edge", 1))
    assert isinstance(failed, JobPlaced)
    assert (failed.job, failed.site) == ("1", None)
    assert "job 1 did not stop within 0.5 s" in driven.troubles[-1]
    assert driven.kinds() == ["JobPlaced"]  # it still runs, and that is known

    slurm.set(record(1), record(2), stubborn=False, full=True)
    (failed,) = driven.order(j1=("cloud", 2))
    assert isinstance(failed, JobPlaced)
    assert "job 1 did not start within 0.5 s" in driven.troubles[-1]
    assert slurm.orders()[-1] == "scontrol hold 1"

    full = (node("c1", "cloud", 4, 3), node("c2", "cloud", 2, 2), node("e1", "edge", 1))
    slurm.set(record(1), record(2), full=False, nodes="\n".join(full))
    (failed,) = driven.order(j1=("cloud", 2))
    assert isinstance(failed, JobPlaced)
    assert "no nodes of 'cloud' have 2 free GPUs" in driven.troubles[-1]
    assert slurm.orders() == []


def test_what_is_done_by_hand_is_seen(slurm: FakeSlurm, session: EpochSession) -> None:
    """A job released by hand is known by its mode where it runs, and held where it waits."""
    driven = Driven(slurm, session)
    slurm.set(record(1), record(2))
    driven.look()
    slurm.set(running(1, 1, "c2"), record(2, priority=7))
    (placed,) = driven.look()
    assert isinstance(placed, JobPlaced)
    assert (placed.job, placed.site, placed.gpus) == ("1", "cloud", 1)
    driven.order(j1=("cloud", 1))
    assert slurm.orders() == ["scontrol hold 2"]
    # Taken out of our hands: what it holds is no longer ours to give.
    nodes = (node("c1", "cloud", 4), node("c2", "cloud", 2, 1), node("e1", "edge", 1))
    slurm.set(running(1, 1, "c2", comment=""), record(2), nodes="\n".join(nodes))
    withdrawn, capacity = driven.look()
    assert isinstance(withdrawn, JobCancelled)
    assert isinstance(capacity, CapacityChanged)
    assert capacity.capacity[0][1] == 5


def test_a_dry_run_tells_slurm_nothing(slurm: FakeSlurm, session: EpochSession) -> None:
    """What is decided is not carried out, and the session sees at the next look that it was not."""
    driven = Driven(slurm, session, dry_run=True)
    slurm.set(record(1))
    decision = advance(driven.cluster, session)
    assert decision.allocation
    assert slurm.orders() == []
    assert driven.kinds() == ["JobPlaced"]


def test_a_nodes_end_changes_the_capacity_and_spares_the_forecast(
    slurm: FakeSlurm, session: EpochSession
) -> None:
    """What is up now is told of now; what is known of later times stays."""
    driven = Driven(slurm, session)
    later = time.time() + 3600.0
    steps = ((session.view.clock, 6), (later, 2))
    session.update([CapacityChanged(time=time.time(), site="cloud", capacity=steps)])
    slurm.set(nodes="\n".join([node("c1", "cloud", 4), node("e1", "edge", 1, state="DOWN*")]))
    cloud, edge = driven.look()
    assert isinstance(cloud, CapacityChanged)
    assert isinstance(edge, CapacityChanged)
    assert [units for _, units in cloud.capacity] == [4, 2]
    assert cloud.capacity[1][0] == later
    assert [units for _, units in edge.capacity] == [0]
    assert driven.look() == []


def test_programs_that_fail_are_named_with_what_they_say(slurm: FakeSlurm, tmp_path: Path) -> None:
    """A program that is missing, slow or refuses is one error with its command."""
    with pytest.raises(AdapterError, match=r"'/nowhere/squeue' of Slurm cannot be run"):
        SlurmPrograms(Path("/nowhere")).run("squeue")
    with pytest.raises(AdapterError, match=r"scontrol hold 5' failed \(exit code 1\): .*denied"):
        slurm.programs().run("scontrol", "hold", "5")
    slurm.set(delay_s=5.0)
    with pytest.raises(AdapterError, match=r"no answer within 0\.2 s; is slurmctld up\?"):
        slurm.programs(0.2).run("squeue", "--json")
    (tmp_path / "squeue").write_text("#!/bin/sh\necho slurm 20.11\n")
    with pytest.raises(AdapterError, match="the answer is not understood"):
        SlurmCluster(KINDS, programs=slurm.programs()).sites()


def test_shrinking_takes_nodes_from_a_job_that_survives_it(
    slurm: FakeSlurm, session: EpochSession
) -> None:
    """A job that says so loses nodes in place where that makes its mode, and is stopped otherwise."""
    driven = Driven(slurm, session)
    modes = [{"site": "cloud", "gpus": gpus, "rate": gpus} for gpus in (1, 2, 4)]
    spread = running(
        1, nodes="c[1-2]", node_count=2, gres_detail=["gpu:2", "gpu:2"],
        comment=comment(modes=modes, shrink=True),
    )  # fmt: skip
    slurm.set(spread, hosts={"c[1-2]": ["c1", "c2"]})
    driven.order(j1=("cloud", 2))
    assert slurm.orders() == ["scontrol update JobId=1 NumNodes=1"]
    slurm.set(spread)
    driven.order(j1=("cloud", 1))
    assert slurm.orders()[0] == "scontrol requeuehold 1"
    assert json.loads(spread["comment"])["edgeflow"]["shrink"]
