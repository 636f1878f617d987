"""Measure the price engine: bound, value, gap and time, on generated instances of many sizes.

    python benchmarks/price_engine.py
    python benchmarks/price_engine.py --sizes 300x96 1000x96 --loads 0.8 1.6 --seeds 0 1 --limit 5
    python benchmarks/price_engine.py --sizes 1000x96 --losses --limit 10
    python benchmarks/price_engine.py --bound-only

Times are those of the whole solve, model building and checks of the schedule included, in a process
whose kernels are loaded. The gap in jobs is what remains between the value and the bound.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.price import dual_bound, warm_up
from edgeflow_opt.workloads.generate import generate_problem

DEFAULT_SIZES = ("30x24", "100x24", "300x96", "1000x24", "1000x96")


def main() -> None:
    """Read the options and print one row per instance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="+", default=DEFAULT_SIZES, help="jobs x slots")
    parser.add_argument("--loads", nargs="+", type=float, default=(0.8, 1.6, 2.5))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--limit", type=float, default=5.0, help="seconds per solve")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--losses", action="store_true", help="restart 30 s, migration 180 s")
    parser.add_argument("--weighted", action="store_true", help="weights 1 to 5 instead of 1")
    parser.add_argument("--moldable", type=float, default=0.0, help="share of moldable jobs")
    parser.add_argument("--bound-only", action="store_true", help="the dual alone")
    options = parser.parse_args()
    features: dict[str, Any] = {"moldable_share": options.moldable}
    if options.losses:
        features |= {"restart_s": 30.0, "migration_s": 180.0}
    if options.weighted:
        features["weights"] = (1, 5)
    warm_up()
    if options.bound_only:
        print(f"{'size':>10} {'load':>4} {'seed':>4} {'hull':>10} {'s':>6} {'exact':>10} {'s':>6}")
    else:
        print(
            f"{'size':>10} {'load':>4} {'seed':>4} {'hull':>9} {'first':>7} {'UB':>9} {'value':>8} "
            f"{'gap':>5} {'gap %':>6} {'s':>6} {'moves':>7}"
        )
    for size in options.sizes:
        num_jobs, num_slots = (int(part) for part in size.split("x"))
        for load in options.loads:
            for seed in options.seeds:
                problem = generate_problem(num_jobs, num_slots, seed, load=load, **features)
                label = f"{size:>10} {load:4.1f} {seed:4d}"
                if options.bound_only:
                    print(label, _bounds(problem, options.workers), flush=True)
                else:
                    print(label, _row(problem, options.limit, options.workers), flush=True)


def _bounds(problem: Any, workers: int) -> str:
    arrays = arrays_of(problem)
    begin = time.perf_counter()
    hull = dual_bound(arrays, workers=workers)
    middle = time.perf_counter()
    exact = dual_bound(arrays, hull.prices, 1, exact_iterations=5, workers=workers)
    end = time.perf_counter()
    return f"{hull.bound:10.3f} {middle - begin:6.2f} {exact.bound:10.3f} {end - middle:6.2f}"


def _row(problem: Any, limit: float, workers: int) -> str:
    begin = time.perf_counter()
    result = solve(problem, "price", time_limit_s=limit, workers=workers)
    seconds = time.perf_counter() - begin
    if result.value is None or result.bound is None:
        return f"{result.status} in {seconds:.2f} s"
    gap = result.bound - result.value
    found = result.statistics
    return (
        f"{found['hull_bound']:9.2f} {found['constructed']:7.0f} {found['bound']:9.2f} "
        f"{result.value:8.0f} {gap:5.0f} {100 * gap / max(1e-9, result.value):6.2f} "
        f"{seconds:6.2f} {found.get('moves', 0):7d}"
    )


if __name__ == "__main__":
    main()
