"""Simulations in which policies see estimated rates."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies import ClusterState, Decision
from edgeflow_opt.problem import Mode
from edgeflow_opt.simulation import simulate
from edgeflow_opt.simulation.analyser import Analyser, RateEstimates
from edgeflow_opt.workloads import cluster, generate_trace
from tests.simulation.helpers import CLOUD, EDGE, job

ONE = Mode(site="cloud", gpus=1, rate=1.0)
TWO = Mode(site="cloud", gpus=2, rate=1.5)
FOUR = Mode(site="cloud", gpus=4, rate=1.8)
ON_EDGE = Mode(site="edge", gpus=1, rate=0.5)
SITES = (CLOUD, EDGE)


class Watching:
    """Give every job its mode of two GPUs, and note what is seen when."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, tuple[float, ...], float]] = []

    def decide(self, state: ClusterState) -> Decision:
        """Return the second mode of each job."""
        for s in state.jobs:
            rates = tuple(round(mode.rate, 6) for mode in s.job.modes)
            self.seen.append((round(state.now, 6), rates, round(s.required_left, 6)))
            assert s.mode is None or s.mode in s.job.modes
        return Decision(allocation={s.job.id: s.job.modes[1] for s in state.jobs})


def watched(learn_after_s: float, work: float = 30.0):
    """Simulate one job that is measured on one GPU only: two seem twice as fast, four four times."""
    policy = Watching()
    result = simulate(
        [job("a", 0.0, 100.0, work, modes=(ONE, TWO, FOUR))],
        SITES,
        policy,
        analyser=Analyser(measured_gpus=(1,), learn_after_s=learn_after_s),
    )
    return policy.seen, result


def test_a_job_that_is_not_done_when_foreseen_is_looked_at_again() -> None:
    """30 iterations seem to take 15 s on two GPUs; at 15 s their true rate shows."""
    seen, result = watched(60.0)
    assert seen == [(0.0, (1.0, 2.0, 4.0), 30.0), (15.0, (1.0, 1.5, 3.0), 7.5)]
    assert result.outcomes[0].completion == pytest.approx(20.0)
    assert (result.estimation.overdue, result.estimation.learned) == (1, 1)
    assert result.estimation.mean_error == pytest.approx((0.0 + 1 / 3 + (4 / 1.8 - 1)) / 3)


def test_rates_are_corrected_after_a_while() -> None:
    """After 5 s on two GPUs their rate is known, and those not known are scaled by its error."""
    seen, result = watched(5.0)
    assert seen == [(0.0, (1.0, 2.0, 4.0), 30.0), (5.0, (1.0, 1.5, 3.0), 22.5)]
    assert (result.estimation.overdue, result.estimation.learned) == (0, 1)


def test_where_nothing_is_learned_an_overdue_job_is_planned_anew_now_and_then() -> None:
    """The estimates stay; the policy is asked a minute later at the earliest."""
    seen, result = watched(math.inf, work=300.0)
    times = [time for time, _, _ in seen]
    assert times == [0.0, 150.0]
    assert {rates for _, rates, _ in seen} == {(1.0, 2.0, 4.0)}
    assert result.outcomes[0].completion == pytest.approx(200.0)
    seen, result = watched(math.inf, work=3000.0)
    assert [time for time, _, _ in seen] == [0.0, 1500.0, 1875.0, 1968.75]
    assert result.estimation.overdue == 3
    assert result.estimation.learned == 0


def test_a_new_run_is_measured_by_itself() -> None:
    """Seconds count from the run's first credit: the loss of its beginning is no measurement."""
    policy = Watching()
    simulate(
        [job("a", 0.0, 900.0, 100.0, modes=(ONE, TWO, FOUR)), job("b", 3.0, 900.0, 3.0)],
        (dataclasses.replace(CLOUD, capacity=((0.0, 8),)), EDGE),
        policy,
        overhead="elasticflow",
        analyser=Analyser(measured_gpus=(1,), learn_after_s=5.0),
    )
    # A first run on two GPUs loses 2 + 4 s and at b's arrival 2 s more: 5 s with credit are over
    # at 6 + 2 + 5 = 13 s, or later by the stalls of events in between.
    known = [time for time, rates, _ in policy.seen if rates == (1.0, 1.5, 3.0)]
    assert min(known) >= 13.0


def test_a_new_type_of_job_is_shown_when_it_is_measured() -> None:
    """The first job of a type waits for its measurement, later ones only while it lasts."""
    policy = Watching()
    jobs = [
        job("a", 0.0, 900.0, 10.0, modes=(ONE, TWO)),
        job("b", 50.0, 900.0, 10.0, modes=(ONE, TWO)),
        job("c", 500.0, 900.0, 10.0, modes=(ONE, TWO)),
    ]
    result = simulate(jobs, SITES, policy, analyser=Analyser(profiling_s=(100.0, 100.0)))
    starts = {a.job: a.start for a in result.allocations}
    assert starts == {"a": 100.0, "b": 100.0, "c": 500.0}
    assert result.metrics.met == 3


@pytest.mark.parametrize(
    "policy", ["edgeflow", "edgeflow-select", "elasticflow", "afs", "tiresias", "srpt", "themis"]
)
def test_without_error_everything_is_as_before(policy: str) -> None:
    """No error, or one of 0 taken the long way round, gives the very same history."""
    trace = generate_trace(30, 5, cloud_gpus=16, load=1.2)
    sites = cluster(16, 3, start_s=trace.start, end_s=trace.end)
    plain = simulate(trace.jobs(), sites, policy, overhead="30,180")
    measured = Analyser(measured_gpus=tuple(1 << k for k in range(10)))
    for analyser in (Analyser(), measured):
        other = simulate(trace.jobs(), sites, policy, overhead="30,180", analyser=analyser)
        assert other.allocations == plain.allocations
        assert other.outcomes == plain.outcomes
        assert other.metrics.events == plain.metrics.events
    assert not measured.trivial


@pytest.mark.parametrize("learn_after_s", [60.0, math.inf])
@pytest.mark.parametrize("policy", ["edgeflow", "edgeflow-select", "elasticflow", "afs", "themis"])
def test_policies_bear_wrong_rates(policy: str, learn_after_s: float) -> None:
    """With errors of half the rate every history passes the check, and is the same again."""
    trace = generate_trace(30, 5, cloud_gpus=16, load=1.2)
    sites = cluster(16, 3, start_s=trace.start, end_s=trace.end)
    analyser = Analyser(rate_error=0.5, learn_after_s=learn_after_s, profiling_s=(305.0, 550.0))
    runs = [
        simulate(
            trace.jobs(), sites, policy, overhead="elasticflow", merge_s=60.0, analyser=analyser
        )
        for _ in range(2)
    ]
    assert runs[0].allocations == runs[1].allocations
    estimation = runs[0].to_dict()["estimation"]
    assert estimation["mean_error"] > 0.1
    assert (estimation["learned"] > 0) == (learn_after_s == 60.0)
    other = dataclasses.replace(analyser, seed=1)
    assert simulate(trace.jobs(), sites, policy, analyser=other).allocations != runs[0].allocations


def test_placement_and_estimates_go_together() -> None:
    """Modes that shrink for want of a place are the true ones."""
    trace = generate_trace(30, 5, cloud_gpus=16, load=1.2)
    sites = cluster(16, 3, start_s=trace.start, end_s=trace.end)
    result = simulate(
        trace.jobs(), sites, "edgeflow", placement="fixed", analyser=Analyser(rate_error=0.3)
    )
    assert {"placement", "estimation"} <= set(result.to_dict())


def test_the_noise_has_the_mean_and_spread_asked_for() -> None:
    """Factors have mean 1 and the coefficient of variation, and modes of a job go together."""
    jobs = [job(f"{i}", 0.0, 100.0, 1.0, modes=(ONE, TWO, ON_EDGE)) for i in range(4000)]
    estimates = RateEstimates(Analyser(rate_error=0.3), jobs, SITES)
    ones = np.array([p.rates["cloud", 1] / 1.0 for p in estimates._profiles])
    twos = np.array([p.rates["cloud", 2] / 1.5 for p in estimates._profiles])
    edges = np.array([p.rates["edge", 1] / 0.5 for p in estimates._profiles])
    assert ones.mean() == pytest.approx(1.0, abs=0.02)
    assert ones.std() == pytest.approx(0.3, abs=0.02)
    assert np.corrcoef(np.log(ones), np.log(twos))[0, 1] == pytest.approx(0.5, abs=0.05)
    # lambda * rate(1): the ratio has the error of a mode, on top of that of rate(1).
    assert np.corrcoef(np.log(edges / ones), np.log(ones))[0, 1] == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rate_error": -0.1}, "rate_error: must be a number from 0 to 10"),
        ({"rate_error": math.nan}, "rate_error: must be a number from 0 to 10"),
        ({"measured_gpus": ()}, "measured_gpus: must be counts of at least 1"),
        ({"learn_after_s": 0.0}, "learn_after_s: must be a number above 0"),
        ({"profiling_s": (5.0, 1.0)}, "profiling_s: must be two finite numbers"),
    ],
)
def test_senseless_options_are_refused(fields, message) -> None:
    """Every option names its range."""
    with pytest.raises(UsageError, match=message):
        Analyser(**fields)
