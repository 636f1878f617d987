"""A plan for people: what becomes of every job, and how far the sites are used."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from edgeflow_opt.problem import EpochProblem, Job, Outcome, Schedule, Site
    from edgeflow_opt.problem.schedule import Allocation

#: Jobs up to which the plan is shown unasked.
MOST_JOBS_UNASKED = 30

#: From nothing used to all units used; the second for terminals without block characters.
_BLOCKS, _PLAIN = " ▁▂▃▄▅▆▇█", " .:-=+*%#"

#: What stands for no usable unit, beside those.
_NONE = {_BLOCKS: "·", _PLAIN: "x"}

#: Most characters of the chart for one slot.
_MOST_A_SLOT = 4

#: Characters of the table of sites beside the chart and the names of sites.
_BESIDE = 20


def plan_tables(
    problem: EpochProblem, schedule: Schedule, width: int, encoding: str = "utf-8"
) -> list[Table]:
    """Return the table of the jobs and the chart of the sites, `width` characters wide at most."""
    return [jobs_table(problem, schedule, width), sites_table(problem, schedule, width, encoding)]


def jobs_table(problem: EpochProblem, schedule: Schedule, width: int) -> Table:
    """Return deadline, completion, outcome and runs of each job; the schedule has a plan."""
    from edgeflow_opt.cli.console import printable, table, word
    from edgeflow_opt.problem.evaluate import by_job

    groups = by_job(problem.jobs, schedule.allocations)
    names = ("job", "deadline", "completion", "outcome")
    rows = [
        (printable(job.id), clock(job.deadline), clock(outcome.completion), in_words(outcome))
        for job, outcome in zip(problem.jobs, schedule.outcomes, strict=True)
    ]
    left = sum(max(len(row[index]) for row in (names, *rows)) + 2 for index in range(len(names)))
    runs = "runs (times in seconds)"
    made = table(*names, runs, title="Plan", left=("job", "outcome", runs))
    for job, (name, deadline, completion, outcome) in zip(problem.jobs, rows, strict=True):
        parts = [printable(part) for part in runs_in_words(problem, job, groups[job.id])]
        made.add_row(name, deadline, completion, word(outcome), packed(parts, width - left))
    return made


def in_words(outcome: Outcome) -> str:
    """Return met, late, unfinished or best effort."""
    if outcome.met is None:
        return "best effort"
    if outcome.met:
        return "met"
    return "unfinished" if outcome.completion is None else "late"


def runs_in_words(problem: EpochProblem, job: Job, allocations: Sequence[Allocation]) -> list[str]:
    """Return the runs of a job in short, such as ``cloud x4 0-600`` and ``edge 600-900``.

    GPUs are left out where there is one on an edge server.
    """
    from edgeflow_opt.problem.runs import runs_of

    parts = []
    for run in runs_of(job, allocations, problem.now):
        site = problem.sites[problem.site_index[run.site]]
        gpus = "" if site.kind == "edge" and run.gpus == 1 else f" x{run.gpus}"
        parts.append(f"{run.site}{gpus} {clock(run.start)}-{clock(run.end)}")
    return parts


def packed(parts: Sequence[str], width: int) -> str:
    """Return `parts` with commas between them, broken into lines between parts only."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f", {part}"
        else:
            if lines:
                lines[-1] += ","
            lines.append(part)
    return "\n".join(lines) or "-"


def clock(time: float | None) -> str:
    """Return a time in seconds, to hundredths where it is not whole."""
    return "-" if time is None else f"{time:.2f}".rstrip("0").rstrip(".")


def sites_table(
    problem: EpochProblem, schedule: Schedule, width: int, encoding: str = "utf-8"
) -> Table:
    """Return a line for each site: a chart of the share of its units in use, over time."""
    from edgeflow_opt.cli.console import percent, printable, table

    grid = problem.grid
    used, usable = site_use(problem, schedule)
    marks = _BLOCKS if encoding.lower().startswith("utf") else _PLAIN
    title = (
        f"Units in use / usable units, from {clock(grid.start)} to {clock(grid.end)} s "
        f"({_NONE[marks]} none usable)"
    )
    made = table("site", "use over time", "mean", "most", title=title,
                 left=("site", "use over time"))  # fmt: skip
    room = max(
        10, width - _BESIDE - max((len(printable(s.name)) for s in problem.sites), default=4)
    )
    columns = chart_columns(grid.boundaries, room)
    lengths = [b - a for a, b in pairwise(grid.boundaries)]
    for site, held, units in zip(problem.sites, used, usable, strict=True):
        total = sum(n * length for n, length in zip(units, lengths, strict=True))
        in_use = sum(n * length for n, length in zip(held, lengths, strict=True))
        peak = max(range(len(lengths)), key=lambda slot: held[slot])
        made.add_row(
            printable(site.name),
            "".join(_mark(held, units, share, marks) for share in columns),
            percent(round(in_use / total, 3) if total else None),
            f"{held[peak]}/{max(units)}",
        )
    made.columns[1].no_wrap = True
    return made


def site_use(problem: EpochProblem, schedule: Schedule) -> tuple[list[list[int]], list[list[int]]]:
    """Return the units in use and the usable ones, by site and slot."""
    from edgeflow_opt.problem.arrays import arrays_of

    boundaries = problem.grid.boundaries
    used = [[0] * problem.grid.num_slots for _ in problem.sites]
    for a in schedule.allocations:
        index = problem.site_index[a.site]
        units = _units(problem.sites[index], a.gpus)
        for slot in range(bisect_left(boundaries, a.start), bisect_left(boundaries, a.end)):
            used[index][slot] += units
    return used, arrays_of(problem).capacity.tolist()


def _units(site: Site, gpus: int) -> int:
    return gpus if site.kind == "cloud" else 1


def chart_columns(boundaries: Sequence[float], room: int) -> list[dict[int, float]]:
    """Return, for each character of the chart, the seconds of each slot that it stands for.

    Characters are equally long in time; where the slots are too, and there is room, each slot gets
    a whole number of them.
    """
    num_slots = len(boundaries) - 1
    count = num_slots * min(_MOST_A_SLOT, room // num_slots) if num_slots <= room else room
    span = boundaries[-1] - boundaries[0]
    columns = []
    first = 0
    for index in range(count):
        left = boundaries[0] + span * index / count
        right = boundaries[0] + span * (index + 1) / count
        while first + 1 < num_slots and boundaries[first + 1] <= left:
            first += 1
        share: dict[int, float] = {}
        slot = first
        while slot < num_slots and boundaries[slot] < right:
            share[slot] = min(right, boundaries[slot + 1]) - max(left, boundaries[slot])
            slot += 1
        columns.append(share)
    return columns


def _mark(held: Sequence[int], units: Sequence[int], share: dict[int, float], marks: str) -> str:
    """Return the character for a part of the time; one that is used a little is never blank."""
    usable = sum(units[slot] * length for slot, length in share.items())
    in_use = sum(held[slot] * length for slot, length in share.items())
    if usable <= 0:
        return _NONE[marks]
    level = round((len(marks) - 1) * min(1.0, in_use / usable))
    return marks[max(level, 1 if in_use > 0 else 0)]
