"""Edge capacity over time: how many servers their own work leaves idle, as steps for a site.

A tide is a tuple of steps ``(from time, units)``, times in seconds rising, the last lasting for
ever: the form of :attr:`edgeflow_opt.problem.Site.capacity`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from edgeflow_opt.errors import Fault, TraceError, UsageError
from edgeflow_opt.problem.data import Site
from edgeflow_opt.problem.files import read_bytes
from edgeflow_opt.problem.values import shown
from edgeflow_opt.workloads.measured import measured_load
from edgeflow_opt.workloads.table import MAX_FAULTS, Table

Steps = tuple[tuple[float, int], ...]

DAY_S = 86400.0

#: Load of edge servers at midnight over that of the peak (EdgeFlow, evaluation: about 1/50).
MIDNIGHT_LOAD = 1 / 50

#: More steps than this in one tide are taken for a slip in its options.
MAX_STEPS = 1_000_000


def constant_tide(units: int, start_s: float = 0.0) -> Steps:
    """Return `units` usable servers from `start_s` on for ever."""
    _check_units(units, "edge servers")
    return ((start_s, units),)


def daily_load(
    time_s: float, midnight_s: float = 0.0, midnight_load: float = MIDNIGHT_LOAD
) -> float:
    """Return the load of the edge servers' own work at `time_s`, as a fraction of the peak.

    ``l(t) = m + (1 - m) (1 - cos(2 pi (t - midnight) / 86400)) / 2`` with m = `midnight_load`: m at
    midnight, 1 at noon, and below one half for 49 % of the day where m = 1/50. These are the two
    figures that EdgeFlow's evaluation states of the tide; the cosine is the simplest curve through
    them.
    """
    angle = 2.0 * math.pi * (time_s - midnight_s) / DAY_S
    return midnight_load + (1.0 - midnight_load) * (1.0 - math.cos(angle)) / 2.0


def daily_tide(
    units: int,
    start_s: float,
    end_s: float,
    *,
    midnight_s: float = 0.0,
    midnight_load: float = MIDNIGHT_LOAD,
    step_s: float = 900.0,
) -> Steps:
    """Return the servers that a daily load leaves idle, ``floor(units (1 - l(t)))``.

    Parameters
    ----------
    units
        Edge servers in all; nearly that many are usable at midnight, none at noon.
    start_s, end_s
        From when to when, seconds; the last step lasts for ever.
    midnight_s
        Any midnight on the same clock.
    midnight_load
        Load at midnight over that at noon, 0 to 1; see :func:`daily_load`.
    step_s
        Length of a step; each has the least number of servers within it, and equal ones are
        joined.

    Raises
    ------
    UsageError
        If an option is out of its range.
    """
    _check_units(units, "edge servers")
    if not (math.isfinite(start_s) and math.isfinite(end_s) and start_s <= end_s):
        raise UsageError(f"tide: needs a start at or before its end, got {start_s} and {end_s}")
    if not 0.0 <= midnight_load <= 1.0:
        raise UsageError(f"tide: midnight_load must be from 0 to 1, got {midnight_load}")
    if not (math.isfinite(step_s) and step_s > 0):
        raise UsageError(f"tide: step_s must be a number above 0, got {step_s}")
    count = max(1, math.ceil((end_s - start_s) / step_s))
    if count > MAX_STEPS:
        raise UsageError(f"tide: {count} steps are too many; choose a longer step_s")

    def idle(left: float, right: float) -> int:
        noon = midnight_s + DAY_S * (math.floor((left - midnight_s) / DAY_S) + 0.5)
        inside = [noon] if left < noon < right else []
        load = max(daily_load(t, midnight_s, midnight_load) for t in (left, right, *inside))
        # The small term keeps 1 - (1 - 1/50) and the like on the right side of a whole number.
        return max(0, math.floor(units * (1.0 - load) + 1e-9))

    starts = [start_s + index * step_s for index in range(count)]
    return joined((left, idle(left, left + step_s)) for left in starts)


def read_tide(path: str | Path, units: int | None = None) -> Steps:
    """Return the tide in a CSV file; measured loads (:mod:`.measured`) begin at time 0.

    Parameters
    ----------
    path
        CSV or CSV.gz with a column ``time_s`` (seconds, rising) and either ``units`` (usable
        servers, whole) or ``load`` (of the servers' own work, 0 to 1); or one of the public formats
        of measured loads.
    units
        Edge servers in all: with ``load``, ``floor(units (1 - load))`` are usable; with ``units``
        the file's figure, but no more than this. None = as the file says, which needs ``units``.

    Raises
    ------
    TraceError
        With every fault of the file.
    UsageError
        If the file gives loads and `units` is None, or `units` is no count.
    """
    return _read_tide(path, units)[0]


def _read_tide(path: str | Path, units: int | None) -> tuple[Steps, float | None]:
    """Return the tide in a file, and the seconds after which it repeats, None = it does not."""
    if units is not None:
        _check_units(units, "edge servers")
    table = Table(read_bytes(path, TraceError), str(path))
    measured = measured_load(table)
    if measured is not None:
        if units is None:
            raise UsageError(f"tide '{path}': gives loads; say how many edge servers there are")
        return joined(measured.tide(units)), measured.period_s
    value_columns = [column for column in ("units", "load") if column in table.columns]
    if "time_s" not in table.columns or len(value_columns) != 1:
        raise table.error(
            Fault(
                "header", "", "must have time_s and exactly one of units and load",
                shown(list(table.columns)),
            )
        )  # fmt: skip
    column = value_columns[0]
    table.refuse_doubles(("time_s", column))
    if column == "load" and units is None:
        raise UsageError(f"tide '{path}': gives loads; say how many edge servers there are")
    steps: list[tuple[float, int]] = []
    faults: list[Fault] = []
    latest, latest_row = -math.inf, 0
    for row in table.rows():
        time = row.number_in("time_s")
        value = row.number_in(column, nonnegative=True, whole=column == "units")
        if time <= latest:
            row.refuse("time_s", f"must be above {latest:.15g}, the time of row {latest_row}", f"{time:.15g}",
                       "sort the rows and drop repeated times")  # fmt: skip
        if column == "load" and value > 1:
            row.refuse("load", "must be from 0 to 1", shown(value), "give fractions, not per cent")
        if not math.isnan(time):
            latest, latest_row = max(time, latest), row.number
        faults += row.faults
        if len(faults) >= MAX_FAULTS:
            faults.append(Fault("file", "", f"reading stopped at {row.name}",
                                remedy="correct these first"))  # fmt: skip
            break
        if row.faults:
            continue
        if column == "load":
            assert units is not None
            value = math.floor(units * (1.0 - value) + 1e-9)
        steps.append((time, int(value) if units is None else min(units, int(value))))
    if faults:
        raise table.error(*faults)
    if not steps:
        raise table.error(Fault("file", "", "has a header but no rows", remedy="give some steps"))
    return joined(steps), None


def shift_tide(steps: Sequence[tuple[float, int]], offset_s: float) -> Steps:
    """Return the same tide `offset_s` seconds later."""
    return tuple((time + offset_s, units) for time, units in steps)


def repeat_tide(
    steps: Sequence[tuple[float, int]], period_s: float, start_s: float, end_s: float
) -> Steps:
    """Return a tide that repeats `steps` with a period, from `start_s` until `end_s`.

    Parameters
    ----------
    steps
        One period: the first step begins it, later steps that lie a period or more after it are
        left out.
    period_s
        Seconds, above 0.
    start_s, end_s
        From when to when; what is in force at `start_s` becomes the first step, and the last step
        lasts for ever.

    Raises
    ------
    UsageError
        If the period or the range makes no sense.
    """
    if not steps:
        raise UsageError("tide: a tide needs at least one step")
    if not (math.isfinite(period_s) and period_s > 0 and start_s <= end_s):
        raise UsageError(
            f"tide: needs a period above 0 and a start at or before its end, got {period_s}, "
            f"{start_s} and {end_s}"
        )
    origin = steps[0][0]
    within = [(time - origin, units) for time, units in steps if time - origin < period_s]
    first = math.floor((start_s - origin) / period_s)
    last = math.floor((end_s - origin) / period_s)
    if (last - first + 1) * len(within) > MAX_STEPS:
        raise UsageError("tide: too many repetitions; choose a longer period or a shorter range")
    unrolled = [
        (origin + turn * period_s + time, units)
        for turn in range(first, last + 1)
        for time, units in within
    ]
    before = [units for time, units in unrolled if time <= start_s]
    # Rounding may put the first repetition just after the start.
    now = before[-1] if before else unrolled[0][1]
    return joined([(start_s, now), *((t, u) for t, u in unrolled if start_s < t <= end_s)])


def cluster(
    cloud_gpus: int,
    edge_servers: int = 0,
    *,
    tide: str | Path | Sequence[tuple[float, int]] = "constant",
    start_s: float = 0.0,
    end_s: float | None = None,
    midnight_s: float = 0.0,
    cloud_site: str = "cloud",
    edge_site: str = "edge",
    gpus_per_node: int = 8,
    cloud_memory_gib: float | None = None,
    edge_memory_gib: float | None = None,
    cloud_price: float = 1.0,
    edge_price: float = 1.0,
) -> tuple[Site, Site]:
    """Return the two sites of the EdgeFlow model: one cloud cluster and the edge servers.

    The cloud has A100 GPUs in nodes of 8; an edge server is one V100. A site without units stays,
    with capacity 0, so that modes may name it.

    Parameters
    ----------
    cloud_gpus, edge_servers
        Units in all, at least 0.
    tide
        Usable edge servers over time: ``"constant"``, ``"daily"`` (:func:`daily_tide`), the path
        of a CSV file (:func:`read_tide`), or steps. Measured loads begin at `start_s` and repeat
        until `end_s`.
    start_s
        Time from which on capacities are needed, at or before the first arrival; steps must not
        begin later.
    end_s
        Time until which a daily tide is needed, such as the last deadline.
    midnight_s
        Any midnight on the clock of the trace, for the daily tide.
    cloud_site, edge_site
        Names of the sites.
    gpus_per_node
        Of the cloud.
    cloud_memory_gib, edge_memory_gib
        Device memory of one unit; None = unlimited.
    cloud_price, edge_price
        Cost of one GPU for one second.

    Raises
    ------
    UsageError
        If an option is out of its range, a daily tide has no end, or steps begin after `start_s`.
    TraceError
        If the file of a tide is at fault.
    """
    _check_units(cloud_gpus, "cloud GPUs")
    _check_units(edge_servers, "edge servers")
    steps: Steps
    if tide == "constant":
        steps = constant_tide(edge_servers, start_s)
    elif tide == "daily":
        if end_s is None:
            raise UsageError("tide: a daily tide needs end_s, for example the last deadline")
        steps = daily_tide(edge_servers, start_s, end_s, midnight_s=midnight_s)
    elif isinstance(tide, (str, Path)):
        steps, period_s = _read_tide(tide, edge_servers)
        if period_s is not None:
            # What was measured begins with the trace, and again when it is over.
            until = start_s + period_s if end_s is None else max(start_s, end_s)
            steps = repeat_tide(shift_tide(steps, start_s), period_s, start_s, until)
    else:
        steps = tuple((float(time), units) for time, units in tide)
        if not steps:
            raise UsageError("tide: a tide needs at least one step")
    if steps[0][0] > start_s:
        raise UsageError(
            f"tide: its first step is at {steps[0][0]:.15g} s, after the start at {start_s:.15g} s; "
            "shift it, or say how many servers there are from the start on"
        )
    return (
        Site(
            name=cloud_site,
            kind="cloud",
            gpu_type="a100",
            capacity=((start_s, cloud_gpus),),
            gpus_per_node=gpus_per_node,
            memory_gib=cloud_memory_gib,
            price=cloud_price,
        ),
        Site(
            name=edge_site,
            kind="edge",
            gpu_type="v100",
            capacity=steps,
            gpus_per_node=1,
            memory_gib=edge_memory_gib,
            price=edge_price,
        ),
    )


def _check_units(units: int, what: str) -> None:
    if isinstance(units, bool) or not isinstance(units, int) or units < 0:
        raise UsageError(f"number of {what}: must be a whole number of at least 0, got {units!r}")


def joined(steps: Iterable[tuple[float, int]]) -> Steps:
    """Return `steps` without those that change nothing."""
    result: list[tuple[float, int]] = []
    for time, units in steps:
        if not result or result[-1][1] != units:
            result.append((time, units))
    return tuple(result)
