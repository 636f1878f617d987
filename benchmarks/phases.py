"""Time the phases of a solve one by one, peers beside them on the same instances in the same run.

    python -m benchmarks.phases                                  # all phases: some two minutes
    python -m benchmarks.phases --phases build export --sizes 100x24 300x96
    python -m benchmarks.phases --phases solve --sizes 30x24 --limit 10 --json phases.jsonl
    python -m benchmarks.phases --list

Repeats go round the contenders of a phase, so that a busy moment falls on all of them alike. Of each
the median and the least wall milliseconds are printed, and the median over that of
the first contender, which is the package's own: 2.0 = twice as long. A contender whose library is
not installed is a row that says so. A first run of each, which loads libraries, does not count, but
for ``solve``, which is run to the proof or the limit.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contenders import CONTENDERS, of_the_package
from benchmarks.instances import Instance, digest

if TYPE_CHECKING:
    pass

#: Gets an instance and the limit of a solve, off the clock; returns what is timed. That returns a
#: figure that says what was done (columns, a bound, a value), to be compared and kept.
Preparation = Callable[[Instance, float], Callable[[], float | None]]


class MissingLibraryError(Exception):
    """A contender needs a library that is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase and who takes part in it.

    Parameters
    ----------
    what
        For people.
    figure
        What the figure of a contender is.
    contenders
        By name, the package's own first.
    """

    what: str
    figure: str
    contenders: Mapping[str, Preparation]


def _arrays(instance: Instance, limit_s: float) -> Callable[[], float]:
    from edgeflow_opt.problem.arrays import ProblemArrays, arrays_of

    problem = instance.problem()
    assert isinstance(arrays_of(problem), ProblemArrays)
    # Arrays are kept with their instance: every run needs one of its own.
    return lambda: float(arrays_of(problem.replace()).num_modes)


def _malleable(instance: Instance, limit_s: float) -> Callable[[], float]:
    from edgeflow_opt.formulations.malleable import build_malleable
    from edgeflow_opt.problem.arrays import arrays_of

    arrays = arrays_of(instance.problem())
    return lambda: float(build_malleable(arrays).model.num_columns)


def _pulp_build(instance: Instance, limit_s: float) -> Callable[[], float]:
    from edgeflow_opt.formulations.named import named_model
    from edgeflow_opt.solvers.pulp.model import pulp_model

    _need("pulp")
    named = named_model(instance.problem())
    return lambda: float(len(pulp_model(named.sparse, named.columns, named.rows, "model")[1]))


def _naive_build(instance: Instance, limit_s: float) -> Callable[[], float]:
    from benchmarks.naive import naive_model

    problem = instance.problem()
    return lambda: float(len(naive_model(problem)[1]))


def _dual(instance: Instance, limit_s: float) -> Callable[[], float | None]:
    from benchmarks.contenders import dual

    problem = instance.problem()
    return lambda: dual(problem, limit_s).bound


def _relaxation(instance: Instance, limit_s: float) -> Callable[[], float]:
    """Relax the tight model and solve it by HiGHS; the bound is rounded down as the others are."""
    _need("scipy")
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    from edgeflow_opt.formulations.malleable import build_malleable
    from edgeflow_opt.problem.arrays import arrays_of
    from edgeflow_opt.solvers.bounds import rounded_down

    arrays = arrays_of(instance.problem())
    built = build_malleable(arrays)
    model = built.model.with_objective(built.objectives["met"])
    shape = (model.num_rows, model.num_columns)
    rows = csr_array((model.values, model.indices, model.starts), shape=shape)
    upper, lower = np.isfinite(model.row_upper), np.isfinite(model.row_lower)
    matrix = vstack([rows[upper], -rows[lower]])
    sides = np.concatenate([model.row_upper[upper], -model.row_lower[lower]])
    bounds = np.stack([model.col_lower, model.col_upper], axis=1)
    weights = arrays.weight[arrays.has_deadline]

    def run() -> float:
        found = linprog(-model.objective, A_ub=matrix, b_ub=sides, bounds=bounds, method="highs")
        return float(rounded_down(-found.fun, weights, 2e-7))

    return run


def _heuristic(name: str) -> Preparation:
    def prepare(instance: Instance, limit_s: float) -> Callable[[], float]:
        from edgeflow_opt.formulations.plans import walk
        from edgeflow_opt.problem.arrays import arrays_of
        from edgeflow_opt.solvers import SOLVERS, SolveOptions
        from edgeflow_opt.solvers.control import SolveControl

        problem = instance.problem()
        arrays = arrays_of(problem)
        solver = SOLVERS.get(name)

        def run() -> float:
            plan = solver.solve(problem, arrays, SolveOptions(), SolveControl(None)).plan
            return float(arrays.weight[walk(arrays, plan).met].sum())

        return run

    return prepare


def _solve(name: str) -> Preparation:
    def prepare(instance: Instance, limit_s: float) -> Callable[[], float | None]:
        from benchmarks.naive import naive

        problem = instance.problem()
        contender = naive if name == "naive" else CONTENDERS[name]
        if name in ("auto", "price", "cpsat"):
            # The levels below come after the proof of the first, which is all that is compared.
            contender = of_the_package(name, levels=1)

        def run() -> float | None:
            answer = contender(problem, limit_s)
            if answer.status == "not installed":
                raise MissingLibraryError(answer.note)
            return answer.value

        return run

    return prepare


def _check(instance: Instance, limit_s: float) -> Callable[[], float]:
    from edgeflow_opt.problem import check
    from edgeflow_opt.solvers import solve

    problem = instance.problem()
    schedule = solve(problem, "edgeflow-select").schedule
    return lambda: float(len(check(problem, schedule).violations))


def _export(kind: str) -> Preparation:
    def prepare(instance: Instance, limit_s: float) -> Callable[[], float]:
        from edgeflow_opt.solvers.exchange import export

        problem = instance.problem()
        return lambda: len(export(problem, format=kind)) / 1e6

    return prepare


def _pulp_export(instance: Instance, limit_s: float) -> Callable[[], float]:
    """Build the model in PuLP and let it write the MPS file, as the own export does both."""
    from edgeflow_opt.solvers.pulp.model import to_pulp

    _need("pulp")
    problem = instance.problem()

    def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mps"
            to_pulp(problem).writeMPS(str(path))
            return path.stat().st_size / 1e6

    return run


def _simulate(policy: str) -> Preparation:
    def prepare(instance: Instance, limit_s: float) -> Callable[[], float]:
        from edgeflow_opt.simulation import simulate
        from edgeflow_opt.workloads import cluster, generate_trace

        trace = generate_trace(instance.num_jobs, instance.seed, load=instance.load, cloud_gpus=32)
        jobs, sites = trace.jobs(), cluster(32, 4)
        return lambda: float(simulate(jobs, sites, policy).metrics.met)

    return prepare


PHASES: Mapping[str, Phase] = {
    "build": Phase(
        what="from the instance to a model", figure="columns",
        contenders={
            "malleable": _malleable, "arrays": _arrays, "pulp": _pulp_build,
            "naive cpsat": _naive_build,
        },
    ),
    "bound": Phase(
        what="an upper bound on the met weight", figure="bound",
        contenders={"prices": _dual, "highs relaxation": _relaxation},
    ),
    "greedy": Phase(
        what="a heuristic on built arrays", figure="met weight",
        contenders={name: _heuristic(name) for name in ("edgeflow-select", "greedy")},
    ),
    "solve": Phase(
        what="level 1, to the proof or the limit", figure="met weight",
        contenders={
            name: _solve(name)
            for name in ("auto", "price", "cpsat", "highs", "naive", "cpsat-compact", "cbc", "scip")
        },
    ),
    "check": Phase(
        what="a schedule by the independent checker", figure="violations",
        contenders={"checker": _check},
    ),
    "export": Phase(
        what="from the instance to the text of a file", figure="megabytes",
        contenders={
            **{kind: _export(kind) for kind in ("mps", "lp", "json", "cpsat")},
            "pulp mps": _pulp_export,
        },
    ),
    "simulate": Phase(
        what="a generated trace of so many jobs on 32 GPUs and 4 edge servers",
        figure="deadlines met",
        contenders={name: _simulate(name) for name in ("edgeflow-select", "edgeflow", "edf")},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A contender of a phase on an instance.

    Parameters
    ----------
    phase, contender
        Names.
    instance
        Fields of the instance.
    digest
        Hash of the instance.
    seconds
        Wall seconds of each repeat; empty = it did not run.
    figure
        What it returned; None = nothing.
    note
        Why it did not run.
    """

    phase: str
    contender: str
    instance: Mapping[str, Any]
    digest: str
    seconds: tuple[float, ...]
    figure: float | None = None
    note: str = ""


def measure(phase: str, instance: Instance, repeats: int, limit_s: float) -> list[Timing]:
    """Time all contenders of a phase on an instance, going round them."""
    runs: dict[str, Callable[[], float | None]] = {}
    notes: dict[str, str] = {}
    for name, prepare in PHASES[phase].contenders.items():
        try:
            runs[name] = prepare(instance, limit_s)
        except MissingLibraryError as missing:
            notes[name] = str(missing)
    seconds: dict[str, list[float]] = {name: [] for name in PHASES[phase].contenders}
    figures: dict[str, float | None] = {}
    for repeat in range(repeats if phase == "solve" else repeats + 1):
        for name, run in runs.items():
            if name in notes:
                continue
            begin = time.perf_counter()
            try:
                figures[name] = run()
            except MissingLibraryError as missing:
                notes[name] = str(missing)
                continue
            if phase == "solve" or repeat:
                seconds[name].append(time.perf_counter() - begin)
    return [
        Timing(
            phase=phase, contender=name, instance=dataclasses.asdict(instance),
            digest=digest(instance.problem()), seconds=tuple(taken), figure=figures.get(name),
            note=notes.get(name, ""),
        )
        for name, taken in seconds.items()
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Time the phases asked for and print a table for each; return the exit code."""
    options = _parser().parse_args(arguments)
    if options.list:
        for name, phase in PHASES.items():
            print(f"{name:<9} {phase.what}: {', '.join(phase.contenders)}")
        return 0
    from edgeflow_opt.solvers.front import versions
    from edgeflow_opt.solvers.kernels import warm_up

    warm_up()
    for name in options.phases:
        print(f"{name}: {PHASES[name].what}; load average {os.getloadavg()[0]:.1f}")
        figure = PHASES[name].figure
        print(
            f"  {'instance':<24} {'contender':<17} {'median ms':>10} {'least':>9} {'ratio':>7}  {figure}"
        )
        for instance in _instances(options):
            timings = measure(name, instance, options.repeats, options.limit)
            for line in _lines(instance, timings):
                print(line, flush=True)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as file:
                    for timing in timings:
                        entry = {**dataclasses.asdict(timing), "versions": versions()}
                        print(json.dumps(entry), file=file)
        print()
    return 0


def _lines(instance: Instance, timings: Sequence[Timing]) -> Iterator[str]:
    first = statistics.median(timings[0].seconds)
    for timing in timings:
        head = f"  {instance.name:<24} {timing.contender:<17}"
        if not timing.seconds:
            yield f"{head} {timing.note}"
            continue
        median = statistics.median(timing.seconds)
        figure = "-" if timing.figure is None else f"{timing.figure:.6g}"
        yield (
            f"{head} {1000 * median:10.2f} {1000 * min(timing.seconds):9.2f} "
            f"{median / first:7.1f}  {figure}"
        )


def _instances(options: argparse.Namespace) -> Iterator[Instance]:
    for size in options.sizes:
        for seed in range(options.seeds):
            yield dataclasses.replace(size, load=options.load, seed=seed)


def _need(module: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise MissingLibraryError(f"{module} is not installed: pip install 'edgeflow-opt[bench]'")


def _size(text: str) -> Instance:
    jobs, cross, slots = text.partition("x")
    if not (cross and jobs.isdecimal() and slots.isdecimal() and int(jobs) and int(slots)):
        raise argparse.ArgumentTypeError(f"must be JOBSxSLOTS, such as 100x24, got {text!r}")
    return Instance(num_jobs=int(jobs), num_slots=int(slots))


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.phases", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the phases and end")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument(
        "--sizes", nargs="+", type=_size, metavar="JOBSxSLOTS", default=[_size("100x24")]
    )
    parser.add_argument("--seeds", type=_at_least_one, default=1, help="instances of each size")
    parser.add_argument("--load", type=float, default=1.6)
    parser.add_argument("--repeats", type=_at_least_one, default=3)
    parser.add_argument("--limit", type=float, default=5.0, help="of a solve or a bound, seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line for every row")
    return parser


if __name__ == "__main__":
    sys.exit(main())
