"""A small instance in which one edge server lifts the jobs met from 7 to 9.

The EdgeFlow paper (Gu, Jin, Liu, Journal of Software 36(12), 2025) has such an example; its numbers
are not to be had, so this one is our own. Nine jobs of 100 iterations are submitted at once, due in
350 s. A cloud of two GPUs at 1 iteration/s each yields 700 iterations by then: no schedule meets
more than 7 jobs, and 7 can be met, each on one GPU and one of them preempted once. Two GPUs are
less than twice as fast as one, so going elastic meets no more. An edge server at 2/3 iteration/s
completes a job in 150 s and two of them in 300 s: all nine are met.
"""

from __future__ import annotations

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site

#: Seconds of a slot; all that matters falls on its boundaries.
_SLOT_S = 50.0

_MODES = (
    Mode(site="cloud", gpus=1, rate=1.0),
    Mode(site="cloud", gpus=2, rate=1.8),
    Mode(site="edge", gpus=1, rate=2.0 / 3.0),
)


def motivating_jobs() -> tuple[Job, ...]:
    """Return the nine jobs."""
    return tuple(
        Job(
            id=f"job{number}",
            arrival=0.0,
            deadline=350.0,
            work=100.0,
            modes=_MODES,
            requested_gpus=1,
        )
        for number in range(1, 10)
    )


def motivating_sites(edge_servers: int) -> tuple[Site, Site]:
    """Return the two cloud GPUs and so many edge servers."""
    return (
        Site(name="cloud", kind="cloud", capacity=((0.0, 2),)),
        Site(name="edge", kind="edge", capacity=((0.0, edge_servers),)),
    )


def motivating_problem(edge_servers: int) -> EpochProblem:
    """Return the instance with so many edge servers: 0 allows 7 met jobs, 1 allows 9."""
    return EpochProblem(
        grid=Grid.uniform(0.0, _SLOT_S, 7),
        sites=motivating_sites(edge_servers),
        jobs=motivating_jobs(),
    )
