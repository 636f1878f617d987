"""One policy on one trace: what a comparison of policies consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: What policies can be compared by, and whether larger is better.
POLICY_MEASURES: Mapping[str, bool] = {
    "dsr": True, "met": True, "met_weight": True, "late": False, "refused": False,
    "unfinished": False, "cloud_utilisation": True, "edge_utilisation": True,
    "reconfigurations_per_job": False, "migrations_per_job": False, "makespan": False,
    "mean_tardiness": False, "decision_mean_s": False, "decision_p99_s": False,
    "decision_max_s": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """One policy on one trace with one seed under one set of settings.

    Parameters
    ----------
    trace, policy
        Names.
    seed
        Seed of the trace (where it is generated), of re-drawn deadlines, and of the policy.
    settings
        Cluster, tide, overhead, deadlines and so on: see :data:`~edgeflow_opt.analysis.scenarios.SETTINGS`.
    metrics
        As in a row of ``edgeflow-simulation/1``; None where the policy failed.
    message
        Why there is no result; None where there is one.
    error_code
        Exit code that the failure stands for; None where there is a result.
    bound
        Proven bound on the met jobs of any policy, clairvoyant ones included; None = not known.
    digest
        The first 16 hexadecimal digits of the SHA-256 of the trace; empty = not known.
    """

    trace: str
    policy: str
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] | None = None
    message: str | None = None
    error_code: int | None = None
    bound: float | None = None
    digest: str = ""

    def value(self, measure: str) -> float | None:
        """Return a measure of :data:`POLICY_MEASURES`; None where it is not known."""
        if self.metrics is None:
            return None
        if measure.startswith("decision_"):
            part = measure.removeprefix("decision_").removesuffix("_s")
            found = (self.metrics.get("decision_s") or {}).get(part)
        else:
            found = self.metrics.get(measure)
        return None if found is None else float(found)

    def document(self) -> dict[str, Any]:
        """Return the row as an object of format ``edgeflow-compare-policies/1``."""
        return {
            "trace": self.trace,
            "policy": self.policy,
            "seed": self.seed,
            "settings": dict(self.settings),
            "metrics": None if self.metrics is None else dict(self.metrics),
            "message": self.message,
            "error_code": self.error_code,
            "bound": self.bound,
            "digest": self.digest,
        }
