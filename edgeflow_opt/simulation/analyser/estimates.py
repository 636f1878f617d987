"""The estimated rates of a simulation on its way: what policies see, and what is learned."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.simulation.analyser.rate_model import fit_rates

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import Decision, JobState
    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.simulation.analyser.options import Analyser
    from edgeflow_opt.simulation.ledger import JobLedger

#: Least seconds until a job that is overdue is looked at again where nothing is ever learned.
RETRY_S = 60.0

#: Normal draws of a job: one shared, one of the edge, one for each doubling of the GPUs.
_DRAWS = 42

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimationMetrics:
    """How wrong the estimates were, and how often they were corrected.

    Parameters
    ----------
    mean_error
        Mean over all modes of all jobs of ``|estimate / true rate - 1|`` on arrival; None without
        jobs.
    learned
        Modes whose rate was corrected while a job ran in them.
    overdue
        Times that a job was not done when its estimate said so, and the policy was asked anew.
    """

    mean_error: float | None
    learned: int
    overdue: int

    def to_dict(self) -> dict[str, Any]:
        """Return the object ``estimation`` of a results row."""
        return {"mean_error": self.mean_error, "learned": self.learned, "overdue": self.overdue}


class RateEstimates:
    """What policies are shown in place of the true rates.

    The true rates decide what happens: the accounts of the jobs never see an estimate. The work
    that is left is true too, since finished iterations can be counted.

    Parameters
    ----------
    analyser
        The options.
    jobs
        The trace.
    sites
        The cluster.
    """

    def __init__(self, analyser: Analyser, jobs: Sequence[Job], sites: Sequence[Site]) -> None:
        self._learn_after_s = analyser.learn_after_s
        kinds = {site.name: site.kind for site in sites}
        self._profiles = [
            _Profile(job, _first_estimates(analyser, job, index, kinds))
            for index, job in enumerate(jobs)
        ]
        self._ready = _ready_times(analyser, jobs)
        self._errors = [
            abs(profile.rates[mode.site, mode.gpus] / mode.rate - 1.0)
            for profile in self._profiles
            for mode in profile.job.modes
        ]
        self._learned = self._overdue = 0

    def ready_at(self, index: int) -> float | None:
        """Return when the policy is shown a job: its arrival, or the end of its measurement."""
        return self._ready[index]

    def show(self, states: Iterable[JobState], ledgers: Iterable[JobLedger], now: float) -> None:
        """Learn what the running jobs show by now, and put the estimates into the states."""
        for state, ledger in zip(states, ledgers, strict=True):
            profile = self._profiles[ledger.index]
            if ledger.mode is not None and not profile.knows(ledger.mode):
                self._learn(profile, ledger, now)
            state.job, state.mode = profile.seen(state.job, ledger.mode)

    def in_true_modes(self, decision: Decision, active: Mapping[str, JobLedger]) -> Decision:
        """Return a decision with the modes as the jobs have them."""
        return dataclasses.replace(
            decision,
            allocation={
                name: self._profiles[active[name].index].true(mode) if name in active else mode
                for name, mode in decision.allocation.items()
            },
        )

    def next_news(self, ledgers: Iterable[JobLedger], now: float) -> float:
        """Return when a rate will be known or a job overdue, by the present state; or +inf.

        To be called when a decision has been carried out.
        """
        news = math.inf
        for ledger in ledgers:
            mode = ledger.mode
            profile = self._profiles[ledger.index]
            if mode is None or profile.knows(mode):
                continue
            profile.follow(ledger)
            begins = max(now, ledger.piece_start + ledger.loss)
            left = ledger.required - ledger.done - ledger.earned(now)
            due = begins + max(0.0, left) / profile.rates[mode.site, mode.gpus]
            if self._learn_after_s == math.inf:
                due = max(due, now + RETRY_S)
            profile.due = due
            lacking = self._learn_after_s - profile.earned_s(ledger, now)
            news = min(news, due, begins + max(0.0, lacking))
        # Nothing may come at this very moment again.
        return max(news, math.nextafter(now, math.inf))

    def metrics(self) -> EstimationMetrics:
        """Return what the estimates amounted to."""
        errors = self._errors
        return EstimationMetrics(
            mean_error=math.fsum(errors) / len(errors) if errors else None,
            learned=self._learned,
            overdue=self._overdue,
        )

    def _learn(self, profile: _Profile, ledger: JobLedger, now: float) -> None:
        overdue = now >= profile.due
        if overdue:
            self._overdue += 1
            profile.due = math.inf
        if self._learn_after_s == math.inf:
            return
        # Rounding may put the time of the lesson a little early.
        if overdue or profile.earned_s(ledger, now) >= self._learn_after_s * (1.0 - 1e-6):
            assert ledger.mode is not None
            profile.learn(ledger.mode)
            self._learned += 1


class _Profile:
    """What is believed of one job.

    Parameters
    ----------
    job
        The job with its true modes.
    rates
        The first estimates by site and GPUs.
    """

    def __init__(self, job: Job, rates: dict[_Key, float]) -> None:
        self.job = job
        self.rates = rates
        self.due = math.inf
        """When the present run should be done by the estimate."""
        self._first = dict(rates)
        self._true = {(mode.site, mode.gpus): mode for mode in job.modes}
        self._known = {key for key, mode in self._true.items() if rates[key] == mode.rate}
        self._run_start = -math.inf
        self._done_before = 0.0
        self._modes: dict[_Key, Mode] = {}
        self._jobs: dict[int, tuple[Job, Job]] = {}
        self._believe()

    def knows(self, mode: Mode) -> bool:
        """Whether the rate of a mode is known."""
        return (mode.site, mode.gpus) in self._known

    def learn(self, mode: Mode) -> None:
        """Take the true rate of a mode, and scale those not known by what it was off."""
        key = (mode.site, mode.gpus)
        factor = mode.rate / self._first[key]
        self._known.add(key)
        self.rates = {
            k: self._true[k].rate if k in self._known else first * factor
            for k, first in self._first.items()
        }
        self.due = math.inf
        self._believe()

    def follow(self, ledger: JobLedger) -> None:
        """Notice a new run; must be called when it has just begun."""
        if ledger.run_start != self._run_start:
            self._run_start = ledger.run_start
            self._done_before = ledger.done

    def earned_s(self, ledger: JobLedger, now: float) -> float:
        """Return for how many seconds the present run has earned credit."""
        assert ledger.mode is not None
        return (ledger.done + ledger.earned(now) - self._done_before) / ledger.mode.rate

    def seen(self, job: Job, mode: Mode | None) -> tuple[Job, Mode | None]:
        """Return a job (as it is with its losses) and its mode as a policy sees them."""
        if not self._modes:
            return job, mode
        known = self._jobs.get(id(job))
        if known is None or known[0] is not job:
            modes = tuple(self._modes.values())
            others = next(iter(self._jobs.values()), None)
            # Policies keep tables of modes by the identity of the tuple.
            seen = dataclasses.replace(job, modes=modes if others is None else others[1].modes)
            known = self._jobs[id(job)] = (job, seen)
        return known[1], None if mode is None else self._modes[mode.site, mode.gpus]

    def true(self, mode: Mode) -> Mode:
        """Return the true mode in place of an estimated one; others as they are."""
        key = (mode.site, mode.gpus)
        return self._true[key] if self._modes and self._modes.get(key) == mode else mode

    def _believe(self) -> None:
        """Make the modes as they are believed to be; none where all rates are known."""
        self._jobs = {}
        if len(self._known) == len(self._true):
            self._modes = {}
        else:
            self._modes = {
                key: dataclasses.replace(mode, rate=self.rates[key])
                for key, mode in self._true.items()
            }


def _first_estimates(
    analyser: Analyser, job: Job, index: int, kinds: Mapping[str, str]
) -> dict[_Key, float]:
    """Return the rates of a job as measured and fitted before it runs."""
    variance = math.log1p(analyser.rate_error**2)
    draws = np.random.default_rng([analyser.seed, index]).standard_normal(_DRAWS).tolist()
    scale = math.sqrt(variance / 2.0)

    def factor(place: int) -> float:
        """Return a log-normal factor of mean 1 with half of the variance."""
        return math.exp(scale * draws[place] - variance / 4.0)

    shared = factor(0)
    rates: dict[_Key, float] = {}
    one: Mode | None = None
    for site in dict.fromkeys(mode.site for mode in job.modes if kinds[mode.site] == "cloud"):
        modes = [mode for mode in job.modes if mode.site == site]
        measured = {m.gpus: m.rate * shared * factor(1 + m.gpus.bit_length()) for m in modes}
        wanted = analyser.measured_gpus
        if wanted is not None:
            few = {g: r for g, r in measured.items() if g in wanted}
            few = few or {min(measured): measured[min(measured)]}
            model = fit_rates(few)
            measured = {g: few[g] if g in few else model.rate(g) for g in measured}
        rates |= {(site, gpus): rate for gpus, rate in measured.items()}
        one = one or next((mode for mode in modes if mode.gpus == 1), None)
    for mode in job.modes:
        if kinds[mode.site] == "cloud":
            continue
        rate = mode.rate * factor(1)
        if one is None:
            rate *= shared
        else:
            rate *= rates[one.site, 1] / one.rate
        rates[mode.site, mode.gpus] = rate
    return {(mode.site, mode.gpus): rates[mode.site, mode.gpus] for mode in job.modes}


def _ready_times(analyser: Analyser, jobs: Sequence[Job]) -> list[float | None]:
    """Return when each job has been measured; None for one without an arrival."""
    least, most = analyser.profiling_s
    ready = [job.arrival for job in jobs]
    if most == 0.0:
        return ready
    through: dict[object, float] = {}
    order = sorted((t, index) for index, t in enumerate(ready) if t is not None)
    for time, index in order:
        key = _type_of(jobs[index])
        if key not in through:
            draw = np.random.default_rng([analyser.seed, len(through), 1]).random()
            through[key] = time + least + (most - least) * float(draw)
        ready[index] = max(time, through[key])
    return ready


def _type_of(job: Job) -> object:
    """Return what jobs of one type share: the rates on one unit, else all of them."""
    ones = tuple((mode.site, mode.rate) for mode in job.modes if mode.gpus == 1)
    return ones or tuple((mode.site, mode.gpus, mode.rate) for mode in job.modes)
