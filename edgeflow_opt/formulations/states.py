"""The states that a job's path runs through, slot by slot, and the rows that make it a path.

See :mod:`edgeflow_opt.formulations.malleable` for the states. Everything is built with numpy over
all jobs, modes and slots at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import ModelBuilder
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Start slot and origin of the states ``run``, which do not tell them.
NO_START = -1
NO_ORIGIN = -1

#: Origin of the first run of a job that never ran.
NEVER_RAN = -1


def continued(arrays: ProblemArrays) -> int:
    """Return the origin of the run that goes on from `now`: K, one past the sites."""
    return arrays.num_sites


@dataclass(frozen=True, slots=True, eq=False)
class RunningStates:
    """Running states, a column each; all arrays have the same length.

    Parameters
    ----------
    column
        Column of the model.
    mode, slot
        What is held, when.
    start
        Slot in which the run begins, :data:`NO_START` for ``run`` states.
    origin
        Site where the job ran before the run, :data:`NEVER_RAN`, or :func:`continued`;
        :data:`NO_ORIGIN` for ``run`` states.
    is_begin
        Whether the run begins here.
    """

    column: IntArray
    mode: IntArray
    slot: IntArray
    start: IntArray
    origin: IntArray
    is_begin: BoolArray

    def keys(self, arrays: ProblemArrays) -> IntArray:
        """Return a number for each state, unique to it."""
        return state_keys(arrays, self.mode, self.slot, self.start, self.origin)

    def losses(self, arrays: ProblemArrays) -> FloatArray:
        """Return the loss in seconds of the run of each state; 0 for ``run`` states.

        0 for a first run, `loss_left_s` for the run that goes on, `restart_s` on the site of the
        last run, else `migration_s`.
        """
        job = arrays.mode_job[self.mode]
        same_site = self.origin == arrays.mode_site[self.mode]
        after = np.where(same_site, arrays.restart_s[job], arrays.migration_s[job])
        after = np.where(self.origin == continued(arrays), arrays.loss_left_s[job], after)
        return np.where(self.origin == NEVER_RAN, 0.0, after)

    def credits(self, arrays: ProblemArrays, useful: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what each state earns by the deadline and by the horizon, iterations.

        Slot s of a run begun at t_a with loss L earns by the deadline d
        ``rate (|[t_s, min(t_{s+1}, d))| - |[t_a, t_a + L) within it|)``.
        """
        job = arrays.mode_job[self.mode]
        rate = arrays.mode_rate[self.mode]
        begin = arrays.boundaries[np.maximum(self.start, 0)]
        # A begin plus a loss would be rounded to what the clock can tell.
        lost = self.losses(arrays) - (arrays.boundaries[self.slot] - begin)
        lost = np.where(self.start == NO_START, 0.0, np.maximum(0.0, lost))
        return (
            rate * np.maximum(0.0, useful[job, self.slot] - lost),
            rate * np.maximum(0.0, arrays.lengths[self.slot] - lost),
        )


def joined(*parts: RunningStates) -> RunningStates:
    """Return the states of all `parts` together."""
    return RunningStates(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(RunningStates))
    )


@dataclass(frozen=True, slots=True, eq=False)
class IdleStates:
    """Idle states, a column each: job, slot, and the site where the job last ran."""

    column: IntArray
    job: IntArray
    slot: IntArray
    site: IntArray


class KeyIndex:
    """Finds the place of a key among keys.

    Parameters
    ----------
    keys
        (N,) distinct keys.
    """

    def __init__(self, keys: IntArray) -> None:
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def places(self, wanted: IntArray) -> IntArray:
        """Return the place of each wanted key, -1 where it is not there."""
        if not len(self._sorted):
            return np.full(len(wanted), -1, dtype=np.int64)
        near = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[near] == wanted, self._order[near], -1)


def state_keys(
    arrays: ProblemArrays, mode: IntArray, slot: IntArray, start: IntArray, origin: IntArray
) -> IntArray:
    """Return a number for each (mode, slot, start, origin), unique to it."""
    run = (mode * (arrays.num_slots + 1) + start + 1) * (arrays.num_sites + 2) + origin + 1
    keys: IntArray = run * arrays.num_slots + slot
    return keys


def counting(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for groups of the given sizes laid end to end, group and offset of each member."""
    group = np.repeat(np.arange(len(counts)), counts)
    offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return group, offset


def _mode_slots(
    arrays: ProblemArrays, modes: IntArray, end_slot: IntArray
) -> tuple[IntArray, IntArray]:
    """Return every pair of a mode and a slot in which its job may run and its units exist."""
    job = arrays.mode_job[modes]
    first = arrays.first_slot[job]
    group, offset = counting(np.maximum(0, end_slot[job] - first))
    mode, slot = modes[group], first[group] + offset
    fits = arrays.mode_units[mode] <= arrays.capacity[arrays.mode_site[mode], slot]
    return mode[fits], slot[fits]


def plain_states(
    builder: ModelBuilder, arrays: ProblemArrays, modes: IntArray, end_slot: IntArray
) -> RunningStates:
    """Add the states ``run`` of `modes`, whose jobs need no others."""
    mode, slot = _mode_slots(arrays, modes, end_slot)
    return _run_states(builder, mode, slot)


def _run_states(builder: ModelBuilder, mode: IntArray, slot: IntArray) -> RunningStates:
    count = len(mode)
    return RunningStates(
        column=builder.add_columns("run", count),
        mode=mode,
        slot=slot,
        start=np.full(count, NO_START, dtype=np.int64),
        origin=np.full(count, NO_ORIGIN, dtype=np.int64),
        is_begin=np.zeros(count, dtype=np.bool_),
    )


def _may_come_from(arrays: ProblemArrays, job: IntArray, slot: IntArray, origin: int) -> BoolArray:
    """Return whether `job` can be idle in `slot`, having last run on `origin`.

    That is its initial state, or, for a malleable job, a site of its modes once it has run.
    """
    possible = arrays.last_site[job] == origin
    if origin >= 0:
        has_mode = np.zeros(arrays.num_jobs, dtype=np.bool_)
        has_mode[arrays.mode_job[arrays.mode_kept & (arrays.mode_site == origin)]] = True
        possible = possible | (
            arrays.malleable[job] & has_mode[job] & (slot > arrays.first_slot[job])
        )
    result: BoolArray = possible
    return result


def path_states(
    builder: ModelBuilder, arrays: ProblemArrays, modes: IntArray, end_slot: IntArray
) -> RunningStates:
    """Add the states ``start``, ``warm`` and ``run`` of `modes`, whose jobs follow a path."""
    mode, slot = _mode_slots(arrays, modes, end_slot)
    job = arrays.mode_job[mode]
    goes_on = (slot == 0) & (mode == arrays.running_mode[job])
    # A moldable job that runs already may only go on.
    may_begin = ~goes_on & (arrays.malleable[job] | (arrays.running_mode[job] < 0))
    chosen = [goes_on]
    origins = [continued(arrays)]
    for origin in range(NEVER_RAN, arrays.num_sites):
        chosen.append(may_begin & _may_come_from(arrays, job, slot, origin))
        origins.append(origin)
    counts = [int(flags.sum()) for flags in chosen]
    begin_mode = np.concatenate([mode[flags] for flags in chosen])
    begin_slot = np.concatenate([slot[flags] for flags in chosen])
    begin = RunningStates(
        column=builder.add_columns("start", len(begin_mode)),
        mode=begin_mode,
        slot=begin_slot,
        start=begin_slot,
        origin=np.repeat(np.array(origins, dtype=np.int64), counts),
        is_begin=np.ones(len(begin_mode), dtype=np.bool_),
    )
    later = slot > arrays.first_slot[job]
    return joined(
        begin,
        _warm_states(builder, arrays, begin, end_slot),
        _run_states(builder, mode[later], slot[later]),
    )


def _warm_states(
    builder: ModelBuilder, arrays: ProblemArrays, begin: RunningStates, end_slot: IntArray
) -> RunningStates:
    """Add the later slots of the runs `begin` that their losses still overlap."""
    starts, losses = arrays.boundaries[begin.start], begin.losses(arrays)
    last = np.searchsorted(arrays.boundaries, starts + losses, side="left") - 1
    # That sum is rounded to what the clock can tell; a loss may reach one slot further, or less.
    following = np.minimum(last + 1, arrays.num_slots)
    last += losses > arrays.boundaries[following] - starts
    last -= losses <= arrays.boundaries[np.minimum(last, arrays.num_slots)] - starts
    last = np.minimum(last, end_slot[arrays.mode_job[begin.mode]] - 1)
    group, offset = counting(np.maximum(0, last - begin.start))
    mode, first = begin.mode[group], begin.start[group]
    slot = first + 1 + offset
    # A run ends where the capacity falls below its units, and its warm states with it.
    holds = np.ones(len(mode), dtype=np.bool_)
    for step in range(int(offset.max()) + 1 if len(offset) else 0):
        passed = np.minimum(first + 1 + step, slot)
        holds &= arrays.capacity[arrays.mode_site[mode], passed] >= arrays.mode_units[mode]
    group, mode, first, slot = group[holds], mode[holds], first[holds], slot[holds]
    return RunningStates(
        column=builder.add_columns("warm", len(mode)),
        mode=mode,
        slot=slot,
        start=first,
        origin=begin.origin[group],
        is_begin=np.zeros(len(mode), dtype=np.bool_),
    )


def add_path_rows(
    builder: ModelBuilder,
    arrays: ProblemArrays,
    states: RunningStates,
    end_slot: IntArray,
    jobs: IntArray,
    z: IntArray | None,
) -> IdleStates:
    """Add the rows that make the states of `jobs` a path, and its idle states.

    * balance: for every slot s and site h, what is idle or begins a run there, having last run on
      h, was idle so before, or has just left a mode of h:
      idle[s,h] + sum_m start[s,m,h] = idle[s-1,h] + sum_{m on h} (x[s-1,m] - goes on[s,m]);
    * go_on: run[s,m] <= run[s-1,m] + the states of m whose loss ends in s-1;
    * stay_warm: warm[s] <= the state of the same run in s-1;
    * no_abutting: where a run has more loss left than a restart, it is not ended and begun again
      in the same mode at once (such allocations are one run): start + those states <= flow.

    Parameters
    ----------
    states
        The running states of `jobs`.
    jobs
        Jobs that follow a path.
    z
        (n,) column of the flow of each job; None = the flow is 1.
    """
    idle = _idle_states(builder, arrays, jobs, end_slot)
    num_slots, num_sites = arrays.num_slots, arrays.num_sites
    job = arrays.mode_job[states.mode]
    site = arrays.mode_site[states.mode]

    def node_key(j: IntArray, s: IntArray, h: IntArray) -> IntArray:
        return (j * num_slots + s) * (num_sites + 1) + h + 1

    index = KeyIndex(node_key(idle.job, idle.slot, idle.site))

    def row_at(j: IntArray, s: IntArray, h: IntArray) -> IntArray:
        place = np.where(s < num_slots, index.places(node_key(j, s, h)), -1)
        return np.where(place >= 0, rows[place], -1)

    def add(row: IntArray, column: IntArray, value: float) -> None:
        builder.add_entries(row[row >= 0], column[row >= 0], value)

    is_source = (idle.slot == arrays.first_slot[idle.job]) & (
        idle.site == arrays.last_site[idle.job]
    )
    supply = np.where(is_source, 1.0 if z is None else 0.0, 0.0)
    rows = builder.add_rows("balance", len(idle.job), lower=supply, upper=supply)
    if z is not None:
        add(rows[is_source], z[idle.job[is_source]], -1.0)
    add(rows, idle.column, 1.0)
    add(row_at(idle.job, idle.slot + 1, idle.site), idle.column, -1.0)
    begin = states.is_begin
    origin = np.where(states.origin == continued(arrays), arrays.last_site[job], states.origin)
    add(row_at(job[begin], states.slot[begin], origin[begin]), states.column[begin], 1.0)
    # What a moldable job leaves is gone: it has no second run.
    returns = arrays.malleable[job]
    add(row_at(job[returns], states.slot[returns] + 1, site[returns]), states.column[returns], -1.0)
    back = returns & ~begin
    add(row_at(job[back], states.slot[back], site[back]), states.column[back], 1.0)
    _add_going_on_rows(builder, arrays, states)
    _add_no_abutting_rows(builder, arrays, states, z)
    return idle


def _idle_states(
    builder: ModelBuilder, arrays: ProblemArrays, jobs: IntArray, end_slot: IntArray
) -> IdleStates:
    """Add the idle states that the jobs can be in."""
    group, offset = counting(np.maximum(0, end_slot[jobs] - arrays.first_slot[jobs]))
    job = jobs[group]
    slot = arrays.first_slot[job] + offset
    chosen = [
        _may_come_from(arrays, job, slot, origin) for origin in range(NEVER_RAN, arrays.num_sites)
    ]
    counts = [int(flags.sum()) for flags in chosen]
    job_of = np.concatenate([job[flags] for flags in chosen])
    return IdleStates(
        column=builder.add_columns("idle", len(job_of)),
        job=job_of,
        slot=np.concatenate([slot[flags] for flags in chosen]),
        site=np.repeat(np.arange(NEVER_RAN, arrays.num_sites), counts),
    )


def _add_going_on_rows(builder: ModelBuilder, arrays: ProblemArrays, states: RunningStates) -> None:
    """Add the rows go_on and stay_warm."""
    index = KeyIndex(states.keys(arrays))
    steady = np.nonzero(states.start == NO_START)[0]
    in_loss = np.nonzero(states.start != NO_START)[0]

    def place(which: IntArray, step: int, of_run: bool) -> IntArray:
        """Return the place of the states one `step` of slots away, of the run or steady."""
        slot = states.slot[which] + step
        start = states.start[which] if of_run else np.full(len(which), NO_START)
        origin = states.origin[which] if of_run else np.full(len(which), NO_ORIGIN)
        found = index.places(state_keys(arrays, states.mode[which], slot, start, origin))
        # Keys of slots off the grid are those of other states.
        return np.where((slot >= 0) & (slot < arrays.num_slots), found, -1)

    rows = builder.add_rows("go_on", len(steady), upper=0.0)
    row_of = np.full(len(states.column), -1, dtype=np.int64)
    row_of[steady] = rows
    builder.add_entries(rows, states.column[steady], 1.0)
    leaves_loss = in_loss[place(in_loss, 1, of_run=True) < 0]
    feeding = np.concatenate([steady, leaves_loss])
    fed = place(feeding, 1, of_run=False)
    builder.add_entries(row_of[fed[fed >= 0]], states.column[feeding[fed >= 0]], -1.0)

    warm = in_loss[~states.is_begin[in_loss]]
    earlier = place(warm, -1, of_run=True)
    rows = builder.add_rows("stay_warm", len(warm), upper=0.0)
    builder.add_entries(rows, states.column[warm], 1.0)
    builder.add_entries(rows, states.column[earlier], -1.0)


def _add_no_abutting_rows(
    builder: ModelBuilder, arrays: ProblemArrays, states: RunningStates, z: IntArray | None
) -> None:
    """Add the rows no_abutting."""
    job = arrays.mode_job[states.mode]
    begin = arrays.boundaries[np.maximum(states.start, 0)]
    left = states.losses(arrays) - (arrays.boundaries[states.slot + 1] - begin)
    costly = (states.start != NO_START) & (left > arrays.restart_s[job])
    costly &= states.slot + 1 < arrays.num_slots
    restart = states.is_begin & (states.origin == arrays.mode_site[states.mode])
    row_of = np.full((arrays.num_modes, arrays.num_slots), -1, dtype=np.int64)
    row_of[states.mode[costly], states.slot[costly] + 1] = 0
    restart &= row_of[states.mode, states.slot] == 0
    row_of[:] = -1
    rows = builder.add_rows("no_abutting", int(restart.sum()), upper=1.0 if z is None else 0.0)
    row_of[states.mode[restart], states.slot[restart]] = rows
    builder.add_entries(rows, states.column[restart], 1.0)
    if z is not None:
        builder.add_entries(rows, z[job[restart]], -1.0)
    hit = np.nonzero(costly)[0]
    row = row_of[states.mode[hit], states.slot[hit] + 1]
    builder.add_entries(row[row >= 0], states.column[hit[row >= 0]], 1.0)
