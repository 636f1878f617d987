"""Kernels on the accounts of all jobs as records: what they earn, who is done, what changes.

The operations are those of :class:`~edgeflow_opt.simulation.ledger.JobLedger` in their order, so
that both give the same numbers.
"""

from __future__ import annotations

import math

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.greedy.tables import Record, Records, entry, kernel

#: The account of a job: what changes of it, what does not, and whether the record is `ahead` of the
#: ledger. `mode` = the mode held, by its place in the modes of the job (-1 = idle); `last_site` by
#: its place in the sites (-1 = it never ran); `first_mode` and `num_modes` tell where its modes
#: stand in the table of all modes. The others are fields of the ledger.
ACCOUNT = np.dtype(
    [
        ("mode", np.int64),
        ("done", np.float64),
        ("rate", np.float64),
        ("gpus", np.int64),
        ("run_start", np.float64),
        ("piece_start", np.float64),
        ("loss", np.float64),
        ("completes_at", np.float64),
        ("last_site", np.int64),
        ("attained", np.float64),
        ("required", np.float64),
        ("least", np.float64),
        ("restart_s", np.float64),
        ("migration_s", np.float64),
        ("first_mode", np.int64),
        ("num_modes", np.int64),
        ("ahead", np.bool_),
    ],
    align=True,
)

#: A mode; `units` 0 = no unit of its site can host the job.
HELD_MODE = np.dtype(
    [("site", np.int64), ("units", np.int64), ("gpus", np.int64), ("rate", np.float64)], align=True
)

#: A run that has ended: the job by its place in the trace, the mode by its number in the table.
PAST_RUN = np.dtype(
    [("job", np.int64), ("mode", np.int64), ("start", np.float64), ("end", np.float64)], align=True
)


@kernel
def _earned(account: Record, time: float) -> float:
    """Return the credit of the present piece of a run by `time`."""
    paid = time - account.piece_start - account.loss
    return account.rate * paid if paid > 0.0 else 0.0


@kernel
def _complete_at(account: Record, time: float) -> bool:
    """Whether the credit by `time` suffices."""
    earned = _earned(account, time)
    return earned > 0.0 and account.done + earned >= account.required


@entry
def look(
    accounts: Records, active: IntArray, now: float, num_arrived: int
) -> tuple[FloatArray, IntArray, FloatArray, IntArray, BoolArray]:
    """Return how the jobs of `active` stand, of which the last `num_arrived` are new.

    Returns
    -------
    required_left, mode, loss_left_s, last_site, fresh
        See :class:`~edgeflow_opt.policies.columns.JobColumns`.
    """
    number = len(active)
    required_left, loss_left_s = np.empty(number), np.zeros(number)
    mode, last_site = np.empty(number, np.int64), np.empty(number, np.int64)
    fresh = np.zeros(number, np.bool_)
    for i in range(number):
        account = accounts[active[i]]
        mode[i], last_site[i] = account.mode, account.last_site
        fresh[i] = i >= number - num_arrived
        left = account.required - account.done
        if account.mode >= 0:
            left = max(left - _earned(account, now), account.least)
            loss_left_s[i] = max(account.piece_start + account.loss - now, 0.0)
        required_left[i] = left
    return required_left, mode, loss_left_s, last_site, fresh


@entry
def next_completion(accounts: Records, active: IntArray, after: float) -> float:
    """Return the first time later than `after` at which a job of `active` is done, +inf = never."""
    first = math.inf
    for i in range(len(active)):
        time = accounts[active[i]].completes_at
        if after < time < first:
            first = time
    return first


@entry
def done_by(accounts: Records, active: IntArray, now: float, near: float) -> IntArray:
    """Return which jobs of `active` have credit enough by `now`.

    Only such as complete by `near`, which is later than `now` by more than rounding, are looked at.
    """
    done = np.empty(len(active), np.int64)
    count = 0
    for i in range(len(active)):
        account = accounts[active[i]]
        if account.mode >= 0 and account.completes_at <= near and _complete_at(account, now):
            done[count] = active[i]
            count += 1
    return done[:count]


@entry
def carry_out(
    accounts: Records,
    modes: Records,
    active: IntArray,
    places: IntArray,
    chosen: IntArray,
    free: IntArray,
    now: float,
    past: Records,
    num_past: int,
) -> int:
    """Let the jobs of `active` go on in the modes of a decision; note the runs that end.

    Parameters
    ----------
    accounts, modes
        Records of all jobs and of all modes.
    active
        The unfinished jobs.
    places, chosen
        Which of them hold a mode, and that mode by its place in the modes of the job.
    free
        (K,) usable units of the sites; counted down.
    now
        Seconds.
    past, num_past
        Runs that have ended, and how many; there is room for one more of every job.

    Returns
    -------
    num_past
        How many runs have ended now; -1 = the decision breaks a rule, and nothing was changed: it
        gives a job a mode that is none of its own, or none at all of `active` or two of them, or it
        overfills a site or uses units without the memory.
    """
    before = -1
    for p in range(len(places)):
        if not before < places[p] < len(active):
            return -1
        before = places[p]
        account = accounts[active[before]]
        if not 0 <= chosen[p] < account.num_modes:
            return -1
        mode = modes[account.first_mode + chosen[p]]
        free[mode.site] -= mode.units
        if mode.units <= 0 or free[mode.site] < 0:
            return -1
    p = 0
    for i in range(len(active)):
        wanted = -1
        if p < len(places) and places[p] == i:
            wanted = chosen[p]
            p += 1
        account = accounts[active[i]]
        if wanted == account.mode:
            continue
        account.ahead = True
        if account.mode >= 0:
            account.done += _earned(account, now)
            account.attained += account.gpus * (now - account.run_start)
            past[num_past].job = active[i]
            past[num_past].mode = account.first_mode + account.mode
            past[num_past].start = account.run_start
            past[num_past].end = now
            num_past += 1
        account.mode = wanted
        account.completes_at = math.inf
        if wanted >= 0:
            _begin(account, modes[account.first_mode + wanted], now)
    return num_past


@kernel
def _begin(account: Record, mode: Record, now: float) -> None:
    """Begin a run in `mode`; foresee its end as the ledger does."""
    account.rate, account.gpus = mode.rate, mode.gpus
    account.run_start = account.piece_start = now
    if account.last_site < 0:
        account.loss = 0.0
    elif account.last_site != mode.site:
        account.loss = account.migration_s
    else:
        account.loss = account.restart_s
    account.last_site = mode.site
    left = account.required - account.done
    time = account.piece_start + account.loss + left / account.rate
    step = abs(np.spacing(time))
    while not _complete_at(account, time):
        time += step
        step *= 2.0
    account.completes_at = time


def warm_up() -> None:
    """Compile all kernels of this module, or load them from the cache."""
    accounts, modes = np.zeros(1, ACCOUNT), np.zeros(1, HELD_MODE)
    # A job with one mode, which begins and is done.
    accounts["mode"] = accounts["last_site"] = -1
    accounts["num_modes"] = accounts["required"] = 1
    modes["units"] = modes["gpus"] = modes["rate"] = 1
    one, first = np.zeros(1, np.int64), np.ones(1, np.int64)
    carry_out(accounts, modes, one, one, one, first, 0.0, np.zeros(1, PAST_RUN), 0)
    look(accounts, one, 0.0, 0)
    next_completion(accounts, one, 0.0)
    done_by(accounts, one, 1.0, 1.0)
