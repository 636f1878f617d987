"""Measured loads of GPU servers as tides: two public formats, told by their columns.

``vc_gpu_10min`` (HeliosArtifact, MIT; data set CC-BY-4.0; Hu et al., SC 2021)
    ``vc, local_time, total_gpu_num, idle_gpu_num_min, ...``: load = 1 - idle / total GPUs, summed
    over the virtual clusters at each time. The idle GPUs are the least within ten minutes.
``gpu_duty_cycle_5min`` (alibaba/clusterdata, cluster-trace-v2026-GenAI)
    ``minute, pod000, pod001, ...``: load = mean duty cycle of the pods that have a sample, over 100.

Times count from the first row, so that a tide can be moved to wherever it is needed.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass

from edgeflow_opt.errors import Fault
from edgeflow_opt.workloads.table import MAX_FAULTS, Row, Table

#: Columns of the pods of the second format begin so.
_POD = "pod"

_HELIOS = ("vc", "local_time", "total_gpu_num", "idle_gpu_num_min")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoad:
    """Load of servers over time.

    Parameters
    ----------
    steps
        ``(seconds since the first one, load)``, rising; loads from 0 to 1.
    period_s
        Seconds from the first row to the end of the last one: the time after which it repeats.
    """

    steps: tuple[tuple[float, float], ...]
    period_s: float

    def tide(self, units: int) -> tuple[tuple[float, int], ...]:
        """Return the usable ones of `units` servers: ``floor(units (1 - load))`` at each time."""
        # The small term keeps 1 - (1 - 1/50) and the like on the right side of a whole number.
        return tuple((t, max(0, math.floor(units * (1.0 - load) + 1e-9))) for t, load in self.steps)


def measured_load(table: Table) -> MeasuredLoad | None:
    """Return the load that a table holds; None where it is in none of the formats.

    Raises
    ------
    TraceError
        With every fault of the table.
    """
    if set(_HELIOS) <= set(table.columns):
        table.refuse_doubles(_HELIOS)
        return _read(table, _helios_row)
    if "minute" in table.columns and any(name.startswith(_POD) for name in table.columns):
        table.refuse_doubles(table.columns)
        return _read(table, _pods_row)
    return None


def _read(table: Table, row_of: Callable[[Row], tuple[float, float, float]]) -> MeasuredLoad:
    """Return the load, given what makes time, load and its weight of a row."""
    sums: dict[float, tuple[float, float]] = {}
    faults: list[Fault] = []
    for row in table.rows():
        time, load, weight = row_of(row) if not row.misshapen else (0.0, 0.0, 0.0)
        faults += row.faults
        if len(faults) >= MAX_FAULTS:
            faults.append(
                Fault("file", "", f"reading stopped at {row.name}", remedy="correct these first")
            )
            break
        if not row.faults and weight > 0.0:
            before, total = sums.get(time, (0.0, 0.0))
            sums[time] = (before + load * weight, total + weight)
    if faults:
        raise table.error(*faults)
    if len(sums) < 2:
        raise table.error(Fault("file", "", "has fewer than two times", remedy="give a whole tide"))
    times = sorted(sums)
    steps = tuple((time - times[0], sums[time][0] / sums[time][1]) for time in times)
    return MeasuredLoad(steps=steps, period_s=steps[-1][0] + (times[-1] - times[-2]))


def _helios_row(row: Row) -> tuple[float, float, float]:
    total = row.number_in("total_gpu_num", nonnegative=True)
    idle = row.number_in("idle_gpu_num_min", nonnegative=True)
    if idle > total:
        row.refuse("idle_gpu_num_min", f"must not be above total_gpu_num {total:g}", f"{idle:g}")
    text = row.text("local_time")
    try:
        moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
    except ValueError:
        moment = 0.0
        if text:
            row.refuse("local_time", "must be a date and time", text, "as in 2020-05-01 00:10")
    return moment, 1.0 - idle / total if total > 0 else 0.0, total


def _pods_row(row: Row) -> tuple[float, float, float]:
    minute = row.number_in("minute")
    pods = [name for name in row.cells if name.startswith(_POD)]
    duty = [row.number_in(name, nonnegative=True) for name in pods if row.cells[name]]
    for name in pods:
        cell = row.cells[name]
        if cell and not row.faults and float(cell) > 100:
            row.refuse(name, "must be from 0 to 100 %", cell)
    mean = sum(duty) / len(duty) if duty else 0.0
    return 60.0 * minute, mean / 100.0, float(len(duty))
