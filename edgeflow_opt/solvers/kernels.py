"""The compiled kernels of the package: compiled once after installation, then loaded from a cache.

Numba compiles a kernel where it is called first, which takes seconds to half a minute a module, and
keeps it on disk. Here they are loaded by module and ahead of time, so that compilation is never part
of what a caller's limit pays for: solvers name what they need (``Capabilities.kernels``), and what
depends on the instance is loaded by :meth:`edgeflow_opt.solvers.control.SolveControl.load_kernels`.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time

from edgeflow_opt.registry import IMPORTING

PLANS = "edgeflow_opt.formulations.plans"
GREEDY = "edgeflow_opt.solvers.greedy"
PRICE = "edgeflow_opt.solvers.price"
MOLDABLE = "edgeflow_opt.solvers.moldable"
PLAN = "edgeflow_opt.solvers.plan"
LEFTOVERS = "edgeflow_opt.solvers.leftovers"
POLISH = "edgeflow_opt.solvers.polish"
WEIGHTED = "edgeflow_opt.solvers.weighted"
AFS = "edgeflow_opt.policies.afs"
ACCOUNTS = "edgeflow_opt.simulation.accounts"
CLAIRVOYANT = "edgeflow_opt.clairvoyant"

#: Modules with kernels, and the CPU seconds that their compilation takes, about. Each has a function
#: ``warm_up()`` that compiles them. Every solve needs the first.
MODULES = {
    PLANS: 1.0,
    GREEDY: 20.0,
    PRICE: 22.0,
    MOLDABLE: 3.0,
    PLAN: 7.0,
    LEFTOVERS: 3.0,
    POLISH: 8.0,
    WEIGHTED: 12.0,
    AFS: 1.0,
    ACCOUNTS: 2.0,
    CLAIRVOYANT: 3.0,
}

#: What solvers need that begin from the greedy's plan and polish the levels below the first.
BY_LEVELS = (GREEDY, POLISH)

#: Most processes that compile side by side: each has to load numba and begins with what others
#: compile as well.
_MOST_PROCESSES = 4

#: Modules whose kernels are loaded: whether they had to be compiled for that.
_loaded: dict[str, bool] = {}


def warm_up(*modules: str) -> float:
    """Compile kernels, or load them from the cache; return the seconds that it took.

    All of them take more than a minute of CPU time after an installation; compiled kernels are
    cached beside the package (or where NUMBA_CACHE_DIR says). Every solve loads what it needs by
    itself.

    Parameters
    ----------
    *modules
        Of :data:`MODULES`; none = all.
    """
    begin = time.perf_counter()
    compile_or_load(*(modules or MODULES))
    return time.perf_counter() - begin


def compile_or_load(*modules: str) -> float:
    """Compile the kernels of `modules`, or load them from the cache.

    Returns
    -------
    seconds
        How long compilation took; 0 where all kernels were loaded already or in the cache.
    """
    compiling = 0.0
    for module in modules:
        if module in _loaded:
            continue
        begin = time.perf_counter()
        with IMPORTING:
            if module not in _loaded:
                _loaded[module] = _was_compiled(module)
        if _loaded[module]:
            compiling += time.perf_counter() - begin
    return compiling


def _was_compiled(module: str) -> bool:
    """Load the kernels of `module`; tell whether any had to be compiled."""
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        importlib.import_module(module).warm_up()
    return bool(recorder.buffer)


def missing(*modules: str) -> list[str]:
    """Return those of `modules` that have to be compiled; the others are loaded.

    For programs that have no threads yet: nothing may be compiled elsewhere meanwhile.
    """
    with IMPORTING:
        return _missing(modules)


def _missing(modules: tuple[str, ...]) -> list[str]:
    from numba.core import event

    class RefusedError(Exception):
        """A kernel was about to be compiled."""

    class Refusal(event.Listener):
        def on_start(self, event: object) -> None:
            raise RefusedError

        def on_end(self, event: object) -> None:
            pass

    found = []
    for module in modules:
        if module in _loaded:
            continue
        try:
            with event.install_listener("numba:compile", Refusal()):
                importlib.import_module(module).warm_up()
            _loaded[module] = False
        except RefusedError:
            found.append(module)
    return found


def compile_in_parallel(*modules: str) -> None:
    """Fill the cache with the kernels of `modules` in processes of their own, then load them.

    For programs that may start processes, such as the command line, and have no threads yet; where
    the cache is filled already, no process is started. What a process that fails leaves undone is
    done here.

    Parameters
    ----------
    *modules
        Of :data:`MODULES`; none = all.
    """
    modules = modules or tuple(MODULES)
    shares = shared_out(missing(*modules), min(len(os.sched_getaffinity(0)), _MOST_PROCESSES))
    processes = []
    try:
        processes += [_compiling(share) for share in shares]
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
    compile_or_load(*modules)


def shared_out(modules: list[str], processes: int) -> list[list[str]]:
    """Return what each of at most `processes` processes compiles, so that the last is done soon.

    Longest first, each to whoever has least to do; `plan` follows `price`, much of which it links.
    """
    costs = {module: MODULES[module] for module in modules if module != PLAN}
    if PLAN in modules:
        costs[PRICE if PRICE in costs else PLAN] = MODULES[PLAN] + costs.get(PRICE, 0.0)
    shares: list[list[str]] = [[] for _ in range(min(processes, len(costs)))]
    for module in sorted(costs, key=lambda module: -costs[module]):
        least = min(shares, key=lambda share: sum(costs[other] for other in share))
        least.append(module)
    for share in shares:
        if PLAN in modules and PRICE in share:
            share.append(PLAN)
    return shares


def _compiling(modules: list[str]) -> subprocess.Popen[bytes]:
    """Start a process that compiles the kernels of `modules`, one after the other."""
    task = f"from edgeflow_opt.solvers import kernels; kernels.warm_up(*{modules!r})"
    return subprocess.Popen(
        # -P: the current folder must not stand in for the installed package.
        [sys.executable, "-P", "-c", task],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
