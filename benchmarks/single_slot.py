"""One scheduling round of elastic jobs: this package beside integer programs of the kind of Sia's.

    python -m benchmarks.single_slot                      # 160 to 2048 jobs, 2 seeds
    python -m benchmarks.single_slot --jobs 160 --seeds 5 --solvers auto highs

The model is that of the round of Sia (Subramanya et al., SOSP 2023): every job gets one
configuration (a GPU type and a count) or none, so that the total normalised goodput is largest and
no type is given out twice over. Here it is an epoch of one slot in which no job can be done, whose
*progress* is the total: the work is chosen so that the share of it that a job does is its normalised
goodput, but for a factor. All contenders get the same instance in the same process and must prove the optimum
(gap 0); building the model is on the clock of each, the checks of the front door on that of `auto`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem

#: Jobs and GPUs of the sizes that Sia's paper and the peers are measured on.
GPUS = {160: 64, 512: 256, 1024: 1024, 2048: 2048}

#: GPU types: name, share of the GPUs, speed of one.
TYPES = (("t4", 0.375, 1.0), ("rtx", 0.25, 1.8), ("a100", 0.375, 3.2))

_SLOT_S = 60.0

#: Progress is a share of the work, at most 1: the work is this much larger than what the slowest
#: configuration does in the slot.
_SCALE = 1000.0


def round_problem(num_jobs: int, num_gpus: int, seed: int) -> EpochProblem:
    """Return a round as an epoch of one slot; its progress is the total normalised goodput."""
    from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site

    draws = random.Random(seed)
    sites = tuple(
        Site(name=name, kind="cloud", capacity=((0.0, max(1, round(share * num_gpus))),))
        for name, share, _ in TYPES
    )
    jobs = []
    for index in range(num_jobs):
        scaling = draws.uniform(0.55, 0.98)
        most = draws.choice((8, 16, 32, 64))
        modes = []
        for name, _, speed in TYPES:
            base = speed * draws.uniform(0.6, 1.4)
            count = 1
            while count <= most:
                rate = round(base * count ** (scaling * draws.uniform(0.97, 1.0)), 4)
                modes.append(Mode(site=name, gpus=count, rate=rate))
                count *= 2
        least = min(mode.rate for mode in modes)
        jobs.append(
            Job(
                id=f"job{index}",
                deadline=1000.0 * _SLOT_S * _SCALE,
                work=least * _SLOT_S * _SCALE,
                modes=tuple(modes),
            )
        )
    return EpochProblem(grid=Grid((0.0, _SLOT_S)), sites=sites, jobs=tuple(jobs))


@dataclass(frozen=True, slots=True)
class Answer:
    """Total goodput reached, whether it is proven best, and what that took."""

    value: float
    optimal: bool
    wall_s: float
    cpu_s: float


def _auto(problem: EpochProblem) -> tuple[float, bool]:
    from edgeflow_opt.solvers import solve

    result = solve(problem, "auto", levels=2, time_limit_s=120.0)
    assert result.objective is not None
    return _SCALE * result.objective.progress, all(level.optimal for level in result.levels)


def _goodputs(problem: EpochProblem) -> list[list[tuple[int, int, float]]]:
    """Return for each job its configurations: type, GPUs, normalised goodput."""
    place = {site.name: index for index, site in enumerate(problem.sites)}
    found = []
    for job in problem.jobs:
        least = min(mode.rate for mode in job.modes)
        found.append([(place[mode.site], mode.gpus, mode.rate / least) for mode in job.modes])
    return found


def _highs(problem: EpochProblem, presolve: str = "choose") -> tuple[float, bool]:
    """Build the program as a matrix and give it to HiGHS on one thread, its quickest way."""
    import highspy
    import numpy as np

    from edgeflow_opt.solvers.mip.highs import quiet_highs

    goodputs = _goodputs(problem)
    columns = [(j, *choice) for j, choices in enumerate(goodputs) for choice in choices]
    job, kind, gpus, goodput = (np.array(column) for column in zip(*columns, strict=True))
    capacity = [site.capacity[0][1] for site in problem.sites]
    n, count = len(goodputs), len(columns)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, n + len(capacity)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = goodput
    lp.col_lower_, lp.col_upper_ = np.zeros(count), np.ones(count)
    lp.row_lower_ = np.full(n + len(capacity), -highspy.kHighsInf)
    lp.row_upper_ = np.concatenate([np.ones(n), capacity]).astype(float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = count, n + len(capacity)
    lp.a_matrix_.start_ = np.arange(0, 2 * count + 1, 2, dtype=np.int32)
    lp.a_matrix_.index_ = np.stack([job, n + kind], axis=1).ravel().astype(np.int32)
    lp.a_matrix_.value_ = np.stack([np.ones(count), gpus], axis=1).ravel().astype(float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    native = quiet_highs()
    for name, value in (("threads", 1), ("mip_rel_gap", 0.0), ("presolve", presolve)):
        native.setOptionValue(name, value)
    native.passModel(lp)
    native.run()
    optimal = native.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return native.getInfo().objective_function_value, optimal


def _highs_bare(problem: EpochProblem) -> tuple[float, bool]:
    """HiGHS without presolve, which is the quicker one on a busy machine."""
    return _highs(problem, "off")


def _cbc(problem: EpochProblem) -> tuple[float, bool]:
    """Build the program in PuLP's terms and give it to CBC."""
    import pulp

    goodputs = _goodputs(problem)
    model = pulp.LpProblem("round", pulp.LpMaximize)
    x = [
        [pulp.LpVariable(f"x_{j}_{k}", cat="Binary") for k in range(len(choices))]
        for j, choices in enumerate(goodputs)
    ]
    pairs = [
        (x[j][k], *choice) for j, choices in enumerate(goodputs) for k, choice in enumerate(choices)
    ]
    model += pulp.lpSum(goodput * column for column, _, _, goodput in pairs)
    for row in x:
        model += pulp.lpSum(row) <= 1
    for index, site in enumerate(problem.sites):
        used = pulp.lpSum(gpus * column for column, kind, gpus, _ in pairs if kind == index)
        model += used <= site.capacity[0][1]
    command = getattr(pulp, "PULP_CBC_CMD", pulp.COIN_CMD)
    status = model.solve(command(msg=False, gapRel=0.0))
    return float(pulp.value(model.objective)), status == pulp.LpStatusOptimal


#: By name; each returns the total goodput and whether it is proven best.
CONTENDERS: dict[str, Callable[[EpochProblem], tuple[float, bool]]] = {
    "auto": _auto,
    "pulp-cbc": _cbc,
    "highs": _highs,
    "highs-bare": _highs_bare,
}

_NEEDS = {"auto": "ortools", "pulp-cbc": "pulp", "highs": "highspy", "highs-bare": "highspy"}


def measure(solver: str, problem: EpochProblem) -> Answer:
    """Run a contender; CPU seconds are those of the process and its children."""
    import os

    before, begin = os.times(), time.perf_counter()
    value, optimal = CONTENDERS[solver](problem)
    wall_s, after = time.perf_counter() - begin, os.times()
    cpu_s = sum(after[:4]) - sum(before[:4])
    return Answer(value, optimal, wall_s, cpu_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print seconds and ratios; the exit code is 1 where proven values differ."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.single_slot", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--jobs", type=int, nargs="+", default=list(GPUS), help="sizes")
    parser.add_argument("--seeds", type=int, default=2, help="instances of each size")
    parser.add_argument("--solvers", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args(arguments)
    solvers = [name for name in options.solvers if importlib.util.find_spec(_NEEDS[name])]
    from edgeflow_opt.solvers.kernels import warm_up

    warm_up()
    for name in solvers:
        # Imports and first calls are off the clock.
        measure(name, round_problem(4, 4, 0))
    rows, faults = [], []
    for num_jobs in options.jobs:
        for seed in range(options.seeds):
            problem = round_problem(num_jobs, GPUS.get(num_jobs, num_jobs), seed)
            answers = {name: measure(name, problem) for name in solvers}
            proven = [a.value for a in answers.values() if a.optimal]
            if proven and max(proven) - min(proven) > 1e-5 * max(proven):
                faults.append(f"PROVEN VALUES DIFFER AT {num_jobs} JOBS, SEED {seed}: {answers}")
            for name, answer in answers.items():
                rows.append({"jobs": num_jobs, "seed": seed, "solver": name,
                             "value": answer.value, "optimal": answer.optimal,
                             "wall_s": answer.wall_s, "cpu_s": answer.cpu_s})  # fmt: skip
    if options.json:
        print(json.dumps({"format": "edgeflow-single-slot/1", "rows": rows, "faults": faults}))
    else:
        print(_table(rows, options.jobs, solvers))
        print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def _table(rows: list[dict[str, float | str | bool]], sizes: list[int], solvers: list[str]) -> str:
    head = f"{'jobs':>5} {'solver':<11} {'optimal':>7} {'wall s':>8} {'CPU s':>8} "
    lines = [head + f"{'x wall':>7} {'x CPU':>7}   (medians; x = times that of {solvers[0]})"]
    for size in sizes:
        base: tuple[float, float] | None = None
        for name in solvers:
            group = [row for row in rows if row["jobs"] == size and row["solver"] == name]
            wall = statistics.median(float(row["wall_s"]) for row in group)
            cpu = statistics.median(float(row["cpu_s"]) for row in group)
            base = base or (wall, cpu)
            good = f"{sum(bool(row['optimal']) for row in group)}/{len(group)}"
            ratios = [a / b if b > 0 else math.inf for a, b in zip((wall, cpu), base, strict=True)]
            lines.append(
                f"{size:5d} {name:<11} {good:>7} {wall:8.3f} {cpu:8.3f} "
                f"{ratios[0]:7.1f} {ratios[1]:7.1f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
