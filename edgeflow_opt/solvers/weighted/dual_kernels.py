"""Compiled kernels of the weighted dual: what a job earns at most at given prices, and how.

Both ways to earn, being met and working on without that, are one problem: with the worth q of an
iteration, falling by `late` for what is done after the deadline, the function

    F(q) = q need - sum_s max(0, max_m (rate_m (q early_s + max(0, q - late) after_s) - price_sm))

is concave, with early_s and after_s the seconds of slot s before and after the deadline. Its maximum
is found by cutting planes in one dimension: two tangents that enclose it meet in a point, at which
the next one is drawn, until it lies on both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edgeflow_opt.solvers.compiled import entry, kernel
from edgeflow_opt.solvers.price.hull_kernels import useful_length

#: Most tangents of one search, and how close to the maximum it goes, relative to the larger part.
_MOST_TANGENTS = np.int64(60)
_CLOSE = 1e-11

#: A multiplier from before is first tried with this much room.
_NEAR = 1.05

#: Rise of the multiplier while it is too low.
_RISE = 4.0

#: Rows of the work array for the choices of a job that is met, of one that is not, and for one only.
_MET, _UNMET, _ONLY = np.int64(0), np.int64(2), np.int64(0)


@kernel
def respond(
    data: Any,
    worths: Any,
    prices: Any,
    j: int,
    stop: int,
    q: float,
    late: float,
    modes: Any,
    row: int,
) -> tuple[float, float, float]:
    """Choose the best mode of job `j` in each slot before `stop` at worth `q` of an iteration.

    Parameters
    ----------
    late
        By how much an iteration is worth less after the deadline; +inf = it is worth nothing.
    modes, row
        (R, T) output, and the row of it that takes the modes; -1 = idle.

    Returns
    -------
    value, work, size
        The sum over slots in F(q); the iterations that count; sum of the absolute values added.
    """
    value = 0.0
    work = 0.0
    size = 0.0
    after_worth = max(0.0, q - late)
    for s in range(data.jobs[j].first, stop):
        length = data.boundaries[s + 1] - data.boundaries[s]
        early = useful_length(data, j, s)
        worth = q * early + after_worth * (length - early)
        counted = length if after_worth > 0.0 else early
        best = 0.0
        mode: Any = np.int64(-1)
        largest = 0.0
        for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
            k = data.modes[m].site
            if data.modes[m].units > data.capacity[k, s]:
                continue
            earned = data.modes[m].rate * worth
            price = prices[k, s] * data.modes[m].units + worths.mode_cost[m] * length
            largest = max(largest, earned + price)
            if earned - price > best:
                best = earned - price
                mode = m
        modes[row, s] = mode
        if mode >= 0:
            work += data.modes[mode].rate * counted
        value += best
        size += largest
    return value, work, size


@kernel
def _most_work(data: Any, j: int) -> float:
    """Return the work that job `j` could do by its deadline if it were alone."""
    total = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        fastest = 0.0
        for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
            if data.modes[m].units <= data.capacity[data.modes[m].site, s]:
                fastest = max(fastest, data.modes[m].rate)
        total += fastest * useful_length(data, j, s)
    return total


@kernel
def _copy_row(modes: Any, source: int, target: int) -> None:
    for s in range(modes.shape[1]):
        modes[target, s] = modes[source, s]


@kernel
def _maximise(
    data: Any, worths: Any, prices: Any, j: int, stop: int, late: float, need: float,
    begin: float, top: float, enough: float, modes: Any, row: int,
) -> tuple[float, float, float]:  # fmt: skip
    """Maximise F over ``0 <= q <= top``.

    Parameters
    ----------
    begin
        Where to begin, above 0.
    enough
        A value of F that ends the search.
    modes, row
        (R, T) output: in `row` and the next one two choices of modes whose mixture is best. The last
        row is overwritten.

    Returns
    -------
    q, value, share
        The maximum, and the share of the second choice in the mixture.
    """
    modes[row] = -1
    low_q = 0.0
    low_value = 0.0
    low_work = 0.0
    high_q = 0.0
    high_value = 0.0
    high_work = -1.0
    best_q = 0.0
    best = 0.0
    trial = len(modes) - 1
    q = min(begin, top)
    for _ in range(_MOST_TANGENTS):
        paid, work, size = respond(data, worths, prices, j, stop, q, late, modes, trial)
        value = q * need - paid
        if value > best:
            best = value
            best_q = q
        if work < need:
            low_q, low_value, low_work = q, value, work
            _copy_row(modes, trial, row)
            if q >= top:
                return q, value, 0.0
        else:
            high_q, high_value, high_work = q, value, work
            _copy_row(modes, trial, row + 1)
        if best >= enough:
            return best_q, best, 0.0 if high_work < 0.0 else 1.0
        if high_work < 0.0:
            q = min(top, q * (_NEAR if low_q == begin else _RISE))
            continue
        if high_q == begin and low_q == 0.0 and q == begin:
            q = begin / _NEAR
            continue
        # Where the two tangents meet; the lower one rises, the upper one falls or is level.
        slope = need - low_work
        fall = high_work - need
        q = (high_value - low_value + slope * low_q + fall * high_q) / (slope + fall)
        q = min(max(q, low_q), high_q)
        meet = low_value + slope * (q - low_q)
        if meet - best <= _CLOSE * (size + abs(meet)) or not low_q < q < high_q:
            return best_q, best, slope / (slope + fall)
    return best_q, best, 1.0 if high_work >= 0.0 else 0.0


@kernel
def _use(data: Any, j: int, stop: int, modes: Any, row: int, share: float, usage: Any) -> None:
    """Add the units of a row of `modes` and the next one, the latter counting for `share`."""
    for s in range(data.jobs[j].first, stop):
        for which in range(2):
            m = modes[row + which, s]
            if m >= 0:
                part = share if which == 1 else 1.0 - share
                usage[data.modes[m].site, s] += part * data.modes[m].units


@kernel
def _unmet_stop(data: Any, worths: Any, j: int) -> int:
    """Return the first slot in which work is worth nothing while the job is not met."""
    if worths.jobs[j].leftover > 0.0:
        return len(data.boundaries) - 1
    return data.jobs[j].end


@entry
def weigh_jobs(
    data: Any, worths: Any, prices: Any, begin: int, stop: int, multiplier: Any, usage: Any
) -> float:
    """Price jobs ``begin : stop`` and return the sum of what they earn at most.

    Parameters
    ----------
    multiplier
        (n, 2) worth of an iteration if the job is met, and if it is not: where to begin (0 = not
        known), and output.
    usage
        (K, T) output, added to: units used by the best plans.
    """
    num_slots = len(data.boundaries) - 1
    modes = np.full((5, num_slots), -1)
    total = 0.0
    for j in range(begin, stop):
        if not data.jobs[j].priced:
            continue
        unmet = 0.0
        unmet_share = 0.0
        unmet_stop = _unmet_stop(data, worths, j)
        top = worths.jobs[j].progress + worths.jobs[j].leftover
        if top > 0.0 and not data.jobs[j].must_meet:
            at = multiplier[j, 1] if multiplier[j, 1] > 0.0 else top
            q, value, unmet_share = _maximise(
                data, worths, prices, j, unmet_stop, worths.jobs[j].progress, worths.jobs[j].work,
                at, top, np.inf, modes, _UNMET,
            )  # fmt: skip
            multiplier[j, 1] = q
            unmet = max(0.0, top * worths.jobs[j].work - value - worths.jobs[j].change)
        met = -np.inf
        met_share = 0.0
        if (worths.jobs[j].met > 0.0 or data.jobs[j].must_meet) and _most_work(
            data, j
        ) >= data.jobs[j].need:
            at = (
                multiplier[j, 0]
                if multiplier[j, 0] > 0.0
                else max(worths.jobs[j].met, 1e-9) / data.jobs[j].need
            )
            enough = (
                np.inf
                if data.jobs[j].must_meet
                else worths.jobs[j].met - worths.jobs[j].change - unmet
            )
            q, value, met_share = _maximise(
                data, worths, prices, j, data.jobs[j].end, np.inf, data.jobs[j].need,
                at, np.inf, enough, modes, _MET,
            )  # fmt: skip
            multiplier[j, 0] = q
            met = worths.jobs[j].met - worths.jobs[j].change - value
        if met > unmet or (data.jobs[j].must_meet and met > -np.inf):
            total += met
            _use(data, j, data.jobs[j].end, modes, _MET, met_share, usage)
        elif unmet > 0.0:
            total += unmet
            _use(data, j, unmet_stop, modes, _UNMET, unmet_share, usage)
    return total


@entry
def certified_gains(
    data: Any, worths: Any, prices: Any, begin: int, stop: int, multiplier: Any,
    met: Any, unmet: Any, magnitude: Any,
) -> None:  # fmt: skip
    """Recompute from above what jobs ``begin : stop`` earn, from their multipliers alone.

    Parameters
    ----------
    met, unmet
        (n,) output: most that the job earns if it is met (-inf where it cannot be), and if it is
        not (-inf where it must be).
    magnitude
        (n,) output: sum of the absolute values that were added, for the rounding slack.
    """
    modes = np.full((1, len(data.boundaries) - 1), -1)
    for j in range(begin, stop):
        met[j] = -np.inf
        unmet[j] = -np.inf if data.jobs[j].must_meet else 0.0
        magnitude[j] = 0.0
        if not data.jobs[j].priced:
            continue
        top = worths.jobs[j].progress + worths.jobs[j].leftover
        if top > 0.0 and not data.jobs[j].must_meet:
            q = min(top, multiplier[j, 1])
            paid, _, size = respond(
                data,
                worths,
                prices,
                j,
                _unmet_stop(data, worths, j),
                q,
                worths.jobs[j].progress,
                modes,
                _ONLY,
            )
            # (top - q) work + sum_s max(0, ...); idle earns nothing.
            unmet[j] = max(
                0.0,
                (top - q) * worths.jobs[j].work
                + paid
                + worths.jobs[j].rounding
                - worths.jobs[j].change,
            )
            magnitude[j] += (
                (top + q) * worths.jobs[j].work
                + size
                + worths.jobs[j].rounding
                + worths.jobs[j].change
            )
        if (worths.jobs[j].met > 0.0 or data.jobs[j].must_meet) and _most_work(
            data, j
        ) >= data.jobs[j].need:
            q = multiplier[j, 0]
            paid, _, size = respond(
                data, worths, prices, j, data.jobs[j].end, q, np.inf, modes, _ONLY
            )
            # No plan is paid for working.
            met[j] = (
                min(worths.jobs[j].met, worths.jobs[j].met - (q * data.jobs[j].need - paid))
                - worths.jobs[j].change
            )
            magnitude[j] += (
                worths.jobs[j].met + q * data.jobs[j].need + size + worths.jobs[j].change
            )
