"""Cluster states and random traces for the tests of the policies."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from edgeflow_opt.policies.base import ClusterState, JobState
from edgeflow_opt.problem import Job, Mode, Site

RATES = ((1, 1.0), (2, 1.8), (4, 3.0))


def job(
    name: str,
    work: float,
    deadline: float | None,
    *,
    requested: int | None = 1,
    rates: Iterable[tuple[int, float]] = RATES,
    edge_rate: float | None = None,
    arrival: float = 0.0,
    weight: float = 1.0,
) -> Job:
    """Return a job with cloud modes on site c and perhaps one on the edge site e."""
    modes = [Mode(site="c", gpus=gpus, rate=rate) for gpus, rate in rates]
    if edge_rate is not None:
        modes.append(Mode(site="e", gpus=1, rate=edge_rate))
    return Job(
        id=name, arrival=arrival, deadline=deadline, work=work, modes=tuple(modes),
        requested_gpus=requested, weight=weight,
    )  # fmt: skip


def waiting(*jobs: Job) -> tuple[JobState, ...]:
    """Return jobs that never ran."""
    return tuple(JobState(job=j, required_left=j.required) for j in jobs)


def running(j: Job, gpus: int, *, site: str = "c", attained: float = 0.0) -> JobState:
    """Return a job that holds a mode."""
    mode = j.mode(site, gpus)
    assert mode is not None
    return JobState(
        job=j, required_left=j.required, mode=mode, last_site=site, attained_gpu_s=attained
    )


def state(
    *seen: JobState, c: int = 4, e: int = 0, now: float = 0.0, arrived: str = ""
) -> ClusterState:
    """Return a cluster of `c` cloud GPUs and `e` edge servers."""
    sites = (
        Site(name="c", kind="cloud", capacity=((0.0, c),)),
        Site(name="e", kind="edge", capacity=((0.0, e),)),
    )
    return ClusterState(now=now, jobs=seen, sites=sites, arrived=frozenset(arrived.split()))


@st.composite
def traces(draw: st.DrawFn, edge: bool = True) -> tuple[Job, ...]:
    """Draw a handful of jobs that arrive within some minutes and may overload four GPUs."""
    jobs = []
    for index in range(draw(st.integers(1, 8))):
        arrival = float(draw(st.integers(0, 200)))
        window = draw(st.one_of(st.none(), st.integers(1, 300)))
        one = draw(st.sampled_from((0.5, 1.0, 2.0)))
        rates = [(1, one), (2, one * draw(st.sampled_from((0.9, 1.5, 2.0))))]
        rates.append((4, rates[1][1] * draw(st.sampled_from((0.9, 1.5, 2.0)))))
        jobs.append(
            job(
                f"j{index}", float(draw(st.integers(1, 400))),
                None if window is None else arrival + window, arrival=arrival, rates=rates,
                requested=draw(st.sampled_from((None, 1, 2, 3, 4, 8))),
                edge_rate=one * draw(st.sampled_from((0.4, 0.8, 1.2))) if edge else None,
            )
        )  # fmt: skip
    return tuple(jobs)
