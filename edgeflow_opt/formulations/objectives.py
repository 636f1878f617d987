"""The levels of the objective, in their lexicographic order."""

from __future__ import annotations

from typing import Literal

Level = Literal["met", "progress", "leftover", "cost", "reconfigurations"]

#: Most important first. Values of all levels are maximised: cost and reconfigurations are negated.
LEVELS: tuple[Level, ...] = ("met", "progress", "leftover", "cost", "reconfigurations")
