"""Readers of the traces of Philly, Chronus and openb, on samples of our own and on the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.errors import TraceError
from edgeflow_opt.workloads import DEFAULT_CATALOG, Trace, read_trace, trace_from_bytes

PHILLY = """job_id,submit_time_s,duration_s,num_gpus,virtual_cluster
a,100,3600,1,x
b,50,60,3,y
c,200,7200,128,y
"""

CHRONUS = """job_id,virtual_cluster,num_gpu,submit_time,iterations,model_name,duration,interval,\
expect_time_list,expect_value_list,best_effort,job_type
s,x,1,10,500,vgg16,20,1,30,10,0,strict
t,x,4,20,500,alexnet,20,1,30-40-60-90,10-10-5-2,0,soft
u,x,2,30,500,inception_v3,20,1,30,10,1,best
"""

OPENB = """pod_id,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
p,1,1,1,460,,LS,Running,100,500,150.0
q,1,1,8,1000,,BE,Pending,200,900,
"""


def read(text: str, **options: object) -> Trace:
    """Return the trace in a text."""
    return trace_from_bytes(text.encode(), "t", **options)  # type: ignore[arg-type]


def test_philly_jobs_get_a_model_work_and_a_deadline() -> None:
    """Work = duration x rate at the requested GPUs, rounded down to a count of the rate table."""
    trace = read(PHILLY)
    assert [job.id for job in trace] == ["b", "a", "c"]
    assert [job.gpus for job in trace] == [2, 1, 64]
    for job in trace:
        rate = DEFAULT_CATALOG.rates(job.model, job.batch)[job.gpus]
        assert job.iterations == pytest.approx(job.duration * rate)
        assert job.deadline_factor is not None
        assert 0.5 <= job.deadline_factor <= 1.5


def test_draws_depend_on_the_seed_and_the_job_alone() -> None:
    """Another seed gives other draws; leaving a row out changes no other job."""
    assert read(PHILLY).entries == read(PHILLY, seed=0).entries
    assert read(PHILLY).entries != read(PHILLY, seed=1).entries
    fewer = "\n".join(line for line in PHILLY.splitlines() if not line.startswith("a"))
    assert read(fewer).entries == tuple(job for job in read(PHILLY) if job.id != "a")


def test_chronus_deadlines_strict_soft_and_none() -> None:
    """Minutes become seconds; of a soft deadline the last step of the highest value counts."""
    strict, soft, best_effort = read(CHRONUS)
    assert (strict.submission, strict.duration, strict.deadline) == (600.0, 1200.0, 2400.0)
    assert soft.deadline == 1200.0 + 40 * 60.0
    assert best_effort.deadline is None
    assert (strict.model, best_effort.model) == ("vgg16", "inception3")


def test_chronus_faults_are_named_together() -> None:
    """No GPUs, a step that is no number and lists of different lengths are three faults."""
    bad = CHRONUS.replace("s,x,1,", "s,x,0,").replace("30-40-60-90,10-10-5-2", "30-x,10-5")
    bad = bad.replace("30,10,1,best", "30,10-5,0,strict")
    with pytest.raises(TraceError, match="3 faults") as caught:
        read(bad)
    text = str(caught.value)
    assert "row 2, num_gpu: must be above 0" in text
    assert "row 3, expect_time_list: must be numbers" in text
    assert "row 4, expect_value_list: must have as many values" in text


def test_openb_pods_last_from_scheduling_to_deletion() -> None:
    """A share of a GPU is a whole one, BE is best effort, a pod never scheduled counts from creation."""
    shared, pending = read(OPENB)
    assert (shared.submission, shared.duration, shared.gpus) == (100.0, 350.0, 1)
    assert (pending.duration, pending.deadline) == (700.0, None)
    with pytest.raises(TraceError, match=r"deletion_time: must be after the start 150"):
        read(OPENB.replace(",500,", ",150,"))
    with pytest.raises(TraceError, match=r"num_gpu: must be above 0"):
        read(OPENB.replace("p,1,1,1,", "p,1,1,0,"))


@pytest.mark.parametrize(
    ("name", "jobs", "best_effort", "skipped"),
    [
        ("philly/jobs.csv.gz", 82_247, 0, 0),
        ("chronus_philly_deadline/trace_SLO.csv.gz", 30_735, 0, 205),
        ("chronus_philly_deadline/trace_MIX2.csv.gz", 30_746, 3_125, 194),
        ("alibaba_openb_2023/pods.csv.gz", 7_063, 2_947, 1_089),
    ],
)
def test_public_files_are_read(
    data_folder: Path, name: str, jobs: int, best_effort: int, skipped: int
) -> None:
    """All good rows become jobs of known rates, and the bad ones are counted."""
    trace = read_trace(data_folder / name, skip_bad_rows=True)
    assert (len(trace), trace.skipped) == (jobs, skipped)
    assert sum(job.deadline is None for job in trace) == best_effort
    assert len(trace.head(50).jobs()) == 50
