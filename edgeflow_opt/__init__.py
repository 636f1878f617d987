"""Scheduling of elastic deep-learning jobs with deadlines over cloud GPUs and edge servers.

The public face of the package. Importing it loads no solver: those are loaded when first used.
"""

import logging

from edgeflow_opt._version import __version__ as __version__
from edgeflow_opt.errors import EdgeflowError as EdgeflowError
from edgeflow_opt.problem import Allocation as Allocation
from edgeflow_opt.problem import EpochProblem as EpochProblem
from edgeflow_opt.problem import check as check
from edgeflow_opt.solvers import solve as solve

logging.getLogger(__name__).addHandler(logging.NullHandler())
