"""Whole random traces under every policy, and what must hold between policies."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.policies import POLICIES, make_policy
from edgeflow_opt.problem import Job, Site
from edgeflow_opt.simulation import simulate
from edgeflow_opt.workloads import generate_trace
from tests.effort import examples
from tests.policies.states import traces

NAMES = [name for name in POLICIES.names() if name != "exact"]


def cluster(cloud: int, *edge: tuple[float, int]) -> tuple[Site, ...]:
    """Return a cluster whose edge servers come and go."""
    return (
        Site(name="c", kind="cloud", capacity=((0.0, cloud),)),
        Site(name="e", kind="edge", capacity=edge or ((0.0, 0),)),
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(15))
@given(jobs=traces(), overhead=st.sampled_from(["none", "elasticflow", "5,20"]))
def test_every_policy_carries_a_trace_through(
    name: str, jobs: tuple[Job, ...], overhead: str
) -> None:
    """Each history passes the checker, and every job that is not refused is done at the end."""
    if name == "hungarian":
        pytest.importorskip("scipy")
    sites = cluster(4, (0.0, 1), (100.0, 0), (200.0, 2))
    options = {"slice_s": 10.0} if name in ("gandiva", "themis") else {}
    result = simulate(jobs, sites, make_policy(name, **options), overhead=overhead, merge_s=5.0)
    done = {outcome.job for outcome in result.outcomes if outcome.completion is not None}
    assert done == {job.id for job in jobs} - result.refused


@settings(max_examples=examples(60))
@given(
    jobs=traces(),
    overhead=st.sampled_from(["none", "5,20"]),
    admission=st.sampled_from(["none", "elasticflow", "per_job"]),
)
def test_without_edge_servers_edgeflow_is_elasticflow(
    jobs: tuple[Job, ...], overhead: str, admission: str
) -> None:
    """With E = 0 both hold the same modes in the same runs from event to event."""
    sites = cluster(4)
    runs = [
        simulate(jobs, sites, make_policy(name, admission=admission), overhead=overhead, log=True)
        for name in ("edgeflow", "elasticflow")
    ]
    assert runs[0].allocations == runs[1].allocations
    assert runs[0].outcomes == runs[1].outcomes
    assert [(e.time, e.refused, e.running) for e in runs[0].events] == [
        (e.time, e.refused, e.running) for e in runs[1].events
    ]


@settings(max_examples=examples(30))
@given(jobs=traces())
def test_cloud_policies_leave_the_edge_alone(jobs: tuple[Job, ...]) -> None:
    """Edge servers change nothing for the policies that use cloud GPUs only."""
    for name in ("elasticflow", "afs", "tiresias", "gandiva", "themis", "chronus", "edf", "fifo"):
        without, beside = (
            simulate(jobs, cluster(4, edge), make_policy(name)).allocations
            for edge in ((0.0, 0), (0.0, 3))
        )
        assert without == beside
        assert all(allocation.site == "c" for allocation in beside)


def _on_whole_ticks(time: float) -> float:
    """Return `time` to 1/1024 s, which every clock of the test below holds exactly."""
    return round(time * 1024) / 1024


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("edgeflow", {"share": "two_level"}),
        ("edgeflow-select", {"share": "two_level"}),
        ("edgeflow-select", {}),
        ("elasticflow", {}),
        ("elasticflow", {"slot_s": 60.0}),
    ],
)
def test_a_shift_of_the_clock_changes_nobody_s_fate(name: str, options: dict[str, Any]) -> None:
    """Whoever is met on a clock that begins with the trace is met on one since 1970.

    Plans are just in time here, and jobs of one model often save the same by the same step: neither
    may hang on the last digits of the clock.
    """
    for seed, load in ((0, 1.5), (2, 1.5), (3, 1.5), (4, 3.0), (6, 0.6), (8, 3.0)):
        jobs = [
            dataclasses.replace(
                job,
                arrival=_on_whole_ticks(job.arrival or 0.0),
                deadline=_on_whole_ticks(job.deadline or 0.0),
            )
            for job in generate_trace(60, seed, load=load, cloud_gpus=16).jobs(
                cloud_site="c", edge_site="e"
            )
        ]
        fates = []
        for by in (0.0, 2.0**20, 1.7e9):
            later = [
                dataclasses.replace(j, arrival=(j.arrival or 0.0) + by, deadline=j.deadline + by)
                for j in jobs
                if j.deadline is not None
            ]
            sites = (
                Site(name="c", kind="cloud", capacity=((by, 16),)),
                Site(name="e", kind="edge", capacity=((by, 4),)),
            )
            result = simulate(later, sites, make_policy(name, **options))
            fates.append([outcome.met for outcome in result.outcomes])
        assert fates[1] == fates[0]
        assert fates[2] == fates[0]
