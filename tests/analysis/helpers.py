"""Rows and comparisons made by hand."""

from __future__ import annotations

from typing import Any

from edgeflow_opt.analysis import Comparison, PolicyComparison, PolicyRow, Row


def row(instance: str, solver: str, **fields: Any) -> Row:
    """Return a solved row."""
    given: dict[str, Any] = {"num_jobs": 10, "status": "feasible", "seconds": 1.0, **fields}
    if "value" in given:
        given.setdefault("met_weight", given["value"])
        given.setdefault("met", int(given["value"]))
    return Row(instance=instance, solver=solver, **given)


def two_solvers() -> Comparison:
    """Return an exact solver and a heuristic on three instances with two seeds."""
    rows = []
    for index, (best, lesser) in enumerate([(10.0, 8.0), (6.0, 6.0), (4.0, 1.0)]):
        for seed in (0, 1):
            name = f"i{index}"
            rows.append(
                row(
                    name, "exact", seed=seed, value=best, bound=best, gap=0.0, status="optimal",
                    seconds=2.0 + seed, cost=100.0, reconfigurations=3,
                    trace=((0.5, lesser, best + 2), (1.5, best, best + 1), (2.0, best, best)),
                )
            )  # fmt: skip
            rows.append(
                row(name, "quick", seed=seed, value=lesser, seconds=0.1, cost=90.0,
                    reconfigurations=0, trace=((0.1, lesser, None),))
            )  # fmt: skip
    return Comparison(rows=tuple(rows), settings={"time_limit_s": 10.0}, versions={"x": "1"})


def policies() -> PolicyComparison:
    """Return two policies at two loads with three seeds, with bounds."""
    rows = [
        PolicyRow(
            trace="t", policy=policy, seed=seed, bound=9.0,
            settings={"arrival_scale": scale, "tide": "daily"},
            metrics={"jobs": 10, "met": met + seed, "dsr": (met + seed) / 10},
        )
        for scale, gain in ((1.0, 0), (2.0, 2))
        for seed in (0, 1, 2)
        for policy, met in (("a", 1 + gain), ("b", 3 + gain))
    ]  # fmt: skip
    return PolicyComparison(rows=tuple(rows))
