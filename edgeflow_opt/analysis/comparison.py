"""Solvers compared on the same instances: the run, and the frozen result."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.frames import Tabular
from edgeflow_opt.analysis.rows import Row, digest_of, solve_row
from edgeflow_opt.analysis.statistics import CONFIDENCE, PairedTest, means_by_unit, paired_tests
from edgeflow_opt.errors import Fault, InputError, UsageError

if TYPE_CHECKING:
    from edgeflow_opt.analysis.profiles import GapCurve, Profile
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers import Progress, SolveOptions

#: Name and version of the document.
COMPARE_FORMAT = "edgeflow-compare/1"

#: Columns of the table, with their types in pandas.
_COLUMNS = {
    "instance": "str", "solver": "str", "seed": "Int64", "status": "str", "limit": "str",
    "jobs": "Int64", "met": "Int64", "met_weight": "Float64", "value": "Float64",
    "bound": "Float64", "gap": "Float64", "progress": "Float64", "cost": "Float64",
    "reconfigurations": "Int64", "seconds": "Float64", "message": "str", "digest": "str",
}  # fmt: skip

#: What solvers can be compared by, and whether larger is better.
MEASURES: Mapping[str, bool] = {
    "value": True, "met": True, "met_weight": True, "bound": False, "gap": False,
    "progress": True, "cost": False, "reconfigurations": False, "seconds": False,
}  # fmt: skip

#: What is open while one solve runs; yields what takes its progress, or None.
Watch = Callable[[str, str, int], AbstractContextManager["Callable[[Progress], None] | None"]]

#: Names of solvers, or by label a name, or a name with options of its own.
Solvers = Sequence[str] | Mapping[str, "str | tuple[str, Mapping[str, Any]]"]

#: Instances by name, or in a row: problems or files of format edgeflow-epoch/1.
Instances = Mapping[str, "EpochProblem | str | Path"] | Iterable["EpochProblem | str | Path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Tabular):
    """What several solvers made of the same instances.

    Parameters
    ----------
    rows
        One per instance, solver and seed, in the order in which they ran.
    settings
        What all rows have in common: time limit, workers and the like.
    versions
        Versions of the package and the libraries that took part.
    """

    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def instances(self) -> tuple[str, ...]:
        """Names of the instances in the order of the rows."""
        return tuple(dict.fromkeys(row.instance for row in self.rows))

    @property
    def solvers(self) -> tuple[str, ...]:
        """Names of the solvers in the order of the rows."""
        return tuple(dict.fromkeys(row.solver for row in self.rows))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds in the order of the rows."""
        return tuple(dict.fromkeys(row.seed for row in self.rows))

    @property
    def interrupted(self) -> bool:
        """Whether it was ended by Ctrl-C."""
        return any(row.limit == "interrupted" for row in self.rows)

    def best_value(self, instance: str) -> float | None:
        """Return the best value that any row has on `instance`; None where there is none."""
        values = [r.value for r in self.rows if r.instance == instance and r.value is not None]
        return max(values, default=None)

    def best_bound(self, instance: str) -> float | None:
        """Return the least proven bound that any row has on `instance`; None = there is none."""
        bounds = [r.bound for r in self.rows if r.instance == instance and r.bound is not None]
        return min(bounds, default=None)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows, flat."""
        documents = [row.document() for row in self.rows]
        return [{name: document[name] for name in _COLUMNS} for document in documents]

    def columns(self) -> Mapping[str, str]:
        """Return the types of the columns by name."""
        return _COLUMNS

    def document(self) -> dict[str, Any]:
        """Return the document ``edgeflow-compare/1``."""
        return {
            "format": COMPARE_FORMAT,
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "rows": [row.document() for row in self.rows],
        }

    def summary(self) -> list[dict[str, Any]]:
        """Return one line per solver: how often it solved, and its means over what it solved.

        Each line has ``solver``, ``rows``, ``failed``, ``optimal``, ``best`` (rows with the best
        value known of their instance), the means ``value``, ``gap``, ``cost``, ``reconfigurations``
        and ``seconds`` over the rows that have them (None = none has), and ``gap_rows``, the number
        of rows with a gap: means over other rows than those of another solver compare nothing.
        """
        best = {name: self.best_value(name) for name in self.instances}
        lines = []
        for solver in self.solvers:
            rows = [row for row in self.rows if row.solver == solver]
            line: dict[str, Any] = {
                "solver": solver,
                "rows": len(rows),
                "failed": sum(row.failed for row in rows),
                "optimal": sum(row.status == "optimal" for row in rows),
                "best": sum(_reaches(row.value, best[row.instance]) for row in rows),
            }
            for measure in ("value", "gap", "cost", "reconfigurations", "seconds"):
                values = [v for row in rows if (v := getattr(row, measure)) is not None]
                line[measure] = statistics.fmean(values) if values else None
            line["gap_rows"] = sum(row.gap is not None for row in rows)
            lines.append(line)
        return lines

    def paired_tests(
        self,
        measure: str = "value",
        *,
        reference: str | None = None,
        confidence: float = CONFIDENCE,
    ) -> tuple[PairedTest, ...]:
        """Compare the solvers pair by pair.

        Where there are several instances they are the units, with the mean over the seeds as their
        value, since runs of one instance are not independent of each other. On a single instance
        the seeds are the units, and the tests speak of that instance alone. Runs without the
        measure leave their unit out of the pairs of their solver.

        Parameters
        ----------
        measure
            One of :data:`MEASURES`.
        reference
            The solver that the others are compared with; None = all pairs.
        confidence
            Of the intervals.

        Raises
        ------
        UsageError
            If the measure or the reference is not known.
        """
        check_measure(measure, MEASURES)
        single = len(self.instances) == 1
        values = means_by_unit(
            (row.solver, f"seed {row.seed}" if single else row.instance, getattr(row, measure))
            for row in self.rows
        )
        return paired_tests(values, measure, reference=reference, confidence=confidence)

    def performance_profiles(self, measure: str = "seconds") -> tuple[Profile, ...]:
        """Return the performance profiles; see :func:`.profiles.performance_profiles`."""
        from edgeflow_opt.analysis.profiles import performance_profiles

        return performance_profiles(self.rows, measure)

    def gap_curves(self, kind: str = "primal") -> tuple[GapCurve, ...]:
        """Return the gap over time of each solver; see :func:`.profiles.gap_curves`."""
        from edgeflow_opt.analysis.profiles import gap_curves

        return gap_curves(self.rows, kind)

    def _unprinted(self) -> frozenset[str]:
        """Long texts, and what says the same of all rows."""
        same = {"jobs", "met_weight"} if all(r.value == r.met_weight for r in self.rows) else set()
        one_seed = {"seed"} if len(self.seeds) == 1 else set()
        return frozenset({"message", "digest", *same, *one_seed})


def compare(
    instances: Instances,
    solvers: Solvers | None = None,
    seeds: Iterable[int] = (0,),
    *,
    options: SolveOptions | None = None,
    on_row: Callable[[Row], None] | None = None,
    watch: Watch | None = None,
    **changes: Any,
) -> Comparison:
    """Solve all instances by all solvers with all seeds, one after the other.

    A solver that fails or refuses an instance gets a row that says so, and the others go on; a solve
    that Ctrl-C ended is the last.

    Parameters
    ----------
    instances
        Problems or files, by name or in a row: files are then named by their file names (by their
        paths where those clash), problems by ``instance 1`` and so on.
    solvers
        Names of solvers, or settings of solvers by a label of their own:
        ``{"price, 1 s": ("price", {"time_limit_s": 1})}``, the options of one setting on top of
        those of all. None = all that are installed.
    seeds
        Seeds of the solvers.
    options
        What to ask of every solver; None = the defaults. Its seed is not used.
    on_row
        Called with every row as soon as it is there.
    watch
        Called with instance, solver (its label) and seed before each solve; returns a context manager that is
        open while the solve runs, and yields what takes its progress (None = nothing does).
    **changes
        Changes to single options, e.g. ``time_limit_s=5``.

    Returns
    -------
    comparison
        Rows in the order instance, solver, seed.

    Raises
    ------
    UsageError
        If a solver, a seed or an option is not known or makes no sense, or a name stands twice.
    InstanceError
        If a file breaks the format.

    Examples
    --------
    >>> from edgeflow_opt.workloads import demo_problem
    >>> comparison = compare({"demo": demo_problem()}, ["greedy", "edgeflow-select"])
    >>> comparison.solvers
    ('greedy', 'edgeflow-select')
    """
    from edgeflow_opt.solvers import SOLVERS, SolveOptions
    from edgeflow_opt.solvers.front import checked_options, versions

    contenders = _contenders(installed_solvers() if solvers is None else solvers)
    for name, _ in contenders.values():
        SOLVERS.get(name)
    asked = checked_options(options or SolveOptions(), changes)
    seeds = [checked_options(asked, {"seed": seed}).seed for seed in seeds]
    _refuse_twins("seeds", seeds)
    settings_of = {
        label: checked_options(asked, own) for label, (_, own) in contenders.items() if own
    }
    problems = named_problems(instances)
    libraries: set[str] = set()
    rows: list[Row] = []
    for instance, problem in problems.items():
        digest = digest_of(problem)
        for label, (name, _) in contenders.items():
            libraries.update(SOLVERS.get(name).capabilities.requires)
            for seed in seeds:
                if rows and rows[-1].limit == "interrupted":
                    break
                chosen = checked_options(settings_of.get(label, asked), {"seed": seed})
                opened = (
                    contextlib.nullcontext(chosen.on_progress)
                    if watch is None
                    else watch(instance, label, seed)
                )
                with opened as on_progress:
                    row = solve_row(
                        instance, problem, name, chosen, digest=digest, on_progress=on_progress
                    )
                row = dataclasses.replace(row, solver=label)
                rows.append(row)
                if on_row is not None:
                    on_row(row)
    settings = {
        "time_limit_s": asked.time_limit_s,
        "workers": asked.workers,
        "deterministic": asked.deterministic,
        "levels": asked.levels,
        "params": dataclasses.asdict(asked)["params"],
    }
    if settings_of:
        settings["solvers"] = {
            label: {"solver": name, **own} for label, (name, own) in contenders.items()
        }
    return Comparison(
        rows=tuple(rows), settings=settings, versions=versions(tuple(sorted(libraries)))
    )


def _contenders(solvers: Solvers) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the solvers by label, each with its name and its own options."""
    if not isinstance(solvers, Mapping):
        names = list(solvers)
        _refuse_twins("solvers", names)
        return {name: (name, {}) for name in names}
    contenders = {}
    for label, setting in solvers.items():
        if isinstance(setting, str):
            setting = (setting, {})
        name, own = setting
        if "seed" in own:
            raise UsageError(
                f"solver {label!r}: has an option seed; give the seeds of all in seeds"
            )
        contenders[label] = (name, dict(own))
    return contenders


def comparison_from_document(document: Any, source: str = "") -> Comparison:
    """Return the comparison that a document ``edgeflow-compare/1`` tells of.

    Parameters
    ----------
    document
        As parsed from JSON; unknown keys are passed over.
    source
        Where it is from, for messages.

    Raises
    ------
    InputError
        If it is no such document; every row at fault is named.
    """
    if not isinstance(document, Mapping) or document.get("format") != COMPARE_FORMAT:
        raise InputError((Fault("document", "format", f"must be {COMPARE_FORMAT!r}"),), source)
    entries = document.get("rows")
    if not isinstance(entries, list):
        raise InputError((Fault("document", "rows", "must be a list"),), source)
    rows: list[Row] = []
    faults: list[Fault] = []
    for index, entry in enumerate(entries):
        try:
            rows.append(Row.from_document(entry))
        except KeyError as missing:
            faults.append(Fault(f"row {index}", str(missing.args[0]), "is missing"))
        except (TypeError, ValueError, IndexError, AttributeError):
            faults.append(Fault(f"row {index}", "", "is no row of a comparison"))
    if faults:
        raise InputError(tuple(faults), source)
    return Comparison(
        rows=tuple(rows),
        settings=document.get("settings") or {},
        versions=document.get("versions") or {},
    )


def named_problems(instances: Instances) -> dict[str, EpochProblem]:
    """Return the instances by name, files read; see :func:`compare`."""
    from edgeflow_opt.problem import EpochProblem, read_problem

    if isinstance(instances, (str, Path, EpochProblem)):
        instances = [instances]
    if isinstance(instances, Mapping):
        named = dict(instances)
    else:
        given = list(instances)
        files = labels_of([str(item) for item in given if not isinstance(item, EpochProblem)])
        names = iter(files)
        listed = [
            f"instance {index}" if isinstance(item, EpochProblem) else next(names)
            for index, item in enumerate(given, 1)
        ]
        _refuse_twins("instances", listed)
        named = dict(zip(listed, given, strict=True))
    return {
        name: item if isinstance(item, EpochProblem) else read_problem(item)
        for name, item in named.items()
    }


def labels_of(paths: Sequence[str]) -> list[str]:
    """Return how to name files: by their file names, by their paths where those clash."""
    names = ["stdin" if path == "-" else PurePath(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def installed_solvers() -> list[str]:
    """Return the names of the solvers whose libraries are there; families such as pulp are left out."""
    import importlib.util

    from edgeflow_opt.solvers import SOLVERS

    names = []
    for name in SOLVERS.names():
        try:
            solver = SOLVERS.get(name)
            requires = solver.capabilities.requires
        except Exception:
            continue  # a broken plug-in is not installed
        if hasattr(solver, "member"):
            continue  # a family: its members are named one by one
        if all(importlib.util.find_spec(module) is not None for module in requires):
            names.append(name)
    return names


def check_measure(measure: str, known: Iterable[str]) -> None:
    """Refuse a measure that is not known.

    Raises
    ------
    UsageError
        With all that are.
    """
    names = list(known)
    if measure not in names:
        raise UsageError(f"measure {measure!r} is not known; known are {', '.join(names)}")


def _refuse_twins(what: str, names: Sequence[Any]) -> None:
    for name in names:
        if list(names).count(name) > 1:
            raise UsageError(f"{what}: {name!r} is given twice; give it once")


def _reaches(value: float | None, best: float | None) -> bool:
    """Whether a value is the best known, within 1e-6."""
    return value is not None and best is not None and value >= best - 1e-6 * max(1.0, abs(best))
