"""The EdgeFlow heuristic as an online policy, in continuous time."""

from __future__ import annotations

import inspect
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.columns import ColumnAllocation, HasColumns
from edgeflow_opt.solvers.greedy import GreedyOptions
from edgeflow_opt.solvers.greedy.heuristic import Heuristic, Planned
from edgeflow_opt.solvers.greedy.tables import JOB, MODE, Modes, level_table, present
from edgeflow_opt.solvers.kernels import ACCOUNTS, GREEDY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from edgeflow_opt.policies.base import ClusterState
    from edgeflow_opt.policies.columns import JobColumns
    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray

#: Points in time so many units in the last place of the clock apart are one, and so many seconds: what
#: rounding has added up to from event to event is far less.
RESOLUTION_ULPS, RESOLUTION_S = 4.0, 2.0**-10

#: Jobs that may be kept in the tables beyond four times the unfinished ones.
_KEPT_JOBS = 1000


def own_signature(
    constructor: Callable[..., None], parent: type | None = None
) -> inspect.Signature:
    """Return the signature of a class with this ``__init__``, for variants with other options.

    Its ``**options``, if it has such, stand for the parameters of `parent`.
    """
    _, *parameters = inspect.signature(constructor).parameters.values()
    if parent is not None:
        own = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
        parameters = [*own, *inspect.signature(parent).parameters.values()]
    return inspect.Signature(parameters)


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """A decision with what is behind it.

    Parameters
    ----------
    decision
        What is to be carried out now.
    met
        Ids of the jobs whose plans meet their deadlines.
    """

    decision: Decision
    met: frozenset[str]


class EdgeFlowPolicy:
    """EdgeFlow's three steps at every event: minimum shares, offloading, elastic scaling.

    At each event all unfinished jobs are planned anew, in continuous time, by the same kernels as
    the solver ``greedy``, and every job gets what its plan holds at that moment until the next
    event; the policy never asks to be woken. Of the future it uses what the capacities of the
    sites reveal.

    As published it can get worse with more edge servers. Take a cloud of two GPUs; a job runs at
    rate 1 on one of them, at 1.8 on both, at 3 on the four of its table, and at 0.5 on an edge
    server. At time 0 come *a*, of work 20 and deadline 10, which is hopeless (20 / 1.8 > 10), and
    *b*, of work 10 and deadline 12. Minimum shares go by deadline: *a* holds both GPUs until 11.1,
    so *b* is late too. Rule 3 moves late jobs that hold less than their most GPUs to the edge, the
    least deadline minus estimated end first: *a* (10 - 20 / 3) before *b* (12 - 10 / 3).

    * No server: *a* blocks the cloud, nobody is met. One server: *a* goes there, the cloud is
      planned anew, and *b* is met.
    * Two servers: both go. *b* would end there at 20 and is late; the cloud is empty, and rule 1
      keeps *b* where it is. Nobody is met.

    This is so because rule 3 moves late jobs while servers last, and a job that is late only since
    a hopeless one is before it is late as well at that moment. The text available to us does not
    settle how its loop ends; with ``rule_3_ends="none_late"`` the cloud is planned anew after each
    move, and *b* stays and is met with any number of servers. So it is the reading that gets worse,
    maybe not the method. Jobs met of 240 (``generate_trace(30, seed, load=1.2, cloud_gpus=16)`` for
    seeds 0 to 7, simulated with 8 GPUs and without overhead) by edge servers:

    ============================== ===== ===== ===== ===== ===== =====
    ..                                 0     1     2     4     8    16
    ============================== ===== ===== ===== ===== ===== =====
    as published, ``no_server``       87   111   136   142   130    87
    ``rule_3_ends="none_late"``       87   111   155   190   195   195
    ``late="last"``                  196   196   197   197   196   196
    edgeflow-select                  200   201   201   201   201   201
    ============================== ===== ===== ===== ===== ===== =====

    With 16 servers the published rule sends 161 of the 240 jobs to the edge, of which 9 are met.

    Source: Gu, Jin, Liu, "Cloud-edge Coordinated Scheduling Method for Deep Learning Jobs", Journal
    of Software 36(12), 2025, whose minimum shares and elastic scaling are those of ElasticFlow (Gu
    et al., ASPLOS 2023).

    Parameters
    ----------
    **options
        Fields of :class:`~edgeflow_opt.solvers.greedy.GreedyOptions`. Admission control looks at
        the jobs that arrive at the event.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    __signature__ = inspect.signature(GreedyOptions)
    _select_jobs = False
    #: Whether decisions need the plans only as far as they hold something now.
    _now_only = True

    #: Modules whose kernels the policy calls, itself or where it asks for columns.
    kernels = (GREEDY, ACCOUNTS)

    def __init__(self, **options: Any) -> None:
        self._options = GreedyOptions(**options)
        self._heuristic = Heuristic(
            self._options, self._select_jobs, carried_out=False, keeps_room=True
        )
        self._tables = _JobTables((), self._options.knee_cap)

    def decide(self, state: ClusterState) -> Decision:
        """Return the modes that the plans of all jobs hold now, and the jobs refused."""
        return self._decided(state, now_only=self._now_only)[0]

    def plan(self, state: ClusterState, chosen: Set[str] | None = None) -> OnlinePlan:
        """Return the decision, and which deadlines the plans behind it meet.

        Parameters
        ----------
        state
            The cluster.
        chosen
            With job selection: ids of the jobs to be met if they can be; the others get what these
            leave. None = the rule selects among all.
        """
        mine = None
        if chosen is not None:
            mine = np.array([seen.job.id in chosen for seen in state.jobs], dtype=np.bool_)
        decision, planned = self._decided(state, mine)
        met: list[int] = (
            [] if planned is None else np.flatnonzero(planned.plans.table["met"]).tolist()
        )
        jobs = (state.jobs[index].job for index in met)
        return OnlinePlan(decision, frozenset(job.id for job in jobs if job.deadline is not None))

    def _decided(
        self, state: ClusterState, chosen: BoolArray | None = None, *, now_only: bool = False
    ) -> tuple[Decision, Planned | None]:
        """Return the decision and the plans behind it; None where there is no job."""
        if not state.jobs:
            return Decision(allocation={}), None
        if not self._tables.serve(state.sites) or self._tables.crowded(len(state.jobs)):
            self._tables = _JobTables(state.sites, self._options.knee_cap)
        columns = state.jobs.columns() if isinstance(state.jobs, HasColumns) else None
        allocation: Mapping[str, Mode]
        if columns is not None:
            changing, first_mode = self._changing_columns(columns)
            planned = self._plan(state, changing, chosen, now_only)
            # Work space of the heuristic, which is written again at the next event.
            holders = planned.holders.copy()
            held = planned.held - first_mode[holders]
            allocation = ColumnAllocation(columns, holders, held)
        else:
            rows, changing = self._changing(state)
            planned = self._plan(state, changing, chosen, now_only)
            allocation = {}
            for index, mode in zip(planned.holders.tolist(), planned.held.tolist(), strict=True):
                job = state.jobs[index].job
                allocation[job.id] = job.modes[mode - rows[index].first_mode]
        refused: list[int] = []
        if self._options.admission != "none":
            refused = np.flatnonzero(planned.refused).tolist()
        decision = Decision(
            allocation=allocation,
            wake_up=self._wake_up(state, planned),
            refused=frozenset(state.jobs[index].job.id for index in refused),
        )
        return decision, planned

    def _wake_up(self, state: ClusterState, planned: Planned) -> float | None:
        """Return when to be asked again; None, since the published rule never does."""
        return None

    def _changing(self, state: ClusterState) -> tuple[list[_Row], FloatArray]:
        """Return where the jobs stand in the tables, and what changes of them (see `present`)."""
        tables = self._tables
        site_index, arrived = tables.site_index, state.arrived
        known, enter = tables.rows, tables.enter
        rows: list[_Row] = []
        changing: list[float] = []
        for seen in state.jobs:
            job, mode, site = seen.job, seen.mode, seen.last_site
            name = job.id
            row = known.get(name)
            if row is None or row.job is not job:
                row = enter(job)
            rows.append(row)
            fresh = name in arrived
            if mode is None:
                last = -1 if site is None else site_index.get(site, -1)
                changing += (row.number, seen.required_left, -1, 0.0, last, fresh)
            else:
                number = row.mode_index[mode.site, mode.gpus]
                changing += (
                    row.number, seen.required_left, number, seen.loss_left_s, site_index[site],
                    fresh,
                )  # fmt: skip
        return rows, np.array(changing, dtype=np.float64).reshape(len(rows), -1)

    def _changing_columns(self, columns: JobColumns) -> tuple[FloatArray, IntArray]:
        """Return what changes of the jobs (see `present`), and the numbers of their first modes."""
        row_at, first_mode = self._tables.rows_of(columns)
        changing = np.empty((len(row_at), 6))
        changing[:, 0] = row_at
        changing[:, 1] = columns.required_left
        changing[:, 2] = np.where(columns.mode >= 0, first_mode + columns.mode, -1)
        changing[:, 3] = columns.loss_left_s
        changing[:, 4] = columns.last_site
        changing[:, 5] = columns.fresh
        return changing, first_mode

    def _plan(
        self, state: ClusterState, changing: FloatArray, chosen: BoolArray | None, now_only: bool
    ) -> Planned:
        """Return the plans of all jobs, in seconds from now: clocks may be at 1e9 s and more."""
        tables = self._tables
        times, free = tables.capacities(state)
        jobs, level_start = present(
            tables.jobs, tables.level_start, changing, float(state.now),
            self._options.charge_losses, tables.usable, len(times),
        )  # fmt: skip
        modes = Modes(tables.modes[: tables.num_modes], level_start, tables.level_mode)
        return self._heuristic.plan(
            times, free, tables.is_cloud, False, jobs, modes, chosen, now_only,
            max(RESOLUTION_S, RESOLUTION_ULPS * math.ulp(state.now)),
        )  # fmt: skip


def _capacities(now: float, sites: Sequence[Site]) -> tuple[FloatArray, IntArray]:
    """Return from when on capacities hold, seconds from now, the last +inf, and the units."""
    later = {time for site in sites for time, _ in site.capacity if time > now}
    begins = [now, *sorted(later)]
    free = np.array([[site.capacity_at(time) for time in begins] for site in sites])
    return np.array([*(time - now for time in begins), np.inf]), free


@dataclass(slots=True)
class _Row:
    """Where a job stands in the tables.

    Parameters
    ----------
    job
        The job as it was when its record was written.
    number
        Number of its record.
    first_mode
        Number of its first mode.
    mode_index
        Number of each mode by its site and GPUs.
    """

    job: Job
    number: int
    first_mode: int
    mode_index: dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The modes and levels of jobs that have the same modes and the same memory.

    Parameters
    ----------
    modes
        The modes themselves: while they are kept here, no other tuple has their identity.
    first_mode
        Number of the first one.
    mode_index
        Number of each mode by its site and GPUs.
    level_start
        (K+1,) as in :class:`~edgeflow_opt.solvers.greedy.tables.Modes`.
    """

    modes: tuple[Mode, ...]
    first_mode: int
    mode_index: dict[tuple[str, int], int]
    level_start: IntArray


class _JobTables:
    """What does not change of all jobs seen, kept between events.

    Parameters
    ----------
    sites
        The sites, by whose names, kinds and memories the tables are made.
    knee_cap
        Whether levels that do not raise the rate are left out.
    """

    def __init__(self, sites: Sequence[Site], knee_cap: bool) -> None:
        self._key = _site_key(sites)
        self._served = tuple(sites)
        self._lasting: tuple[FloatArray, IntArray] | None = None
        self._lasting_since = 0.0
        self._knee_cap = knee_cap
        self._memory = {site.name: site for site in sites}
        self.site_index: dict[str | None, int] = {s.name: i for i, s in enumerate(sites)}
        self.is_cloud = np.array([site.kind == "cloud" for site in sites], dtype=np.bool_)
        self.rows: dict[str, _Row] = {}
        """Where jobs stand, by id."""
        self._kinds: dict[tuple[int, float], _Kind] = {}
        self.num_modes = 0
        self.num_levels = 0
        self.modes = np.zeros(256, dtype=MODE)
        self.usable = np.zeros(256, dtype=np.bool_)
        self.level_mode = np.zeros(256, dtype=np.int64)
        self.jobs = np.zeros(256, dtype=JOB)
        """Records of jobs by number: deadlines on the clock, losses as stated."""
        self.level_start = np.zeros((256, len(sites) + 1), dtype=np.int64)
        # Where the jobs of a simulation stand by their number there (-1 = nowhere yet).
        self._numbered: Sequence[Job] = ()
        self._row_at = np.zeros(0, dtype=np.int64)
        self._first_mode = np.zeros(0, dtype=np.int64)

    def rows_of(self, columns: JobColumns) -> tuple[IntArray, IntArray]:
        """Return the numbers of the records of jobs and of their first modes; enter new ones."""
        if self._numbered is not columns.jobs:
            self._numbered = columns.jobs
            self._row_at = np.full(len(columns.jobs), -1, dtype=np.int64)
            self._first_mode = np.zeros(len(columns.jobs), dtype=np.int64)
        numbers = columns.number
        rows = self._row_at[numbers]
        if len(rows) and rows.min() < 0:
            for number in numbers[rows < 0].tolist():
                row = self.enter(columns.jobs[number])
                self._row_at[number], self._first_mode[number] = row.number, row.first_mode
            rows = self._row_at[numbers]
        return rows, self._first_mode[numbers]

    def serve(self, sites: Sequence[Site]) -> bool:
        """Whether the tables were made for these sites; capacities may differ."""
        if same_sites(sites, self._served):
            return True
        if self._key != _site_key(sites):
            return False
        self._served, self._lasting = tuple(sites), None
        return True

    def capacities(self, state: ClusterState) -> tuple[FloatArray, IntArray]:
        """Return from when on capacities hold, see :func:`_capacities`, for sites that it serves."""
        if self._lasting is not None and state.now >= self._lasting_since:
            return self._lasting
        found = _capacities(state.now, state.sites)
        if found[1].shape[1] == 1:
            # What holds from now on holds later too.
            self._lasting, self._lasting_since = found, state.now
        return found

    def crowded(self, num_jobs: int) -> bool:
        """Whether most jobs kept are not among the `num_jobs` unfinished ones."""
        return len(self.rows) > 4 * num_jobs + _KEPT_JOBS

    def enter(self, job: Job) -> _Row:
        """Write the record of `job`, which is new or has changed; return where it stands."""
        old = self.rows.get(job.id)
        number = len(self.rows) if old is None else old.number
        key = (id(job.modes), job.memory_gib)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._enter_kind(job)
        if number >= len(self.jobs):
            self.jobs = np.concatenate([self.jobs, np.zeros_like(self.jobs)])
            self.level_start = np.concatenate([self.level_start, np.zeros_like(self.level_start)])
        record = self.jobs[number]
        record["deadline"] = np.inf if job.deadline is None else job.deadline
        record["weight"] = job.weight
        record["restart_s"] = job.restart_s
        record["migration_s"] = job.migration_s
        record["must"] = job.must_meet
        record["malleable"] = job.malleable
        self.level_start[number] = kind.level_start
        row = self.rows[job.id] = _Row(job, number, kind.first_mode, kind.mode_index)
        return row

    def _enter_kind(self, job: Job) -> _Kind:
        """Append the modes and levels of `job`."""
        first, count = self.num_modes, len(job.modes)
        while first + count > len(self.modes):
            self.modes = np.concatenate([self.modes, np.zeros_like(self.modes)])
            self.usable = np.concatenate([self.usable, np.zeros_like(self.usable)])
            self.level_mode = np.concatenate([self.level_mode, np.zeros_like(self.level_mode)])
        new = slice(first, first + count)
        sites = [self._memory[mode.site] for mode in job.modes]
        own = self.modes[new]
        own["site"] = [self.site_index[mode.site] for mode in job.modes]
        own["units"] = [s.units(m) for s, m in zip(sites, job.modes, strict=True)]
        own["gpus"] = [mode.gpus for mode in job.modes]
        own["rate"] = [mode.rate for mode in job.modes]
        self.usable[new] = [site.hosts(job) for site in sites]
        self.num_modes = first + count
        level_start, level_mode = level_table(
            np.array([0, count]), own, self.usable[new], self.is_cloud, self._knee_cap
        )
        begin = self.num_levels
        self.level_mode[begin : begin + len(level_mode)] = first + level_mode
        self.num_levels = begin + len(level_mode)
        mode_index = {(m.site, m.gpus): first + i for i, m in enumerate(job.modes)}
        return _Kind(job.modes, first, mode_index, begin + level_start[0])


def same_sites(sites: Sequence[Site], others: Sequence[Site]) -> bool:
    """Whether these are the very same sites."""
    return len(sites) == len(others) and all(map(operator.is_, sites, others))


def _site_key(sites: Sequence[Site]) -> tuple[tuple[str, str, float | None], ...]:
    return tuple((site.name, site.kind, site.memory_gib) for site in sites)
