"""Compiled kernels of the exact pricing: labels of cost and work, without any bins.

A label is the beginning of a plan of one job: what it has cost, what work it has earned, and its
state, the mode held or, idle, the last site. A label that costs no less and has earned no more than
another in the same state is dominated (Irnich and Desaulniers, 2005). A label is dropped, too, where
its cost and a bound on the rest exceed what a plan may cost. That bound comes from a table over bins
of work, filled backwards: R(s, x, b) is at most what it costs to earn b more bins from slot s and
state x on, since credits are rounded up, the work missing is rounded down, and losses are taken off
the slot in which a run begins, at most all of its credit. So labels survive only within what the bins
blur, and what a plan may cost is raised step by step from R until a plan is found: the cheapest one.

Losses. The work of a run that still owes some of its loss is that of the plan less what it owes, and
the work before the run is kept beside it: if the run ends in debt, nothing of it counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from edgeflow_opt.solvers.compiled import kernel
from edgeflow_opt.solvers.price.hull_kernels import useful_length
from edgeflow_opt.solvers.price.knapsack_kernels import bins_for

#: Labels of one job and slot, and of one job, at most; a job with more keeps the bound of its bins.
MOST_CANDIDATES, MOST_LABELS = 60_000, 200_000

#: Bins of work in the table that bounds the rest of a plan.
BINS = 400

#: First step above the bound, of the bound and of the weight, and the factor on it.
_FIRST_STEP, _LEAST_STEP, _WIDER = 0.003, 0.0005, 4.0

#: Relative room for rounding, far above eps times the number of operations.
_ROOM = 1e-11

#: Factor on missing work before it is rounded down to bins.
_LESS = 1.0 - 1e-9

#: What the search says where there are too many labels, and where no plan is cheap enough.
_TOO_MANY, _NONE = -2, -1

# Arguments of kernels: a literal would have them compiled once for each value.
_ZERO, _MOST_BINS, _OPTIMISTIC = np.int64(0), np.int64(BINS), np.bool_(True)


class LabelSpace(NamedTuple):
    """Work arrays of one thread; see :func:`label_space`."""

    cost: Any
    work: Any
    before: Any
    parent: Any
    mode: Any
    new_cost: Any
    new_work: Any
    new_before: Any
    new_parent: Any
    new_mode: Any
    first: Any
    last: Any
    rest: Any
    gain: Any
    price: Any
    may_idle: Any


def label_space(data: Any) -> LabelSpace:
    """Return work arrays for the jobs of `data`."""
    num_sites, num_slots = data.capacity.shape
    states = data.most_modes + num_sites + 1
    return LabelSpace(
        cost=np.empty(MOST_LABELS),
        work=np.empty(MOST_LABELS),
        before=np.empty(MOST_LABELS),
        parent=np.empty(MOST_LABELS, np.int64),
        mode=np.empty(MOST_LABELS, np.int64),
        new_cost=np.empty(MOST_CANDIDATES),
        new_work=np.empty(MOST_CANDIDATES),
        new_before=np.empty(MOST_CANDIDATES),
        new_parent=np.empty(MOST_CANDIDATES, np.int64),
        new_mode=np.empty(MOST_CANDIDATES, np.int64),
        first=np.zeros((num_slots + 1, states), np.int64),
        last=np.zeros((num_slots + 1, states), np.int64),
        rest=np.zeros((num_slots + 1, states, BINS + 1)),
        gain=np.zeros(data.most_segments),
        price=np.zeros((num_slots, data.most_modes)),
        may_idle=np.ones(num_slots, np.bool_),
    )


@kernel
def _loss(data: Any, j: int, s: int, m: int, state: int, width: int) -> float:
    """Return the seconds lost by a run of mode `m` that begins in `s` after `state`."""
    if s == 0 and m == data.jobs[j].running:
        return data.jobs[j].loss_left_s
    if state < width:
        site = data.modes[data.jobs[j].mode_start + state].site
    else:
        site = state - width - 1
        if site < 0:
            return 0.0
    return data.jobs[j].restart_s if site == data.modes[m].site else data.jobs[j].migration_s


@kernel
def _scale(data: Any, j: int, work: float, space: Any) -> tuple[int, float]:
    """Return the number of bins for `work` that rounds the credits little, and bins per work."""
    count = _ZERO
    longest = 0.0
    for s in range(data.jobs[j].first, data.jobs[j].end):
        length = useful_length(data, j, s)
        if length == longest:
            continue
        longest = length
        for m in range(data.jobs[j].mode_start, data.jobs[j].mode_end):
            space.gain[count] = data.modes[m].rate * length
            count += 1
    bins = bins_for(space.gain, count, work, _MOST_BINS, _OPTIMISTIC)
    return bins, bins / work


@kernel
def _fill(data: Any, j: int, bins: int, scale: float, space: Any) -> float:
    """Fill ``space.rest`` with R(s, x, b); return the bound on a whole plan."""
    begin, stop = data.jobs[j].first, data.jobs[j].end
    lo = data.jobs[j].mode_start
    width = data.jobs[j].mode_end - lo
    lossy = data.jobs[j].lossy
    states = width + data.capacity.shape[0] + 1 if lossy else 1
    size = bins + 1
    for x in range(states):
        for b in range(size):
            space.rest[stop, x, b] = np.inf
        space.rest[stop, x, 0] = 0.0
    for s in range(stop - 1, begin - 1, -1):
        length = useful_length(data, j, s)
        for x in range(states):
            idle = x
            if lossy and x < width:
                idle = width + 1 + data.modes[lo + x].site
            here = space.rest[s, x, :size]
            ahead = space.rest[s + 1, idle, :size]
            for b in range(size):
                here[b] = ahead[b] if space.may_idle[s] else np.inf
            for i in range(width):
                cost = space.price[s, i]
                if cost < 0.0:
                    continue
                seconds = length
                if lossy and x != i:
                    seconds = max(0.0, length - _loss(data, j, s, lo + i, x, width))
                after = space.rest[s + 1, i if lossy else 0, :size]
                ratio = np.ceil(data.modes[lo + i].rate * seconds * scale * (1.0 - 1e-9))
                step = int(min(ratio, float(size)))
                least = cost + after[0]
                for b in range(step):
                    here[b] = min(here[b], least)
                target = here[step:]
                source = after[: size - step]
                for b in range(len(target)):
                    other = source[b] + cost
                    target[b] = other if other < target[b] else target[b]
    start = width + 1 + data.jobs[j].last_site if lossy else 0
    return float(space.rest[begin, start, bins])


@kernel
def _keep(space: Any, count: int, total: int) -> int:
    """Append the candidates that no other dominates, cheapest first; return the new total."""
    if count == 0:
        return total
    order = np.argsort(space.new_cost[:count])
    start = total
    most_work = -np.inf
    for at in range(count):
        i = order[at]
        work, before = space.new_work[i], space.new_before[i]
        if work >= before:
            if work <= most_work:
                continue
        else:
            beaten = False
            for kept in range(start, total):
                top = max(space.work[kept], space.before[kept])
                if space.work[kept] >= work and top >= before:
                    beaten = True
                    break
            if beaten:
                continue
        if total >= MOST_LABELS:
            return _TOO_MANY
        # Of equal costs the one with more work comes later: the first is then in vain, no more.
        most_work = max(most_work, work)
        space.cost[total] = space.new_cost[i]
        space.work[total] = work
        space.before[total] = before
        space.parent[total] = space.new_parent[i]
        space.mode[total] = space.new_mode[i]
        total += 1
    return total


@kernel
def _search(data: Any, j: int, need: float, upper: float, scale: float, space: Any) -> int:
    """Return the label of the cheapest plan that costs at most `upper`, or why there is none."""
    begin, stop = data.jobs[j].first, data.jobs[j].end
    lo = data.jobs[j].mode_start
    width = data.jobs[j].mode_end - lo
    lossy = data.jobs[j].lossy
    states = width + data.capacity.shape[0] + 1 if lossy else 1
    first, last, rest, price = space.first, space.last, space.rest, space.price
    for x in range(states):
        first[begin, x] = 0
        last[begin, x] = 0
    start = width + 1 + data.jobs[j].last_site if lossy else 0
    last[begin, start] = 1
    space.cost[0] = 0.0
    space.work[0] = 0.0
    space.before[0] = 0.0
    space.parent[0] = -1
    space.mode[0] = -1
    total = _ZERO + 1
    # A plan may have to hold a mode after the work is done.
    bound_ahead = False
    for s in range(begin, stop):
        bound_ahead = bound_ahead or not space.may_idle[s]
    limit = upper * (1.0 + _ROOM)
    for s in range(begin, stop):
        length = useful_length(data, j, s)
        for to in range(states):
            first[s + 1, to] = total
            count = _ZERO
            for x in range(states):
                # Of the state `x` into the state `to`: by a mode, or idle.
                low_mode, high_mode = 0, 0
                idle = False
                if not lossy:
                    low_mode, high_mode, idle = 0, width, True
                elif to < width:
                    low_mode, high_mode = to, to + 1
                elif x >= width:
                    idle = x == to
                else:
                    idle = width + 1 + data.modes[lo + x].site == to
                for label in range(first[s, x], last[s, x]):
                    cost, work, before = space.cost[label], space.work[label], space.before[label]
                    top = max(work, before)
                    missing = int((need - top) * scale * _LESS)
                    may_idle = idle and space.may_idle[s]
                    if may_idle and cost + rest[s + 1, to, missing] <= limit:
                        if count >= MOST_CANDIDATES:
                            return _TOO_MANY
                        space.new_cost[count] = cost
                        space.new_work[count] = top
                        space.new_before[count] = top
                        space.new_parent[count] = label
                        space.new_mode[count] = -1
                        count += 1
                    if top >= need and not bound_ahead:
                        continue
                    for i in range(low_mode, high_mode):
                        if price[s, i] < 0.0 or cost + price[s, i] > limit:
                            continue
                        earned = data.modes[lo + i].rate * length
                        if not lossy:
                            now, ago = work + earned, 0.0
                        elif x == i:
                            now, ago = work + earned, before
                        else:
                            loss = _loss(data, j, s, lo + i, x, width)
                            now, ago = top + earned - data.modes[lo + i].rate * loss, top
                        now = min(now, need)
                        missing = int((need - max(now, ago)) * scale * _LESS)
                        if cost + price[s, i] + rest[s + 1, to, missing] > limit:
                            continue
                        if count >= MOST_CANDIDATES:
                            return _TOO_MANY
                        space.new_cost[count] = cost + price[s, i]
                        space.new_work[count] = now
                        space.new_before[count] = ago
                        space.new_parent[count] = label
                        space.new_mode[count] = lo + i
                        count += 1
            total = _keep(space, count, total)
            if total < 0:
                return _TOO_MANY
            last[s + 1, to] = total
    best = _NONE
    for x in range(states):
        for label in range(first[stop, x], last[stop, x]):
            if max(space.work[label], space.before[label]) < need:
                continue
            if best < 0 or space.cost[label] < space.cost[best]:
                best = label
    return best


@kernel
def cheapest_plan(
    data: Any,
    j: int,
    prices: Any,
    allowed: Any,
    may_idle: Any,
    work: float,
    upper: float,
    space: Any,
    row: Any,
) -> tuple[float, bool]:
    """Solve the exact pricing of malleable job `j` for plans that cost at most `upper`.

    Parameters
    ----------
    allowed, may_idle
        (T, M) modes that may be held; (n, T) whether the jobs may be idle.
    work
        Iterations that the plan must earn.
    upper
        Plans that cost more are of no interest.
    space
        Work arrays.
    row
        (T,) output in the slots of the job: a mode, -1 = idle; all idle where no plan was found.

    Returns
    -------
    cost, found
        A lower bound on the cost of every plan; whether `row` is a plan of that cost, up to
        rounding. Without one the bound is `upper` where every plan costs more, and less where
        there were too many labels.
    """
    begin, stop = data.jobs[j].first, data.jobs[j].end
    lo = data.jobs[j].mode_start
    width = data.jobs[j].mode_end - lo
    for s in range(begin, stop):
        row[s] = -1
        space.may_idle[s] = may_idle[j, s]
        for i in range(width):
            m = lo + i
            fits = data.modes[m].units <= data.capacity[data.modes[m].site, s] and allowed[s, m]
            space.price[s, i] = (
                prices[data.modes[m].site, s] * data.modes[m].units if fits else -1.0
            )
    if stop <= begin or width == 0 or upper <= 0.0:
        return upper, False
    need = work * (1.0 - _ROOM)
    bins, scale = _scale(data, j, need, space)
    bound = _fill(data, j, bins, scale, space)
    if bound >= upper:
        return upper, False
    bound *= 1.0 - _ROOM
    step = max(_FIRST_STEP * bound, _LEAST_STEP * upper)
    while True:
        tried = min(upper, bound + step)
        label = _search(data, j, need, tried, scale, space)
        if label == _TOO_MANY:
            return min(bound, upper), False
        if label >= 0:
            break
        if tried >= upper:
            return upper, False
        step *= _WIDER
    cost = space.cost[label]
    for s in range(stop - 1, begin - 1, -1):
        row[s] = space.mode[label]
        label = space.parent[label]
    return max(0.0, cost - _ROOM * cost), True
