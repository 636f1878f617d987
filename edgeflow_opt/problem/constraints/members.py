"""Rules that several constraints share: whom they concern, and who holds what at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import Fault
from edgeflow_opt.problem.values import is_whole, shown

if TYPE_CHECKING:
    from edgeflow_opt.problem.data import Job, Site


def member_faults(
    owner: str, names: Any, jobs: Sequence[Job], *, all_by_default: bool
) -> Iterator[Fault]:
    """Yield the faults of a list of ids of jobs; None is none where it means all of them."""
    if names is None and all_by_default:
        return
    if not isinstance(names, tuple):
        yield Fault(owner, "jobs", "must be a tuple of ids", shown(names))
        return
    ids = [name for name in names if isinstance(name, str)]
    if len(ids) < len(names):
        yield Fault(owner, "jobs", "must be a tuple of ids", shown(names))
    known = {job.id for job in jobs}
    for name in dict.fromkeys(ids):
        if name not in known:
            yield Fault(
                owner, "jobs", "must name jobs of the instance", shown(name),
                "correct the id, or leave it out",
            )  # fmt: skip
    if len(set(ids)) < len(ids):
        yield Fault(owner, "jobs", "may name a job once only", shown(names))


def site_faults(owner: str, name: Any, sites: Sequence[Site]) -> Iterator[Fault]:
    """Yield the fault of the name of a site; None = all sites is none."""
    names = [site.name for site in sites]
    if name is not None and (not isinstance(name, str) or name not in names):
        yield Fault(owner, "site", "must name a site of the instance", shown(name),
                    f"sites are {shown(names)}")  # fmt: skip


def count_faults(owner: str, field: str, value: Any) -> Iterator[Fault]:
    """Yield the fault of a whole number that must be at least 0."""
    if not is_whole(value) or not 0 <= value <= 10**15:
        yield Fault(owner, field, "must be a whole number from 0 to 1e15", shown(value))


def excesses(
    holds: Iterable[tuple[float, float, int]], most: int
) -> Iterator[tuple[float, float, int]]:
    """Yield (start, end, by how much) of the intervals in which what is held adds up to too much.

    Parameters
    ----------
    holds
        (start, end, amount), half-open.
    most
        What may be held at a time.
    """
    # At equal times what ends comes before what starts.
    changes = sorted(
        change for start, end, amount in holds for change in ((start, 1, amount), (end, 0, -amount))
    )
    held, since, worst = 0, 0.0, 0
    for index, (time, _, amount) in enumerate(changes):
        held += amount
        if index + 1 < len(changes) and changes[index + 1][0] == time:
            continue
        if held > most:
            since = since if worst else time
            worst = max(worst, held - most)
        elif worst:
            yield since, time, worst
            worst = 0
