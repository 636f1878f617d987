"""Answers of ``squeue --json`` of several releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgeflow_opt.adapters import AdapterError
from edgeflow_opt.adapters.slurm.queue import SlurmJob, gpus_of, jobs_of_text


def number(value: float | None, infinite: bool = False) -> dict[str, Any]:
    """Return a number as releases since 23.02 write it."""
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


#: The same running job, as 22.05 (recorded), 23.02 and 24.05 tell of it.
RUNNING = {
    "22.05": {
        "job_id": 7, "name": "train", "user_name": "ada", "job_state": "RUNNING",
        "state_reason": "None", "partition": "cloud", "comment": "c", "admin_comment": "",
        "deadline": 1795999613, "priority": 4294901759, "requeue": True, "nodes": "c[1-2]",
        "node_count": 2, "gres_detail": ["gpu:2(IDX:0-1)", "gpu:2(IDX:0-1)"], "tres_per_job": "",
        "tres_per_node": "gres:gpu:2", "tres_alloc_str": "cpu=2,node=2,billing=2",
        "start_time": 1795999493, "restart_cnt": 1, "time_limit": None, "tasks_per_node": 0,
        "cpus_per_task": None, "dependency": "", "array_job_id": 0, "het_job_id": 0,
        "job_resources": {"nodes": "c[1-2]", "allocated_hosts": 2},
    },
    "23.02": {
        "job_id": 7, "name": "train", "user_name": "ada", "job_state": "RUNNING",
        "state_reason": "None", "partition": "cloud", "comment": "c", "admin_comment": "",
        "deadline": number(1795999613), "priority": number(4294901759), "requeue": True,
        "nodes": "c[1-2]", "node_count": number(2),
        "gres_detail": ["gpu:2(IDX:0-1)", "gpu:2(IDX:0-1)"], "tres_per_job": "",
        "tres_per_node": "gres:gpu:2", "tres_alloc_str": "cpu=2,node=2,billing=2,gres/gpu=4",
        "start_time": number(1795999493), "restart_cnt": 1, "time_limit": number(None),
        "tasks_per_node": number(None), "cpus_per_task": number(1), "dependency": "",
        "array_job_id": number(0), "het_job_id": number(0), "job_resources": {"nodes": "c[1-2]"},
    },
    "24.05": {
        "job_id": 7, "name": "train", "user_name": "ada", "job_state": ["RUNNING"],
        "state_reason": "None", "partition": "cloud", "comment": "c", "admin_comment": "",
        "deadline": number(1795999613), "priority": number(4294901759), "requeue": True,
        "nodes": "c[1-2]", "node_count": number(2), "gres_detail": [], "tres_per_job": "",
        "tres_per_node": "gres/gpu:2",
        "tres_alloc_str": "cpu=2,node=2,billing=2,gres/gpu=4,gres/gpu:a100=4",
        "start_time": number(1795999493), "restart_cnt": 1, "time_limit": number(None, True),
        "tasks_per_node": number(0), "cpus_per_task": number(1), "dependency": "",
        "array_job_id": number(0), "het_job_id": number(0),
        "job_resources": {"nodes": {"count": 2, "list": "c[1-2]", "allocation": []}},
    },
}  # fmt: skip


def job_of(record: dict[str, Any]) -> SlurmJob:
    """Return the one job of a document."""
    (job,) = jobs_of_text(json.dumps({"meta": {}, "errors": [], "jobs": [record]}))
    return job


@pytest.mark.parametrize("release", RUNNING)
def test_releases_tell_the_same(release: str) -> None:
    """A running job is the same whatever release of Slurm tells of it."""
    assert job_of(RUNNING[release]) == SlurmJob(
        id=7,
        name="train",
        user="ada",
        states=frozenset({"RUNNING"}),
        reason="None",
        partitions=("cloud",),
        comment="c",
        deadline=1795999613,
        nodes="c[1-2]",
        node_count=2,
        gpus=4,
        start=1795999493,
        restarts=1,
    )


@pytest.mark.parametrize(
    ("state", "is_a"),
    [
        ("PENDING", "pending"),
        (["PENDING", "REQUEUED"], "pending"),
        ("REQUEUE_HOLD", "pending"),
        ("CONFIGURING", "running"),
        (["RUNNING", "CONFIGURING"], "running"),
        ("RESIZING", "running"),
        ("COMPLETING", "clearing"),
        (["PENDING", "COMPLETING"], "clearing"),
        ("SUSPENDED", ""),
        (["CANCELLED"], "ended"),
        ("DEADLINE", "ended"),
        ("COMPLETED", "ended"),
    ],
)
def test_states_mean_one_thing(state: str | list[str], is_a: str) -> None:
    """Each state or set of flags is one of what decides what is done with a job."""
    job = job_of(RUNNING["24.05"] | {"job_state": state})
    kinds = ("pending", "running", "clearing", "ended")
    assert [kind for kind in kinds if getattr(job, kind)] == ([is_a] if is_a else [])
    assert job.completed == (state == "COMPLETED")


def test_a_held_job_and_what_it_asks_for() -> None:
    """Priority 0 is held, --gpus a total number; parts of arrays and dependencies are seen."""
    held = RUNNING["24.05"] | {
        "job_state": ["PENDING"], "priority": number(0), "tres_per_job": "gres/gpu:4",
        "array_job_id": number(7), "dependency": "afterok:5(unfulfilled)", "deadline": number(0),
        "partition": "cloud,edge", "time_limit": number(90),
    }  # fmt: skip
    job = job_of(held)
    assert job.held
    assert job.asks_total_gpus
    assert job.is_part
    assert job.dependency
    assert job.deadline is None
    assert job.partitions == ("cloud", "edge")
    assert job.time_limit_min == 90


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:4", 4),
        ("gpu:a100:2(S:0-1)", 2),
        ("gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)", 3),
        ("cpu=4,mem=1M,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2", 2),
        ("gres/gpu:a100=3", 3),
        ("mps:100,gpu:1", 1),
        ("(null)", 0),
        ("", 0),
    ],
)
def test_gpus_are_counted_once(text: str, gpus: int) -> None:
    """Lists of resources are read with types and places, and totals not added to their parts."""
    assert gpus_of(text) == gpus


@pytest.mark.parametrize("text", ["", "squeue: error", "[]", '{"jobs": [{}]}', '{"jobs": 3}'])
def test_what_is_no_answer_is_a_clear_error(text: str) -> None:
    """Anything but a document of jobs is an error of the adapter that says what is needed."""
    with pytest.raises(AdapterError, match=r"squeue --json: .* Slurm 22\.05 or later"):
        jobs_of_text(text)
