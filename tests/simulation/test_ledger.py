"""The account of one job: what a policy sees of it."""

from __future__ import annotations

import pytest

from edgeflow_opt.simulation.ledger import JobLedger
from edgeflow_opt.simulation.overhead import FixedLosses
from tests.simulation.helpers import ON_EDGE, ONE, TWO, job

LOSSES = FixedLosses(restart_s=10.0, migration_s=30.0)


@pytest.mark.parametrize("event_loss", [0.0, 2.0])
def test_a_policy_sees_what_is_left_of_loss_and_work(event_loss):
    """While the loss lasts nothing is earned; the stall of the present event comes on top."""
    ledger = JobLedger(job("a", 0.0, 900.0, 200.0), 0)
    ledger.begin(ONE, 0.0, LOSSES)
    ledger.end(20.0)
    ledger.begin(TWO, 50.0, LOSSES)
    done = 20.0 * ONE.rate
    for time, loss_left_s, earned in (
        (50.0, 10.0, 0.0),
        (57.0, 3.0, 0.0),
        (60.0, 0.0, 0.0),
        (65.0, 0.0, 5.0 * TWO.rate),
    ):
        seen = ledger.look(time, LOSSES, event_loss, 4)
        assert seen.loss_left_s == loss_left_s + event_loss
        assert seen.required_left == pytest.approx(ledger.required - done - earned)
        assert seen.attained_gpu_s == 20.0 + 2.0 * (time - 50.0)
        assert (seen.mode, seen.run_start, seen.last_site) == (TWO, 50.0, "cloud")
        assert (seen.job.restart_s, seen.job.migration_s) == (10.0, 30.0)
    ledger.end(65.0)
    seen = ledger.look(70.0, LOSSES, event_loss, 4)
    # Idle jobs do not stall.
    assert (seen.mode, seen.loss_left_s) == (None, 0.0)
    assert seen.required_left == ledger.required - ledger.done
    ledger.begin(ON_EDGE, 80.0, LOSSES)
    assert ledger.look(81.0, LOSSES, event_loss, 4).loss_left_s == 29.0 + event_loss
