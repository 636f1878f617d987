"""The small instances of the folders: whole numbers only, so that MiniZinc states them exactly."""

from __future__ import annotations

import dataclasses

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site

#: A cloud whose capacity dips, and edge servers that leave.
SITES = (
    Site(name="cloud", kind="cloud", capacity=((0.0, 3), (200.0, 2), (300.0, 3))),
    Site(name="edge", kind="edge", capacity=((0.0, 1), (300.0, 0))),
)


def _modes(rate: float) -> tuple[Mode, ...]:
    return (
        Mode(site="cloud", gpus=1, rate=rate),
        Mode(site="cloud", gpus=2, rate=2 * rate - 1),
        Mode(site="edge", gpus=1, rate=rate - 1),
    )


#: Six jobs under overload; two have run before and pay losses, one must be met, one arrives later.
JOBS = (
    Job(id="a", deadline=200.0, work=700.0, weight=2.0, modes=_modes(4.0)),
    Job(id="b", deadline=300.0, work=1100.0, weight=3.0, modes=_modes(3.0), must_meet=True),
    Job(id="c", deadline=400.0, work=1400.0, weight=4.0, modes=_modes(5.0), last_site="edge",
        restart_s=10.0, migration_s=30.0),
    Job(id="d", deadline=350.0, work=600.0, weight=2.0, modes=_modes(3.0), arrival=100.0),
    Job(id="e", deadline=400.0, work=900.0, weight=3.0, modes=_modes(4.0), last_site="cloud",
        restart_s=20.0, migration_s=40.0),
    Job(id="f", deadline=250.0, work=500.0, weight=1.0, modes=_modes(2.0)),
)  # fmt: skip

GRID = Grid((0.0, 100.0, 200.0, 300.0, 400.0))


def malleable() -> EpochProblem:
    """Return the instance of the folders ``malleable`` and ``plan``."""
    return EpochProblem(grid=GRID, sites=SITES, jobs=JOBS)


def moldable() -> EpochProblem:
    """Return the same with every job in one mode and one run."""
    jobs = tuple(dataclasses.replace(job, malleable=False) for job in JOBS)
    return EpochProblem(grid=GRID, sites=SITES, jobs=jobs)
