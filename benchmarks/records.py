"""What is kept of a run, and the promises that every run is held to."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Relative amount by which a bound may be below a value without contradicting it.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run of one solver on one instance.

    Parameters
    ----------
    target
        Name of the target that the run belongs to.
    instance
        The parameters of the instance.
    digest
        Hash of the instance file; empty where the run died before it was known.
    solver
        Name of the contender.
    limit_s
        The limit given, seconds; None = none.
    seconds
        Wall seconds that were taken, model building and checks included.
    status
        Status of the schedule, or ``not installed``, ``not tried``, ``failed``.
    value, bound
        Met weight of the checked schedule, and the proven bound on it; None = none.
    peak_mb
        Largest resident memory of the process so far, or of one that it started; MB.
    load_average
        Of the machine over the last minute, when the run began.
    figures
        Further measurements by name: milliseconds, the gap before an arrival, statistics.
    versions
        Of the package and of what took part.
    note
        For people.
    """

    target: str
    instance: Mapping[str, Any]
    digest: str
    solver: str
    limit_s: float | None
    seconds: float
    status: str
    value: float | None = None
    bound: float | None = None
    peak_mb: float | None = None
    load_average: float = 0.0
    figures: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def ran(self) -> bool:
        """Whether there was a run at all."""
        return self.status not in ("not installed", "not tried")

    @property
    def open(self) -> float | None:
        """Met weight between value and bound; None where either is not known."""
        if self.value is None or self.bound is None:
            return None
        return max(0.0, self.bound - self.value)

    @property
    def gap(self) -> float | None:
        """Relative gap; None where it is not known, or the value is 0 and the bound is not."""
        if self.open is None or self.value is None:
            return None
        if self.open <= _TOLERANCE:
            return 0.0
        return self.open / abs(self.value) if self.value else None

    @property
    def settled_s(self) -> float:
        """Seconds at which value and bound were those of the end, where the solver tells."""
        settled = self.figures.get("settled_s")
        return self.seconds if settled is None else float(settled)

    @property
    def overshoot_s(self) -> float:
        """Seconds beyond the limit."""
        return 0.0 if self.limit_s is None else max(0.0, self.seconds - self.limit_s)

    @property
    def late(self) -> bool:
        """Whether the limit was broken by more than 10 % or 0.5 s, the larger."""
        return self.limit_s is not None and self.overshoot_s > max(0.5, 0.1 * self.limit_s)

    def line(self) -> str:
        """Return the run as one line of JSON."""
        document = dataclasses.asdict(self)
        document |= {"gap": self.gap, "overshoot_s": self.overshoot_s, "late": self.late}
        return json.dumps(document, allow_nan=False, sort_keys=True)


def false_bounds(records: Iterable[Record]) -> Iterator[str]:
    """Yield in words every bound that is below a value found on the same instance."""
    by_instance: dict[str, list[Record]] = {}
    for record in records:
        if record.digest:
            by_instance.setdefault(record.digest, []).append(record)
    for group in by_instance.values():
        found = [(r.value, r.solver) for r in group if r.value is not None]
        if not found:
            continue
        best, finder = max(found)
        for record in group:
            if record.bound is not None and record.bound < best - _TOLERANCE * max(1.0, abs(best)):
                yield (
                    f"BOUND {record.bound:.6f} OF {record.solver} IS BELOW THE VALUE {best:.6f} OF "
                    f"{finder} ON {record.target}, INSTANCE {record.digest} {dict(record.instance)}"
                )
