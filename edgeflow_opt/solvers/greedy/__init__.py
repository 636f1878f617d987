"""The EdgeFlow heuristic in three steps, compiled, for epoch problems and online policies.

Each module builds on those before it:

* ``tables`` what the kernels work on, ``job_queue``, ``timeline`` free units over time;
* ``sketch`` draws the plan of one job, ``plans`` makes it the plan of the job;
* ``share`` the minimum satisfactory share, ``cloud`` and ``edge`` one job there;
* ``minimum_shares`` step 1, ``offloading`` step 2 (Algorithm 1), ``scaling`` step 3;
* ``selection`` of jobs under overload, ``waiting`` on the edge for the cloud, ``left_overs`` for
  jobs without a plan;
* ``whole`` their order as one kernel, ``heuristic`` that kernel with its work space and options,
  ``solver`` the same for an epoch problem.
"""

from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.greedy.options import GreedyOptions as GreedyOptions
from edgeflow_opt.solvers.greedy.solver import GreedySolver
from edgeflow_opt.solvers.greedy.solver import heuristic_plan as heuristic_plan

#: The heuristic as published.
SOLVER = GreedySolver("greedy", select_jobs=False)

#: The better of the heuristic as published and the one that selects jobs under overload.
SELECT_SOLVER = GreedySolver("edgeflow-select", select_jobs=True)


def warm_up() -> None:
    """Compile all kernels of the heuristic, or load them from the cache."""
    import numpy as np

    from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
    from edgeflow_opt.problem.arrays import arrays_of
    from edgeflow_opt.solvers.greedy.tables import JOB, present

    # The edge can do the second job, and the cloud is free: rule 2 moves it there.
    modes = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="edge", gpus=1, rate=1.0))
    jobs = tuple(Job(id=name, deadline=2.0, work=1.0, modes=modes) for name in ("a", "b"))
    sites = (
        Site(name="cloud", kind="cloud", capacity=((0.0, 3),)),
        Site(name="edge", kind="edge", capacity=((0.0, 1),)),
    )
    problem = EpochProblem(grid=Grid((0.0, 1.0, 2.0)), sites=sites, jobs=jobs)
    SELECT_SOLVER.solve(problem, arrays_of(problem), SolveOptions(), SolveControl(None))
    # What policies use besides.
    kept, usable = np.zeros(1, dtype=JOB), np.ones(1, dtype=np.bool_)
    present(kept, np.zeros((1, 2), dtype=np.int64), np.zeros((1, 6)), 0.0, True, usable, 1)
