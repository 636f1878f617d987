"""How it is solved: a registry of solvers, and one front door that checks what they return."""

from edgeflow_opt.solvers.asynchronous import solve_async as solve_async
from edgeflow_opt.solvers.base import Capabilities as Capabilities
from edgeflow_opt.solvers.base import Draft as Draft
from edgeflow_opt.solvers.base import SolveOptions as SolveOptions
from edgeflow_opt.solvers.base import Solver as Solver
from edgeflow_opt.solvers.base import SolveResult as SolveResult
from edgeflow_opt.solvers.capacity_prices import CapacityPrices as CapacityPrices
from edgeflow_opt.solvers.control import SolveControl as SolveControl
from edgeflow_opt.solvers.front import SOLVERS as SOLVERS
from edgeflow_opt.solvers.front import kernels_of as kernels_of
from edgeflow_opt.solvers.front import solve as solve
from edgeflow_opt.solvers.kernels import warm_up as warm_up
from edgeflow_opt.solvers.progress import Progress as Progress
