"""The built-in instance and the built-in trace: something to look at without any download."""

from __future__ import annotations

from edgeflow_opt.problem.data import EpochProblem
from edgeflow_opt.workloads.generate import generate_problem, generate_trace
from edgeflow_opt.workloads.trace import Trace


def demo_problem() -> EpochProblem:
    """Return the built-in instance: 28 jobs, 24 slots of 300 s, cloud and edge.

    It is mildly overloaded: not all deadlines can be met, and which ones are decides the outcome.
    """
    return generate_problem(28, 24, DEMO_SEED, load=1.2)


def demo_trace() -> Trace:
    """Return the built-in trace: 40 jobs at a load of 0.8 on 16 cloud GPUs."""
    return generate_trace(
        40, DEMO_SEED, load=0.8, cloud_gpus=16, gpu_mix="testbed", name="demo, 40 jobs"
    )


#: Seed of both.
DEMO_SEED = 7
