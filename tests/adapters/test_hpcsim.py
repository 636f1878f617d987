"""hpcsim, the independent simulator, under our scheduler and its own."""

from __future__ import annotations

import itertools
import random
import sys
from collections import defaultdict
from typing import Any

import pytest

from edgeflow_opt.adapters import Cluster as ClusterProtocol
from edgeflow_opt.adapters.hpcsim import (
    EdgeflowScheduler,
    SimulatedHistory,
    job_of,
    simulate,
    sites_of,
)
from edgeflow_opt.errors import UsageError
from edgeflow_opt.service import EpochSession, SessionOptions

pytest.importorskip("hpcsim", reason="needs the extra hpcsim")

from hpcsim import GPUType, LLMJob, SchedulingMode, TrainingJob
from hpcsim.cluster.cluster import Cluster, ClusterConfig, NodeSpec
from hpcsim.workload.job import ModelArch, multi_gpu_throughput

CONFIG = ClusterConfig(
    name="cloud and edge",
    nodes=[
        NodeSpec(gpu_type=GPUType.V100, num_nodes=2, gpus_per_node=4),
        NodeSpec(gpu_type=GPUType.RTX3090, num_nodes=2, gpus_per_node=2),
    ],
)
EDGE = ("rtx3090",)


def training(name: str, **settings: Any) -> Any:
    """Return an elastic job whose memory leaves no room for a second one on its GPUs.

    hpcsim itself looks at memory only: two small jobs of one decision would share a GPU, each at
    four fifths of its speed.
    """
    values = {
        "arch": ModelArch.RESNET50,
        "batch_size": 32,
        "memory_per_gpu_gb": 20.0,
        "scheduling_mode": SchedulingMode.ELASTIC,
        **settings,
    }
    return TrainingJob(job_id=name, **values)


def workload(count: int, seed: int) -> list[Any]:
    """Return jobs that together want more than there is."""
    draw = random.Random(seed)
    cluster, jobs, now = Cluster(CONFIG), [], 0.0
    archs = [ModelArch.RESNET50, ModelArch.RESNET18, ModelArch.BERT, ModelArch.MOBILENETV3]
    for index in range(count):
        gpus = draw.choice([1, 1, 2, 4])
        job = training(
            f"j{index}", submit_time=now, arch=draw.choice(archs), num_gpus_requested=gpus
        )
        mode = job_of(job, cluster, sites_of(cluster)).mode("v100", gpus)
        assert mode is not None
        seconds = draw.uniform(200.0, 3000.0)
        job.num_iterations = int(mode.rate * seconds)
        job.deadline = now + seconds * draw.uniform(1.1, 2.5)
        jobs.append(job)
        now += draw.expovariate(1 / 200.0)
    return jobs


def ours(
    config: Any, jobs: list[Any], edge: tuple[str, ...] = (), until_s: float | None = None
) -> tuple[SimulatedHistory, EpochSession]:
    """Return what happens under our scheduler, deciding in milliseconds."""
    cluster = Cluster(config)
    options = SessionOptions(rungs=())
    session = EpochSession(sites_of(cluster, edge), options=options, isolated=False)
    scheduler = EdgeflowScheduler(cluster, session)
    assert isinstance(scheduler, ClusterProtocol)
    return simulate(cluster, jobs, scheduler, until_s=until_s), session


def faults_of(history: SimulatedHistory, jobs: list[Any]) -> list[str]:
    """Return what the runs of a history have wrong, by the rules of hpcsim alone."""
    cluster, faults = Cluster(CONFIG), []
    spans = defaultdict(list)
    done: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    by_id = {job.job_id: job for job in jobs}
    for run in history.runs:
        job = by_id[run.job]
        assert run.end is not None
        if run.start < job.submit_time:
            faults.append(f"{run} begins before its job arrives")
        for gpu in run.gpus:
            spans[gpu].append((run.start, run.end, run.job))
        gpu_type = cluster.gpus[run.gpus[0]].gpu_type
        bandwidth = cluster.effective_bandwidth_gbps(list(run.gpus))
        rate = multi_gpu_throughput(job.arch, gpu_type, job.batch_size, len(run.gpus), bandwidth)
        done[run.job] += rate * (run.end - run.start)
        count[run.job] += 1
    for gpu, held in spans.items():
        for (_, end, first), (start, _, second) in itertools.pairwise(sorted(held)):
            if start < end:
                faults.append(f"{gpu} is held by {first} and {second}")
    for name in history.completions:
        short = by_id[name].num_iterations - done[name]
        # At each stop it may lose the iteration that it is in.
        if not -count[name] - 1e-6 <= short <= 1e-6 * by_id[name].num_iterations:
            faults.append(f"{name} is said to be done, {short} iterations too early")
    return faults


def test_more_deadlines_are_met_than_by_the_schedulers_of_hpcsim() -> None:
    """First come first served, earliest deadlines and its ElasticFlow all meet fewer than we do."""
    jobs = workload(36, seed=2)
    history, session = ours(CONFIG, jobs, EDGE)
    assert history.scheduler == "edgeflow"
    assert set(history.completions) == {job.job_id for job in jobs}
    assert faults_of(history, jobs) == []
    others = {
        name: len(simulate(Cluster(CONFIG), jobs, name).met)
        for name in ("fifo", "chronus", "elasticflow")
    }
    assert len(history.met) >= max(others.values()) + 5, others
    assert list(session.view.jobs) == []
    small = [training(f"s{index}", memory_per_gpu_gb=4.0) for index in range(2)]
    shared = faults_of(simulate(Cluster(CONFIG), small, "fifo"), small)
    assert any("is held by s0 and s1" in fault for fault in shared)
    assert all(job.end_time is None for job in jobs)
    edge = defaultdict(list)
    for run in history.runs:
        if "rtx3090" in run.gpus[0]:
            edge[run.gpus[0].rsplit("_", 1)[0]].append((run.start, run.end))
    assert edge
    for held in edge.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(held)):
            assert end is not None
            assert end <= start


def test_a_running_job_grows_when_nobody_waits() -> None:
    """Hpcsim asks its schedulers while a job waits only; ours is asked at every end."""
    config = ClusterConfig(
        name="small", nodes=[NodeSpec(gpu_type=GPUType.V100, num_nodes=1, gpus_per_node=2)]
    )
    jobs = [
        training("short", num_iterations=300, max_gpus=1, deadline=1e4),
        training("long", num_iterations=9000, max_gpus=2, deadline=1e4),
    ]
    history, _ = ours(config, jobs)
    end = history.completions["short"]
    grown = [run for run in history.runs if run.job == "long" and run.start == end]
    assert [len(run.gpus) for run in grown] == [2]
    assert set(history.met) == {"short", "long"}


def test_a_run_over_slower_links_has_its_rate_corrected() -> None:
    """GPUs free on two nodes only make a job slower than planned, and the session knows it."""
    config = ClusterConfig(
        name="small", nodes=[NodeSpec(gpu_type=GPUType.V100, num_nodes=2, gpus_per_node=2)]
    )
    fixed = {"min_gpus": 1, "max_gpus": 1, "deadline": 1e5}
    jobs = [
        training("a", num_iterations=300, **fixed),
        training("b", num_iterations=90000, **fixed),
        training("c", num_iterations=90000, **fixed),
        training(
            "d", num_iterations=90000, min_gpus=2, max_gpus=2, deadline=1e5, arch=ModelArch.BERT
        ),
    ]
    history, session = ours(config, jobs, until_s=1000.0)
    assert list(history.completions) == ["a"]
    cluster = Cluster(config)
    run = next(run for run in history.runs if run.job == "d")
    assert not cluster.is_consolidated(list(run.gpus))
    bandwidth = cluster.effective_bandwidth_gbps(list(run.gpus))
    mode = session.view.jobs["d"].mode
    assert mode is not None
    assert mode.rate == multi_gpu_throughput(ModelArch.BERT, GPUType.V100, 32, 2, bandwidth)
    planned = job_of(jobs[3], cluster, sites_of(cluster)).mode("v100", 2)
    assert planned is not None
    assert mode.rate < planned.rate


def test_what_is_not_understood_is_refused() -> None:
    """Other kinds of jobs, jobs that fit nowhere and unknown names are told before anything runs."""
    cluster = Cluster(CONFIG)
    with pytest.raises(UsageError, match="job 'x': must be a hpcsim TrainingJob, got LLMJob"):
        simulate(cluster, [LLMJob(job_id="x")], "fifo")
    with pytest.raises(UsageError, match=r"job 'x': no site has 99 to 99 GPUs of 20.0 GB"):
        simulate(cluster, [training("x", min_gpus=99, max_gpus=99)], "fifo")
    with pytest.raises(UsageError, match="option scheduler: Unknown scheduler 'none'"):
        simulate(cluster, [], "none")
    with pytest.raises(UsageError, match="option edge: must be GPU types of the cluster"):
        sites_of(cluster, edge=("k80",))


def test_without_the_library_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "hpcsim.simulator.engine", None)
    with pytest.raises(UsageError, match=r"adapter of hpcsim needs hpcsim.*edgeflow-opt\[hpcsim\]"):
        simulate(None, [], "fifo")
