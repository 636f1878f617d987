"""Ctrl-C at random moments of real solves, each in a process of its own.

A signal may strike anywhere, in a finaliser too, where Python can only warn of it; so neither the
test runner nor one strike after the other shares a process: ``python -m tests.solvers.strikes N``
loads all that a solve needs, forks for every strike, and prints how each of them ended.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable

from edgeflow_opt.problem import EpochProblem, check
from edgeflow_opt.solvers import SOLVERS, solve
from edgeflow_opt.solvers.kernels import warm_up
from edgeflow_opt.workloads import generate_problem
from tests.solvers.instances import crowded

#: Instances of every path: malleable with losses, moldable, a single slot.
INSTANCES = {
    "malleable": crowded(14, 8),
    "moldable": generate_problem(20, 12, 2, load=2.0, moldable_share=1.0),
    "single slot": generate_problem(30, 1, 3, load=2.0),
}

#: What the solvers load late, and what would cost each strike anew.
LOADED_LATE = ("ortools.sat.python.cp_model", "highspy", "pulp", "scipy.sparse")


def struck(problem: EpochProblem, solver: str, after: float) -> str:
    """Solve, with Ctrl-C in the main thread after so many seconds; return how it ended."""

    def strike(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, strike)
    result = None
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        result = solve(problem, solver, time_limit_s=0.3)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        if result is None:
            return "outside"
    report = check(problem, result.schedule)
    if not report.valid:
        return f"invalid: {report.violations}"
    if result.bound is not None and result.value is not None and result.bound < result.value - 1e-6:
        return f"false bound: {result.bound} for {result.value}"
    return str(result.limit or result.status)


def end_of_child(task: Callable[[], str]) -> str:
    """Run `task` in a forked process; return what it returned, or how the process died."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = task()
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return text if status == 0 and text else f"died with status {status}: {text}"


def main(strikes: int) -> None:
    """Print, as JSON, [solver, instance, how it ended] of so many strikes each."""
    for module in LOADED_LATE:
        importlib.import_module(module)
    solvers = [name for name in SOLVERS.names() if SOLVERS.get(name).capabilities.exact]
    warm_up()
    ends = []
    for solver in solvers:
        for kind, problem in INSTANCES.items():
            draws = random.Random(f"{solver} {kind}")
            for _ in range(strikes):
                after = draws.uniform(0.001, 0.12)
                end = end_of_child(lambda p=problem, s=solver, a=after: struck(p, s, a))
                ends.append((solver, kind, end))
    print(json.dumps(ends))


if __name__ == "__main__":
    main(int(sys.argv[1]))
