"""How much the random tests try: enough to notice a fault, the same each time; far more on demand."""

from __future__ import annotations

import math
import os

#: Multiplies the examples of every random test: 10 = thorough, below 1 = a quick look.
EFFORT = float(os.environ.get("EDGEFLOW_EFFORT", "1"))


def examples(usual: int) -> int:
    """Return how many examples a random test draws that draws `usual` ones by default."""
    return max(1, math.ceil(usual * EFFORT))
