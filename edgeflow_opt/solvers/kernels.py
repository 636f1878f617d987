"""The compiled kernels of the package: compiled once after installation, then loaded from a cache."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from functools import cache

#: Modules with kernels; each has a function ``warm_up()`` that compiles them.
MODULES = (
    "edgeflow_opt.formulations.plans",
    "edgeflow_opt.solvers.greedy",
    "edgeflow_opt.solvers.price",
    "edgeflow_opt.solvers.moldable",
    "edgeflow_opt.solvers.plan",
    "edgeflow_opt.solvers.leftovers",
    "edgeflow_opt.solvers.polish",
    "edgeflow_opt.policies.afs",
    "edgeflow_opt.clairvoyant",
)

#: Loading the kernels from the cache takes less than this, compiling them more, seconds.
LOADING_S = 3.0


def warm_up() -> float:
    """Compile all kernels, or load them from the cache; return the seconds that it took.

    The first call after an installation takes about a minute of CPU time; the compiled kernels are then
    cached beside the package (or where NUMBA_CACHE_DIR says). Every solve calls it by itself.
    """
    begin = time.perf_counter()
    _warm_up_once()
    return time.perf_counter() - begin


@cache
def _warm_up_once() -> None:
    for module in MODULES:
        importlib.import_module(module).warm_up()


def compile_in_parallel() -> None:
    """Fill the cache in processes of their own, one for each module, side by side.

    For programs that may start processes, such as the command line; where the cache is filled
    already, nothing is done. A process that fails leaves its work to :func:`warm_up`.
    """
    from edgeflow_opt.formulations import plans
    from edgeflow_opt.formulations.plan_kernels import walk_plans

    plans.warm_up()
    if not walk_plans.stats.cache_misses:
        return
    processes = [
        subprocess.Popen(
            # -P: the current folder must not stand in for the installed package.
            [sys.executable, "-P", "-c", f"import {module} as kernels; kernels.warm_up()"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for module in MODULES[1:]
    ]
    try:
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
