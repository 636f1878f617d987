"""Scheduling of elastic deep-learning jobs with deadlines over cloud GPUs and edge servers.

The public face of the package. Importing it loads no solver: those are loaded when first used.
"""

import logging

from edgeflow_opt._version import __version__ as __version__
from edgeflow_opt.errors import EdgeflowError as EdgeflowError
from edgeflow_opt.errors import InputError as InputError
from edgeflow_opt.errors import InstanceError as InstanceError
from edgeflow_opt.errors import UsageError as UsageError
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
from edgeflow_opt.simulation import SimulationResult as SimulationResult
from edgeflow_opt.simulation import simulate as simulate
from edgeflow_opt.solvers import SolveOptions as SolveOptions
from edgeflow_opt.solvers import SolveResult as SolveResult
from edgeflow_opt.solvers import solve as solve
from edgeflow_opt.solvers import warm_up as warm_up

logging.getLogger(__name__).addHandler(logging.NullHandler())
