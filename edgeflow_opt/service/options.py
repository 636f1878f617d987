"""How a session plans."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import as_tuple, is_number, is_whole, plain, shown
from edgeflow_opt.solvers import SOLVERS


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How a session plans.

    Parameters
    ----------
    rungs
        The solvers above the floor, the quickest first; empty = the floor alone.
    slot_s, max_slots
        The grid: short slots first, growing to the last deadline
        (:func:`~edgeflow_opt.policies.exact.rolling_grid`).
    seed
        Of the solvers.
    leftovers
        Whether units that a plan leaves over now are handed on, where that is not below the floor.
    follow
        What the solvers of `rungs` are for. ``"select"``: they only choose which jobs are to be met,
        and only where their set is worth more than that of the selecting heuristic by `margin`. The
        heuristic plans for this set, with constant minimum shares, which leave room for the jobs to
        come; where it cannot meet all of it, the plan of the solver is followed all the same. Level
        1 is never below that of ``edgeflow-select``; the levels below, which the next event changes
        anyhow, may be. ``"plan"``: the best plan is followed, to its last level.

        Jobs met on seven generated traces of 60 jobs under overload (load 2 and 3, 16 GPUs and 4
        edge servers, 0.2 s a decision on a busy machine, ``python -m benchmarks.session_traces``):
        375 by ``"select"``, 370 by ``"plan"`` and without any solver; 373 by the policy
        ``edgeflow-select`` and 376 by ``exact``, which plan in continuous time.
    margin
        By how much the set of a solver has to be worth more, in weights of the lightest job, at
        least 0; for ``"select"`` only.

    Raises
    ------
    UsageError
        If one makes no sense.
    """

    rungs: tuple[str, ...] = ("price", "auto")
    slot_s: float = 60.0
    max_slots: int = 96
    seed: int = 0
    leftovers: bool = True
    follow: str = "select"
    margin: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "rungs", plain(as_tuple(self.rungs)))
        if not isinstance(self.rungs, tuple):
            raise UsageError(
                f"option rungs: must be a tuple of names of solvers, got {shown(self.rungs)}"
            )
        for rung in self.rungs:
            if not isinstance(rung, str):
                raise UsageError(f"option rungs: must be names of solvers, got {shown(rung)}")
            if ":" not in rung and rung not in SOLVERS.names():
                SOLVERS.get(rung)  # says which there are
        if not (is_number(self.slot_s) and 0.0 < self.slot_s < 1e15):
            raise UsageError(
                f"option slot_s: must be a number of seconds above 0, got {shown(self.slot_s)}"
            )
        if not isinstance(self.leftovers, bool):
            raise UsageError(
                f"option leftovers: must be true or false, got {shown(self.leftovers)}"
            )
        if not isinstance(self.follow, str) or self.follow not in ("plan", "select"):
            raise UsageError(f"option follow: must be 'plan' or 'select', got {shown(self.follow)}")
        if not (is_number(self.margin) and 0.0 <= self.margin < 1e15):
            raise UsageError(f"option margin: must be a number >= 0, got {shown(self.margin)}")
        for name, least, most in (("max_slots", 1, 10_000), ("seed", 0, 2**31 - 1)):
            value = getattr(self, name)
            if not is_whole(value) or not least <= value <= most:
                rule = f"must be a whole number from {least} to {most}"
                raise UsageError(f"option {name}: {rule}, got {shown(value)}")
