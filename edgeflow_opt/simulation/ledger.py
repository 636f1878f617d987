"""The account of one unfinished job: what it holds, what it has earned, when it will be done.

Credit is never summed up from event to event: it is computed from the start of the present piece
of a run, by the operations of :mod:`edgeflow_opt.problem.runs` in their order. So rounding does not
grow with the number of events, and simulator and checker get the same numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgeflow_opt.policies.base import JobState
from edgeflow_opt.problem.evaluate import judged
from edgeflow_opt.problem.runs import RunKind
from edgeflow_opt.problem.schedule import Allocation

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job, Mode
    from edgeflow_opt.problem.schedule import Outcome
    from edgeflow_opt.simulation.overhead import Overhead


class JobLedger:
    """The account of a job from its arrival to its end.

    Parameters
    ----------
    job
        The job.
    index
        Its position in the trace.
    """

    __slots__ = (
        "allocations",
        "attained",
        "completes_at",
        "done",
        "index",
        "job",
        "last_site",
        "least",
        "loss",
        "mode",
        "piece_start",
        "required",
        "run_start",
        "seen",
        "seen_gpus",
        "seen_job",
        "seen_jobs",
        "stalls",
    )

    def __init__(self, job: Job, index: int) -> None:
        self.job = job
        self.index = index
        self.required = job.required
        self.least = math.ulp(job.required)
        self.mode: Mode | None = None
        self.run_start = 0.0
        self.piece_start = 0.0
        self.loss = 0.0
        self.done = 0.0
        """Credit of the pieces that have ended."""
        self.completes_at = math.inf
        """Time of completion if nothing changes."""
        self.last_site: str | None = None
        self.attained = 0.0
        self.allocations: list[Allocation] = []
        self.stalls: list[tuple[float, float]] = []
        self.seen = JobState(job=job, required_left=self.required)
        self.seen_job = job
        self.seen_jobs: dict[int, Job] = {}
        """The job as seen by the number of GPUs held, where it was asked for."""
        self.seen_gpus = -1

    def earned(self, time: float) -> float:
        """Return the credit of the present piece by `time`."""
        if self.mode is None:
            return 0.0
        paid = time - self.piece_start - self.loss
        return self.mode.rate * paid if paid > 0.0 else 0.0

    def complete_at(self, time: float) -> bool:
        """Whether the credit by `time` suffices."""
        earned = self.earned(time)
        return earned > 0.0 and self.done + earned >= self.required

    def begin(self, mode: Mode, time: float, overhead: Overhead) -> None:
        """Begin a run in `mode` (the one before has been ended)."""
        if self.last_site is None:
            kind = RunKind.FIRST
        elif self.last_site != mode.site:
            kind = RunKind.MIGRATED
        else:
            kind = RunKind.RESTARTED
        self.mode = mode
        self.run_start = self.piece_start = time
        self.loss = overhead.run_loss(self.job, kind, mode.gpus)
        self.last_site = mode.site
        self._foresee()

    def stall(self, time: float, seconds: float) -> None:
        """Let the present run earn nothing for `seconds` more."""
        if time > self.piece_start:
            self.done += self.earned(time)
            self.loss = max(0.0, self.piece_start + self.loss - time) + seconds
            self.piece_start = time
        else:
            self.loss += seconds
        self.stalls.append((time, seconds))
        self._foresee()

    def end(self, time: float) -> None:
        """End the present run, if there is one."""
        mode = self.mode
        if mode is None:
            return
        self.done += self.earned(time)
        self.attained += mode.gpus * (time - self.run_start)
        self.allocations.append(
            Allocation(
                job=self.job.id, start=self.run_start, end=time, site=mode.site, gpus=mode.gpus
            )
        )
        self.mode = None
        self.completes_at = math.inf

    def outcome(self, time: float) -> Outcome:
        """Return what becomes of the job, whose credit suffices by `time`, its run still open.

        The same rule as :func:`edgeflow_opt.problem.evaluate.outcome_of`.
        """
        deadline = self.job.deadline
        by_deadline = 0.0 if deadline is None else self.done + self.earned(deadline)
        return judged(self.job, min(self._formula(), time), by_deadline)

    def look(
        self, time: float, overhead: Overhead, event_loss: float, cluster_gpus: int
    ) -> JobState:
        """Return the job as a policy sees it at `time`; every field is set anew."""
        mode, seen = self.mode, self.seen
        gpus = 0 if mode is None else mode.gpus
        if gpus != self.seen_gpus:
            self.seen_gpus = gpus
            seen_job = self.seen_jobs.get(gpus)
            if seen_job is None:
                seen_job = self.seen_jobs[gpus] = overhead.as_seen(self.job, gpus, cluster_gpus)
            self.seen_job = seen_job
        # A policy may have written into the state.
        seen.job = self.seen_job
        seen.mode = mode
        seen.run_start = self.run_start
        seen.last_site = self.last_site
        if mode is None:
            seen.required_left = self.required - self.done
            seen.loss_left_s = 0.0
            seen.attained_gpu_s = self.attained
            return seen
        # Below 0 while the loss lasts; the operations are those of `earned`.
        paid = time - self.piece_start - self.loss
        earned = mode.rate * paid if paid > 0.0 else 0.0
        left = self.required - self.done - earned
        # Rounding may leave nothing of a job that is not complete by the sum.
        seen.required_left = left if left > self.least else self.least
        loss_left_s = self.piece_start + self.loss - time
        seen.loss_left_s = event_loss + loss_left_s if loss_left_s > 0.0 else event_loss
        seen.attained_gpu_s = self.attained + gpus * (time - self.run_start)
        return seen

    def _formula(self) -> float:
        assert self.mode is not None
        left = self.required - self.done
        return self.piece_start + self.loss + left / self.mode.rate

    def _foresee(self) -> None:
        """Set the time of completion: the formula, moved up until the credit does suffice then.

        The division may be rounded down; a completion that came too early would find the job not
        done and be followed by another at the same time, for ever.
        """
        mode = self.mode
        assert mode is not None
        left = self.required - self.done
        time = self.piece_start + self.loss + left / mode.rate
        # Mostly the formula does; the operations are those of `complete_at`.
        paid = time - self.piece_start - self.loss
        earned = mode.rate * paid
        if paid > 0.0 and earned > 0.0 and self.done + earned >= self.required:
            self.completes_at = time
            return
        step = math.ulp(time)
        while not self.complete_at(time):
            time += step
            step *= 2.0
        self.completes_at = time
