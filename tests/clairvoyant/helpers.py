"""Small random traces, and two second opinions: a linear program and brute force."""

from __future__ import annotations

import itertools

import highspy
import numpy as np
from hypothesis import strategies as st

from edgeflow_opt.clairvoyant.intervals import IntervalData
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from tests.oracle import optimum

MODES = (
    Mode(site="cloud", gpus=1, rate=1.0),
    Mode(site="cloud", gpus=2, rate=1.7),
    Mode(site="cloud", gpus=4, rate=2.6),
    Mode(site="edge", gpus=1, rate=0.6),
)

#: Unit weights.
ONES = st.just(1.0)


@st.composite
def jobs_strategy(draw, most=8, weights=ONES):
    """Draw jobs with arrivals, deadlines (a few without), works and modes."""
    jobs = []
    for index in range(draw(st.integers(1, most))):
        arrival = draw(st.integers(0, 30))
        window = draw(st.integers(1, 30))
        has_deadline = draw(st.integers(0, 9)) > 0
        chosen = draw(st.sets(st.integers(0, 3), min_size=1))
        jobs.append(
            Job(
                id=f"j{index}",
                arrival=float(arrival),
                deadline=float(arrival + window) if has_deadline else None,
                work=draw(st.floats(0.5, 40.0)),
                weight=draw(weights),
                modes=tuple(MODES[i] for i in sorted(chosen)),
                memory_gib=draw(st.sampled_from([0.0, 8.0, 32.0])),
            )
        )
    return jobs


@st.composite
def sites_strategy(draw):
    """Draw a cloud and an edge whose capacities step a few times."""
    sites = []
    for name, most, memory in (("cloud", 5, None), ("edge", 2, 16.0)):
        times = [0.0, *sorted(draw(st.sets(st.integers(1, 50), max_size=3)))]
        steps = tuple((float(time), draw(st.integers(0, most))) for time in times)
        sites.append(Site(name=name, kind=name, capacity=steps, memory_gib=memory))
    return sites


def linear_program(data: IntervalData) -> float:
    """Return the optimum of the relaxation by HiGHS: x in seconds, z continuous."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    num_sites, num_intervals = data.supply.shape
    use = [[{} for _ in range(num_intervals)] for _ in range(num_sites)]
    for j in range(data.num_jobs):
        z = model.addVariable(0.0, 1.0, -float(data.weight[j]))
        work = {z.index: -float(data.need[j])}
        for t in range(data.first[j], data.end[j]):
            left, right = data.boundaries[t], data.boundaries[t + 1]
            length = data.tail_s[j] if t == data.end[j] - 1 else right - left
            length = data.head_s[j] if t == data.first[j] else length
            share = {z.index: -float(length)}
            for m in range(data.mode_start[data.kind[j]], data.mode_start[data.kind[j] + 1]):
                if data.units[m] > data.most_units[data.site[m], t]:
                    continue
                x = model.addVariable(0.0, float(length), 0.0)
                share[x.index] = 1.0
                work[x.index] = float(data.rate[m])
                use[data.site[m]][t][x.index] = float(data.units[m])
            _row(model, -np.inf, 0.0, share)
        _row(model, 0.0, np.inf, work)
    for k, t in itertools.product(range(num_sites), range(num_intervals)):
        if use[k][t]:
            _row(model, -np.inf, float(data.supply[k, t]), use[k][t])
    if not data.num_jobs:
        return 0.0
    model.run()
    assert model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return -float(model.getInfo().objective_function_value)


def _row(model: highspy.Highs, low: float, high: float, entries: dict[int, float]) -> None:
    model.addRow(low, high, len(entries), list(entries), list(entries.values()))


def best_on_a_grid(jobs: list[Job], sites: list[Site], slot_s: float, end_s: float) -> float:
    """Return the most met weight of a schedule on a uniform grid, by brute force."""
    grid = Grid(tuple(np.arange(0.0, end_s + slot_s / 2, slot_s).tolist()))
    found = optimum(EpochProblem(grid=grid, sites=tuple(sites), jobs=tuple(jobs)))
    assert found is not None
    return found.value.met_weight
