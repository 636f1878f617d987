"""The independent check of placements: it knows allocations and GPU numbers, and no rule of fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.problem.violation import Violation
from edgeflow_opt.workloads.outages import range_of

if TYPE_CHECKING:
    from edgeflow_opt.problem import Allocation, Site
    from edgeflow_opt.workloads.outages import Outage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRun:
    """A job holds certain GPUs during ``[start, end)``.

    Parameters
    ----------
    job
        Id of the job.
    site
        A cloud site.
    start, end
        Seconds, start < end.
    gpus
        Numbers of the GPUs, rising, from 0; node n has the GPUs from n * gpus_per_node on.
    spread
        Whether they are said to lie on more nodes than their number needs.
    """

    job: str
    site: str
    start: float
    end: float
    gpus: tuple[int, ...]
    spread: bool = False


def placement_violations(
    sites: Sequence[Site],
    allocations: Iterable[Allocation],
    placements: Sequence[PlacedRun],
    outages: Iterable[Outage] = (),
) -> Iterator[Violation]:
    """Yield what is wrong with placements.

    The kinds are ``placement_interval`` (a piece without length, or of no cloud site),
    ``placement_count`` (a moment of an allocation without exactly one piece of as many different
    GPUs, or a piece without an allocation), ``placement_overlap`` (a GPU held twice),
    ``placement_gpu`` (a GPU that the site does not have, or that is away), and
    ``placement_spread`` (on more nodes than needed, without being said to be).

    Parameters
    ----------
    sites
        The sites with their own capacity, before outages.
    allocations
        What every job held, when.
    placements
        Which GPUs it held on cloud sites.
    outages
        GPUs that were away.
    """
    clouds = {site.name: site for site in sites if site.kind == "cloud"}
    pieces: dict[tuple[str, str], list[PlacedRun]] = {}
    for piece in placements:
        if piece.site not in clouds or not piece.start < piece.end:
            yield _violation(piece, "placement_interval", "has no length or is of no cloud site")
            continue
        pieces.setdefault((piece.job, piece.site), []).append(piece)
        site = clouds[piece.site]
        per_node = site.gpus_per_node or 1
        nodes = {gpu // per_node for gpu in piece.gpus}
        if len(nodes) > -(-len(piece.gpus) // per_node) and not piece.spread:
            yield _violation(piece, "placement_spread", f"lies on {len(nodes)} nodes unsaid")
        yield from _away(piece, site, outages)
    yield from _held_twice(clouds, placements)
    yield from _not_tiled(clouds, allocations, pieces)


def _violation(piece: PlacedRun, kind: str, what: str) -> Violation:
    return Violation(
        kind=kind, job=piece.job, site=piece.site, time=piece.start,
        message=f"placement of job '{piece.job}' from {piece.start:g} to {piece.end:g} {what}",
    )  # fmt: skip


def _away(piece: PlacedRun, site: Site, outages: Iterable[Outage]) -> Iterator[Violation]:
    """Yield a violation if a GPU is not usable all the time."""
    top = max(piece.gpus, default=-1)
    if min(piece.gpus, default=0) < 0 or top >= site.least_capacity(piece.start, piece.end):
        yield _violation(piece, "placement_gpu", f"holds GPU {top}, beyond what the site has")
    for outage in outages:
        if outage.site != site.name or outage.start >= piece.end or outage.end <= piece.start:
            continue
        first, end = range_of(outage)
        if any(first <= gpu < end for gpu in piece.gpus):
            yield _violation(piece, "placement_gpu", f"holds GPUs of {first}:{end}, which are away")


def _held_twice(clouds: Iterable[str], placements: Sequence[PlacedRun]) -> Iterator[Violation]:
    """Yield a violation for every GPU that two pieces hold at once."""
    last: dict[tuple[str, int], PlacedRun] = {}
    for piece in sorted(placements, key=lambda p: (p.start, p.end)):
        for gpu in piece.gpus:
            before = last.get((piece.site, gpu))
            if before is not None and before.end > piece.start:
                yield _violation(
                    piece, "placement_overlap", f"holds GPU {gpu}, which '{before.job}' holds"
                )
            if before is None or piece.end > before.end:
                last[piece.site, gpu] = piece


def _not_tiled(
    clouds: Iterable[str],
    allocations: Iterable[Allocation],
    pieces: dict[tuple[str, str], list[PlacedRun]],
) -> Iterator[Violation]:
    """Yield a violation where the pieces of a job do not tile its allocations."""
    known = frozenset(clouds)
    queues = {
        key: sorted(group, key=lambda p: p.start, reverse=True) for key, group in pieces.items()
    }
    for a in sorted(allocations, key=lambda a: a.start):
        if a.site not in known:
            continue
        queue = queues.get((a.job, a.site), [])
        time = a.start
        while queue and queue[-1].start == time and time < a.end:
            piece = queue.pop()
            if len(set(piece.gpus)) != a.gpus or len(piece.gpus) != a.gpus:
                yield _violation(
                    piece, "placement_count", f"has {len(set(piece.gpus))} GPUs, not {a.gpus}"
                )
            time = piece.end
        if time != a.end:
            yield Violation(
                kind="placement_count", job=a.job, site=a.site, time=time,
                message=f"job '{a.job}' on site '{a.site}' from {a.start:g} to {a.end:g} has no "
                f"placement that fits from {time:g} on",
            )  # fmt: skip
    for queue in queues.values():
        for piece in queue:
            yield _violation(piece, "placement_count", "belongs to no allocation")
