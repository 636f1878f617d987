"""The EdgeFlow heuristic as an online policy, in continuous time."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.policies.base import Decision
from edgeflow_opt.solvers.greedy import GreedyOptions
from edgeflow_opt.solvers.greedy.kernel import Heuristic, Planned
from edgeflow_opt.solvers.greedy.tables import JOB, MODE, WORK_MARGIN, Modes, level_table
from edgeflow_opt.solvers.kernels import GREEDY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set

    from edgeflow_opt.policies.base import ClusterState
    from edgeflow_opt.problem import Job, Mode, Site
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray

#: Jobs that may be kept in the tables beyond four times the unfinished ones.
_KEPT_JOBS = 1000


def own_signature(constructor: Callable[..., None]) -> inspect.Signature:
    """Return the signature of a class with this ``__init__``, for variants with other options."""
    _, *parameters = inspect.signature(constructor).parameters.values()
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

    #: Modules whose kernels the policy calls.
    kernels = (GREEDY,)

    def __init__(self, **options: Any) -> None:
        self._options = GreedyOptions(**options)
        self._heuristic = Heuristic(
            self._options, self._select_jobs, carried_out=False, keeps_desk=True
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
        rows = [self._tables.row(job_state.job) for job_state in state.jobs]
        planned = self._plan(state, rows, chosen, now_only)
        plans = planned.plans
        planned_jobs = np.flatnonzero(plans.table["segments"])
        first = plans.table["first"][planned_jobs]
        at_once = plans.pool["start"][first] <= 0.0
        allocation: dict[str, Mode] = {}
        for index, mode in zip(
            planned_jobs[at_once].tolist(), plans.pool["mode"][first[at_once]].tolist(), strict=True
        ):
            job = state.jobs[index].job
            allocation[job.id] = job.modes[mode - rows[index].first_mode]
        out = np.flatnonzero(planned.refused).tolist()
        decision = Decision(
            allocation=allocation,
            wake_up=self._wake_up(state, planned),
            refused=frozenset(state.jobs[index].job.id for index in out),
        )
        return decision, planned

    def _wake_up(self, state: ClusterState, planned: Planned) -> float | None:
        """Return when to be asked again; None, since the published rule never does."""
        return None

    def _plan(
        self, state: ClusterState, rows: list[_Row], chosen: BoolArray | None, now_only: bool
    ) -> Planned:
        """Return the plans of all jobs, in seconds from now: clocks may be at 1e9 s and more."""
        tables = self._tables
        site_index = tables.site_index
        times, free = _capacities(state.now, state.sites)
        numbers = np.array([row.number for row in rows], dtype=np.int64)
        changing = np.array(
            [
                (s.required_left, -1, 0.0, site_index.get(s.last_site, -1))
                if s.mode is None
                else (s.required_left, row.running(s.mode), s.loss_left_s, site_index[s.last_site])
                for row, s in zip(rows, state.jobs, strict=True)
            ]
        ).T
        jobs = tables.jobs[numbers]
        jobs["deadline"] -= state.now
        jobs["work"] = changing[0] * (1.0 + WORK_MARGIN)
        run_mode = changing[1].astype(np.int64)
        jobs["run_mode"] = run_mode
        jobs["last_site"] = changing[3]
        if self._options.charge_losses:
            jobs["loss_left_s"] = changing[2]
        else:
            jobs["restart_s"] = jobs["migration_s"] = 0.0
        if state.arrived:
            jobs["fresh"] = [s.job.id in state.arrived for s in state.jobs]
        stuck = (run_mode >= 0) & ~tables.usable[run_mode]
        if stuck.any():
            jobs["run_mode"][stuck] = -1
            jobs["first_piece"][stuck & ~jobs["malleable"]] = len(times)
        modes = Modes(
            table=tables.modes[: tables.num_modes],
            level_start=tables.level_start[numbers],
            level_mode=tables.level_mode[: tables.num_levels],
        )
        return self._heuristic.plan(
            times, free, tables.is_cloud, False, jobs, modes, chosen, now_only
        )


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

    def running(self, mode: Mode) -> int:
        """Return the number of the mode in which the job runs."""
        return self.mode_index[mode.site, mode.gpus]


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
        self._knee_cap = knee_cap
        self._memory = {site.name: site for site in sites}
        self.site_index: dict[str | None, int] = {s.name: i for i, s in enumerate(sites)}
        self.is_cloud = np.array([site.kind == "cloud" for site in sites], dtype=np.bool_)
        self._rows: dict[str, _Row] = {}
        self._kinds: dict[tuple[int, float], _Kind] = {}
        self.num_modes = 0
        self.num_levels = 0
        self.modes = np.zeros(256, dtype=MODE)
        self.usable = np.zeros(256, dtype=np.bool_)
        self.level_mode = np.zeros(256, dtype=np.int64)
        self.jobs = np.zeros(256, dtype=JOB)
        """Records of jobs by number: deadlines on the clock, losses as stated."""
        self.level_start = np.zeros((256, len(sites) + 1), dtype=np.int64)

    def serve(self, sites: Sequence[Site]) -> bool:
        """Whether the tables were made for these sites; capacities may differ."""
        return self._key == _site_key(sites)

    def crowded(self, num_jobs: int) -> bool:
        """Whether most jobs kept are not among the `num_jobs` unfinished ones."""
        return len(self._rows) > 4 * num_jobs + _KEPT_JOBS

    def row(self, job: Job) -> _Row:
        """Return where `job` stands, after entering it where it is new or has changed."""
        row = self._rows.get(job.id)
        if row is None or row.job is not job:
            row = self._rows[job.id] = self._enter(
                job, len(self._rows) if row is None else row.number
            )
        return row

    def _enter(self, job: Job, number: int) -> _Row:
        """Write the record of `job`."""
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
        return _Row(job, number, kind.first_mode, kind.mode_index)

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


def _site_key(sites: Sequence[Site]) -> tuple[tuple[str, str, float | None], ...]:
    return tuple((site.name, site.kind, site.memory_gib) for site in sites)
