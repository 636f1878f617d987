"""Online policies compared on whole traces: the run, and the frozen result."""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.comparison import check_measure
from edgeflow_opt.analysis.crew import Result, crew_of
from edgeflow_opt.analysis.frames import Tabular
from edgeflow_opt.analysis.policy_rows import POLICY_MEASURES, PolicyRow
from edgeflow_opt.analysis.scenarios import SETTINGS, bound_of_scenario, only_row, scenario_of
from edgeflow_opt.analysis.statistics import (
    CONFIDENCE,
    Mean,
    PairedTest,
    mean_of,
    means_by_unit,
    paired_tests,
)
from edgeflow_opt.errors import Fault, InputError, UsageError

if TYPE_CHECKING:
    from edgeflow_opt.workloads import Trace

#: Name and version of the document.
POLICIES_FORMAT = "edgeflow-compare-policies/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The mean of a measure for one policy at one set of settings.

    Parameters
    ----------
    policy
        Name of the policy.
    settings
        The settings that are not the same for all rows.
    mean
        With its interval, over traces and seeds.
    """

    policy: str
    settings: Mapping[str, Any]
    mean: Mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyComparison(Tabular):
    """What several policies made of the same traces.

    Parameters
    ----------
    rows
        One per trace, settings, seed and policy, in the order in which they ran.
    versions
        Versions of the package and the libraries that took part.
    """

    rows: tuple[PolicyRow, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies in the order of the rows."""
        return tuple(dict.fromkeys(row.policy for row in self.rows))

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of the traces in the order of the rows."""
        return tuple(dict.fromkeys(row.trace for row in self.rows))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds in the order of the rows."""
        return tuple(dict.fromkeys(row.seed for row in self.rows))

    @property
    def swept(self) -> tuple[str, ...]:
        """Names of the settings that are not the same for all rows."""
        names = dict.fromkeys(name for row in self.rows for name in row.settings)
        return tuple(
            name for name in names if len({_text(row.settings.get(name)) for row in self.rows}) > 1
        )

    def records(self) -> list[dict[str, Any]]:
        """Return the rows, flat."""
        names = self._setting_names()
        records = []
        for row in self.rows:
            record: dict[str, Any] = {"trace": row.trace, "policy": row.policy, "seed": row.seed}
            record |= {name: _text(row.settings.get(name)) for name in names}
            for measure in ("jobs", "events", *POLICY_MEASURES):
                record[measure] = row.value(measure)
            records.append(
                record | {"bound": row.bound, "message": row.message, "digest": row.digest}
            )
        return records

    def columns(self) -> Mapping[str, str]:
        """Return the types of the columns by name."""
        kinds = {"trace": "str", "policy": "str", "seed": "Int64"}
        for name in self._setting_names():
            values = [row.settings.get(name) for row in self.rows]
            numeric = all(v is None or isinstance(v, int | float) for v in values)
            kinds[name] = "Float64" if numeric else "str"
        whole = ("jobs", "events", "met", "late", "refused", "unfinished")
        for measure in ("jobs", "events", *POLICY_MEASURES):
            kinds[measure] = "Int64" if measure in whole else "Float64"
        return {**kinds, "bound": "Float64", "message": "str", "digest": "str"}

    def document(self) -> dict[str, Any]:
        """Return the document ``edgeflow-compare-policies/1``."""
        return {
            "format": POLICIES_FORMAT,
            "versions": dict(self.versions),
            "rows": [row.document() for row in self.rows],
        }

    def means(
        self,
        measure: str = "dsr",
        *,
        by: Sequence[str] | None = None,
        confidence: float = CONFIDENCE,
    ) -> tuple[Point, ...]:
        """Return the mean of a measure for each policy and each set of swept settings.

        Parameters
        ----------
        measure
            One of :data:`~edgeflow_opt.analysis.policy_rows.POLICY_MEASURES`.
        by
            Names of settings that set points apart; None = all that are swept.
        confidence
            Of the intervals, which suppose that seeds (and traces) are independent draws.
        """
        check_measure(measure, POLICY_MEASURES)
        names = self.swept if by is None else tuple(by)
        groups: dict[tuple[str, ...], list[PolicyRow]] = {}
        for row in self.rows:
            key = (row.policy, *(_text(row.settings.get(name)) for name in names))
            groups.setdefault(key, []).append(row)
        points = []
        for rows in groups.values():
            values = [v for row in rows if (v := row.value(measure)) is not None]
            if values:
                points.append(
                    Point(
                        policy=rows[0].policy,
                        settings={name: rows[0].settings.get(name) for name in names},
                        mean=mean_of(values, confidence),
                    )
                )
        return tuple(points)

    def paired_tests(
        self,
        measure: str = "dsr",
        *,
        reference: str | None = None,
        confidence: float = CONFIDENCE,
    ) -> tuple[PairedTest, ...]:
        """Compare the policies pair by pair; a unit is a trace with a seed, averaged over sweeps.

        Parameters
        ----------
        measure
            One of :data:`~edgeflow_opt.analysis.policy_rows.POLICY_MEASURES`.
        reference
            The policy that the others are compared with; None = all pairs.
        confidence
            Of the intervals.

        Raises
        ------
        UsageError
            If the measure or the reference is not known.
        """
        check_measure(measure, POLICY_MEASURES)
        values = means_by_unit(
            (row.policy, f"{row.trace} seed {row.seed}", row.value(measure)) for row in self.rows
        )
        return paired_tests(values, measure, reference=reference, confidence=confidence)

    def _setting_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row.settings))

    def _unprinted(self) -> frozenset[str]:
        """Long texts, times, and settings that are the same for all rows."""
        same = set(self._setting_names()) - set(self.swept)
        return frozenset({"message", "digest", "decision_p99_s", "makespan", "met_weight", *same})


def compare_policies(
    trace: Trace | Callable[[int], Trace],
    policies: Sequence[str] | Mapping[str, Mapping[str, Any]],
    seeds: Iterable[int] = (0,),
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    bound_s: float | None = None,
    workers: int = 1,
    on_row: Callable[[PolicyRow], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> PolicyComparison:
    """Simulate a trace under several policies, with several seeds and settings.

    Parameters
    ----------
    trace
        A trace, or what makes one of a seed (``lambda seed: generate_trace(100, seed)``). With one
        trace, seeds matter only for re-drawn deadlines (`deadlines`) and policies with a seed.
    policies
        Names, or options by name.
    seeds
        Of the trace, the deadlines and the policies.
    sweep
        Values by name of a setting: every combination is run.
    bound_s
        Also bound what any schedule can meet with all arrivals known, in so many seconds a trace;
        None = no bound.
    workers
        Simulations that run at a time, at least 1, each in a process of its own (which needs the
        extra ``suite``). The processes are started afresh: they know policies that are installed,
        not such as were entered into the registry in this process alone. Rows are the same, and in
        the same order, but for wall times.
    on_row
        Called with every row, in their order, as soon as it is there.
    on_progress
        Called after every run with the number of those that are done, and of all.
    **settings
        See :data:`~edgeflow_opt.analysis.scenarios.SETTINGS`: ``cloud_gpus``, ``edge_servers``, ``tide``, ``overhead``,
        ``deadlines`` (None = as in the trace, or a pair (low, high) of factors of the duration),
        ``arrival_scale``, ``merge_s``, ``head`` (only so many jobs), ``failures`` and
        ``withdrawals`` (None, or mean seconds up and down of nodes and of edge servers).

    Returns
    -------
    comparison
        Rows in the order settings, seed, policy. A policy that fails has a row that says so.

    Raises
    ------
    UsageError
        If a policy, an option or a setting is not known or makes no sense.
    """
    from edgeflow_opt.policies import POLICIES
    from edgeflow_opt.solvers.front import versions

    options = policies if isinstance(policies, Mapping) else {name: {} for name in policies}
    for name in options:
        POLICIES.get(name)
    sweep = sweep or {}
    for name in (*settings, *sweep):
        if name not in SETTINGS:
            raise UsageError(f"setting {name!r} is not known; known are {', '.join(SETTINGS)}")
    if workers < 1:
        raise UsageError(f"option workers: must be at least 1, got {workers!r}")
    seeds = list(seeds)
    combinations = list(itertools.product(*sweep.values()))
    total = len(combinations) * len(seeds) * len(options)
    rows: list[PolicyRow] = []

    def take(row: PolicyRow) -> None:
        rows.append(row)
        if on_row is not None:
            on_row(row)
        if on_progress is not None:
            on_progress(len(rows), total)

    with crew_of(workers) as crew:
        # Those that are under way, in the order of the rows: a row, and the bound on it.
        under_way: deque[tuple[Result, Result | None]] = deque()
        for values, seed in itertools.product(combinations, seeds):
            chosen = {**SETTINGS, **settings, **dict(zip(sweep, values, strict=True))}
            base = trace(seed) if callable(trace) else trace
            scenario = scenario_of(base, seed, chosen)
            bound = None if bound_s is None else crew.begin(bound_of_scenario, scenario, bound_s)
            for name, given in options.items():
                label = base.name or "trace"
                run = crew.begin(only_row, label, scenario, name, seed, chosen, given)
                under_way.append((run, bound))
                if len(under_way) > crew.room:
                    take(_finished(*under_way.popleft()))
        while under_way:
            take(_finished(*under_way.popleft()))
    return PolicyComparison(rows=tuple(rows), versions=versions())


def _finished(run: Result, bound: Result | None) -> PolicyRow:
    row: PolicyRow = run()
    return row if bound is None else dataclasses.replace(row, bound=bound())


def policies_from_document(document: Any, source: str = "") -> PolicyComparison:
    """Return the comparison that a document ``edgeflow-compare-policies/1`` tells of.

    A document ``edgeflow-simulation/1``, as ``edgeflow simulate`` writes it, is a comparison with
    one seed.

    Raises
    ------
    InputError
        If it is none of both, or a row is at fault.
    """
    kind = document.get("format") if isinstance(document, Mapping) else None
    try:
        if kind == POLICIES_FORMAT:
            rows = tuple(PolicyRow(**_known_keys(entry)) for entry in document["rows"])
            return PolicyComparison(rows=rows, versions=document.get("versions") or {})
        if kind == "edgeflow-simulation/1":
            settings = {n: v for n, v in document["settings"].items() if n in SETTINGS}
            bound = (document.get("bound") or {}).get("bound")
            rows = tuple(
                PolicyRow(
                    trace=document["trace"], policy=entry["policy"],
                    seed=document["settings"].get("seed", 0), settings=settings, metrics=entry,
                    bound=bound,
                )
                for entry in document["results"]
            )  # fmt: skip
            return PolicyComparison(rows=rows)
    except (KeyError, TypeError, AttributeError) as problem:
        raise InputError(
            (Fault("document", "rows", f"is no list of rows ({problem})"),), source
        ) from None
    raise InputError(
        (Fault("document", "format", f"must be {POLICIES_FORMAT!r} or 'edgeflow-simulation/1'"),),
        source,
    )


def _known_keys(entry: Mapping[str, Any]) -> dict[str, Any]:
    names = PolicyRow.__dataclass_fields__
    return {name: value for name, value in entry.items() if name in names}


def _text(value: Any) -> Any:
    """Return a setting as a value that can be compared and put into a cell."""
    return f"{value[0]:g} to {value[1]:g}" if isinstance(value, list | tuple) else value
