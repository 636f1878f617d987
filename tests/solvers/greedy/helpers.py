"""Tiny instances for the tests of the greedy, in words of few letters."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.greedy import GreedyOptions, heuristic_plan


def job(name: str, deadline: float | None, work: float, *rates: Any, **fields: Any) -> Job:
    """Return a job with modes ``(site, gpus, rate)``."""
    modes = tuple(Mode(site=site, gpus=gpus, rate=rate) for site, gpus, rate in rates)
    return Job(id=name, deadline=deadline, work=work, modes=modes, **fields)


def problem(jobs: list[Job], slots: int = 4, slot_s: float = 10.0, **units: Any) -> EpochProblem:
    """Return an instance whose sites are cloud, or edge where the name begins with e."""
    sites = tuple(
        Site(
            name=name,
            kind="edge" if name.startswith("e") else "cloud",
            capacity=((0.0, steps),) if isinstance(steps, int) else tuple(steps),
        )
        for name, steps in units.items()
    )
    return EpochProblem(grid=Grid.uniform(0.0, slot_s, slots), sites=sites, jobs=tuple(jobs))


def planned(
    instance: EpochProblem, select_jobs: bool = False, **options: Any
) -> dict[str, list[str]]:
    """Return for each job what it holds in each slot: ``"c2"`` = two GPUs on site c, ``"-"``."""
    arrays = arrays_of(instance)
    plan = heuristic_plan(arrays, GreedyOptions(**options), select_jobs)
    names = [site.name for site in instance.sites]

    def word(mode: int) -> str:
        return "-" if mode < 0 else f"{names[arrays.mode_site[mode]]}{arrays.mode_gpus[mode]}"

    return {j.id: [word(mode) for mode in row] for j, row in zip(instance.jobs, plan, strict=True)}
