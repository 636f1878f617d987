"""A small package of somebody else, as pip would install it: solvers, a policy and constraints, some broken."""

from __future__ import annotations

from pathlib import Path

_SOLVERS = '''
import os
import signal
import time

from edgeflow_opt.formulations.plans import empty_plan
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.solvers.base import FEATURES, Capabilities, Draft


class Idle:
    """Plans nothing at all, and then does what its name says."""

    def __init__(self, name, deed):
        self.name = name
        self.deed = deed
        self.capabilities = Capabilities(
            summary="of somebody else", exact=False, features=frozenset(FEATURES)
        )

    def solve(self, problem, arrays, options, control):
        self.deed()
        return Draft(status=SolveStatus.FEASIBLE, plan=empty_plan(arrays))


def hang():
    # No limit and no request is heeded.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    until = time.monotonic() + 600
    while time.monotonic() < until:
        pass


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def devour():
    held = []
    while True:
        held.append(bytearray(1 << 26))


def fail():
    raise RuntimeError("it is not my day")


IDLE = Idle("idle", lambda: None)
HANGING = Idle("hanging", hang)
CRASHING = Idle("crashing", crash)
HUNGRY = Idle("hungry", devour)
FAILING = Idle("failing", fail)
'''

_POLICY = '''
from edgeflow_opt.policies.base import Decision


class Nothing:
    """Runs no job at all."""

    def decide(self, state):
        return Decision(allocation={})
'''

_CONSTRAINTS = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgeflow_opt.problem import Constraint
from edgeflow_opt.problem.constraints.rows import LinearRows


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBoth(Constraint):
    """Of two jobs at most one meets its deadline."""

    type: ClassVar[str] = "not_both"

    jobs: tuple[str, str]

    def rows(self, problem, arrays):
        pair = np.array([problem.job_index[name] for name in self.jobs])
        return LinearRows(
            upper=np.array([1.0]), met_row=np.zeros(2, dtype=int), met_job=pair, met_value=np.ones(2)
        )

    def violations(self, problem, allocations, outcomes):
        if sum(o.met is True for o in outcomes if o.job in self.jobs) == 2:
            yield self.violation(f"both {self.jobs[0]} and {self.jobs[1]} are met")


class NoConstraint:
    """Of the wrong kind."""
'''

_ENTRY_POINTS = """
[edgeflow_opt.solvers]
idle = edgeflow_else.solvers:IDLE
hanging = edgeflow_else.solvers:HANGING
crashing = edgeflow_else.solvers:CRASHING
hungry = edgeflow_else.solvers:HUNGRY
failing = edgeflow_else.solvers:FAILING
broken = edgeflow_else.broken:SOLVER
missing = edgeflow_else.solvers:NOT_THERE
greedy = edgeflow_else.solvers:IDLE

[edgeflow_opt.constraints]
not_both = edgeflow_else.constraints:NotBoth
other_name = edgeflow_else.constraints:NotBoth
wrong_kind = edgeflow_else.constraints:NoConstraint
broken_rule = edgeflow_else.broken:RULE
group_quota = edgeflow_else.constraints:NotBoth

[edgeflow_opt.policies]
nothing = edgeflow_else.policy:Nothing
"""


def install_plug_in(folder: Path) -> None:
    """Install the package into `folder`, as ``pip install --target`` leaves it."""
    package = folder / "edgeflow_else"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "solvers.py").write_text(_SOLVERS)
    (package / "policy.py").write_text(_POLICY)
    (package / "constraints.py").write_text(_CONSTRAINTS)
    (package / "broken.py").write_text("import a_library_that_is_not_there\n")
    information = folder / "edgeflow_else-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: edgeflow-else\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(_ENTRY_POINTS)
