"""The example documents of the formats, word for word, and short ways to build small instances."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Running,
    Schedule,
    Site,
    SolveStatus,
    evaluate,
    schedule_from_dict,
)
from edgeflow_opt.problem.schedule import in_order

INSTANCE_TEXT = """
{"format": "edgeflow-epoch/1", "now": 0, "grid": [0, 300, 600, 900],
 "sites": [{"name": "cloud", "kind": "cloud", "gpu_type": "a100", "capacity": [[0, 64]], "gpus_per_node": 8},
           {"name": "edge", "kind": "edge", "gpu_type": "v100", "capacity": [[0, 4], [600, 0]], "memory_gib": 16}],
 "jobs": [{"id": "j1", "arrival": 0, "deadline": 850, "work": 1200, "weight": 1, "memory_gib": 8,
           "modes": [{"site": "cloud", "gpus": 1, "rate": 1.5}, {"site": "cloud", "gpus": 2, "rate": 2.6}, {"site": "edge", "gpus": 1, "rate": 0.8}],
           "running": {"site": "cloud", "gpus": 1, "loss_left_s": 0}, "restart_s": 10, "migration_s": 30}]}
"""

SCHEDULE_TEXT = """
{"format": "edgeflow-schedule/1", "solver": "cpsat", "status": "optimal", "limit": null, "objective": {"met_weight": 1.0, "progress": 0.0, "cost": 1200.0, "reconfigurations": 1}, "bound": 1.0, "seconds": 0.02,
 "allocations": [{"job": "j1", "start": 0, "end": 600, "site": "cloud", "gpus": 2}],
 "outcomes": [{"job": "j1", "met": true, "completion": 471.54}]}
"""


def instance_document() -> dict[str, Any]:
    """Return the example instance, parsed anew so that a test may change it."""
    document: dict[str, Any] = json.loads(INSTANCE_TEXT)
    return document


def schedule_document() -> dict[str, Any]:
    """Return the example schedule, parsed anew so that a test may change it."""
    document: dict[str, Any] = json.loads(SCHEDULE_TEXT)
    return document


def example_schedule() -> Schedule:
    """Return the example schedule as an object."""
    return schedule_from_dict(schedule_document())


def rich_problem() -> EpochProblem:
    """Return an instance with every kind of job, three slots of 100 s and two sites."""
    cloud = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="cloud", gpus=2, rate=1.8))
    edge = (Mode(site="edge", gpus=4, rate=1.5),)
    return EpochProblem(
        grid=Grid.uniform(0.0, 100.0, 3),
        sites=(
            Site(name="cloud", kind="cloud", capacity=((0.0, 4), (200.0, 3)), price=2.0),
            Site(name="edge", kind="edge", capacity=((-5.0, 1),), memory_gib=16.0),
        ),
        jobs=(
            Job(id="plain", deadline=250.0, work=150.0, modes=cloud + edge, weight=2.0),
            Job(
                id="runs", deadline=300.0, work=270.0, modes=cloud + edge, restart_s=10.0,
                migration_s=30.0, running=Running(site="cloud", gpus=1, loss_left_s=5.0),
            ),
            Job(id="hard", deadline=200.0, work=100.0, modes=edge, must_meet=True),
            Job(id="effort", deadline=None, work=1000.0, modes=cloud, arrival=100.0),
            Job(id="rigid", deadline=300.0, work=180.0, modes=cloud, malleable=False),
            Job(id="large", deadline=300.0, work=10.0, modes=cloud + edge, memory_gib=20.0),
        ),
    )  # fmt: skip


def alloc(job: str, start: float, end: float, site: str, gpus: int) -> Allocation:
    """Return an allocation, given in the order of the columns of a table."""
    return Allocation(job=job, start=start, end=end, site=site, gpus=gpus)


def schedule_of(problem: EpochProblem, *allocations: Allocation, **claims: Any) -> Schedule:
    """Return a schedule whose claims are true, but for such as are given."""
    value, outcomes = evaluate(problem, allocations)
    schedule = Schedule(
        solver="hand",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=in_order(allocations, problem.jobs),
        outcomes=outcomes,
    )
    return dataclasses.replace(schedule, **claims)


def rich_schedule(problem: EpochProblem) -> Schedule:
    """Return a valid schedule of :func:`rich_problem`."""
    return schedule_of(
        problem,
        alloc("plain", 0.0, 100.0, "cloud", 2),
        alloc("runs", 0.0, 100.0, "cloud", 1),
        alloc("runs", 100.0, 300.0, "edge", 4),
        alloc("hard", 0.0, 100.0, "edge", 4),
        alloc("effort", 100.0, 200.0, "cloud", 1),
        alloc("rigid", 100.0, 200.0, "cloud", 2),
        alloc("large", 200.0, 300.0, "cloud", 1),
    )
