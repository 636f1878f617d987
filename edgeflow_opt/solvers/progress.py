"""What is told while a solver runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One improvement while a solver runs.

    Parameters
    ----------
    seconds
        Since the solve began.
    value
        Best weighted number of jobs met so far; None = no schedule yet.
    bound
        Best proven bound on level 1 so far; None = none yet.
    source
        Which part of which solver found it.
    """

    seconds: float
    value: float | None
    bound: float | None
    source: str
