"""Random histories through a session: every decision is feasible, good and honest."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from edgeflow_opt.errors import EventError
from edgeflow_opt.problem import check
from edgeflow_opt.service import (
    CapacityChanged,
    EpochSession,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    JobRevised,
    RateCorrected,
    ReasonCode,
    SessionOptions,
    events_from_dict,
    events_to_dict,
)
from edgeflow_opt.solvers import solve
from tests.effort import EFFORT, examples
from tests.service.clusters import job, sites

#: Four hundred histories of so many steps take some minutes.
STEPS_A_HISTORY = 25

OPTIONS = SessionOptions(slot_s=60.0, max_slots=6)
FOLLOWS = ("select", "plan")


#: What is drawn of a job.
JOBS = st.fixed_dictionaries(
    {
        "work": st.sampled_from((20.0, 150.0, 300.0, 900.0)),
        "due": st.sampled_from((None, 60.0, 240.0, 480.0, 900.0)),
        "weight": st.sampled_from((1.0, 1.0, 2.0)),
        "late_start": st.sampled_from((False, False, True)),
        "malleable": st.sampled_from((True, True, True, False)),
        "must_meet": st.sampled_from((False, False, False, True)),
    }
)


class SessionMachine(RuleBasedStateMachine):
    """A cluster whose scheduler tells all that happens, truly or not quite."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.made = 0
        self.told: set[ReasonCode] = set()
        self.session = EpochSession(sites(), options=OPTIONS, isolated=False)

    @initialize(follow=st.sampled_from(FOLLOWS), crowd=st.lists(JOBS, max_size=6))
    def begin(self, follow: str, crowd: list[dict[str, Any]]) -> None:
        options = dataclasses.replace(OPTIONS, follow=follow)
        self.session = EpochSession(sites(), options=options, isolated=False)
        for new in crowd:
            self.arrive(new)
        self.decide(fresh=False)

    @property
    def names(self) -> list[str]:
        return list(self.session.view.jobs)

    def tell(self, event: Any) -> None:
        """Send an event through its document, as a request would."""
        document = json.loads(json.dumps(events_to_dict([event])))
        batch = events_from_dict(document)
        assert batch.events == (event,)
        assert self.session.update(batch.events) == 1

    @rule(seconds=st.sampled_from((1.0, 17.0, 60.0, 200.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: len(self.names) < 6)
    @rule(drawn=JOBS)
    def arrive(self, drawn: dict[str, Any]) -> None:
        self.made += 1
        due, late_start = drawn["due"], drawn["late_start"]
        new = job(
            f"j{self.made}",
            None if due is None else self.now + due,
            drawn["work"],
            weight=drawn["weight"],
            arrival=self.now + 30.0 if late_start else self.now,
            malleable=drawn["malleable"],
            must_meet=drawn["must_meet"] and due is not None,
        )
        self.tell(JobArrived(time=self.now, job=new))

    @precondition(lambda self: self.names)
    @rule(data=st.data(), done=st.booleans())
    def leave(self, data: st.DataObject, done: bool) -> None:
        kind = JobCompleted if done else JobCancelled
        self.tell(kind(time=self.now, job=data.draw(st.sampled_from(self.names))))

    @precondition(lambda self: self.names)
    @rule(data=st.data(), share=st.sampled_from((0.1, 0.5, 1.2)))
    def progress(self, data: st.DataObject, share: float) -> None:
        name = data.draw(st.sampled_from(self.names))
        left = self.session.view.jobs[name].left_at(self.now) * share
        self.tell(JobProgressed(time=self.now, job=name, work_left=left))

    @precondition(lambda self: self.names)
    @rule(data=st.data(), factor=st.sampled_from((0.3, 0.8, 1.5)), others=st.booleans())
    def correct(self, data: st.DataObject, factor: float, others: bool) -> None:
        name = data.draw(st.sampled_from(self.names))
        mode = data.draw(st.sampled_from(self.session.view.jobs[name].job.modes))
        self.tell(
            RateCorrected(
                time=self.now,
                job=name,
                site=mode.site,
                gpus=mode.gpus,
                rate=mode.rate * factor,
                scale_others=others,
            )
        )

    @precondition(lambda self: self.names)
    @rule(data=st.data(), loss_s=st.sampled_from((None, 0.0, 20.0)))
    def place(self, data: st.DataObject, loss_s: float | None) -> None:
        name = data.draw(st.sampled_from(self.names))
        held = self.session.view.jobs[name].job
        mode = data.draw(st.sampled_from((None, *held.modes)))
        if mode is not None and held.arrival is not None and held.arrival > self.now:
            mode = None
        self.tell(
            JobPlaced(
                time=self.now,
                job=name,
                site=None if mode is None else mode.site,
                gpus=None if mode is None else mode.gpus,
                loss_left_s=loss_s,
            )
        )

    @precondition(lambda self: self.names)
    @rule(data=st.data(), due=st.sampled_from((None, -50.0, 100.0, 600.0)))
    def revise(self, data: st.DataObject, due: float | None) -> None:
        name = data.draw(st.sampled_from(self.names))
        deadline = None if due is None else self.now + due
        arrival = self.session.view.jobs[name].job.arrival
        if deadline is not None and arrival is not None and arrival > self.now:
            deadline = max(deadline, arrival)
        self.tell(JobRevised(time=self.now, job=name, deadline=deadline))

    @rule(units=st.integers(0, 5), back=st.booleans(), site=st.sampled_from(("cloud", "edge")))
    def change_capacity(self, units: int, back: bool, site: str) -> None:
        steps: tuple[tuple[float, int], ...] = ((self.now, units),)
        if back:
            steps += ((self.now + 130.0, 4),)
        self.tell(CapacityChanged(time=self.now, site=site, capacity=steps))

    @rule(name=st.sampled_from(("nobody", "")))
    def nonsense_is_refused(self, name: str) -> None:
        before = self.session.snapshot()
        good = JobArrived(time=self.now, job=job("good", None))
        with pytest.raises(EventError, match="must be an unfinished job"):
            self.session.update([good, JobCompleted(time=self.now, job=name)])
        assert self.session.snapshot() == before

    @rule()
    def restart(self) -> None:
        document = json.loads(json.dumps(self.session.snapshot()))
        self.session = EpochSession.from_snapshot(document, isolated=False)
        assert self.session.snapshot() == document

    @rule(fresh=st.booleans())
    def decide(self, fresh: bool) -> None:
        decision = self.session.decide(self.now, 2.0, fresh=fresh)
        problem, schedule = decision.problem, decision.schedule
        assert decision.now <= decision.until
        report = check(problem, schedule)
        assert report.valid, report.violations
        assert schedule.objective is not None
        floor = solve(problem, "edgeflow-select").objective
        if floor is not None:
            assert schedule.objective.level_1 >= floor.level_1 * (1.0 - 1e-9)
            whole_order = self.session.options.follow == "plan"
            assert not (whole_order and floor.better_than(schedule.objective))
        # From scratch, within the gaps that both report.
        other = solve(problem, "auto", time_limit_s=2.0, levels=1, workers=1)
        assert decision.bound is not None
        assert other.value is None or other.value <= decision.bound + 1e-6
        if not decision.relaxed and other.bound is not None:
            assert decision.value <= other.bound + 1e-6
        self._agrees(decision)

    def _agrees(self, decision: Any) -> None:
        """Check that allocation, reasons, plan and what the session now holds say the same."""
        first = {a.job: a for a in decision.schedule.allocations if a.start == decision.now}
        assert first.keys() == decision.allocation.keys()
        assert [reason.job for reason in decision.reasons] == self.names
        runs = (ReasonCode.MET, ReasonCode.LEFT_OVER)
        for reason, outcome in zip(decision.reasons, decision.schedule.outcomes, strict=True):
            assert (reason.code in runs) == (reason.job in decision.allocation)
            assert reason.met == outcome.met
            self.told.add(reason.code)
            if reason.code is ReasonCode.HOPELESS:
                assert outcome.met is False
        for name, held in self.session.view.jobs.items():
            assert held.mode == decision.allocation.get(name)
        json.dumps(decision.document())
        assert decision == dataclasses.replace(decision)


HOPELESS = {
    "work": 900.0, "due": 60.0, "weight": 1.0, "late_start": False, "malleable": True,
    "must_meet": False,
}  # fmt: skip


@pytest.mark.parametrize("follow", FOLLOWS)
def test_a_history_in_which_a_job_becomes_hopeless(follow: str) -> None:
    """One that nothing is left over for is told so, and met by no plan."""
    machine = SessionMachine()
    machine.begin(follow=follow, crowd=[HOPELESS, {**HOPELESS, "due": 900.0}])
    for site in ("cloud", "edge"):
        machine.change_capacity(units=0, back=False, site=site)
    machine.told.clear()
    machine.decide(fresh=False)
    assert machine.told == {ReasonCode.HOPELESS}
    machine.wait(200.0)
    machine.decide(fresh=True)
    assert machine.told == {ReasonCode.HOPELESS, ReasonCode.PASSED}


def test_random_histories() -> None:
    """Every decision passes the checker, is at least edgeflow-select, and its bound is true."""
    run_state_machine_as_test(
        SessionMachine,
        settings=settings(
            max_examples=examples(6),
            stateful_step_count=STEPS_A_HISTORY,
            deadline=None,
            derandomize=EFFORT <= 1.0,
            suppress_health_check=list(HealthCheck),
        ),
    )
