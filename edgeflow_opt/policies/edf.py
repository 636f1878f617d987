"""Earliest deadline first, every job on the most GPUs that it may use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Mode


class EdfPolicy:
    """Earliest deadline first: in deadline order each job takes the most GPUs that it may.

    A job takes its largest level that still fits, so the last one before the GPUs are out gets a
    smaller one. Nothing is dropped: jobs past their deadline come first. Cloud GPUs only;
    best-effort jobs come after all others, first come.

    As published (pkusys/ElasticFlow) the most is the largest count of the rate table, up to 64 and
    to the batch, even where it is slower than fewer GPUs: such counts must then be among the modes
    of the jobs (``Trace.jobs(beyond_knee=True)``; the command ``simulate`` sees to it). With them
    under overload a few jobs burn the whole cluster at a low efficiency, and everybody is late.

    Source: Liu and Layland, Journal of the ACM 20(1), 1973, for the order; the baseline of
    ElasticFlow (Gu et al., ASPLOS 2023) and of EdgeFlow for the GPU counts.

    Parameters
    ----------
    knee_cap
        Whether levels that do not raise the rate are left out.
    """

    beyond_knee = True
    """The policy is meant for jobs that have their modes beyond the knee too."""

    def __init__(self, *, knee_cap: bool = False) -> None:
        self._clouds = Clouds(knee_cap=knee_cap)

    def decide(self, state: ClusterState) -> Decision:
        """Return the largest levels that fit, in deadline order."""
        free = self._clouds.look(state)
        left = sum(free.values())
        allocation: dict[str, Mode] = {}
        for seen in sorted(state.jobs, key=_deadline):
            if left <= 0:
                break
            for mode in reversed(self._clouds.levels(seen.job)):
                if mode.gpus <= free[mode.site]:
                    free[mode.site] -= mode.gpus
                    left -= mode.gpus
                    allocation[seen.job.id] = mode
                    break
        return Decision(allocation=allocation)


class EdfKneePolicy(EdfPolicy):
    """Earliest deadline first with the knee cap: the most GPUs that still raise the job's rate.

    Otherwise as ``edf``, which is published without the cap.
    """

    beyond_knee = False

    def __init__(self) -> None:
        super().__init__(knee_cap=True)


def _deadline(seen: JobState) -> float:
    return math.inf if seen.job.deadline is None else seen.job.deadline
