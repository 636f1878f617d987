"""The price engine: proven near-optimal schedules from one price per unit of each site and slot."""

from __future__ import annotations

from edgeflow_opt.solvers.price.bound import dual_bound
from edgeflow_opt.solvers.price.dual import DualResult
from edgeflow_opt.solvers.price.fixing import Fixings, fixings
from edgeflow_opt.solvers.price.solver import SOLVER
from edgeflow_opt.solvers.price.warm_up import warm_up

__all__ = ["SOLVER", "DualResult", "Fixings", "dual_bound", "fixings", "warm_up"]
