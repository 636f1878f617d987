"""Which units of a site a block is drawn on. Units are alike: rows are drawn, not decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of a chart.

    Parameters
    ----------
    job
        Id of the job.
    start, end
        Seconds.
    low, high
        Rows, ``low <= row < high``.
    """

    job: str
    start: float
    end: float
    low: int
    high: int


@dataclass(slots=True, eq=False)
class _Run:
    """A run on its way through the chart."""

    job: str
    start: float
    end: float
    units: int
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    since: float = 0.0


def place(
    runs: Sequence[tuple[str, float, float, int]], capacity: Sequence[tuple[float, int]]
) -> list[Block]:
    """Return where runs are drawn, so that no two overlap and all stay below the capacity.

    A run keeps its rows unless they are lost by a fall of capacity; it is put below the coming
    falls where there is room, in one piece where there is, and where its job was before if that is
    free. Runs for which the capacity does not suffice are put above it, so that they can be seen.
    Allocations of a job that abut with equal units are one run.

    Parameters
    ----------
    runs
        (job, start, end, units), units at least 1.
    capacity
        Steps (from time, units), times rising, the first at or before the first run.
    """
    runs = _joined(runs)
    rows = max(
        (sum(r[3] for r in runs if r[1] <= t < r[2]) for t in {r[1] for r in runs}), default=0
    )
    free = np.ones(max([rows, *(units for _, units in capacity)], default=0) + rows, dtype=bool)
    waiting = sorted((_Run(*run) for run in runs), key=lambda run: (run.start, -run.units, run.job))
    times = sorted({t for run in waiting for t in (run.start, run.end)} | {t for t, _ in capacity})
    blocks: list[Block] = []
    present: list[_Run] = []
    last_rows: dict[str, NDArray[np.int64]] = {}
    position = step = 0
    usable = capacity[0][1] if capacity else 0
    for now in times:
        for run in [run for run in present if run.end <= now]:
            _close(run, run.end, blocks, free)
            last_rows[run.job] = run.rows
            present.remove(run)
        while step < len(capacity) and capacity[step][0] <= now:
            usable = capacity[step][1]
            step += 1
        moved = [run for run in present if run.rows.max() >= usable]
        for run in moved:
            _close(run, now, blocks, free)
        begin = position
        while position < len(waiting) and waiting[position].start <= now:
            position += 1
        placing = [*moved, *waiting[begin:position]]
        safe = {
            id(run): min([usable, *(units for t, units in capacity[step:] if t < run.end)])
            for run in placing
        }
        # Those that the coming falls bind most have the first choice.
        for run in sorted(placing, key=lambda run: safe[id(run)]):
            old = run.rows if len(run.rows) else last_rows.get(run.job)
            run.rows = _rows_for(run.units, free, usable, safe[id(run)], old)
            run.since = now
            free[run.rows] = False
        present += waiting[begin:position]
    return sorted(blocks, key=lambda b: (b.start, b.low))


def _joined(runs: Sequence[tuple[str, float, float, int]]) -> list[tuple[str, float, float, int]]:
    """Return the runs with those of a job that abut with equal units in one."""
    joined: list[tuple[str, float, float, int]] = []
    last: dict[str, int] = {}
    for job, start, end, units in sorted(runs, key=lambda run: run[1]):
        index = last.get(job)
        if index is not None and joined[index][2] == start and joined[index][3] == units:
            joined[index] = (job, joined[index][1], end, units)
        else:
            last[job] = len(joined)
            joined.append((job, start, end, units))
    return joined


def _close(run: _Run, until: float, blocks: list[Block], free: NDArray[np.bool_]) -> None:
    """End the blocks of a run and free its rows."""
    free[run.rows] = True
    if until > run.since:
        for piece in np.split(run.rows, np.flatnonzero(np.diff(run.rows) != 1) + 1):
            blocks.append(Block(run.job, run.since, until, int(piece[0]), int(piece[-1]) + 1))


def _rows_for(
    units: int, free: NDArray[np.bool_], usable: int, safe: int, old: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Return free rows, rising: the old ones, else below `safe`, else below `usable`, else any."""
    if old is not None and len(old) == units and old.max() < safe and free[old].all():
        return old
    for limit in (safe, usable, len(free)):
        found = np.flatnonzero(free[:limit])
        if len(found) < units:
            continue
        # The lowest piece that holds the run whole.
        whole = np.flatnonzero(found[units - 1 :] - found[: len(found) - units + 1] == units - 1)
        first = int(whole[0]) if len(whole) else 0
        return found[first : first + units]
    raise AssertionError("there are as many rows as units in all")
