"""Who gets which GPUs: best fit, and repacking where no fit is left.

The buddy argument: let every count and the GPUs of a node be powers of two and all nodes be up.
Sorted by falling size and put side by side from GPU 0 on, each job begins at a multiple of its own
size, since all sizes before it are multiples of it; so none crosses a boundary of a subtree of its
size, nor of a node unless it fills whole nodes. Hence whenever the counts fit, an aligned placement
exists, and where moving is free capacity is a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgeflow_opt.errors import UsageError
from edgeflow_opt.simulation.placement.topology import Topology
from edgeflow_opt.simulation.placement.tree import GpuTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where jobs are.

    Parameters
    ----------
    gpus
        GPU numbers, rising, by job.
    moved
        Jobs that go on with as many GPUs as before, but on others.
    spread
        Jobs that lie on more nodes than their number needs.
    waiting
        Jobs that were given nothing.
    """

    gpus: Mapping[str, tuple[int, ...]]
    moved: frozenset[str]
    spread: frozenset[str]
    waiting: tuple[str, ...]


def place(
    topology: Topology,
    demands: Mapping[str, int],
    held: Mapping[str, Iterable[int]] | None = None,
    *,
    down: Iterable[int] = (),
    may_move: bool = True,
    may_spread: bool = True,
) -> Placement:
    """Place jobs on GPUs.

    Jobs that go on (as many GPUs as they hold) keep theirs, those whose count has changed and new
    ones are placed by best fit (:meth:`~edgeflow_opt.simulation.placement.GpuTree.best_fit`), the
    largest first, equal ones in the order of `demands`. Where none fits:

    * with `may_move`, the subtree of the right size in which the fewest GPUs are held by smaller
      jobs is cleared, and these are placed anew by the same rule, so that few jobs move; where that
      comes to no end, all are placed anew, the largest first. Within nodes of a power of two GPUs,
      jobs of powers of two are always placed aligned, and always fit if their number does.
    * without, the job lies on any node that has as many GPUs free.

    What still does not fit on the fewest nodes is spread over the nodes with most free GPUs
    (`may_spread`), or waits.

    Parameters
    ----------
    topology
        The cluster.
    demands
        GPUs wanted by job, at least 1; any numbers, in sum at most the usable GPUs, else some wait.
    held
        GPUs that running jobs hold now. Those of jobs without a demand become free. None = none.
    down
        GPUs that are not usable. A job that holds one is placed anew.
    may_move
        Whether jobs that go on may be moved to make room.
    may_spread
        Whether a job may lie on more nodes than its number needs.

    Returns
    -------
    placement
        For all jobs of `demands`.

    Raises
    ------
    UsageError
        If a demand is below 1, or `held` names a GPU twice or one that the cluster does not have.
    """
    for job, gpus in demands.items():
        if gpus < 1:
            raise UsageError(f"placement: job '{job}' wants {gpus} GPUs; give at least 1")
    before = {job: tuple(sorted(gpus)) for job, gpus in (held or {}).items()}
    _check_held(topology, before)
    tree = GpuTree(topology, down)
    for job, own in before.items():
        if demands.get(job) == len(own) and tree.is_free(own):
            tree.take(job, own)
    tree = place_in(tree, demands, may_move=may_move, may_spread=may_spread)
    return placement_of(tree, demands, before)


def place_in(
    tree: GpuTree, demands: Mapping[str, int], *, may_move: bool, may_spread: bool
) -> GpuTree:
    """Place all jobs of `demands` that hold nothing in `tree`; return it, or another in its place.

    Parameters are those of :func:`place`.
    """
    missing = [job for job in demands if job not in tree.held]
    missing.sort(key=lambda job: -demands[job])
    stuck: list[str] = []
    for job in missing:
        gpus = tree.best_fit(demands[job], aligned=may_move)
        if gpus is not None:
            tree.take(job, gpus)
            continue
        if may_move and demands[job] <= tree.num_free:
            trial = tree.copy()
            if _make_room(trial, job, demands[job]):
                tree = trial
                continue
        stuck.append(job)
    if stuck and may_move:
        tree, stuck = _placed_anew(tree, demands, stuck)
    for job in stuck:
        # No block of its own, but one node may still hold it.
        gpus = tree.best_fit(demands[job])
        if gpus is None and may_spread:
            gpus = tree.spread_fit(demands[job])
        if gpus is not None:
            tree.take(job, gpus)
    return tree


def placement_of(
    tree: GpuTree, demands: Mapping[str, int], before: Mapping[str, tuple[int, ...]]
) -> Placement:
    """Return what the tree says of the jobs of `demands`, which held `before`."""
    gpus = {job: tree.held[job] for job in demands if job in tree.held}
    return Placement(
        gpus=gpus,
        moved=frozenset(
            job
            for job, now in gpus.items()
            if job in before and len(before[job]) == len(now) and before[job] != now
        ),
        spread=frozenset(job for job, now in gpus.items() if not tree.topology.consolidated(now)),
        waiting=tuple(job for job in demands if job not in gpus),
    )


def _check_held(topology: Topology, held: Mapping[str, tuple[int, ...]]) -> None:
    owner: dict[int, str] = {}
    for job, gpus in held.items():
        for gpu in gpus:
            if not 0 <= gpu < topology.num_gpus:
                raise UsageError(
                    f"placement: job '{job}' holds GPU {gpu}; the cluster has {topology.num_gpus}, "
                    "numbered from 0"
                )
            if gpu in owner:
                raise UsageError(
                    f"placement: GPU {gpu} is held by '{owner[gpu]}' and by '{job}'; one may"
                )
            owner[gpu] = job


def _make_room(tree: GpuTree, job: str, gpus: int) -> bool:
    """Give `job` its GPUs after moving smaller jobs; whether that went well.

    Every job that is moved is smaller than the one it makes room for, so this comes to an end. In
    a cluster of powers of two it always succeeds: the block that is cleared held u < g GPUs, and of
    the F >= g free ones at least u lie outside.
    """
    per_node = tree.topology.gpus_per_node
    whole, rest = divmod(gpus, per_node)
    moving: dict[str, int] = {}
    # The largest part first, so that a part of a node does not break up a whole one.
    for part in [per_node] * whole + ([rest] if rest else []):
        block = _cheapest_block(tree, part, gpus, tree.held.get(job, ()))
        if block is None:
            return False
        for name in _in_the_way(tree, block, part):
            moving[name] = len(tree.release(name))
        mine = tree.release(job) if job in tree.held else ()
        free = [gpu for gpu in block if tree.is_free((gpu,))][:part]
        tree.take(job, (*mine, *free))
    for name in sorted(moving, key=lambda name: -moving[name]):
        found = tree.best_fit(moving[name], aligned=True)
        if found is not None:
            tree.take(name, found)
        elif not _make_room(tree, name, moving[name]):
            return False
    return True


def _cheapest_block(tree: GpuTree, part: int, below: int, without: tuple[int, ...]) -> range | None:
    """Return the subtree for `part` GPUs from which the fewest GPUs of jobs below a size must go."""
    best: tuple[int, int, range] | None = None
    mine = set(without)
    for free, block in tree.blocks_for(part):
        if mine.intersection(block) or tree.usable(block) < part:
            continue
        names = _in_the_way(tree, block, part)
        held = [len(tree.held[name]) for name in names]
        if any(size >= below for size in held):
            continue
        if best is None or (sum(held), -free) < best[:2]:
            best = (sum(held), -free, block)
    return None if best is None else best[2]


def _in_the_way(tree: GpuTree, block: range, part: int) -> list[str]:
    """Return the jobs that must leave `block` for `part` GPUs to be free, the smallest first."""
    inside = tree.holders(block)
    lacking = part - (tree.usable(block) - sum(inside.values()))
    names = []
    for name in sorted(inside, key=lambda name: (len(tree.held[name]), name)):
        if lacking <= 0:
            break
        names.append(name)
        lacking -= inside[name]
    return names


def _placed_anew(
    tree: GpuTree, demands: Mapping[str, int], stuck: list[str]
) -> tuple[GpuTree, list[str]]:
    """Place all jobs from nothing, the largest first; keep it if no more are stuck than before."""
    other = tree.copy()
    for job in tuple(other.held):
        other.release(job)
    left = []
    wanted = [job for job in demands if job in tree.held or job in stuck]
    for job in sorted(wanted, key=lambda job: -demands[job]):
        own = tree.held.get(job, ())
        if own and other.is_free(own):
            gpus: tuple[int, ...] | None = own
        else:
            gpus = other.best_fit(demands[job], aligned=True) or other.best_fit(demands[job])
        if gpus is None:
            left.append(job)
        else:
            other.take(job, gpus)
    # Nobody who runs may lose what it has to a job that could not be placed anyway.
    if len(left) < len(stuck) and set(left) <= set(stuck):
        return other, left
    return tree, stuck
