"""Scheduling of elastic deep-learning jobs with deadlines over cloud GPUs and edge servers.

The public face of the package. Nothing is loaded before it is used: neither numpy nor any solver.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from edgeflow_opt._version import __version__ as __version__
from edgeflow_opt.errors import EdgeflowError as EdgeflowError
from edgeflow_opt.errors import InputError as InputError
from edgeflow_opt.errors import InstanceError as InstanceError
from edgeflow_opt.errors import UsageError as UsageError

if TYPE_CHECKING:
    from edgeflow_opt.analysis import Comparison as Comparison
    from edgeflow_opt.analysis import PolicyComparison as PolicyComparison
    from edgeflow_opt.analysis import compare as compare
    from edgeflow_opt.analysis import compare_policies as compare_policies
    from edgeflow_opt.analysis.explain import Explanation as Explanation
    from edgeflow_opt.analysis.explain import explain as explain
    from edgeflow_opt.clairvoyant import ClairvoyantBound as ClairvoyantBound
    from edgeflow_opt.clairvoyant import clairvoyant_bound as clairvoyant_bound
    from edgeflow_opt.policies.exact import rolling_grid as rolling_grid
    from edgeflow_opt.problem import Allocation as Allocation
    from edgeflow_opt.problem import CheckReport as CheckReport
    from edgeflow_opt.problem import EpochProblem as EpochProblem
    from edgeflow_opt.problem import Grid as Grid
    from edgeflow_opt.problem import Job as Job
    from edgeflow_opt.problem import Limit as Limit
    from edgeflow_opt.problem import Mode as Mode
    from edgeflow_opt.problem import Objective as Objective
    from edgeflow_opt.problem import ObjectiveValue as ObjectiveValue
    from edgeflow_opt.problem import Outcome as Outcome
    from edgeflow_opt.problem import Running as Running
    from edgeflow_opt.problem import Schedule as Schedule
    from edgeflow_opt.problem import Site as Site
    from edgeflow_opt.problem import SolveStatus as SolveStatus
    from edgeflow_opt.problem import Violation as Violation
    from edgeflow_opt.problem import Weights as Weights
    from edgeflow_opt.problem import check as check
    from edgeflow_opt.problem import evaluate as evaluate
    from edgeflow_opt.problem import json_schema as json_schema
    from edgeflow_opt.problem import read_problem as read_problem
    from edgeflow_opt.problem import read_schedule as read_schedule
    from edgeflow_opt.problem import write_problem as write_problem
    from edgeflow_opt.problem import write_schedule as write_schedule
    from edgeflow_opt.service import EpochSession as EpochSession
    from edgeflow_opt.simulation import SimulationResult as SimulationResult
    from edgeflow_opt.simulation import simulate as simulate
    from edgeflow_opt.solvers import CapacityPrices as CapacityPrices
    from edgeflow_opt.solvers import SolveOptions as SolveOptions
    from edgeflow_opt.solvers import SolveResult as SolveResult
    from edgeflow_opt.solvers import solve as solve
    from edgeflow_opt.solvers import solve_async as solve_async
    from edgeflow_opt.solvers import warm_up as warm_up
    from edgeflow_opt.solvers.exchange import export as export
    from edgeflow_opt.solvers.exchange import import_solution as import_solution
    from edgeflow_opt.solvers.pulp import to_pulp as to_pulp
    from edgeflow_opt.versions import show_versions as show_versions
    from edgeflow_opt.workloads import Trace as Trace
    from edgeflow_opt.workloads import cluster as cluster
    from edgeflow_opt.workloads import read_trace as read_trace

#: The module that public names come from: those names.
_HOMES = {
    "edgeflow_opt.clairvoyant": ("ClairvoyantBound", "clairvoyant_bound"),
    "edgeflow_opt.analysis.explain": ("Explanation", "explain"),
    "edgeflow_opt.analysis": (
        "Comparison",
        "PolicyComparison",
        "compare",
        "compare_policies",
    ),
    "edgeflow_opt.policies.exact": ("rolling_grid",),
    "edgeflow_opt.problem": (
        "Allocation",
        "CheckReport",
        "EpochProblem",
        "Grid",
        "Job",
        "Limit",
        "Mode",
        "Objective",
        "ObjectiveValue",
        "Outcome",
        "Running",
        "Schedule",
        "Site",
        "SolveStatus",
        "Violation",
        "Weights",
        "check",
        "evaluate",
        "json_schema",
        "read_problem",
        "read_schedule",
        "write_problem",
        "write_schedule",
    ),
    "edgeflow_opt.service": ("EpochSession",),
    "edgeflow_opt.simulation": (
        "SimulationResult",
        "simulate",
    ),
    "edgeflow_opt.solvers": (
        "CapacityPrices",
        "SolveOptions",
        "SolveResult",
        "solve",
        "solve_async",
        "warm_up",
    ),
    "edgeflow_opt.solvers.exchange": ("export", "import_solution"),
    "edgeflow_opt.solvers.pulp": ("to_pulp",),
    "edgeflow_opt.versions": ("show_versions",),
    "edgeflow_opt.workloads": ("Trace", "cluster", "read_trace"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = (
    "EdgeflowError",
    "InputError",
    "InstanceError",
    "UsageError",
    "__version__",
    *_HOME_OF,
)

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
