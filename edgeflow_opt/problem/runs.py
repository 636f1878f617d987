"""The run-and-loss rule: how much work a job is credited with. The one definition.

A *run* is a maximal interval [a, b) that a job spends in one mode. The work credited to it by time
t is

    rate * max(0, min(b, t) - a - loss)

with loss 0 if the job never ran before; `loss_left_s` of the running mode if the run continues it
from `now`; `migration_s` if the job last ran on another site; else `restart_s` (another number of
GPUs, or resumed after idling). A run without credit still counts as having run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Job
    from edgeflow_opt.problem.schedule import Allocation


class RunKind(StrEnum):
    """How a run begins."""

    FIRST = "first"
    """The job never ran before: no loss."""
    CONTINUED = "continued"
    """The run goes on from `now` in the running mode: what is left of its loss."""
    RESTARTED = "restarted"
    """Another number of GPUs on the same site, or resumed there after idling: `restart_s`."""
    MIGRATED = "migrated"
    """The job last ran on another site: `migration_s`."""

    @property
    def reconfiguration(self) -> bool:
        """Whether this beginning counts as a reconfiguration."""
        return self in (RunKind.RESTARTED, RunKind.MIGRATED)


class Run(NamedTuple):
    """A maximal interval that a job spends in one mode.

    A tuple, since the history of a long trace has a million of them.

    Parameters
    ----------
    start, end
        Seconds, start < end.
    site, gpus, rate
        The mode.
    kind
        How it begins.
    loss
        Seconds from the start that earn no credit.
    """

    start: float
    end: float
    site: str
    gpus: int
    rate: float
    kind: RunKind
    loss: float

    def credit(self, time: float) -> float:
        """Return the iterations credited to the run by `time`."""
        return self.rate * max(0.0, min(self.end, time) - self.start - self.loss)


# The members as plain names: a look into an enumeration takes as long as the rest of a rule.
_FIRST, _CONTINUED = RunKind.FIRST, RunKind.CONTINUED
_RESTARTED, _MIGRATED = RunKind.RESTARTED, RunKind.MIGRATED

#: Loss of a run that begins: (job, kind, gpus of the new mode) -> seconds.
LossRule = Callable[["Job", RunKind, int], float]


def instance_loss(job: Job, kind: RunKind, gpus: int) -> float:
    """Return the loss that the instance format states for a run of `job` that begins as `kind`."""
    if kind is _RESTARTED:
        return job.restart_s
    if kind is _MIGRATED:
        return job.migration_s
    if kind is _CONTINUED and job.running is not None:
        return job.running.loss_left_s
    return 0.0


def runs_of(
    job: Job,
    allocations: Iterable[Allocation],
    now: float | None,
    loss_rule: LossRule = instance_loss,
) -> list[Run]:
    """Return the runs of `job` under its `allocations`.

    Parameters
    ----------
    job
        The job; every allocation is in one of its modes.
    allocations
        Those of this job, disjoint, sorted by start. Such as abut in the same mode are one run.
    now
        Time of the epoch: a run that begins then in the running mode continues it. None = the job
        is followed from its first run on.
    loss_rule
        Loss of a run by how it begins.
    """
    rates = {(mode.site, mode.gpus): mode.rate for mode in job.modes}
    runs: list[Run] = []
    last_site = job.last_site
    running = job.running
    for a in allocations:
        start, site, gpus = a.start, a.site, a.gpus
        if runs and runs[-1].end == start and runs[-1][2:4] == (site, gpus):
            runs[-1] = runs[-1]._replace(end=a.end)
            continue
        if running is not None and start == now and (site, gpus) == (running.site, running.gpus):
            kind = _CONTINUED
        elif last_site is None:
            kind = _FIRST
        elif last_site != site:
            kind = _MIGRATED
        else:
            kind = _RESTARTED
        rate = rates[site, gpus]
        runs.append(Run(start, a.end, site, gpus, rate, kind, loss_rule(job, kind, gpus)))
        running, last_site = None, site
    return runs


def with_stalls(runs: Sequence[Run], stalls: Sequence[tuple[float, float]]) -> list[Run]:
    """Return `runs` cut at `stalls`: losses that befall a job while it runs, not when a run begins.

    A stall (time, seconds) within a run adds that many seconds to what is left of its loss then;
    the piece from there on continues the run. What a run has not paid when it ends is forgotten.

    Parameters
    ----------
    runs
        The runs of one job, in order.
    stalls
        Stalls of that job, sorted by time; such as fall into no run do nothing.
    """
    pieces: list[Run] = []
    index = 0
    for run in runs:
        while index < len(stalls) and stalls[index][0] < run.start:
            index += 1
        piece = run
        while index < len(stalls) and stalls[index][0] < run.end:
            time, seconds = stalls[index]
            index += 1
            left = max(0.0, piece.start + piece.loss - time) + seconds
            if time > piece.start:
                pieces.append(piece._replace(end=time))
                piece = piece._replace(start=time, kind=RunKind.CONTINUED, loss=left)
            else:
                piece = piece._replace(loss=piece.loss + seconds)
        pieces.append(piece)
    return pieces


def credit_by(runs: Sequence[Run], time: float) -> float:
    """Return the iterations credited to a job by `time`: the sum over its runs."""
    total = 0.0
    for run in runs:
        if run.start >= time:
            break
        total += run.credit(time)
    return total


def completion_of(runs: Sequence[Run], required: float) -> float | None:
    """Return the first time at which the credit reaches `required`; None if it never does.

    Parameters
    ----------
    runs
        The runs of a job, in order.
    required
        Iterations, ``work * (1 - 1e-6)``.
    """
    done = 0.0
    for run in runs:
        earned = run.credit(run.end)
        if earned > 0.0 and done + earned >= required:
            time = run.start + run.loss + (required - done) / run.rate
            return min(time, run.end)
        done += earned
    return None
