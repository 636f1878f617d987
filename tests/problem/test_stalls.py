from __future__ import annotations

import math

import pytest

from edgeflow_opt.problem import Allocation, Job, Mode, Outcome, Site, check_history
from edgeflow_opt.problem.runs import RunKind, completion_of, credit_by, runs_of, with_stalls

SITE = Site(name="cloud", kind="cloud", capacity=((0.0, 2),))
JOB = Job(
    id="a", arrival=0.0, deadline=99.0, work=20.0, modes=(Mode(site="cloud", gpus=1, rate=1.0),),
    restart_s=4.0,
)  # fmt: skip
HELD = [
    Allocation(job="a", start=0.0, end=10.0, site="cloud", gpus=1),
    Allocation(job="a", start=20.0, end=60.0, site="cloud", gpus=1),
]


def test_a_stall_cuts_a_run_and_delays_its_credit():
    """A stall of 3 s at 5 s: 5 s earn, 3 do not, the last 2 do."""
    runs = with_stalls(runs_of(JOB, HELD[:1], None), [(5.0, 3.0)])
    assert [(r.start, r.end, r.loss, r.kind) for r in runs] == [
        (0.0, 5.0, 0.0, RunKind.FIRST),
        (5.0, 10.0, 3.0, RunKind.CONTINUED),
    ]
    assert [credit_by(runs, t) for t in (5.0, 8.0, 10.0)] == [5.0, 5.0, 7.0]


def test_stalls_add_to_what_is_left_of_a_loss():
    """Restart loss of 4 s at 20 s, 2 s more at 20 s and 2 s at 21 s: earning from 28 s on."""
    runs = with_stalls(runs_of(JOB, HELD, None), [(20.0, 2.0), (21.0, 2.0)])
    assert credit_by(runs, 28.0) == 10.0
    assert credit_by(runs, 30.0) == 12.0
    assert completion_of(runs, 15.0) == 33.0


def test_stalls_while_idle_and_unpaid_ones_are_forgotten():
    """A stall between runs does nothing, one that outlasts its run does not burden the next."""
    assert with_stalls(runs_of(JOB, HELD, None), [(15.0, 9.0)]) == runs_of(JOB, HELD, None)
    runs = with_stalls(runs_of(JOB, HELD, None), [(9.0, 50.0)])
    assert credit_by(runs, 60.0) == 9.0 + 36.0


def test_the_checker_counts_stalls():
    """A history that forgets a stall is found out, one that tells it passes."""
    stalls = {"a": [(22.0, 5.0)]}
    true = [Outcome(job="a", met=True, completion=39.0 - 20e-6)]
    wrong = [Outcome(job="a", met=True, completion=34.0 - 20e-6)]
    assert check_history([JOB], [SITE], HELD, true, stalls=stalls).valid
    assert check_history([JOB], [SITE], HELD, wrong).valid
    report = check_history([JOB], [SITE], HELD, wrong, stalls=stalls)
    assert report.kinds() == {"completion"}


@pytest.mark.parametrize(
    "stalls",
    [[(1.0, -2.0)], [(1.0, -1e-9)], [(1.0, math.nan)], [(math.inf, 1.0)], [(5.0, 1.0), (4.0, 1.0)]],
)
def test_senseless_stalls_are_violations(stalls):
    """A stall cannot be negative, infinite or out of order."""
    outcome = [Outcome(job="a", met=False, completion=None)]
    report = check_history([JOB], [SITE], [], outcome, stalls={"a": stalls})
    assert "bad_stall" in report.kinds()


def test_a_history_names_every_job_once():
    """Outcomes that miss a job are a violation, not a crash."""
    assert check_history([JOB], [SITE], HELD, []).kinds() == {"outcomes"}
