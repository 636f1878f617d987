"""What is known of rates, how well, and when."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import MAX_MAGNITUDE, is_number, is_whole, make_plain, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyser:
    """How the rates that policies see come about.

    Parameters
    ----------
    rate_error
        Coefficient of variation of what is measured, at least 0: a measured rate is the true one
        times a log-normal factor of mean 1. Half of the variance of its logarithm is shared by all
        modes of a job (its profile is off as a whole), half is of each mode alone. The edge rate is
        estimated as ``lambda * rate(1)``: the estimated rate on one GPU times the true ratio, which
        has the error of a mode alone.
    measured_gpus
        Counts of cloud GPUs on which a job is measured, of those it has modes for (if none, its
        least count); the rates of the others are those of a fitted
        :class:`~edgeflow_opt.simulation.analyser.RateModel`. None = all counts are measured.
    learn_after_s
        Seconds with credit after which the rate of the mode that a job runs in is known, above 0;
        the rates that are not known yet are scaled by the same factor as this one. A job that is
        not done when its estimate says so shows its rate then. `math.inf` = never: a job that is
        not done in time is only planned anew, every minute at most.
    profiling_s
        (least, most) seconds that it takes to measure a type of job, that is, of the same rates:
        drawn uniformly by type. Jobs are shown to the policy when their type is through; the
        first of a type starts it on arrival. The measurements hold no GPU of the cluster. The
        paper gives 305 to 550 s a model. (0, 0) = at once.
    seed
        Of all draws. Those of a job depend on the seed, its place in the trace, and the GPUs of
        a mode alone, so every policy is shown the same errors.

    Raises
    ------
    UsageError
        If a number is out of its range.
    """

    rate_error: float = 0.0
    measured_gpus: tuple[int, ...] | None = None
    learn_after_s: float = 60.0
    profiling_s: tuple[float, float] = (0.0, 0.0)
    seed: int = 0

    def __post_init__(self) -> None:
        make_plain(self, (part.name for part in dataclasses.fields(self)))
        error, counts, learn_after_s = self.rate_error, self.measured_gpus, self.learn_after_s
        if not (is_number(error) and 0.0 <= error <= 10.0):
            raise UsageError(
                f"option rate_error: must be a number from 0 to 10, got {shown(error)}"
            )
        if counts is not None and not (
            isinstance(counts, tuple) and counts and all(is_whole(c) and c >= 1 for c in counts)
        ):
            raise UsageError(
                f"option measured_gpus: must be counts of at least 1, got {shown(counts)}"
            )
        never = learn_after_s == math.inf
        if not (is_number(learn_after_s) and (never or 0.0 < learn_after_s <= MAX_MAGNITUDE)):
            raise UsageError(
                f"option learn_after_s: must be a number above 0, got {shown(learn_after_s)}"
            )
        span = self.profiling_s
        two = isinstance(span, tuple) and len(span) == 2 and all(is_number(s) for s in span)
        if not (two and 0.0 <= span[0] <= span[1] <= MAX_MAGNITUDE):
            raise UsageError(
                "option profiling_s: must be two finite numbers >= 0, the first not above the "
                f"second, got {shown(span)}"
            )
        if not (is_whole(self.seed) and self.seed >= 0):
            raise UsageError(f"option seed: must be a whole number >= 0, got {shown(self.seed)}")

    @property
    def trivial(self) -> bool:
        """Whether policies see the true rates at once, as without an analyser."""
        return not (self.rate_error or self.measured_gpus is not None or self.profiling_s[1])
