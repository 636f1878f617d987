"""Small clusters and jobs for the tests of the service."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.problem import Job, Mode, Site


def sites(gpus: int = 4, servers: int = 1) -> tuple[Site, ...]:
    """Return a cloud site and an edge site."""
    return (
        Site(name="cloud", kind="cloud", capacity=((0.0, gpus),)),
        Site(name="edge", kind="edge", capacity=((0.0, servers),)),
    )


def job(name: str, deadline: float | None = 600.0, work: float = 300.0, **changes: Any) -> Job:
    """Return an elastic job of three modes, with losses."""
    modes = (
        Mode(site="cloud", gpus=1, rate=1.0),
        Mode(site="cloud", gpus=2, rate=1.75),
        Mode(site="edge", gpus=1, rate=0.5),
    )
    settings: dict[str, Any] = {"restart_s": 5.0, "migration_s": 10.0, **changes}
    return Job(id=name, deadline=deadline, work=work, modes=modes, **settings)
