"""The targets by name: instances, contenders, limit, and when each is met."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.contenders import SIDE_BY_SIDE
from benchmarks.criteria import (
    Criterion,
    gap_at_most,
    memory_at_most,
    milliseconds_at_most,
    not_worse,
    optimal,
)
from benchmarks.instances import Instance

#: Loads on which every gap is measured.
LOADS = (0.8, 1.6, 2.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One line of the table of targets.

    Parameters
    ----------
    name
        In the registry.
    size
        The instance, whose load and seed are set by each run.
    limit_s
        Limit of a run, seconds.
    criterion
        When the target is met.
    subject
        The contender whose target it is.
    beside
        Contenders measured beside it.
    loads
        Loads of the instances.
    task
        What is measured (:data:`benchmarks.tasks.TASKS`).
    one_seed
        Whether one seed is enough, however many are asked for.
    """

    name: str
    size: Instance
    limit_s: float
    criterion: Criterion
    subject: str = "auto"
    beside: tuple[str, ...] = ()
    loads: tuple[float, ...] = field(default=LOADS)
    task: str = "solve"
    one_seed: bool = False

    @property
    def contenders(self) -> tuple[str, ...]:
        """All contenders, the subject first."""
        return (self.subject, *(name for name in self.beside if name != self.subject))

    def instances(self, seeds: int, loads: Sequence[float] | None = None) -> list[Instance]:
        """Return the instances by load, then seed; `loads` None = those of the target."""
        return [
            dataclasses.replace(self.size, load=load, seed=seed)
            for load in self.loads
            if loads is None or load in loads
            for seed in range(1 if self.one_seed else seeds)
        ]


def _size(
    num_jobs: int,
    num_slots: int,
    restart_s: float = 0.0,
    migration_s: float = 0.0,
    moldable_share: float = 0.0,
) -> Instance:
    return Instance(
        num_jobs=num_jobs,
        num_slots=num_slots,
        restart_s=restart_s,
        migration_s=migration_s,
        moldable_share=moldable_share,
    )


_ALL = (
    Target(
        name="30x24", size=_size(30, 24), limit_s=10.0, criterion=optimal(0.9), beside=SIDE_BY_SIDE
    ),
    Target(
        name="100x24",
        size=_size(100, 24),
        limit_s=10.0,
        criterion=optimal(0.9),
        beside=SIDE_BY_SIDE,
    ),
    Target(
        name="300x96",
        size=_size(300, 96),
        limit_s=5.0,
        criterion=gap_at_most(0.3, grain=1.0),
        beside=SIDE_BY_SIDE,
    ),
    Target(
        name="1000x96",
        size=_size(1000, 96),
        limit_s=5.0,
        criterion=gap_at_most(0.2),
        beside=SIDE_BY_SIDE,
    ),
    Target(
        name="10000x288",
        size=_size(10_000, 288),
        limit_s=30.0,
        criterion=gap_at_most(0.3),
        # The models of the others have some ten million columns.
        beside=("price", "highs", "scip"),
    ),
    Target(
        name="losses-1000x96",
        size=_size(1000, 96, restart_s=30.0, migration_s=180.0),
        limit_s=10.0,
        criterion=gap_at_most(1.0),
        beside=("price", "highs"),
    ),
    Target(
        name="moldable-30x24",
        size=_size(30, 24, moldable_share=1.0),
        limit_s=1.0,
        criterion=optimal(0.9),
        beside=SIDE_BY_SIDE,
    ),
    Target(
        name="moldable-100x24",
        size=_size(100, 24, moldable_share=1.0),
        limit_s=10.0,
        criterion=optimal(0.9),
        beside=SIDE_BY_SIDE,
    ),
    Target(
        name="moldable-1000x96",
        size=_size(1000, 96, moldable_share=1.0),
        limit_s=5.0,
        criterion=gap_at_most(1.0),
        beside=("price", "cpsat", "highs"),
    ),
    Target(
        name="cpsat-300x96",
        size=_size(300, 96),
        limit_s=10.0,
        criterion=gap_at_most(1.0),
        subject="cpsat",
        beside=("cpsat-compact",),
    ),
    Target(
        name="arrival-1000x96",
        size=_size(1001, 96),
        limit_s=0.5,
        criterion=not_worse(),
        subject="auto-prices",
        beside=("auto-warm", "auto-cold", "price-warm", "old-prices"),
        task="after arrival",
    ),
    Target(
        name="greedy-10000x96",
        size=_size(10_000, 96),
        limit_s=5.0,
        criterion=milliseconds_at_most(50.0),
        subject="greedy",
        task="heuristic",
        one_seed=True,
    ),
    Target(
        name="select-10000x96",
        size=_size(10_000, 96),
        limit_s=5.0,
        criterion=milliseconds_at_most(50.0),
        subject="edgeflow-select",
        task="heuristic",
        one_seed=True,
    ),
    Target(
        name="memory-10000x288",
        size=_size(10_000, 288),
        limit_s=30.0,
        criterion=memory_at_most(4.0),
        loads=(1.6,),
        one_seed=True,
    ),
)

TARGETS: dict[str, Target] = {target.name: target for target in _ALL}

#: A moment's look at everything, on instances of no weight: what the tests run.
QUICK: dict[str, Target] = {
    name: dataclasses.replace(
        TARGETS[name], size=dataclasses.replace(TARGETS[name].size, num_jobs=jobs, num_slots=slots),
        limit_s=limit_s, loads=(1.6,), one_seed=True,
    )
    for name, jobs, slots, limit_s in (
        ("30x24", 6, 4, 5.0),
        ("losses-1000x96", 8, 6, 1.0),
        ("arrival-1000x96", 8, 6, 0.2),
        ("greedy-10000x96", 30, 8, 1.0),
        ("select-10000x96", 30, 8, 1.0),
        ("memory-10000x288", 8, 6, 1.0),
    )
}  # fmt: skip
