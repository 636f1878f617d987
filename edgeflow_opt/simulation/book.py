"""The accounts of all jobs as records: what policies and the simulator compute on by array.

A simulation keeps ledgers. Once a policy asks for columns, there is a record of every unfinished
job as well, and decisions in columns change the records alone: with hundreds of unfinished jobs that
is many times faster than object by object. Whoever needs the ledgers then has them settled first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from edgeflow_opt.policies.base import JobState
from edgeflow_opt.policies.columns import ColumnAllocation, HasColumns, JobColumns
from edgeflow_opt.problem.runs import RunKind
from edgeflow_opt.problem.schedule import Allocation
from edgeflow_opt.simulation import accounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.simulation.ledger import JobLedger
    from edgeflow_opt.simulation.overhead import Overhead


class JobBook:
    """The accounts of a simulation as records, by the place of the job in the trace.

    Parameters
    ----------
    seen
        All jobs as policies see them, which must not depend on what they hold.
    sites
        The sites.
    overhead
        What runs lose when they begin, whatever the number of their GPUs.
    """

    def __init__(self, seen: Sequence[Job], sites: Sequence[Site], overhead: Overhead) -> None:
        self.jobs = seen
        self._sites = sites
        self._site_at = {site.name: place for place, site in enumerate(sites)}
        self._overhead = overhead
        self._accounts = np.zeros(0, accounts.ACCOUNT)
        """Empty until columns are asked for."""
        self._active = np.zeros(0, np.int64)
        """The unfinished jobs, in order of arrival."""
        self._fresh: list[int] = []
        """Those at the end of them that have no record yet."""
        self._changed: dict[int, JobLedger] = {}
        """Ledgers that are ahead of their records."""
        self.leads = False
        """Whether records may be ahead of their ledgers."""
        # Modes of all kinds of jobs, one kind behind the other.
        self._kinds: dict[tuple[int, float], int] = {}
        self._modes = np.zeros(0, accounts.HELD_MODE)
        self._held: list[Mode] = []
        self._past = np.zeros(0, accounts.PAST_RUN)
        self._num_past = 0

    def arrive(self, ledger: JobLedger) -> None:
        """Take in an account that is opened."""
        if len(self._accounts):
            self._fresh.append(ledger.index)
            self._changed[ledger.index] = ledger

    def touch(self, ledger: JobLedger) -> None:
        """Note that an account has changed."""
        if len(self._accounts):
            self._changed[ledger.index] = ledger

    def leave(self, ledger: JobLedger) -> None:
        """Take out an account that is closed."""
        if self._changed.pop(ledger.index, None) is not None and ledger.index in self._fresh:
            self._fresh.remove(ledger.index)
        self._active = self._active[self._active != ledger.index]

    def columns(self, now: float, num_arrived: int, ledgers: Iterable[JobLedger]) -> JobColumns:
        """Return the unfinished jobs as they stand at `now`; the last `num_arrived` just arrived.

        `ledgers` are those of all unfinished jobs in order of arrival.
        """
        if not len(self._accounts):
            self._accounts = np.zeros(len(self.jobs), accounts.ACCOUNT)
            for ledger in ledgers:
                self.arrive(ledger)
        self._catch_up()
        left, mode, loss_left_s, last_site, fresh = accounts.look(
            self._accounts, self._active, now, num_arrived
        )
        return JobColumns(
            jobs=self.jobs,
            number=self._active,
            required_left=left,
            mode=mode,
            loss_left_s=loss_left_s,
            last_site=last_site,
            fresh=fresh,
        )

    def carry_out(
        self, allocation: ColumnAllocation, capacity: Mapping[str, int], now: float
    ) -> bool:
        """Let all jobs go on as `allocation` says; from then on the records lead.

        Returns whether it gives every job at most one of its modes, on units that have the memory,
        and no site is overfull; if not, nothing is changed.
        """
        self._catch_up()
        most = self._num_past + len(self._active)
        if most > len(self._past):
            more = np.zeros(most + len(self._past) + 1024, accounts.PAST_RUN)
            more[: self._num_past] = self._past[: self._num_past]
            self._past = more
        num_past: int = accounts.carry_out(
            self._accounts, self._modes, self._active, allocation.places, allocation.modes,
            np.array([capacity[name] for name in self._site_at]), now, self._past, self._num_past,
        )  # fmt: skip
        if num_past < 0:
            return False
        self._num_past = num_past
        self.leads = True
        return True

    def next_completion(self, after: float) -> float:
        """Return the first completion later than `after` if nothing changes; +inf = none."""
        time: float = accounts.next_completion(self._accounts, self._active, after)
        return time

    def done_by(self, now: float, near: float) -> list[int]:
        """Return the jobs with credit enough by `now`, see :func:`.accounts.done_by`."""
        done: list[int] = accounts.done_by(self._accounts, self._active, now, near).tolist()
        return done

    @property
    def num_running(self) -> int:
        """How many jobs hold a mode."""
        return int(np.count_nonzero(self._accounts["mode"][self._active] >= 0))

    def settle(self, ledgers: Iterable[JobLedger]) -> None:
        """Bring `ledgers` up to their records."""
        for ledger in ledgers:
            account = self._accounts[ledger.index]
            if not account["ahead"]:
                continue
            account["ahead"] = False
            (
                mode, ledger.done, _, _, ledger.run_start, ledger.piece_start, ledger.loss,
                ledger.completes_at, site, ledger.attained, *_,
            ) = account.item()  # fmt: skip
            ledger.mode = ledger.job.modes[mode] if mode >= 0 else None
            ledger.last_site = self._sites[site].name if site >= 0 else None

    def allocations(self) -> Iterator[Allocation]:
        """Yield the runs that have ended by decisions in columns."""
        past = self._past[: self._num_past]
        columns = (past[name].tolist() for name in ("job", "mode", "start", "end"))
        for job, number, start, end in zip(*columns, strict=True):
            mode = self._held[number]
            yield Allocation(
                job=self.jobs[job].id, start=start, end=end, site=mode.site, gpus=mode.gpus
            )

    def _catch_up(self) -> None:
        """Bring all records up to their ledgers."""
        if self._fresh:
            self._active = np.concatenate([self._active, np.array(self._fresh, np.int64)])
            for index in self._fresh:
                self._enter(self._changed[index])
            self._fresh.clear()
        for index, ledger in self._changed.items():
            mode, site = ledger.mode, ledger.last_site
            account = self._accounts[index]
            account["mode"] = -1 if mode is None else ledger.job.modes.index(mode)
            account["rate"], account["gpus"] = (0.0, 0) if mode is None else (mode.rate, mode.gpus)
            account["last_site"] = -1 if site is None else self._site_at[site]
            for name in _AS_IN_THE_LEDGER:
                account[name] = getattr(ledger, name)
        self._changed.clear()

    def _enter(self, ledger: JobLedger) -> None:
        """Write down what does not change of a job."""
        job, account = self.jobs[ledger.index], self._accounts[ledger.index]
        account["required"], account["least"] = ledger.required, ledger.least
        account["restart_s"] = self._overhead.run_loss(ledger.job, RunKind.RESTARTED, 1)
        account["migration_s"] = self._overhead.run_loss(ledger.job, RunKind.MIGRATED, 1)
        # The jobs keep their modes: while these are there, no other tuple has their identity.
        key = (id(job.modes), job.memory_gib)
        first = self._kinds.get(key)
        if first is None:
            first = self._kinds[key] = len(self._held)
            self._held += job.modes
            rows = []
            for mode in job.modes:
                at = self._site_at[mode.site]
                site = self._sites[at]
                units = site.units(mode) if site.hosts(job) else 0
                rows.append((at, units, mode.gpus, mode.rate))
            self._modes = np.concatenate([self._modes, np.array(rows, accounts.HELD_MODE)])
        account["first_mode"], account["num_modes"] = first, len(job.modes)


#: What a record has as the ledger has it.
_AS_IN_THE_LEDGER = ("done", "run_start", "piece_start", "loss", "completes_at", "attained")


class SeenJobs(Sequence[JobState], HasColumns):
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
