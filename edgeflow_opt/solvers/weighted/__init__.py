"""The weighted sum of the levels: a proven bound by capacity prices, and plans near it."""

from __future__ import annotations

from edgeflow_opt.solvers.weighted.warm_up import warm_up

__all__ = ["warm_up"]
