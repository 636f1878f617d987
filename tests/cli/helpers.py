"""A small instance, solvers that do as they are told, and two ways to run the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

from edgeflow_opt.problem import EpochProblem, Limit, SolveStatus
from edgeflow_opt.problem.arrays import ProblemArrays
from edgeflow_opt.solvers import Capabilities, Draft, SolveControl, SolveOptions
from edgeflow_opt.solvers.base import FEATURES

#: The instance of the documentation.
INSTANCE: dict[str, Any] = {
    "format": "edgeflow-epoch/1",
    "now": 0,
    "grid": [0, 300, 600, 900],
    "sites": [
        {"name": "cloud", "kind": "cloud", "capacity": [[0, 2]]},
        {"name": "edge", "kind": "edge", "capacity": [[0, 4], [600, 0]]},
    ],
    "jobs": [
        {
            "id": "j1",
            "deadline": 850,
            "work": 1200,
            "modes": [
                {"site": "cloud", "gpus": 1, "rate": 1.5},
                {"site": "cloud", "gpus": 2, "rate": 2.6},
                {"site": "edge", "gpus": 1, "rate": 0.8},
            ],
            "restart_s": 10,
        },
        {
            "id": "j2",
            "deadline": None,
            "work": 100,
            "modes": [{"site": "edge", "gpus": 1, "rate": 1.0}],
        },
    ],
}


@dataclass(frozen=True)
class ScriptedSolver:
    """A solver that returns what a test wants: no plan but idling is ever made.

    `act` is called first, with the control of the solve.
    """

    name: str
    status: SolveStatus = SolveStatus.FEASIBLE
    limit: Limit | None = None
    bound: float | None = None
    with_plan: bool = True
    features: frozenset[str] = frozenset(FEATURES)
    requires: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[SolveControl], None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """All features, unless told otherwise."""
        return Capabilities(
            summary=f"scripted {self.name}",
            exact=self.bound is not None,
            features=self.features,
            requires=self.requires,
            params=self.params,
        )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Return the scripted result."""
        if self.act is not None:
            self.act(control)
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1) if self.with_plan else None
        return Draft(status=self.status, limit=self.limit, plan=plan, bound=self.bound)


@dataclass(frozen=True)
class Ran:
    """What a run of the command line left."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document that is all of stdout."""
        return json.loads(self.out)


@cache
def commands() -> Any:
    """Return the commands as Typer makes them of the application."""
    from edgeflow_opt.cli.application import app

    return get_command(app)


def edgeflow(*args: str | Path, stdin: str | bytes = "") -> Ran:
    """Run the command line in this process.

    The runner of Typer would make the commands anew each time, which takes longer than they do.
    """
    given = stdin.encode() if isinstance(stdin, str) else stdin
    streams = {"stdin": _stream(given), "stdout": _stream(), "stderr": _stream()}
    code: Any = 0
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        try:
            commands().main([str(arg) for arg in args], prog_name="edgeflow")
        except SystemExit as end:
            code = end.code or 0
    out, err = (_written(streams[name]) for name in ("stdout", "stderr"))
    return Ran(code, out, err)


def _stream(given: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read().decode()


def spawn(*args: str | Path, **settings: Any) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k != "EDGEFLOW_DEBUG"}
    return subprocess.Popen(
        [sys.executable, "-m", "edgeflow_opt", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **settings,
    )


def run_apart(*args: str | Path, stdin: str = "") -> Ran:
    """Run the command line in a process of its own, to the end."""
    process = spawn(*args, stdin=subprocess.PIPE)
    out, err = process.communicate(stdin, timeout=120)
    return Ran(process.returncode, out, err)
