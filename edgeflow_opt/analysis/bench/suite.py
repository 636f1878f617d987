"""A suite of experiments: a TOML file, and the cells that it stands for."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflow_opt.analysis.bench.cells import PAIRS, Cell
from edgeflow_opt.analysis.scenarios import SETTINGS
from edgeflow_opt.errors import EdgeflowError, Fault, InputError

#: Name and version of the format.
SUITE_FORMAT = "edgeflow-suite/1"

#: Limit of a cell where none is given, seconds.
DEFAULT_CELL_LIMIT_S = 3600.0

#: Options of solves that a suite can give and sweep.
_SOLVE_SETTINGS = ("time_limit_s", "workers", "deterministic", "levels")

#: Parameters of generators that a suite cannot give.
_NOT_GIVEN = frozenset({"seed", "catalog", "name"})

#: More cells than this in one suite are taken for a slip.
MAX_CELLS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite of experiments.

    Parameters
    ----------
    name
        For people and results.
    cells
        All runs, each once, in their order.
    cell_limit_s
        Wall seconds after which a cell is ended with its process.
    """

    name: str
    cells: tuple[Cell, ...]
    cell_limit_s: float

    @property
    def varied(self) -> frozenset[str]:
        """Names of the settings in which simulations differ, beside what labels of traces say."""
        seen: dict[str, set[str]] = {}
        for cell in self.cells:
            if cell.kind != "solve":
                for name, value in cell.settings.items():
                    seen.setdefault(name, set()).add(repr(value))
        return frozenset(name for name, values in seen.items() if len(values) > 1)


def read_suite(path: str | Path) -> Suite:
    """Read a suite, format ``edgeflow-suite/1``.

    ::

        format = "edgeflow-suite/1"
        name = "sample"
        seeds = [0, 1, 2]
        cell_limit_s = 60                  # each cell is ended after that long

        [[solve]]
        instances = ["data/*.json"]        # files, from the folder of the suite
        generate = { num_jobs = [20, 40], num_slots = 24 }   # or generate_problem's arguments
        solvers = ["greedy", "auto"]
        time_limit_s = [1, 5]              # also workers, deterministic, levels
        params.price = { ... }             # of a solver

        [[simulate]]
        traces = ["data/*.csv"]
        generate = { num_jobs = 50, load = [0.8, 1.2] }      # or generate_trace's arguments
        policies = ["edgeflow", "edgeflow-select"]
        cloud_gpus = 16
        edge_servers = [0, 8]              # also tide, overhead, deadlines, arrival_scale, ...
        policy_options.exact = { time_limit_s = 0.1 }
        bound_s = 10                       # also bound what any policy can meet, in so many s

    A list in the place of a single value is swept; all combinations are run with all seeds. The
    seed is that of generated instances and traces, of re-drawn deadlines (``deadlines =
    "0.5,1.5"``) and of the contender.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    from edgeflow_opt.problem.files import read_bytes

    path = Path(path)
    try:
        document = tomllib.loads(read_bytes(path, InputError).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError((Fault("file", "", f"is no TOML ({problem})"),), str(path)) from None
    reader = _Reader(path.parent, str(document.get("name", path.stem)))
    cells = reader.cells_of(document)
    if len(cells) > MAX_CELLS:
        reader.fault("suite", "", f"has more than {MAX_CELLS} cells", str(len(cells)))
    if reader.faults:
        raise InputError(tuple(reader.faults), str(path))
    limit = float(document.get("cell_limit_s", DEFAULT_CELL_LIMIT_S))
    unique = {cell.id: cell for cell in cells}
    return Suite(name=reader.name, cells=tuple(unique.values()), cell_limit_s=limit)


class _Reader:
    """Reads the parts of a suite and gathers what is wrong with them."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.faults: list[Fault] = []

    def fault(self, owner: str, field: str, rule: str, value: str = "", way: str = "") -> None:
        self.faults.append(Fault(owner, field, rule, value, way))

    def cells_of(self, document: Mapping[str, Any]) -> list[Cell]:
        if document.get("format") != SUITE_FORMAT:
            self.fault("suite", "format", f"must be '{SUITE_FORMAT}'", repr(document.get("format")))
        known = ("format", "name", "seeds", "cell_limit_s", "solve", "simulate")
        self._refuse_unknown("suite", document, known)
        limit = document.get("cell_limit_s", DEFAULT_CELL_LIMIT_S)
        if not _is_number(limit) or not 0 < limit < float("inf"):
            self.fault("suite", "cell_limit_s", "must be a number above 0", repr(limit))
        seeds = document.get("seeds", [0])
        whole = isinstance(seeds, list) and all(
            isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 2**31 for s in seeds
        )
        if not whole or not seeds or len(set(seeds)) < len(seeds):
            self.fault("suite", "seeds", "must be different whole numbers from 0 to 2^31 - 1",
                       repr(seeds))  # fmt: skip
            seeds = [0]
        cells: list[Cell] = []
        for kind, reader in (("solve", self._solve), ("simulate", self._simulate)):
            parts = document.get(kind, [])
            if not isinstance(parts, list) or not all(isinstance(p, dict) for p in parts):
                self.fault("suite", kind, f"must be tables, each headed [[{kind}]]")
                continue
            for number, part in enumerate(parts, 1):
                cells += reader(f"{kind} {number}", part, seeds)
        if not cells and not self.faults:
            self.fault("suite", "", "has no cell", way="give [[solve]] or [[simulate]] tables")
        return cells

    def _solve(self, owner: str, part: Mapping[str, Any], seeds: list[int]) -> list[Cell]:
        from edgeflow_opt.solvers import SOLVERS, SolveOptions
        from edgeflow_opt.solvers.front import checked_options
        from edgeflow_opt.workloads import generate_problem

        known = ("instances", "generate", "solvers", "params", *_SOLVE_SETTINGS)
        self._refuse_unknown(owner, part, known)
        names = self._names(owner, "solvers", part, SOLVERS.get)
        params = self._options_of(owner, "params", part, names)
        given = {name: part[name] for name in _SOLVE_SETTINGS if name in part}
        swept = tuple(name for name, value in given.items() if isinstance(value, list))
        sources = self._sources(owner, "instances", part, generate_problem)
        combinations = list(_combinations(given))
        for settings in combinations:
            try:
                checked_options(SolveOptions(), settings)
            except (EdgeflowError, TypeError) as error:
                self.fault(owner, "", str(error))
        return [
            Cell(
                suite=self.name, kind="solve", contender=name, seed=seed, source=source,
                label=label + (f" seed {seed}" if "generate" in source else ""),
                settings=settings, options=params.get(name, {}), swept=swept,
            )
            for (label, source), seed, settings, name in itertools.product(
                sources, seeds, combinations, names
            )
        ]  # fmt: skip

    def _simulate(self, owner: str, part: Mapping[str, Any], seeds: list[int]) -> list[Cell]:
        from edgeflow_opt.policies import POLICIES, make_policy
        from edgeflow_opt.simulation import parse_overhead
        from edgeflow_opt.workloads import generate_trace

        known = ("traces", "generate", "policies", "policy_options", "bound_s", *SETTINGS)
        self._refuse_unknown(owner, part, known)
        names = self._names(owner, "policies", part, POLICIES.get)
        options = self._options_of(owner, "policy_options", part, names)
        for name in names:
            self._try(owner, "policy_options", make_policy, name, **options.get(name, {}))
        given = {**SETTINGS, **{name: part[name] for name in SETTINGS if name in part}}
        sources = self._sources(owner, "traces", part, generate_trace)
        combinations = list(_combinations(given))
        for settings in combinations:
            self._try(owner, "overhead", parse_overhead, str(settings["overhead"]))
            settings["deadlines"] = self._deadlines(owner, settings["deadlines"])
            for name in ("failures", "withdrawals"):
                settings[name] = self._means(owner, name, settings[name])
            tide = settings["tide"]
            if tide not in ("constant", "daily"):
                settings["tide"] = str(self.folder / str(tide))
            for name in ("cloud_gpus", "edge_servers", "arrival_scale", "merge_s"):
                if not _is_number(settings[name]) or settings[name] < 0:
                    self.fault(owner, name, "must be a number >= 0", repr(settings[name]))
        contenders = [("simulate", name, options.get(name, {})) for name in names]
        bound_s = part.get("bound_s")
        if bound_s is not None:
            if not _is_number(bound_s) or not 0 < bound_s < float("inf"):
                self.fault(owner, "bound_s", "must be a number above 0", repr(bound_s))
            contenders.insert(0, ("bound", "clairvoyant", {"time_limit_s": bound_s}))
        return [
            Cell(
                suite=self.name, kind=kind, label=label, contender=name, seed=seed,
                source=source, settings=settings, options=chosen,
            )
            for (label, source), settings, seed, (kind, name, chosen) in itertools.product(
                sources, combinations, seeds, contenders
            )
        ]  # fmt: skip

    def _means(self, owner: str, field: str, value: Any) -> list[float] | None:
        if value is None:
            return None
        try:
            up_s, down_s = (float(number) for number in str(value).split(","))
        except ValueError:
            up_s = down_s = 0.0
        if not (0 < up_s < float("inf") and 0 < down_s < float("inf")):
            self.fault(owner, field, "must be 'UP,DOWN', mean seconds above 0", repr(value))
        return [up_s, down_s]

    def _deadlines(self, owner: str, value: Any) -> list[float] | None:
        if value is None or value == "trace":
            return None
        try:
            low, high = (float(number) for number in str(value).split(","))
        except ValueError:
            low, high = 1.0, 0.0
        if not 0 <= low <= high < float("inf"):
            self.fault(owner, "deadlines", "must be 'trace' or 'LO,HI' with 0 <= LO <= HI",
                       repr(value))  # fmt: skip
        return [low, high]

    def _sources(
        self, owner: str, field: str, part: Mapping[str, Any], generator: Callable[..., Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return label and source of every instance or trace."""
        found: list[tuple[str, dict[str, Any]]] = []
        patterns = part.get(field, [])
        patterns = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            self.fault(owner, field, "must be names of files", repr(patterns))
            patterns = []
        for pattern in patterns:
            folder, inner = (
                (Path(pattern).anchor, str(Path(pattern).relative_to(Path(pattern).anchor)))
                if Path(pattern).is_absolute()
                else (self.folder, pattern)
            )
            paths = [path for path in sorted(Path(folder).glob(inner)) if path.is_file()]
            if not paths:
                self.fault(owner, field, "names no file", repr(pattern), "check path and pattern")
            for path in paths:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found.append((path.name, {"file": str(path.resolve()), "sha256": digest}))
        made = part.get("generate", {})
        if "generate" in part and self._fits(owner, made, generator):
            found += [
                (_label(values, made), {"generate": values}) for values in _combinations(made)
            ]
        if not found and not self.faults:
            self.fault(owner, field, "is missing", way=f"give {field} or generate")
        return found

    def _fits(self, owner: str, made: Any, generator: Callable[..., Any]) -> bool:
        """Whether what is given for a generator are arguments of it."""
        if not isinstance(made, dict):
            self.fault(owner, "generate", "must be a table of arguments", repr(made))
            return False
        parameters = inspect.signature(generator).parameters
        known = [name for name in parameters if name not in _NOT_GIVEN]
        needed = [n for n in known if parameters[n].default is inspect.Parameter.empty]
        before = len(self.faults)
        self._refuse_unknown(f"{owner}, generate", made, known)
        for name in needed:
            if name not in made:
                self.fault(f"{owner}, generate", name, "is missing")
        return len(self.faults) == before

    def _names(
        self, owner: str, field: str, part: Mapping[str, Any], get: Callable[[str], Any]
    ) -> list[str]:
        names = part.get(field)
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            self.fault(owner, field, "must be a list of names", repr(names))
            return []
        known = len(self.faults)
        for name in names:
            self._try(owner, field, get, name)
        return names if len(self.faults) == known else []

    def _options_of(
        self, owner: str, field: str, part: Mapping[str, Any], names: list[str]
    ) -> dict[str, dict[str, Any]]:
        options = part.get(field, {})
        if not isinstance(options, dict) or not all(isinstance(o, dict) for o in options.values()):
            self.fault(owner, field, "must be tables of options by name", repr(options))
            return {}
        if names:
            self._refuse_unknown(f"{owner}, {field}", options, names)
        return options

    def _refuse_unknown(self, owner: str, found: Mapping[str, Any], known: Any) -> None:
        for name in found:
            if name not in known:
                self.fault(owner, name, "is not known", way=f"known are {', '.join(known)}")

    def _try(self, owner: str, field: str, call: Callable[..., Any], *args: Any, **kw: Any) -> None:
        try:
            call(*args, **kw)
        except (EdgeflowError, TypeError) as error:
            self.fault(owner, field, str(error))


def _combinations(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all combinations of values; a list is swept, but for a pair where a pair is wanted."""
    choices = [
        value if isinstance(value, list) and not _is_pair(name, value) else [value]
        for name, value in given.items()
    ]
    for values in itertools.product(*choices):
        yield dict(zip(given, values, strict=True))


def _is_pair(name: str, value: list[Any]) -> bool:
    return name in PAIRS and len(value) == 2 and all(_is_number(part) for part in value)


def _label(values: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return a name for what is generated: its size, and what is swept or not usual."""
    size = f"{values['num_jobs']} jobs"
    if "num_slots" in values:
        size = f"{values['num_jobs']}x{values['num_slots']}"
    extra = [f"{n}={_text(v)}" for n, v in values.items() if n not in ("num_jobs", "num_slots")]
    return " ".join([size, *extra])


def _text(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, list) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
