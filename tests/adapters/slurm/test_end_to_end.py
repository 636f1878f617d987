"""A real Slurm with fake GPUs follows our plans."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.adapters.slurm import SlurmCluster, SlurmPrograms
from edgeflow_opt.problem import Mode
from edgeflow_opt.service import (
    CapacityChanged,
    EpochSession,
    JobArrived,
    JobCancelled,
    JobPlaced,
    SessionDecision,
    SessionOptions,
)
from tests.adapters.slurm.real import PATIENCE_S, Node, RealSlurm, wait_until

#: Trains at one unit of work per GPU and second, as long as its argument says, and keeps what is
#: done in a file, so that a stop costs no work.
TRAIN = r"""#!/bin/bash
export LC_ALL=C
trap 'exit 0' TERM
gpus=$((SLURM_GPUS_ON_NODE * SLURM_JOB_NUM_NODES))
echo "$SLURM_JOB_PARTITION $gpus" >> runs.$SLURM_JOB_ID
left=$(cat left.$SLURM_JOB_ID 2>/dev/null || echo $(($1 * 1000000)))
last=${EPOCHREALTIME/./}
while ((left > 0)); do
  sleep 0.3
  now=${EPOCHREALTIME/./}
  left=$((left - gpus * (now - last))) last=$now
  echo $left > left.$SLURM_JOB_ID.new && mv left.$SLURM_JOB_ID.new left.$SLURM_JOB_ID
done
"""

NODES = [
    Node("c1", "cloud", 2),
    Node("c2", "cloud", 2),
    Node("e1", "edge", 2),
    # The same cloud again, left to Slurm.
    Node("p1", "plain", 2),
    Node("p2", "plain", 2),
]


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    """Return a running Slurm."""
    with RealSlurm(NODES) as running:
        script = running.folder / "train.sh"
        script.write_text(TRAIN)
        script.chmod(0o755)
        yield running


def modes(*places: tuple[str, int]) -> list[dict[str, Any]]:
    """Return modes of one unit of work per GPU and second."""
    return [{"site": site, "gpus": gpus, "rate": float(gpus)} for site, gpus in places]


def runs(slurm: RealSlurm, number: int) -> list[str]:
    """Return where a job ran, and on how many GPUs, run by run."""
    file = slurm.folder / f"runs.{number}"
    return file.read_text().splitlines() if file.exists() else []


def completed(slurm: RealSlurm, number: int) -> bool:
    """Whether a job has done its work; fail where it ended in another way."""
    state = slurm.state(number)
    assert state in ("COMPLETED", "COMPLETING", "RUNNING", "PENDING", "CONFIGURING"), state
    return state == "COMPLETED"


class Following:
    """``edgeflow slurm`` as a process, with what it says."""

    def __init__(self, slurm: RealSlurm, said: Path, *options: str) -> None:
        self._said = said
        with said.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "edgeflow_opt", "slurm", "--json", *options],
                env=slurm.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of JSON so far."""
        lines = self._said.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "\n"]

    def summary(self) -> list[str]:
        """Return what happened, line by line."""
        return [
            f"{line['time']:.1f} {line.get('message') or line['changes']}"
            for line in self.lines()
            if line.get("changes", True)
        ]

    def decisions(self) -> list[dict[str, Any]]:
        """Return the decisions so far; fail where the loop has ended."""
        assert self.process.poll() is None, self._said.read_text()
        return [line for line in self.lines() if line["event"] == "decision"]


def test_a_job_that_misses_its_deadline_under_backfill_meets_it_by_our_plan(
    slurm: RealSlurm, tmp_path: Path
) -> None:
    """A long job on all GPUs makes way for an urgent one, and both meet their deadlines."""
    following = Following(
        slurm, tmp_path / "said", "--partitions=cloud,edge", "--interval=2", "--slot=5",
        "--margin=10", "--time-limit=0.5",
    )  # fmt: skip
    try:
        wait_until("the first decision", following.decisions, 4 * PATIENCE_S)
        # 40 s on four GPUs for the long job, 35 s on two for the urgent one.
        shape = ("--nodes=2", "--ntasks-per-node=1", "--gres=gpu:2")
        long = {"work": 160, "restart_s": 2, "migration_s": 2}
        long |= {"modes": modes(("cloud", 4), ("cloud", 2))}
        urgent = {"work": 70, "restart_s": 2, "migration_s": 2, "modes": modes(("cloud", 2))}
        twin_long = slurm.submit("--partition=plain", *shape, "train.sh", "160")
        ours_long = slurm.submit(
            "--partition=cloud", "--deadline=now+110", *shape, "train.sh", "160",
            comment={"edgeflow": long},
        )  # fmt: skip
        for number in (twin_long, ours_long):
            wait_until("the long jobs run", lambda n=number: slurm.state(n) == "RUNNING")
        wait_until(
            "the session knows of it",
            lambda: str(ours_long) in following.decisions()[-1]["allocation"],
        )
        ask = ("--nodes=1", "--gres=gpu:2", "--deadline=now+72")
        twin_urgent = slurm.submit("--partition=plain", *ask, "train.sh", "70")
        ours_urgent = slurm.submit(
            "--hold", "--partition=cloud", *ask, "train.sh", "70", comment={"edgeflow": urgent}
        )
        for number in (ours_urgent, ours_long, twin_long):
            wait_until(
                f"job {number} is done",
                lambda n=number: following.decisions() and completed(slurm, n),
                2 * PATIENCE_S,
            )
        wait_until(
            "the session knows that all are done",
            lambda: not following.decisions()[-1]["reasons"],
        )
        following.process.send_signal(signal.SIGINT)
        assert following.process.wait(PATIENCE_S) == 130
    except BaseException:
        print(slurm.logs())
        raise
    finally:
        print(*following.summary(), sep="\n")
        following.process.kill()
        following.process.wait()

    # Slurm's own way: the urgent job never ran, and would have come too late behind the long one.
    missed = slurm.job(twin_urgent)
    assert slurm.state(twin_urgent) == "DEADLINE"
    assert runs(slurm, twin_urgent) == []
    assert _seconds(slurm.job(twin_long)["end_time"]) + 35 > _seconds(missed["deadline"])
    assert runs(slurm, twin_long) == ["plain 4"]
    # Ours: in time, both.
    for number in (ours_urgent, ours_long):
        job = slurm.job(number)
        assert _seconds(job["end_time"]) <= _seconds(job["deadline"])
    assert runs(slurm, ours_urgent) == ["cloud 2"]
    assert runs(slurm, ours_long)[0] == "cloud 4"
    assert len(runs(slurm, ours_long)) > 1
    kinds = {change["kind"] for line in following.lines() for change in line.get("changes", ())}
    assert kinds & {"stop", "resize"}
    assert "start" in kinds


def _seconds(value: Any) -> float:
    """Return a time of any version."""
    return value["number"] if isinstance(value, dict) else value


class Driven:
    """A cluster and a session that are told step by step what to do."""

    def __init__(self, slurm: RealSlurm, session: EpochSession, cluster: SlurmCluster) -> None:
        self.slurm, self.session, self.cluster = slurm, session, cluster

    def look(self) -> list[Any]:
        """Return what the cluster tells, and let the session know."""
        events = self.cluster.observe(self.session.view)
        self.session.update(events)
        return events

    def order(self, job: int, site: str, gpus: int) -> list[Any]:
        """Have a job placed; return what came out otherwise."""
        self.look()
        decided: SessionDecision = self.session.decide(self.cluster.now())
        mode = Mode(site=site, gpus=gpus, rate=float(gpus))
        return list(
            self.cluster.carry_out(dataclasses.replace(decided, allocation={str(job): mode}))
        )

    def held(self, job: int) -> tuple[str, int] | None:
        """Return what the session knows that a job holds, after a look."""
        self.look()
        mode = self.session.view.jobs[str(job)].mode
        return None if mode is None else (mode.site, mode.gpus)


def test_slurm_does_what_it_is_told(slurm: RealSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are placed over nodes, moved, shrunk and held; others stay; what happens is seen."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    troubles: list[str] = []
    cluster = SlurmCluster(
        {"cloud": "cloud", "edge": "edge"},
        programs=SlurmPrograms(timeout_s=PATIENCE_S),
        patience_s=PATIENCE_S,
        on_trouble=troubles.append,
    )
    other = slurm.submit("--partition=cloud", "--nodelist=c1", "--gres=gpu:1", "train.sh", "1000")
    wait_until("the other job runs", lambda: slurm.state(other) == "RUNNING")
    cloud, edge = cluster.sites()
    assert (cloud.capacity[0][1], edge.capacity[0][1]) == (3, 1)
    assert (cloud.gpus_per_node, edge.gpus_per_node) == (2, 2)
    options = SessionOptions(rungs=())
    with EpochSession((cloud, edge), now=cluster.now(), options=options, isolated=False) as session:
        driven = Driven(slurm, session, cluster)
        places = modes(("cloud", 4), ("cloud", 2), ("edge", 1))
        job = slurm.submit(
            "--hold", "--partition=cloud", "--deadline=now+4000", "train.sh", "9000",
            comment={"edgeflow": {"work": 9000, "modes": places, "shrink": True}},
        )  # fmt: skip
        (arrived,) = driven.look()
        assert isinstance(arrived, JobArrived)
        assert arrived.job.id == str(job)
        assert [m.gpus for m in arrived.job.modes] == [4, 2, 1]

        assert driven.order(job, "cloud", 2) == []
        assert driven.held(job) == ("cloud", 2)
        assert slurm.job(job)["nodes"] == "c2"
        assert driven.order(job, "edge", 1) == []
        assert driven.held(job) == ("edge", 1)
        wait_until("its second run", lambda: runs(slurm, job) == ["cloud 2", "edge 1"])

        (failed,) = driven.order(job, "cloud", 4)
        assert isinstance(failed, JobPlaced)
        assert (failed.site, failed.gpus) == (None, None)
        assert "no nodes of 'cloud' have 4 free GPUs" in troubles[-1]
        assert slurm.state(other) == "RUNNING"
        slurm.run("scancel", str(other))
        wait_until("the other job is gone", lambda: slurm.state(other) == "CANCELLED")
        assert any(isinstance(event, CapacityChanged) for event in driven.look())

        assert driven.order(job, "cloud", 4) == []
        assert driven.held(job) == ("cloud", 4)
        restarts = slurm.job(job)["restart_cnt"]
        assert driven.order(job, "cloud", 2) == []
        assert driven.held(job) == ("cloud", 2)
        assert slurm.job(job)["restart_cnt"] == restarts
        assert runs(slurm, job)[2:] == ["cloud 4"]

        slurm.run("scontrol", "update", "NodeName=c2", "State=DRAIN", "Reason=State=IDLE")
        (drained,) = driven.look()
        assert isinstance(drained, CapacityChanged)
        assert (drained.site, drained.capacity[0][1]) == ("cloud", 2)
        slurm.run("scontrol", "update", "NodeName=c2", "State=RESUME")
        slurm.run("scancel", str(job))
        wait_until("its end", lambda: slurm.state(job) == "CANCELLED")
        assert JobCancelled in [type(event) for event in driven.look()]
        assert not session.view.jobs
    assert len(troubles) == 1
