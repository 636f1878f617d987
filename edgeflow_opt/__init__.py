"""Scheduling of elastic deep-learning jobs with deadlines over cloud GPUs and edge servers.

The public face of the package. Nothing is loaded before it is used: neither numpy nor any solver.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from edgeflow_opt._version import __version__ as __version__
from edgeflow_opt.errors import EdgeflowError as EdgeflowError

if TYPE_CHECKING:
    from edgeflow_opt.problem import Allocation as Allocation
    from edgeflow_opt.problem import EpochProblem as EpochProblem
    from edgeflow_opt.problem import check as check
    from edgeflow_opt.solvers import solve as solve

#: Public name: the module that it comes from.
_HOMES = {
    "Allocation": "edgeflow_opt.problem",
    "EpochProblem": "edgeflow_opt.problem",
    "check": "edgeflow_opt.problem",
    "solve": "edgeflow_opt.solvers",
}

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
