"""The cells of a suite: what one is, what makes it the same as another, and how it is run."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.bench.records import Record
from edgeflow_opt.analysis.rows import FAILED, Row
from edgeflow_opt.analysis.scenarios import SETTINGS
from edgeflow_opt.errors import EdgeflowError

if TYPE_CHECKING:
    from edgeflow_opt.analysis.scenarios import Scenario

#: Parameters of generators that take a pair of numbers: a list of two is one value of theirs.
PAIRS = frozenset({"deadline_factors", "weights"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of a suite: a solver on an instance, or a policy on a trace.

    Parameters
    ----------
    suite
        Name of the suite.
    kind
        ``"solve"``, ``"simulate"``, or ``"bound"`` (what any policy can meet on the trace).
    label
        Name of the instance or trace in results.
    contender
        Name of the solver or policy.
    seed
        Of the generator, re-drawn deadlines, and the contender.
    source
        ``{"file": path, "sha256": its content}``, or ``{"generate": parameters}``.
    settings
        Options of the solve (``time_limit_s``, ...), or settings of the simulation.
    options
        Options of the policy; parameters of the solver.
    swept
        Names of the settings of solves that the suite sweeps: they become part of the solver's name.
    """

    suite: str
    kind: str
    label: str
    contender: str
    seed: int
    source: Mapping[str, Any]
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    swept: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Return the first 16 hexadecimal digits of a hash of all that decides the result.

        Of a file its content counts, not its place; versions and machines do not, nor do settings
        that are as they are by default, so that new ones change no id.
        """
        source = {name: value for name, value in self.source.items() if name != "file"}
        parts = [
            self.kind, self.label, self.contender, self.seed, source,
            {n: v for n, v in self.settings.items() if n not in SETTINGS or v != SETTINGS[n]},
            dict(self.options),
        ]  # fmt: skip
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def all_settings(self) -> dict[str, Any]:
        """Settings of a simulation with those of the generated trace."""
        return {**self.source.get("generate", {}), **self.settings}

    @property
    def name(self) -> str:
        """Name of the contender in results, with the swept settings of solves."""
        extra = [f"{name}={_short(self.settings[name])}" for name in self.swept]
        return " ".join([self.contender, *extra])


def run_cell(cell: Cell) -> Record:
    """Run a cell, in whatever process; a failure becomes a record that says so."""
    from edgeflow_opt.solvers.front import versions

    began = time.perf_counter()
    failure = None
    try:
        row, digest = {"solve": _solved, "simulate": _simulated, "bound": _bounded}[cell.kind](cell)
    except EdgeflowError as error:
        row, digest, failure = failed_row(cell, str(error), error.exit_code), "", "error"
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        row, digest, failure = failed_row(cell, message, EdgeflowError.exit_code), "", "error"
    return Record(
        suite=cell.suite,
        cell=cell.id,
        kind=cell.kind,
        seed=cell.seed,
        digest=digest,
        row=_finite(row),
        failure=failure,
        seconds=time.perf_counter() - began,
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=platform.node(),
        versions=versions(("ortools", "highspy", "scipy", "numba")),
    )


def failed_record(cell: Cell, failure: str, message: str, attempts: int) -> Record:
    """Return the record of a cell whose process could tell nothing any more."""
    return Record(
        suite=cell.suite,
        cell=cell.id,
        kind=cell.kind,
        seed=cell.seed,
        digest="",
        row=failed_row(cell, message, EdgeflowError.exit_code),
        failure=failure,
        attempts=attempts,
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=platform.node(),
    )


def failed_row(cell: Cell, message: str, error_code: int) -> dict[str, Any]:
    """Return a row that says why there is no result."""
    from edgeflow_opt.analysis.policy_rows import PolicyRow

    if cell.kind == "solve":
        return Row(
            instance=cell.label, solver=cell.name, seed=cell.seed, num_jobs=0, status=FAILED,
            message=message, error_code=error_code,
        ).document()  # fmt: skip
    return PolicyRow(
        trace=cell.label, policy=cell.contender, seed=cell.seed, settings=cell.all_settings,
        message=message, error_code=error_code,
    ).document()  # fmt: skip


def _solved(cell: Cell) -> tuple[dict[str, Any], str]:
    import dataclasses

    from edgeflow_opt.analysis.rows import solve_row
    from edgeflow_opt.problem import read_problem
    from edgeflow_opt.solvers import SolveOptions
    from edgeflow_opt.workloads import generate_problem

    if "file" in cell.source:
        problem = read_problem(cell.source["file"])
    else:
        problem = generate_problem(**_arguments(cell), seed=cell.seed)
    options = SolveOptions(seed=cell.seed, params=cell.options, **cell.settings)
    row = solve_row(cell.label, problem, cell.contender, options)
    return dataclasses.replace(row, solver=cell.name).document(), row.digest


def _simulated(cell: Cell) -> tuple[dict[str, Any], str]:
    import dataclasses

    from edgeflow_opt.analysis.scenarios import simulate_row

    scenario = _scenario(cell)
    row, _ = simulate_row(
        cell.label, scenario, cell.contender, cell.seed, cell.settings, cell.options
    )
    return dataclasses.replace(row, settings=cell.all_settings).document(), row.digest


def _bounded(cell: Cell) -> tuple[dict[str, Any], str]:
    from edgeflow_opt.analysis.policy_rows import PolicyRow
    from edgeflow_opt.analysis.scenarios import bound_of_scenario

    scenario = _scenario(cell)
    row = PolicyRow(
        trace=cell.label, policy=cell.contender, seed=cell.seed, settings=cell.all_settings,
        bound=bound_of_scenario(scenario, cell.options["time_limit_s"]), digest=scenario.digest,
    )  # fmt: skip
    return row.document(), scenario.digest


def _scenario(cell: Cell) -> Scenario:
    from edgeflow_opt.analysis.scenarios import scenario_of
    from edgeflow_opt.workloads import generate_trace, read_trace

    settings = cell.settings
    if "file" in cell.source:
        trace = read_trace(cell.source["file"])
    else:
        # A load refers to the cluster that the trace meets, unless another is named.
        arguments = {"cloud_gpus": settings["cloud_gpus"], **_arguments(cell)}
        trace = generate_trace(**arguments, seed=cell.seed)
    return scenario_of(trace, cell.seed, settings)


def _arguments(cell: Cell) -> dict[str, Any]:
    """Return the arguments of the generator."""
    return {
        name: tuple(value) if name in PAIRS else value
        for name, value in cell.source["generate"].items()
    }


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    """Return a document with null in place of numbers that JSON does not know."""
    if isinstance(value, float):
        return value if abs(value) != float("inf") and value == value else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
