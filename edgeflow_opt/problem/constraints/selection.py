"""The modes that a constraint is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.problem.epoch import EpochProblem


def modes_of(
    problem: EpochProblem, arrays: ProblemArrays, jobs: Sequence[str] | None, site: str | None
) -> IntArray:
    """Return the numbers of the modes of some jobs on a site.

    Parameters
    ----------
    problem, arrays
        The instance.
    jobs
        Ids; None = all jobs.
    site
        Name; None = all sites.
    """
    wanted = np.ones(arrays.num_modes, dtype=np.bool_)
    if jobs is not None:
        member = np.zeros(arrays.num_jobs, dtype=np.bool_)
        member[[problem.job_index[name] for name in jobs]] = True
        wanted &= member[arrays.mode_job]
    if site is not None:
        wanted &= arrays.mode_site == problem.site_index[site]
    return np.flatnonzero(wanted)
