"""The event-driven simulator of the paper's model, in continuous time.

Events are arrivals, completions, changes of capacity and the wake-ups a policy asks for. All events
at one time lead to one decision, in which all unfinished jobs are re-allocated (Gu, Jin, Liu,
Journal of Software 36(12), 2025, section 1 of our notes on it: only then, and rates are constant
in between). A job whose mode changes begins a new run with its loss, any other goes on.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from edgeflow_opt.errors import EdgeflowError, InvalidScheduleError, PolicyError, is_ctrl_c
from edgeflow_opt.policies.base import ClusterState, Decision
from edgeflow_opt.policies.columns import ColumnAllocation
from edgeflow_opt.policies.registry import make_policy
from edgeflow_opt.problem.check import check_history
from edgeflow_opt.problem.runs import RunKind
from edgeflow_opt.problem.schedule import Outcome, in_order
from edgeflow_opt.simulation.analyser.estimates import RateEstimates
from edgeflow_opt.simulation.book import JobBook, SeenJobs
from edgeflow_opt.simulation.capacities import Capacities
from edgeflow_opt.simulation.decisions import check_decision
from edgeflow_opt.simulation.inputs import check_inputs, check_options
from edgeflow_opt.simulation.interruptions import Interruptions
from edgeflow_opt.simulation.ledger import JobLedger
from edgeflow_opt.simulation.metrics import metrics_of
from edgeflow_opt.simulation.overhead import (
    FixedLosses,
    JobLosses,
    Overhead,
    cluster_gpus,
    parse_overhead,
)
from edgeflow_opt.simulation.placement.check import placement_violations
from edgeflow_opt.simulation.placement.placer import Placer
from edgeflow_opt.simulation.result import EventRecord, SimulationResult
from edgeflow_opt.solvers.kernels import compile_or_load
from edgeflow_opt.workloads.outages import with_outages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from edgeflow_opt.policies.base import JobState, Policy
    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.simulation.analyser.options import Analyser
    from edgeflow_opt.workloads.outages import Outage

#: Wake-ups in a row, no job earning credit in between, after which a policy is said to be stuck.
MAX_FRUITLESS_WAKE_UPS = 10_000

#: Completions this many units in the last place apart are one event: rounding made them two.
_RESOLUTION_ULPS = 8.0


def simulate(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    policy: Policy | str,
    *,
    overhead: Overhead | str | None = None,
    merge_s: float = 0.0,
    reveal_future: bool = False,
    outages: Sequence[Outage] = (),
    placement: str | None = None,
    analyser: Analyser | None = None,
    check: bool = True,
    log: bool = False,
    on_event: Callable[[EventRecord], None] | None = None,
    name: str | None = None,
) -> SimulationResult:
    """Simulate `jobs` on `sites` under `policy`, until nothing is left to happen.

    Parameters
    ----------
    jobs
        The trace: every job with its arrival, none with a past; in any order.
    sites
        The cluster with its capacity over the whole time.
    policy
        A fresh policy (it may keep state), or the name of one in the registry.
    overhead
        Model of the time lost by reconfiguration, or its name (see
        :func:`~edgeflow_opt.simulation.parse_overhead`). None = each job's own losses.
    merge_s
        Least time between two decisions, seconds, at least 0: events that come sooner wait and are
        merged, as in the slots of ElasticFlow. Units of a job that completes meanwhile stay held,
        though its completion counts at its own time. A fall of capacity never waits. 0 = never.
    reveal_future
        Whether the policy sees the capacity of times to come; else the present one seems to last.
    outages
        Nodes that fail and servers that are withdrawn, see :mod:`edgeflow_opt.workloads.outages`.
        Nothing is lost: a job that held a unit which goes keeps the credit earned until then, and
        is re-allocated at once with all others; if it goes on in its mode, it pays for a restart on
        other units all the same. `reveal_future` reveals outages too.
    placement
        Whether jobs are placed on the GPUs of the cloud, and what that may cost: one of
        :data:`~edgeflow_opt.simulation.placement.PLACEMENT_MODES`. None = GPUs are only counted.
        Policies go on counting GPUs; what does not fit then is settled by the rule of the mode,
        which a policy sees at the next event.
    analyser
        How the rates that the policy sees are measured, with what error, and when they are
        corrected (:class:`~edgeflow_opt.simulation.analyser.Analyser`). The true rates decide what
        happens; a rate that becomes known and a completion that does not come when foreseen lead
        to a decision of their own. None = the policy sees the true rates.
    check
        Whether the independent checker has to pass the history.
    log
        Whether the result lists all events.
    on_event
        Called after every event; must be quick.
    name
        Name of the policy in the result; None = its name in the registry or its class.

    Returns
    -------
    result
        Allocations, outcomes and metrics. The same input and a deterministic policy give the same
        result, wall times apart.

    Raises
    ------
    InstanceError
        If jobs or sites break a rule; all faults are named.
    UsageError
        If an option makes no sense or the policy is not known.
    PolicyError
        If the policy breaks a rule of the cluster, crashes, or wakes up for ever.
    InvalidScheduleError
        If the history fails the checker.
    """
    if isinstance(overhead, str):
        overhead = parse_overhead(overhead)
    check_options(
        policy=policy, overhead=overhead, merge_s=merge_s, reveal_future=reveal_future,
        outages=outages, placement=placement, analyser=analyser, check=check, log=log,
        on_event=on_event, name=name,
    )  # fmt: skip
    jobs, sites = check_inputs(jobs, sites)
    outages = tuple(outages)
    if isinstance(policy, str):
        name = name or policy
        policy = make_policy(policy)
    # No decision is to pay for it.
    compile_or_load(*getattr(policy, "kernels", ()))
    run = _Simulation(
        jobs,
        sites,
        policy,
        name=name or type(policy).__name__,
        overhead=overhead or JobLosses(),
        merge_s=merge_s,
        reveal_future=reveal_future,
        outages=outages,
        placement=placement,
        analyser=analyser,
    )
    events: list[EventRecord] = []
    while run.advance():
        if log or on_event is not None:
            record = run.record()
            if log:
                events.append(record)
            if on_event is not None:
                on_event(record)
    return run.result(check, tuple(events))


class _Simulation:
    """One simulation on its way."""

    def __init__(
        self,
        jobs: Sequence[Job],
        sites: Sequence[Site],
        policy: Policy,
        *,
        name: str,
        overhead: Overhead,
        merge_s: float,
        reveal_future: bool,
        outages: Sequence[Outage],
        placement: str | None,
        analyser: Analyser | None,
    ) -> None:
        self.estimates = (
            None if analyser is None or analyser.trivial else RateEstimates(analyser, jobs, sites)
        )
        self.placer = None if placement is None else Placer(placement, sites, outages)
        self.interruptions = Interruptions(sites, outages, self.placer)
        self.own_sites, self.outages = sites, outages
        self.num_interruptions = 0
        self.hit: dict[str, float] = {}
        """Seconds lost by the jobs that outages have hit just now, if they go on in their mode."""
        sites = with_outages(sites, outages)
        self.jobs = jobs
        self.policy = policy
        self.name = name
        self.overhead = overhead
        self.merge_s = merge_s
        self.cluster_gpus = cluster_gpus(sites)
        self.event_loss = overhead.event_loss(self.cluster_gpus)
        self.book: JobBook | None = None
        """The accounts as records, where policies see jobs as they are, whatever these hold, and no
        job has a place of its own."""
        if (
            self.estimates is None
            and self.placer is None
            and isinstance(overhead, (JobLosses, FixedLosses))
        ):
            self.book = JobBook(
                [overhead.as_seen(job, 0, self.cluster_gpus) for job in jobs], sites, overhead
            )
        self.ledgers: list[JobLedger | None] = [None] * len(jobs)
        self.outcomes: list[Outcome | None] = [None] * len(jobs)
        self.active: dict[str, JobLedger] = {}
        """Unfinished jobs by id, in order of arrival."""
        self.refused: set[str] = set()
        self.decision_s: list[float] = []
        # Future events: arrivals and changes of capacity in two sorted queues, the completion
        # foreseen, and at most one wake-up.
        arrivals = [
            (job.arrival if self.estimates is None else self.estimates.ready_at(index), index)
            for index, job in enumerate(jobs)
        ]
        self.arrivals = sorted((t, index) for t, index in arrivals if t is not None)
        self.next_arrival = 0
        start = self.arrivals[0][0] if self.arrivals else math.inf
        self.capacities = Capacities(sites, self.interruptions.strikes(start), start, reveal_future)
        self.completion = math.inf
        """The next completion if nothing changes."""
        self.wake_up = math.inf
        # The present event.
        self.now = -math.inf
        self.last_decision = -math.inf
        self.arrived: list[str] = []
        self.completed: list[str] = []
        self.newly_refused: tuple[str, ...] = ()
        self.capacity_changed = self.woken = False
        self.fruitless = 0

    def advance(self) -> bool:
        """Go on to the next event at which the policy is asked; False = there is none."""
        while True:
            first = self._next_time()
            if first == math.inf:
                return False
            self._gather(first)
            self._complete()
            if self.active:
                self._decide()
                return True
            self.wake_up = self.completion = math.inf

    def _next_time(self) -> float:
        """Return the time of the next event, +inf where nothing is left to happen."""
        arrival = (
            self.arrivals[self.next_arrival][0]
            if self.next_arrival < len(self.arrivals)
            else math.inf
        )
        if arrival == math.inf and not self.active:
            return math.inf
        return min(arrival, self.capacities.next_change, self.completion, self.wake_up)

    def _gather(self, first: float) -> None:
        """Take all events that belong to the one that begins at `first`, and set the time of it.

        That is the time of the last of them; only a fall of capacity ends the gathering, since
        nobody may hold the lost units for a moment longer.
        """
        self.arrived.clear()
        self.completed.clear()
        self.capacity_changed = self.woken = False
        now = max(first, self.last_decision + self.merge_s)
        until = now + _RESOLUTION_ULPS * math.ulp(now)
        time = first
        while time <= until:
            now = max(now, time)
            if self.capacities.next_change == time:
                self.capacity_changed = True
                if self.capacities.change():
                    now = until = time
            elif (
                self.next_arrival < len(self.arrivals)
                and self.arrivals[self.next_arrival][0] == time
            ):
                self._arrive()
            elif self.wake_up == time:
                self.woken, self.wake_up = True, math.inf
            else:
                # The job keeps its units until the decision.
                self.completion = self._foreseen(after=time)
            time = self._next_time()
        self.now = now

    def _arrive(self) -> None:
        index = self.arrivals[self.next_arrival][1]
        self.next_arrival += 1
        job = self.jobs[index]
        self.ledgers[index] = self.active[job.id] = ledger = JobLedger(job, index)
        if self.book is not None:
            self.book.arrive(ledger)
        self.arrived.append(job.id)

    def _complete(self) -> None:
        """Close the accounts of the jobs whose credit suffices by now."""
        now, book = self.now, self.book
        # Cheap first: far more than rounding can move a time of completion.
        near = now + 1e-6 + 1e-9 * abs(now)
        if book is not None and book.leads:
            done = [self.active[self.jobs[index].id] for index in book.done_by(now, near)]
            book.settle(done)
        else:
            done = [
                ledger
                for ledger in self.active.values()
                if ledger.completes_at <= near and ledger.complete_at(now)
            ]
        # In order of arrival.
        done.sort(key=lambda ledger: (ledger.job.arrival, ledger.index))
        for ledger in done:
            self.outcomes[ledger.index] = ledger.outcome(now)
            self.completed.append(ledger.job.id)
            self._retire(ledger)

    def _foreseen(self, after: float) -> float:
        """Return the first completion later than `after` if nothing changes; +inf = none."""
        if self.book is not None and self.book.leads:
            return self.book.next_completion(after)
        times = [ledger.completes_at for ledger in self.active.values()]
        return min((time for time in times if time > after), default=math.inf)

    def _settle(self) -> None:
        """Bring the ledgers up to what was decided in columns; from then on they lead."""
        if self.book is not None and self.book.leads:
            self.book.settle(self.active.values())
            self.book.leads = False

    def _retire(self, ledger: JobLedger) -> None:
        ledger.end(self.now)
        del self.active[ledger.job.id]
        if self.book is not None:
            self.book.leave(ledger)
        if self.placer is not None:
            self.placer.release(ledger.job.id, self.now)

    def _decide(self) -> None:
        """Ask the policy and carry out what it says."""
        now = self.now
        self._notice_fruitless_wake_ups()
        self._interrupt()
        state = ClusterState(
            now=now,
            jobs=self._shown(),
            sites=tuple(self.capacities.seen),
            arrived=frozenset(self.arrived),
            capacity_changed=self.capacity_changed,
        )
        began = time.perf_counter()
        try:
            decision = self.policy.decide(state)
        except EdgeflowError:
            raise
        except Exception as fault:
            if is_ctrl_c(fault):
                raise KeyboardInterrupt from fault
            raise PolicyError(
                f"policy '{self.name}' at {now!r} s failed with {type(fault).__name__}: {fault}"
            ) from fault
        self.decision_s.append(time.perf_counter() - began)
        if self.estimates is not None and isinstance(decision, Decision):
            decision = self.estimates.in_true_modes(decision, self.active)
        if not self._carried_out_as_columns(decision):
            self._settle()
            check_decision(
                self.name, decision, now, self.active, self.capacities.sites, self.capacities.usable
            )
            self._carry_out(decision)
        self.completion = self._foreseen(after=-math.inf)
        self.last_decision = now

    def _shown(self) -> Sequence[JobState]:
        """Return the unfinished jobs for the policy; as objects only once it asks for them."""
        book = self.book
        if book is None or self.hit:
            return self._seen()
        now, arrived = self.now, len(self.arrived)
        active = self.active
        return SeenJobs(
            len(active), self._seen, lambda: book.columns(now, arrived, active.values())
        )

    def _carried_out_as_columns(self, decision: Decision) -> bool:
        """Carry out a decision in columns that keeps the rules; whether it was one."""
        book = self.book
        if (
            book is None
            or self.hit
            or not isinstance(decision, Decision)
            or not isinstance(decision.allocation, ColumnAllocation)
            or decision.allocation.columns.jobs is not book.jobs
            or decision.refused
            or not self._wakes_later(decision)
            or not book.carry_out(decision.allocation, self.capacities.usable, self.now)
        ):
            return False
        self.newly_refused = ()
        self.wake_up = math.inf if decision.wake_up is None else float(decision.wake_up)
        return True

    def _wakes_later(self, decision: Decision) -> bool:
        """Whether the decision asks for no wake-up, or for one in time to come."""
        return decision.wake_up is None or self.now < decision.wake_up < math.inf

    def _switch(self, ledger: JobLedger, mode: Mode | None) -> None:
        """Let a job go on in another mode, or in none."""
        ledger.end(self.now)
        if mode is not None:
            ledger.begin(mode, self.now, self.overhead)
        if self.book is not None:
            self.book.touch(ledger)

    def _seen(self) -> tuple[JobState, ...]:
        """Return the unfinished jobs as the policy sees them."""
        self._settle()
        now, overhead, event_loss, gpus = (
            self.now,
            self.overhead,
            self.event_loss,
            self.cluster_gpus,
        )
        seen = tuple(
            [ledger.look(now, overhead, event_loss, gpus) for ledger in self.active.values()]
        )
        if self.estimates is not None:
            self.estimates.show(seen, self.active.values(), now)
        if self.hit:
            for state in seen:
                state.loss_left_s += self.hit.get(state.job.id, 0.0)
        return seen

    def _interrupt(self) -> None:
        """Note which running jobs the outages that begin now hit, and what that costs them."""
        if self.interruptions.due(self.now):
            self._settle()
        hit = self.interruptions.begin(self.now, self.active.values())
        self.num_interruptions += len(hit)
        self.hit = {
            ledger.job.id: self.overhead.run_loss(ledger.job, RunKind.RESTARTED, ledger.mode.gpus)
            for ledger in hit
            if ledger.mode is not None
        }

    def _carry_out(self, decision: Decision) -> None:
        now = self.now
        self.newly_refused = tuple(sorted(decision.refused))
        for name in self.newly_refused:
            self.refused.add(name)
            self._retire(self.active[name])
        allocation = decision.allocation
        if self.placer is not None:
            allocation = self._place(allocation)
        for name, ledger in self.active.items():
            mode, before = allocation.get(name), ledger.mode
            if mode is not before and mode != before:
                self._switch(ledger, mode)
            if ledger.mode is None:
                continue
            stall = self.event_loss
            if self.hit and ledger.mode is before:
                stall += self.hit.get(name, 0.0)
            if stall > 0.0:
                ledger.stall(now, stall)
                if self.book is not None:
                    self.book.touch(ledger)
        # A float of Python: a numpy one would spread through times and comparisons.
        self.wake_up = math.inf if decision.wake_up is None else float(decision.wake_up)
        if self.estimates is not None:
            news = self.estimates.next_news(self.active.values(), now)
            self.wake_up = min(self.wake_up, news)

    def _place(self, wanted: Mapping[str, Mode]) -> Mapping[str, Mode]:
        """Return the modes for which there is a place; jobs moved for it lose what that costs."""
        assert self.placer is not None
        allocation, moved = self.placer.update(self.now, self.active, wanted)
        if self.placer.mode == "repack":
            for name in moved:
                self.hit[name] = self.hit.get(name, 0.0) + self.overhead.run_loss(
                    self.active[name].job, RunKind.RESTARTED, wanted[name].gpus
                )
        return allocation

    def _notice_fruitless_wake_ups(self) -> None:
        """Count wake-ups in a row between which no job earned anything; refuse too many."""
        news = bool(self.arrived or self.completed or self.capacity_changed)
        if not news:
            self._settle()
            news = any(ledger.earned(self.now) > 0.0 for ledger in self.active.values())
        if news:
            self.fruitless = 0
            return
        self.fruitless += 1
        if self.fruitless > MAX_FRUITLESS_WAKE_UPS:
            raise PolicyError(
                f"policy '{self.name}' at {self.now!r} s: has asked to be woken "
                f"{self.fruitless} times in a row while no job earned anything; "
                f"{len(self.active)} jobs are unfinished; let one run, or ask for no wake-up"
            )

    def _num_running(self) -> int:
        if self.book is not None and self.book.leads:
            return self.book.num_running
        return sum(ledger.mode is not None for ledger in self.active.values())

    def record(self) -> EventRecord:
        """Return the record of the present event."""
        return EventRecord(
            time=self.now,
            arrived=tuple(self.arrived),
            completed=tuple(self.completed),
            refused=self.newly_refused,
            capacity_changed=self.capacity_changed,
            woken=self.woken,
            unfinished=len(self.active),
            running=self._num_running(),
            decision_s=self.decision_s[-1],
        )

    def result(self, check: bool, events: tuple[EventRecord, ...]) -> SimulationResult:
        """Return the result, checked if `check`."""
        self._settle()
        # Nothing can be running: every run ends in a completion, which is an event.
        assert all(ledger.mode is None for ledger in self.active.values())
        outcomes = tuple(
            outcome
            or Outcome(job=job.id, met=None if job.deadline is None else False, completion=None)
            for job, outcome in zip(self.jobs, self.outcomes, strict=True)
        )
        ledgers = [ledger for ledger in self.ledgers if ledger is not None]
        runs = [a for ledger in ledgers for a in ledger.allocations]
        if self.book is not None:
            runs += self.book.allocations()
        allocations = in_order(runs, self.jobs)
        stalls = {ledger.job.id: tuple(ledger.stalls) for ledger in ledgers if ledger.stalls}
        sites = tuple(self.capacities.sites.values())
        if check:
            report = check_history(
                self.jobs, sites, allocations, outcomes, self.overhead.run_loss, stalls
            )
            violations = report.violations
            if self.placer is not None:
                violations += tuple(
                    placement_violations(
                        self.own_sites, allocations, self.placer.placements, self.outages
                    )
                )
            if violations:
                raise InvalidScheduleError(
                    f"the history of policy '{self.name}' fails the checker "
                    f"({len(violations)} violations): {violations[0].message}; "
                    "it is not returned"
                )
        return SimulationResult(
            policy=self.name,
            allocations=allocations,
            outcomes=outcomes,
            refused=frozenset(self.refused),
            metrics=metrics_of(
                self.jobs,
                sites,
                allocations,
                outcomes,
                refused=self.refused,
                decision_s=self.decision_s,
                interruptions=self.num_interruptions,
            ),
            stalls=stalls,
            events=events,
            estimation=None if self.estimates is None else self.estimates.metrics(),
            placement=None if self.placer is None else self.placer.metrics(len(self.jobs)),
            placements=() if self.placer is None else tuple(self.placer.placements),
        )
