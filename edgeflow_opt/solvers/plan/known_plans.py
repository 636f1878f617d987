"""The plans known so far, each once, in the order in which they came."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.formulations.plan_columns import JobPlans
from edgeflow_opt.problem.arrays import IntArray


class KnownPlans:
    """Plans of single jobs, in kept modes of the pricing data.

    Parameters
    ----------
    num_slots
        Number of slots T.
    """

    def __init__(self, num_slots: int) -> None:
        self._known: set[tuple[int, bytes]] = set()
        self._jobs: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        self._rows: list[IntArray] = [np.zeros((0, num_slots), dtype=np.int64)]

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> JobPlans:
        """Return all plans."""
        if len(self._jobs) > 1:
            self._jobs, self._rows = [np.concatenate(self._jobs)], [np.concatenate(self._rows)]
        return JobPlans(self._jobs[0], self._rows[0])

    def add(self, job: IntArray, rows: IntArray) -> JobPlans:
        """Take note of plans, `job` (N,) and `rows` (N, T); return those that are new."""
        new = np.zeros(len(job), dtype=np.bool_)
        for index, (j, row) in enumerate(zip(job.tolist(), rows.astype(np.int32), strict=True)):
            key = (j, row.tobytes())
            if key not in self._known:
                self._known.add(key)
                new[index] = True
        if new.any():
            self._jobs.append(job[new])
            self._rows.append(rows[new])
        return JobPlans(job[new], rows[new])
