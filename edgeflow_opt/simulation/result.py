"""What a simulation returns, and the document that is written of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from edgeflow_opt.problem import Allocation, Outcome
    from edgeflow_opt.simulation.analyser.estimates import EstimationMetrics
    from edgeflow_opt.simulation.metrics import Metrics
    from edgeflow_opt.simulation.placement.check import PlacedRun
    from edgeflow_opt.simulation.placement.placer import PlacementMetrics

#: Name and version of the document.
SIMULATION_FORMAT = "edgeflow-simulation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """One event: a time at which the policy was asked.

    Parameters
    ----------
    time
        Seconds.
    arrived, completed, refused
        Ids of the jobs that arrived, that had completed since the last event, and that the policy
        refused now.
    capacity_changed
        Whether the capacity of some site changed.
    woken
        Whether the policy had asked to be woken now, or an estimated rate was to be corrected.
    unfinished
        Jobs after the event that have arrived, are not completed and not refused.
    running
        Those of them that run.
    decision_s
        Wall seconds of the decision.
    """

    time: float
    arrived: tuple[str, ...]
    completed: tuple[str, ...]
    refused: tuple[str, ...]
    capacity_changed: bool
    woken: bool
    unfinished: int
    running: int
    decision_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What was carried out, what became of the jobs, and what it amounts to.

    Parameters
    ----------
    policy
        Name of the policy.
    allocations
        What every job held, when: one entry per run, by start, then in the order of the jobs.
    outcomes
        One per job, in the order of the trace.
    refused
        Ids of the jobs that the policy refused.
    metrics
        The numbers.
    stalls
        By job, (time, seconds) of the losses that befell it while it ran; empty unless the
        overhead model has such.
    events
        All events, where they were asked for.
    placement
        What placement amounts to; None where GPUs were only counted.
    placements
        Which GPUs every run held, by its end; empty where GPUs were only counted.
    estimation
        How wrong the rates were that the policy saw; None where it saw the true ones.
    """

    policy: str
    allocations: tuple[Allocation, ...]
    outcomes: tuple[Outcome, ...]
    refused: frozenset[str]
    metrics: Metrics
    stalls: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    events: tuple[EventRecord, ...] = ()
    placement: PlacementMetrics | None = None
    placements: tuple[PlacedRun, ...] = ()
    estimation: EstimationMetrics | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the results row of this simulation.

        Where jobs were placed, it has an object ``placement`` as well (see
        :class:`~edgeflow_opt.simulation.placement.PlacementMetrics`), and where rates were
        estimated an object ``estimation``
        (:class:`~edgeflow_opt.simulation.analyser.EstimationMetrics`).
        """
        row = {"policy": self.policy, **self.metrics.to_dict()}
        if self.placement is not None:
            row["placement"] = self.placement.to_dict()
        if self.estimation is not None:
            row["estimation"] = self.estimation.to_dict()
        return row


def simulation_document(
    trace: str, settings: Mapping[str, Any], results: Iterable[SimulationResult]
) -> dict[str, Any]:
    """Return the document ``edgeflow-simulation/1``, ready for JSON.

    Parameters
    ----------
    trace
        Name of the trace.
    settings
        The options in effect.
    results
        One per policy.
    """
    return {
        "format": SIMULATION_FORMAT,
        "trace": trace,
        "settings": dict(settings),
        "results": [result.to_dict() for result in results],
    }
