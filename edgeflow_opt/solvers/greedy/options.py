"""The options of the EdgeFlow heuristic: the same names for the solvers and the online policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import is_finite, shown

#: Values of the options that are a choice, the default first. Kernels see the position.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "share": ("auto", "two_level", "constant"),
    "late": ("first", "last", "nothing"),
    "admission": ("none", "elasticflow", "per_job"),
    "hopeless_by": ("max_gpus", "free_gpus", "plan"),
    "edge_order": ("list", "deadline"),
    "rule_3_ends": ("no_server", "none_late"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyOptions:
    """How the EdgeFlow heuristic reads the points that its paper leaves open.

    The defaults are the method as published (Gu, Jin, Liu, Journal of Software 36(12), 2025); where
    the paper is silent the field says what was chosen.

    Parameters
    ----------
    share
        Shape of a minimum share: ``"two_level"`` = late-heavy, the next lower level (below the
        least one: nothing) until the latest time from which its level does all the work
        (ElasticFlow's published code, which re-plans every minute); ``"constant"`` = its level
        until the job is done; ``"auto"`` = two levels in the solvers, whose plans are carried out,
        constant in the policies, which re-plan at events only: a job kept on the lower level
        until the next event misses its deadline.
    late
        What step 1 reserves for a job whose deadline cannot be met: ``"first"`` = in its turn of
        the deadline order the most GPUs that are free, until it is done (as published: hopeless
        jobs are served first); ``"last"`` = the same after all jobs that can be met; ``"nothing"``
        = no reservation, only left-overs. Without effect in the selecting variant, whose jobs
        reserve nothing once they are out.
    admission
        Which jobs that never ran are refused: ``"none"`` (the paper names no admission control);
        ``"elasticflow"`` = one job that would miss, old or new, refuses all new ones
        (ElasticFlow's published code); ``"per_job"`` = one by one, a new job is refused if more
        jobs would miss with it than without it. Refused jobs get nothing.
    hopeless_by
        Reading of the allocation by which rule 3 of Algorithm 1 guesses the end of a late job:
        ``"max_gpus"`` = its most GPUs from now on (chosen: the paper is silent);
        ``"free_gpus"`` = what it could hold of the cloud GPUs left over now; ``"plan"`` = its
        plan of step 1.
    edge_order
        Order in which Algorithm 1 goes through the jobs: ``"list"`` as they are given (the
        published one; by arrival online), or ``"deadline"``.
    rule_1, rule_2, rule_3
        Whether Algorithm 1 keeps jobs on the edge, moves jobs there that it can finish while cloud
        GPUs are free, and moves hopeless ones there.
    rule_3_ends
        When rule 3 ends, for the text leaves the end of its loop open: ``"no_server"`` = it moves
        late jobs while servers last (chosen: it is what is written); ``"none_late"`` = the cloud is
        planned anew after each, and it ends once no job is late. The difference is that a job which
        is late only because of a hopeless one is not moved with it; see
        :class:`~edgeflow_opt.policies.edgeflow.EdgeFlowPolicy` for an example.
    knee_cap
        Whether levels that do not raise the rate are left out (the paper assumes rates that rise
        up to the knee; real ones fall beyond it).
    charge_losses
        Whether plans take account of the seconds that restarts and migrations cost (the paper
        charges them in its evaluation only; chosen: yes, since a just-in-time plan that forgets
        them misses). No effect where they are zero.
    slack_s
        Plans aim at this many seconds before the deadline, and at the deadline itself where that
        is too early; at least 0 (paper: 0).
    wait_on_edge
        In the selecting variant, whether a job that is met and waits for its share of the cloud runs
        on a free edge server meanwhile, where that saves GPU time of the cloud (ours: the paper sends
        to the edge whom it completes, or whom nothing can save). No plan meets fewer jobs for it unless
        `charge_losses` is off: then a job may be moved whose loss nobody has reckoned with.
    elastic
        Whether step 3 hands out the cloud GPUs that are left over now.
    fill
        Whether jobs that have no plan (best effort, or nothing reserved) get what is
        left over at the end, now and later (the paper knows no such jobs; chosen: yes).
    """

    share: str = "auto"
    late: str = "first"
    admission: str = "none"
    hopeless_by: str = "max_gpus"
    edge_order: str = "list"
    rule_1: bool = True
    rule_2: bool = True
    rule_3: bool = True
    rule_3_ends: str = "no_server"
    knee_cap: bool = True
    charge_losses: bool = True
    slack_s: float = 0.0
    wait_on_edge: bool = True
    elastic: bool = True
    fill: bool = True

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in CHOICES:
                if not isinstance(value, str) or value not in CHOICES[field.name]:
                    raise UsageError(
                        f"option {field.name}: must be one of "
                        f"{', '.join(CHOICES[field.name])}, got {shown(value)}"
                    )
            elif field.name == "slack_s":
                if not (is_finite(value) and value >= 0):
                    raise UsageError(
                        f"option slack_s: must be a number of seconds >= 0, got {shown(value)}"
                    )
            elif not isinstance(value, bool):
                raise UsageError(f"option {field.name}: must be true or false, got {shown(value)}")

    def code(self, name: str) -> int:
        """Return the position of the value of the choice `name` in :data:`CHOICES`."""
        return CHOICES[name].index(getattr(self, name))


#: One line per option, for lists of parameters.
MEANINGS: Mapping[str, str] = {
    "share": "shape of a minimum share: auto, two_level or constant",
    "late": "what step 1 reserves for a job that cannot be met: first, last or nothing",
    "admission": "which new jobs are refused: none, elasticflow or per_job",
    "hopeless_by": "how rule 3 guesses the end of a late job: max_gpus, free_gpus or plan",
    "edge_order": "order of the jobs in Algorithm 1: list or deadline",
    "rule_1": "keep jobs on the edge while servers last",
    "rule_2": "move jobs to the edge that it can finish, while cloud GPUs are free",
    "rule_3": "move the most hopeless late jobs to the edge",
    "rule_3_ends": "when rule 3 ends: no_server, or none_late with new plans after each move",
    "knee_cap": "leave out levels that do not raise the rate",
    "charge_losses": "plan with restart and migration losses",
    "slack_s": "seconds before the deadline at which plans aim",
    "wait_on_edge": "with job selection, run on the edge while waiting for the cloud",
    "elastic": "hand out the cloud GPUs left over now (step 3)",
    "fill": "give what is left over at the end to jobs without a plan",
}


def options_from(params: Mapping[str, Any]) -> GreedyOptions:
    """Return the options that `params` name.

    Raises
    ------
    UsageError
        If a name is not known or a value makes no sense.
    """
    for name in params:
        if name not in MEANINGS:
            raise UsageError(
                f"option {name!r} of the greedy is not known; known are {', '.join(MEANINGS)}"
            )
    return GreedyOptions(**params)
