"""Instances that the tests of the solvers share."""

from __future__ import annotations

import random
from typing import Any

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 2),))
MODES = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="cloud", gpus=2, rate=1.8))


def small(**changes: Any) -> EpochProblem:
    """Return three slots of 10 s, two GPUs and four jobs, of which two can be met."""
    jobs = tuple(Job(id=f"j{k}", deadline=20.0, work=12.0 + k, modes=MODES) for k in range(4))
    problem = EpochProblem(grid=Grid((0.0, 10.0, 20.0, 30.0)), sites=(CLOUD,), jobs=jobs)
    return problem.replace(**changes) if changes else problem


def crowded(num_jobs: int = 40, num_slots: int = 24, seed: int = 1) -> EpochProblem:
    """Return an instance under overload, with losses and tides, that no solver closes at once."""
    draws = random.Random(seed)
    span = 300.0 * num_slots
    jobs = []
    for k in range(num_jobs):
        base = draws.uniform(0.5, 2.0)
        modes = [
            Mode(site="cloud", gpus=g, rate=round(base * g ** draws.uniform(0.7, 0.95), 4))
            for g in (1, 2, 4, 8)
        ]
        modes.append(Mode(site="edge", gpus=1, rate=round(base * 0.6, 4)))
        deadline = round(draws.uniform(0.25, 1.0) * span)
        work = round(base * deadline * draws.uniform(0.5, 2.5), 2)
        jobs.append(
            Job(
                id=f"j{k}",
                deadline=float(deadline),
                work=work,
                modes=tuple(modes),
                weight=round(draws.uniform(0.5, 3.0), 3),
                last_site=draws.choice((None, "cloud", "edge")),
                restart_s=20.0,
                migration_s=60.0,
            )
        )
    sites = (
        Site(name="cloud", kind="cloud", capacity=((0.0, 16), (span / 3, 12), (span / 2, 16))),
        Site(name="edge", kind="edge", capacity=((0.0, 4), (span / 2, 2))),
    )
    return EpochProblem(grid=Grid.uniform(0.0, 300.0, num_slots), sites=sites, jobs=tuple(jobs))
