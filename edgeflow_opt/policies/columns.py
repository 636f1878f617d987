"""The unfinished jobs as columns, and allocations as columns, for policies that compute on arrays.

A simulation offers them beside the objects (:class:`~edgeflow_opt.policies.base.JobState`), which
are made only if a policy asks for one: with hundreds of unfinished jobs, making and reading objects
takes longer than a decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.errors import PolicyError

if TYPE_CHECKING:
    from edgeflow_opt.problem import Job, Mode
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobColumns:
    """All unfinished jobs of a state, in its order.

    Parameters
    ----------
    jobs
        All jobs of the trace as the policy sees them, by number. Numbers are those of this very
        list: with another one they mean others.
    number
        (n,) number of each unfinished job.
    required_left
        (n,) credit still needed to complete, iterations, above 0.
    mode
        (n,) the mode that it is in, by its place in the modes of the job; -1 = idle.
    loss_left_s
        (n,) seconds from now for which the present run, if continued, still earns nothing.
    last_site
        (n,) site where it last ran, by its place in the sites of the state; -1 = it never ran.
    fresh
        (n,) whether it arrived at this very event.
    """

    jobs: Sequence[Job]
    number: IntArray
    required_left: FloatArray
    mode: IntArray
    loss_left_s: FloatArray
    last_site: IntArray
    fresh: BoolArray


class HasColumns(ABC):
    """What a sequence of job states inherits from that can be had as columns too.

    No protocol: to find out at run time whether an object keeps one takes as long as a decision on
    a few jobs.
    """

    __slots__ = ()

    @abstractmethod
    def columns(self) -> JobColumns | None:
        """Return the jobs as columns; None where policies do not see jobs as they are."""


class ColumnAllocation(Mapping[str, "Mode"]):
    """An allocation as columns; as a mapping it is what it is anywhere: job id to mode.

    Parameters
    ----------
    columns
        The jobs that it was made for.
    places
        (m,) which of them hold a mode: places in the columns, rising.
    modes
        (m,) the modes, by their places in the modes of the job.

    Raises
    ------
    PolicyError
        When read as a mapping, if a place or a mode is none, or a job stands twice.
    """

    __slots__ = ("_mapping", "columns", "modes", "places")

    def __init__(self, columns: JobColumns, places: IntArray, modes: IntArray) -> None:
        self.columns, self.places, self.modes = columns, places, modes
        self._mapping: dict[str, Mode] | None = None

    def _as_mapping(self) -> dict[str, Mode]:
        if self._mapping is None:
            jobs, numbers = self.columns.jobs, self.columns.number.tolist()
            mapping: dict[str, Mode] = {}
            for place, mode in zip(self.places.tolist(), self.modes.tolist(), strict=True):
                if not 0 <= place < len(numbers):
                    raise PolicyError(
                        f"allocation in columns: place {place} is none of {len(numbers)} jobs"
                    )
                job = jobs[numbers[place]]
                if job.id in mapping or not 0 <= mode < len(job.modes):
                    wrong = "is given twice" if job.id in mapping else f"has no mode {mode}"
                    raise PolicyError(f"allocation in columns: job {job.id!r} {wrong}")
                mapping[job.id] = job.modes[mode]
            self._mapping = mapping
        return self._mapping

    def __getitem__(self, job: str) -> Mode:
        return self._as_mapping()[job]

    def __iter__(self) -> Iterator[str]:
        return iter(self._as_mapping())

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return repr(self._as_mapping())
