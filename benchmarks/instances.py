"""The instances: members of one generated family, told apart by size, load and seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance of :func:`edgeflow_opt.workloads.generate_problem`.

    Parameters
    ----------
    num_jobs, num_slots
        Size.
    load
        One-GPU work of all jobs over what the cloud can do in the horizon.
    seed
        Of the generator.
    restart_s, migration_s
        Losses of every job, seconds; slots have 300 s.
    most_weight
        Weights are whole numbers from 1 to this.
    moldable_share
        Share of the jobs that keep one mode in one run.
    """

    num_jobs: int
    num_slots: int
    load: float = 1.6
    seed: int = 0
    restart_s: float = 0.0
    migration_s: float = 0.0
    most_weight: int = 1
    moldable_share: float = 0.0

    @property
    def name(self) -> str:
        """Size, load and seed, for people."""
        return f"{self.num_jobs}x{self.num_slots} load {self.load:g} seed {self.seed}"

    def problem(self) -> EpochProblem:
        """Generate the instance."""
        from edgeflow_opt.workloads import generate_problem

        return generate_problem(
            self.num_jobs,
            self.num_slots,
            self.seed,
            load=self.load,
            restart_s=self.restart_s,
            migration_s=self.migration_s,
            weights=(1, self.most_weight),
            moldable_share=self.moldable_share,
        )


def digest(problem: EpochProblem) -> str:
    """Return a hash of the instance file: runs are compared only where it is the same."""
    from edgeflow_opt.problem.formats import dumps, problem_to_dict

    return hashlib.sha256(dumps(problem_to_dict(problem)).encode()).hexdigest()[:16]
