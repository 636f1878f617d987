"""The plan engine: whole plans as columns, priced with their losses; for the proof of level 1."""

from __future__ import annotations

from edgeflow_opt.solvers.plan.solver import SOLVER, close_first_level, warm_up

__all__ = ["SOLVER", "close_first_level", "warm_up"]
