"""The rules of an instance, checked all together.

The rules are those of the instance format; each broken one becomes a
:class:`~edgeflow_opt.errors.Fault` that names object, field, rule, value and way out.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import Fault
from edgeflow_opt.problem.data import Grid, Job, Mode, Running, Site
from edgeflow_opt.problem.objective import Objective, Weights
from edgeflow_opt.problem.values import MAX_MAGNITUDE, is_number, shown

if TYPE_CHECKING:
    from edgeflow_opt.problem.constraints.base import Constraint

#: Positive numbers below this would leave the range of floating point in quotients.
_LEAST = 1e-100


def _bare(name: Any) -> str:
    """Return a name as it is, anything else as :func:`shown`."""
    return name if isinstance(name, str) else shown(name)


def faults_of(
    grid: Grid,
    sites: Sequence[Site],
    jobs: Sequence[Job],
    objective: Objective,
    constraints: tuple[Constraint, ...] = (),
) -> list[Fault]:
    """Return every fault of an instance given by its parts; an empty list where it is valid."""
    faults = list(_grid_faults(grid))
    now = None if faults else grid.boundaries[0]
    wrong = [*parts_faults("sites", sites, Site), *parts_faults("jobs", jobs, Job)]
    if wrong:
        return [*faults, *wrong]
    if not sites:
        faults.append(Fault("instance", "sites", "at least one site is needed"))
    faults += part_faults(now, sites, jobs, [site.name for site in sites], [job.id for job in jobs])
    faults += _objective_faults(objective)
    if type(constraints) is not tuple or constraints:
        from edgeflow_opt.problem.constraints.registry import constraint_faults

        bad = constraint_faults(constraints)
        faults += bad
        if not bad:
            faults += _parameter_faults(grid, sites, jobs, constraints)
    return faults


def _of_kind(owner: str, field: str, value: Any, kind: type) -> Iterator[Fault]:
    """Yield the fault of what should be an object of a data class of the package."""
    if not isinstance(value, kind):
        yield Fault(
            owner, field, f"must be a {kind.__name__}", shown(value),
            f"make one by {kind.__name__}(…); documents are read by problem_from_dict",
        )  # fmt: skip


def parts_faults(field: str, parts: Any, kind: type) -> Iterator[Fault]:
    """Yield the faults of what should be several objects of a data class of the package."""
    if not isinstance(parts, (tuple, list)):
        yield Fault("instance", field, f"must be a tuple of {kind.__name__}", shown(parts))
        return
    for index, part in enumerate(parts):
        if not isinstance(part, kind):
            yield from _of_kind("instance", f"{field}[{index}]", part, kind)


def _parameter_faults(
    grid: Grid,
    sites: Sequence[Site],
    jobs: Sequence[Job],
    constraints: tuple[Constraint, ...],
) -> Iterator[Fault]:
    """Yield what constraints say is wrong with their parameters, by their places."""
    for index, constraint in enumerate(constraints):
        owner = f"constraints[{index}] ({constraint.type})"
        try:
            found = list(constraint.faults(grid, sites, jobs))
        except Exception as problem:
            yield Fault(owner, "", f"cannot be looked at ({type(problem).__name__}: {problem})")
            continue
        yield from (dataclasses.replace(fault, object=owner) for fault in found)


def part_faults(
    now: float | None,
    sites: Iterable[Site],
    jobs: Iterable[Job],
    site_names: Sequence[str],
    job_ids: Sequence[str],
) -> Iterator[Fault]:
    """Yield the faults of sites and jobs that may be some of an instance only.

    Parameters
    ----------
    now
        Start of the grid; None = not known.
    sites, jobs
        Those to be looked at.
    site_names, job_ids
        Those of the whole instance.
    """
    for site in sites:
        yield from _site_faults(site, now)
    yield from _duplicates("site", site_names)
    known = dict.fromkeys(name for name in site_names if isinstance(name, str))
    for job in jobs:
        yield from _job_faults(job, known, now)
    yield from _duplicates("job", job_ids)


def _number(
    owner: str,
    field: str,
    value: Any,
    *,
    positive: bool = False,
    nonnegative: bool = False,
    whole: bool = False,
) -> Iterator[Fault]:
    """Yield the fault of a number, if it has one."""
    if not is_number(value):
        yield Fault(owner, field, "must be a number", shown(value))
    elif value != value or value in (math.inf, -math.inf):
        yield Fault(owner, field, "must be a finite number", shown(value))
    elif abs(value) > MAX_MAGNITUDE:
        yield Fault(
            owner, field, "magnitude must be at most 1e15", shown(value), "choose a larger unit"
        )
    elif whole and value != int(value):
        yield Fault(owner, field, "must be a whole number", shown(value))
    elif positive and not value > 0:
        yield Fault(owner, field, "must be above 0", shown(value))
    elif 0 < abs(value) < _LEAST:
        yield Fault(
            owner, field, "magnitude must be at least 1e-100, or 0", shown(value),
            "choose a smaller unit",
        )  # fmt: skip
    elif nonnegative and not value >= 0:
        yield Fault(owner, field, "must be at least 0", shown(value))


def _name(owner: str, field: str, value: Any) -> Iterator[Fault]:
    if not isinstance(value, str) or not value:
        yield Fault(owner, field, "must be a text that is not empty", shown(value))
    else:
        yield from _text(owner, field, value)


def _text(owner: str, field: str, value: Any) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(owner, field, "must be a text", shown(value))
    elif not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            # Half a surrogate pair, as "\\ud800" in JSON: no file could hold it.
            yield Fault(
                owner, field, "must be text that can be written as UTF-8", ascii(value),
                "drop the stray surrogate",
            )  # fmt: skip


def _duplicates(what: str, names: Iterable[str]) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for name in names:
        # What is no text has a fault of its own.
        if isinstance(name, str):
            seen[name] = seen.get(name, 0) + 1
    for name, count in seen.items():
        if count > 1:
            field = "id" if what == "job" else "name"
            yield Fault(
                f"{what} {shown(name)}", field, f"must be unique, is used {count} times",
                remedy="rename all but one",
            )  # fmt: skip


def _grid_faults(grid: Grid) -> Iterator[Fault]:
    owner = "instance"
    if not isinstance(grid, Grid):
        yield from _of_kind(owner, "grid", grid, Grid)
        return
    boundaries = grid.boundaries
    if not isinstance(boundaries, tuple):
        yield Fault(owner, "grid", "must be a tuple of times", shown(boundaries))
        return
    if len(boundaries) < 2:
        yield Fault(
            owner, "grid", "needs at least two boundaries", shown(list(boundaries)),
            "give now and the end of at least one slot",
        )  # fmt: skip
        return
    bad = [f for index, t in enumerate(boundaries) for f in _number(owner, f"grid[{index}]", t)]
    yield from bad
    if bad:
        return
    for index, (left, right) in enumerate(itertools.pairwise(boundaries)):
        if not left < right:
            yield Fault(
                owner, f"grid[{index + 1}]", f"must be above grid[{index}] = {left!r}",
                shown(right), "sort the boundaries and drop equal ones",
            )  # fmt: skip
        elif right - left < _LEAST:
            yield Fault(
                owner, f"grid[{index + 1}]", "a slot must be at least 1e-100 s long",
                shown(right), "choose longer slots",
            )  # fmt: skip


def _site_faults(site: Site, now: float | None) -> Iterator[Fault]:
    owner = f"site {shown(site.name)}"
    yield from _name(owner, "name", site.name)
    if not isinstance(site.kind, str) or site.kind not in ("cloud", "edge"):
        yield Fault(owner, "kind", "must be 'cloud' or 'edge'", shown(site.kind))
    yield from _text(owner, "gpu_type", site.gpu_type)
    if site.gpus_per_node is not None:
        yield from _number(owner, "gpus_per_node", site.gpus_per_node, positive=True, whole=True)
    if site.memory_gib is not None:
        yield from _number(owner, "memory_gib", site.memory_gib, nonnegative=True)
    yield from _number(owner, "price", site.price, nonnegative=True)
    if site.capacity == ():
        yield Fault(owner, "capacity", "needs at least one step [time, units]")
        return
    if not isinstance(site.capacity, tuple):
        yield Fault(
            owner, "capacity", "must be a tuple of steps (time, units)", shown(site.capacity),
            "of what never changes give ((now, units),)",
        )  # fmt: skip
        return
    bad: list[Fault] = []
    for index, step in enumerate(site.capacity):
        if not (isinstance(step, tuple) and len(step) == 2):
            bad.append(
                Fault(owner, f"capacity[{index}]", "must be a step (time, units)", shown(step))
            )
            continue
        time, units = step
        bad += _number(owner, f"capacity[{index}][0]", time)
        bad += _number(owner, f"capacity[{index}][1]", units, nonnegative=True, whole=True)
    yield from bad
    if bad:
        return
    times = [time for time, _ in site.capacity]
    if now is not None and times[0] > now:
        yield Fault(
            owner, "capacity[0][0]", f"must be at or before now = {now!r}", shown(times[0]),
            "say how many units there are from now on",
        )  # fmt: skip
    for index, (left, right) in enumerate(itertools.pairwise(times)):
        if not left < right:
            yield Fault(
                owner, f"capacity[{index + 1}][0]", f"must be above the step before it, {left!r}",
                shown(right), "sort the steps and drop repeated times",
            )  # fmt: skip


def _job_faults(job: Job, sites: Collection[str], now: float | None) -> Iterator[Fault]:
    owner = f"job {shown(job.id)}"
    yield from _name(owner, "id", job.id)
    deadline_ok = arrival_ok = True
    if job.deadline is not None:
        bad = list(_number(owner, "deadline", job.deadline))
        deadline_ok = not bad
        yield from bad
    elif job.must_meet is True:
        yield Fault(
            owner, "must_meet", "needs a deadline", "deadline null",
            "give a deadline or drop must_meet",
        )  # fmt: skip
    if job.arrival is not None:
        bad = list(_number(owner, "arrival", job.arrival))
        arrival_ok = not bad
        yield from bad
        if deadline_ok and arrival_ok and job.deadline is not None and job.arrival > job.deadline:
            yield Fault(
                owner, "arrival", f"must not be after the deadline {job.deadline!r}",
                shown(job.arrival), "times are absolute, on the clock of now",
            )  # fmt: skip
    for flag in ("must_meet", "malleable"):
        if not isinstance(getattr(job, flag), bool):
            yield Fault(owner, flag, "must be true or false", shown(getattr(job, flag)))
    yield from _number(owner, "work", job.work, positive=True)
    yield from _number(owner, "weight", job.weight, nonnegative=True)
    yield from _number(owner, "memory_gib", job.memory_gib, nonnegative=True)
    yield from _number(owner, "restart_s", job.restart_s, nonnegative=True)
    yield from _number(owner, "migration_s", job.migration_s, nonnegative=True)
    if job.requested_gpus is not None:
        yield from _number(owner, "requested_gpus", job.requested_gpus, positive=True, whole=True)
    if isinstance(job.modes, tuple):
        yield from _mode_faults(owner, job, sites)
        yield from _history_faults(owner, job, sites, now if arrival_ok else None)
    else:
        yield Fault(owner, "modes", "must be a tuple of Mode", shown(job.modes))


def _mode_faults(owner: str, job: Job, sites: Collection[str]) -> Iterator[Fault]:
    if job.modes == ():
        yield Fault(owner, "modes", "needs at least one mode")
    seen: set[tuple[str, Any]] = set()
    for index, mode in enumerate(job.modes):
        where = f"modes[{index}]"
        if not isinstance(mode, Mode):
            yield from _of_kind(owner, where, mode, Mode)
            continue
        yield from _number(owner, f"{where}.gpus", mode.gpus, positive=True, whole=True)
        yield from _number(owner, f"{where}.rate", mode.rate, positive=True)
        if not isinstance(mode.site, str) or mode.site not in sites:
            yield Fault(
                owner, f"{where}.site", "must name a site of the instance", shown(mode.site),
                f"sites are {shown(list(sites))}",
            )  # fmt: skip
        if not isinstance(mode.site, str) or not is_number(mode.gpus):
            continue
        if (mode.site, mode.gpus) in seen:
            yield Fault(
                owner, where, "each (site, gpus) may stand once only",
                f"({mode.site}, {shown(mode.gpus)}) again", "drop one of the two",
            )  # fmt: skip
        seen.add((mode.site, mode.gpus))


def _history_faults(
    owner: str, job: Job, sites: Collection[str], now: float | None
) -> Iterator[Fault]:
    """Yield faults of `running` and `last_site`: what the job did before now."""
    last_site = job.last_site
    if last_site is not None and (not isinstance(last_site, str) or last_site not in sites):
        yield Fault(
            owner, "last_site", "must name a site of the instance", shown(job.last_site),
            f"sites are {shown(list(sites))}",
        )  # fmt: skip
    running = job.running
    if running is None:
        return
    if not isinstance(running, Running):
        yield from _of_kind(owner, "running", running, Running)
        return
    yield from _number(owner, "running.loss_left_s", running.loss_left_s, nonnegative=True)
    key = (running.site, running.gpus)
    if not any(isinstance(m, Mode) and (m.site, m.gpus) == key for m in job.modes):
        yield Fault(
            owner, "running", "must be one of the job's modes (site and gpus)",
            f"({_bare(running.site)}, {shown(running.gpus)})", "add that mode, or set running to null",
        )  # fmt: skip
    if isinstance(last_site, str) and last_site != running.site:
        yield Fault(
            owner, "last_site", f"must equal the site of running, {shown(running.site)}",
            shown(job.last_site), "leave last_site out for a running job",
        )  # fmt: skip
    if now is not None and job.arrival is not None and job.arrival > now:
        yield Fault(
            owner, "running", f"a job that arrives after now = {now!r} cannot be running",
            f"arrival {job.arrival!r}", "set running to null or correct the arrival",
        )  # fmt: skip


def _objective_faults(objective: Objective) -> Iterator[Fault]:
    owner = "objective"
    if not isinstance(objective, Objective):
        yield from _of_kind("instance", owner, objective, Objective)
        return
    weights = objective.weights
    if weights is not None and not isinstance(weights, Weights):
        yield Fault(
            owner, "weights", "must be a Weights", shown(weights),
            "in Python write Weights(met=1, cost=1e-6)",
        )  # fmt: skip
        return
    if not isinstance(objective.mode, str) or objective.mode not in ("lexicographic", "weighted"):
        yield Fault(owner, "mode", "must be 'lexicographic' or 'weighted'", shown(objective.mode))
        return
    if objective.mode == "lexicographic" and weights is not None:
        yield Fault(
            owner, "weights", "go with mode 'weighted' only", remedy="set mode or drop weights"
        )
    if objective.mode == "weighted":
        if weights is None:
            yield Fault(
                owner, "weights", "mode 'weighted' needs weights",
                remedy="give for example met 1 and cost 1e-6: in a document "
                '{"met": 1, "cost": 1e-6}, in Python Weights(met=1, cost=1e-6)',
            )  # fmt: skip
            return
        bad = [
            fault
            for name in ("met", "progress", "leftover", "cost", "reconfigurations")
            for fault in _number(owner, f"weights.{name}", getattr(weights, name), nonnegative=True)
        ]
        yield from bad
        if not bad and weights.met < weights.progress + weights.leftover:
            yield Fault(
                owner, "weights.met",
                "must be at least weights.progress + weights.leftover = "
                f"{weights.progress + weights.leftover:g}: a job nearly done would be worth more "
                "than one done in time", shown(weights.met), "raise it",
            )  # fmt: skip
