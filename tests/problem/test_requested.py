"""The GPUs that a user asked for: carried by the format, bound by one rule, used by no other."""

from __future__ import annotations

import dataclasses

import pytest

from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem.formats import problem_from_dict, problem_to_dict
from edgeflow_opt.workloads import DEFAULT_CATALOG, Trace, TraceJob
from edgeflow_opt.workloads.motivating import motivating_problem


def test_requested_gpus_round_trip() -> None:
    """What was asked for is written and read back; nothing asked for is left out."""
    problem = motivating_problem(1)
    document = problem_to_dict(problem)
    assert document["jobs"][0]["requested_gpus"] == 1
    assert problem_from_dict(document) == problem
    silent = problem.replace(
        jobs=tuple(dataclasses.replace(job, requested_gpus=None) for job in problem.jobs)
    )
    assert "requested_gpus" not in problem_to_dict(silent)["jobs"][0]
    assert problem_from_dict(problem_to_dict(silent)) == silent


def test_requested_gpus_must_be_a_count() -> None:
    """Half a GPU cannot be asked for."""
    problem = motivating_problem(1)
    with pytest.raises(InstanceError, match="requested_gpus"):
        problem.replace(jobs=(dataclasses.replace(problem.jobs[0], requested_gpus=0),))


def test_the_requested_count_of_a_trace_job_stays_a_mode() -> None:
    """Bert with batch 64 is fastest on 8 GPUs; who asks for 32 has that mode all the same."""
    trace = Trace(
        entries=(
            TraceJob(
                id="a", submission=0.0, deadline=None, model="bert", batch=64, gpus=32,
                iterations=10.0, duration=1.0,
            ),
        )
    )  # fmt: skip
    (job,) = trace.jobs(DEFAULT_CATALOG, edge_site=None)
    assert [mode.gpus for mode in job.modes] == [1, 2, 4, 8, 32]
    assert job.requested_gpus == 32
    (small,) = trace.jobs(DEFAULT_CATALOG, edge_site=None, max_gpus=16)
    assert [mode.gpus for mode in small.modes] == [1, 2, 4, 8]
