"""The accounts of all jobs as columns: what policies and the simulator compute on by array.

The ledgers remain what counts; a column is written anew from the ledger once that has changed. All
operations are those of the ledger, in their order, so that both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from edgeflow_opt.policies.base import JobState
from edgeflow_opt.policies.columns import ColumnAllocation, JobColumns

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.simulation.ledger import JobLedger

# Columns of the numbers of a job: what changes, then what does not.
_DONE, _RATE, _PIECE_START, _LOSS, _REQUIRED, _LEAST = range(6)


class JobBook:
    """The accounts of a simulation as columns, by the place of the job in the trace.

    Parameters
    ----------
    seen
        All jobs as policies see them, which must not depend on what they hold.
    sites
        The sites.
    """

    def __init__(self, seen: Sequence[Job], sites: Sequence[Site]) -> None:
        self.jobs = seen
        self._sites = sites
        self._site_at = {site.name: place for place, site in enumerate(sites)}
        self._numbers = np.zeros((len(seen), 6))
        self.mode = np.full(len(seen), -1, dtype=np.int64)
        """The mode of each job by its place in the modes of the job; -1 = idle."""
        self._last_site = np.full(len(seen), -1, dtype=np.int64)
        self._changed: dict[int, JobLedger] = {}
        self.active = np.zeros(0, dtype=np.int64)
        """The unfinished jobs, in order of arrival."""
        self._gone: list[int] = []
        self._fresh: list[int] = []
        # Modes of all kinds of jobs, one kind behind the other.
        self._first_mode = np.full(len(seen), -1, dtype=np.int64)
        self._num_modes = np.zeros(len(seen), dtype=np.int64)
        self._kinds: dict[tuple[int, float], int] = {}
        self._places: dict[int, dict[int, int]] = {}
        self._units = np.zeros(0, dtype=np.int64)
        self._site = np.zeros(0, dtype=np.int64)

    def arrive(self, ledger: JobLedger) -> None:
        """Take in an account that is opened."""
        self._fresh.append(ledger.index)
        self.touch(ledger)

    def touch(self, ledger: JobLedger) -> None:
        """Note that an account has changed."""
        self._changed[ledger.index] = ledger

    def leave(self, ledger: JobLedger) -> None:
        """Take out an account that is closed."""
        self._gone.append(ledger.index)
        self._changed.pop(ledger.index, None)

    def columns(self, now: float, num_arrived: int) -> JobColumns:
        """Return the unfinished jobs as they stand at `now`; the last `num_arrived` just arrived."""
        self._catch_up()
        active = self.active
        numbers = self._numbers[active]
        mode = self.mode[active]
        runs = mode >= 0
        since, loss = numbers[:, _PIECE_START], numbers[:, _LOSS]
        earned = numbers[:, _RATE] * np.maximum(now - since - loss, 0.0)
        left = numbers[:, _REQUIRED] - numbers[:, _DONE] - earned
        fresh = np.zeros(len(active), dtype=np.bool_)
        fresh[len(active) - num_arrived :] = True
        return JobColumns(
            jobs=self.jobs,
            number=active,
            required_left=np.where(runs, np.maximum(left, numbers[:, _LEAST]), left),
            mode=mode,
            loss_left_s=np.where(runs, np.maximum(since + loss - now, 0.0), 0.0),
            last_site=self._last_site[active],
            fresh=fresh,
        )

    def keeps_the_rules(self, allocation: ColumnAllocation, capacity: Mapping[str, int]) -> bool:
        """Whether `allocation` gives every job at most one of its modes, and no site is overfull.

        Whether units of the sites have the memory is part of that. False calls for the check that
        says what is wrong.
        """
        places, modes = allocation.places, allocation.modes
        if not len(places):
            return True
        if places[0] < 0 or places[-1] >= len(self.active) or (places[1:] <= places[:-1]).any():
            return False
        jobs = self.active[places]
        if (modes < 0).any() or (modes >= self._num_modes[jobs]).any():
            return False
        chosen = self._first_mode[jobs] + modes
        units = self._units[chosen]
        if (units <= 0).any():
            return False
        used = np.bincount(self._site[chosen], units, minlength=len(self._sites))
        return all(used[place] <= capacity[name] for name, place in self._site_at.items())

    def changes(self, allocation: ColumnAllocation) -> list[tuple[int, int]]:
        """Return the jobs whose modes `allocation` changes, with what they are to hold (-1 = none)."""
        wanted = np.full(len(self.active), -1, dtype=np.int64)
        wanted[allocation.places] = allocation.modes
        found = np.flatnonzero(wanted != self.mode[self.active])
        return list(zip(self.active[found].tolist(), wanted[found].tolist(), strict=True))

    def _catch_up(self) -> None:
        """Bring all columns up to date."""
        if self._gone:
            stays = np.ones(len(self.jobs), dtype=np.bool_)
            stays[self._gone] = False
            self.active = self.active[stays[self.active]]
            self._fresh = [index for index in self._fresh if stays[index]]
            self._gone.clear()
        if self._fresh:
            self.active = np.concatenate([self.active, self._fresh])
            for index in self._fresh:
                self._enter(self._changed[index])
            self._fresh.clear()
        if not self._changed:
            return
        rows: list[float] = []
        site_at, sites = self._site_at, []
        for index, ledger in self._changed.items():
            mode = ledger.mode
            if mode is None:
                rows += (ledger.done, 0.0, ledger.piece_start, ledger.loss, -1)
            else:
                place = self._place_of(index, mode)
                rows += (ledger.done, mode.rate, ledger.piece_start, ledger.loss, place)
            sites.append(-1 if ledger.last_site is None else site_at[ledger.last_site])
        changed = list(self._changed)
        table = np.array(rows).reshape(-1, _REQUIRED + 1)
        self._numbers[changed, :_REQUIRED] = table[:, :_REQUIRED]
        self.mode[changed] = table[:, _REQUIRED]
        self._last_site[changed] = sites
        self._changed.clear()

    def _place_of(self, index: int, mode: Mode) -> int:
        """Return the place of `mode` in the modes of a job."""
        modes = self.jobs[index].modes
        place = self._places[id(modes)].get(id(mode))
        return modes.index(mode) if place is None else place

    def _enter(self, ledger: JobLedger) -> None:
        """Write down what does not change of a job."""
        index = ledger.index
        job = self.jobs[index]
        self._numbers[index, _REQUIRED:] = ledger.required, ledger.least
        # The jobs keep their modes: while these are there, no other tuple has their identity.
        key = (id(job.modes), job.memory_gib)
        first = self._kinds.get(key)
        if first is None:
            first = self._kinds[key] = len(self._units)
            self._places[id(job.modes)] = {id(mode): at for at, mode in enumerate(job.modes)}
            sites = [self._site_at[mode.site] for mode in job.modes]
            units = [
                self._sites[site].units(mode) if self._sites[site].hosts(job) else 0
                for site, mode in zip(sites, job.modes, strict=True)
            ]
            self._site = np.concatenate([self._site, np.array(sites, dtype=np.int64)])
            self._units = np.concatenate([self._units, np.array(units, dtype=np.int64)])
        self._first_mode[index] = first
        self._num_modes[index] = len(job.modes)


class SeenJobs(Sequence[JobState]):
    """The unfinished jobs at an event, as objects that are made when one is asked for.

    They tell of this event only: at the next one they are void.

    Parameters
    ----------
    number
        How many there are.
    make
        Makes the objects.
    columns
        Makes the columns.
    """

    __slots__ = ("_columns", "_jobs", "_make", "_number")

    def __init__(
        self,
        number: int,
        make: Callable[[], tuple[JobState, ...]],
        columns: Callable[[], JobColumns],
    ) -> None:
        self._number, self._make, self._columns = number, make, columns
        self._jobs: tuple[JobState, ...] | None = None

    def columns(self) -> JobColumns:
        """Return the jobs as columns."""
        return self._columns()

    def _made(self) -> tuple[JobState, ...]:
        if self._jobs is None:
            self._jobs = self._make()
        return self._jobs

    @overload
    def __getitem__(self, index: int) -> JobState: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[JobState, ...]: ...

    def __getitem__(self, index: int | slice) -> JobState | tuple[JobState, ...]:
        return self._made()[index]

    def __iter__(self) -> Iterator[JobState]:
        return iter(self._made())

    def __len__(self) -> int:
        return self._number
