"""How fast models train: iterations per second by model, batch and GPUs, on cloud and edge.

Cloud rates
    A100 GPUs in nodes of 8, iterations of the global batch per second. Source: pkusys/ElasticFlow,
    ``ElasticFlow/scheduler/throughputs_A100`` (Apache-2.0; Gu et al., ASPLOS 2023), rounded here
    to 6 significant digits. Rates need not rise with the GPUs: bert with batch 64 is fastest on 8.
Edge rates
    ``edge ratio * rate on one A100``: the ratio is the throughput of one V100, taken as the edge
    server, over that of one A100. It may be above 1; nothing relies on its being below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from edgeflow_opt.errors import Fault, TraceError, UsageError
from edgeflow_opt.problem.data import Mode
from edgeflow_opt.problem.files import read_bytes
from edgeflow_opt.problem.types import type_faults
from edgeflow_opt.problem.values import MAX_MAGNITUDE, is_number, is_whole, make_plain, shown
from edgeflow_opt.workloads.table import MAX_FAULTS, Table

#: Rates on 1, 2, 4, ... A100 GPUs, iterations/s, by model and global batch (source: see above).
_A100_RATES: dict[tuple[str, int], tuple[float, ...]] = {
    ("bert", 64): (6.03066, 8.64348, 10.3563, 11.0602, 10.9869, 10.6083, 9.24586),
    ("bert", 128): (3.57493, 5.67941, 8.45093, 9.99424, 10.7676, 10.7104, 9.44456),
    ("deepspeech2", 32): (3.02316, 5.36586, 7.54393, 9.81614, 12.8832, 14.4615),
    ("deepspeech2", 64): (1.59992, 2.96148, 5.25276, 7.40624, 9.40086, 12.4843, 13.9739),
    ("gpt2", 128): (7.30884, 11.9459, 16.6663, 18.7037, 19.8749, 18.599, 16.6465),
    ("gpt2", 256): (4.09734, 6.95975, 11.4405, 15.6555, 17.8723, 18.8554, 15.6436),
    ("inception3", 64): (4.82065, 8.19006, 11.6932, 13.3925, 13.6934, 13.6875, 13.0548),
    ("inception3", 128): (2.5623, 4.65929, 7.80361, 10.8542, 12.7972, 12.8435, 12.3407),
    ("resnet50", 64): (6.84298, 11.8385, 18.2989, 21.2654, 21.5097, 22.7498, 20.9691),
    ("resnet50", 128): (3.65537, 6.61953, 11.2242, 16.5341, 20.1556, 20.291, 21.0709),
    ("resnet50", 256): (1.84337, 3.44862, 6.19081, 10.3787, 15.1527, 17.8226, 18.8453),
    ("vgg16", 64): (5.05302, 9.03564, 14.755, 19.3299, 25.8933, 30.5557, 29.5336),
    ("vgg16", 128): (2.62478, 4.87362, 8.72075, 13.573, 18.0598, 23.6154, 25.7825),
    ("vgg16", 256): (1.31366, 2.52269, 4.64187, 7.99643, 12.6218, 16.3718, 20.6555),
}

#: V100 over A100 throughput of one GPU by model.
#:
#: * resnet50: measured. 0.642 (batch 64) and 0.683 (batch 128) are the V100 rates of
#:   stanford-futuredata/gavel (MIT) over the A100 rates above.
#: * bert: near the 0.47 to 0.54 that NVIDIA/DeepLearningExamples print for mixed precision
#:   (fine-tuning, and pre-training in TensorFlow).
#: * The others are assumptions within the range of the 37 models of NVIDIA/DeepLearningExamples
#:   (mixed precision, one GPU: median 0.55, range 0.36 to 0.82): sweep them before relying on them.
_EDGE_RATIOS = {
    "bert": 0.49,
    "deepspeech2": 0.40,
    "gpt2": 0.50,
    "inception3": 0.58,
    "resnet50": 0.66,
    "vgg16": 0.55,
}

#: Edge ratio of a model of which nothing is known: the median named above.
MEDIAN_EDGE_RATIO = 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class RateProfile:
    """Rates of one model with one global batch on cloud GPUs.

    Parameters
    ----------
    model
        Name of the model.
    batch
        Global batch, samples per iteration, at least 1.
    rates
        ``(GPUs, iterations/s)``, GPUs rising; rates are positive and may fall.
    """

    model: str
    batch: int
    rates: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)

    @property
    def knee(self) -> int:
        """GPUs of the best rate; of equal rates the fewest."""
        return max(self.rates, key=lambda entry: (entry[1], -entry[0]))[0]


@dataclass(frozen=True, kw_only=True)
class RateCatalog:
    """Rates of models on one cloud cluster and on edge servers.

    Make one with other figures by :meth:`from_table`, :meth:`with_edge_ratios` or
    :func:`read_rates`; :data:`DEFAULT_CATALOG` holds the published ones.

    Parameters
    ----------
    profiles
        One per model and batch, each with a rate on one GPU.
    edge_ratios
        ``(model, ratio)``: throughput of an edge server over that of one cloud GPU, positive.
    default_edge_ratio
        For models not named in `edge_ratios`; None = those are refused when an edge rate is asked.
    memory_gib
        ``(model, GiB)`` device memory that a model needs on one unit. Default: none named, and a
        model not named needs 0, that is, it fits everywhere.
    name
        For people.

    Raises
    ------
    UsageError
        If a figure is out of its range or stands twice, or a rate on one GPU is missing.
    """

    profiles: tuple[RateProfile, ...]
    edge_ratios: tuple[tuple[str, float], ...] = ()
    default_edge_ratio: float | None = None
    memory_gib: tuple[tuple[str, float], ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        make_plain(self, (part.name for part in dataclasses.fields(self)))
        for fault in type_faults(
            self, RateCatalog, f"rate catalog {shown(self.name)}", finite=False
        ):
            raise UsageError(str(fault))
        problems = [text for profile in self.profiles for text in _profile_faults(profile)]
        keys = [(profile.model, profile.batch) for profile in self.profiles]
        problems += [
            f"{k[0]} with batch {k[1]} stands twice" for k in set(keys) if keys.count(k) > 1
        ]
        ratios = [*self.edge_ratios]
        if self.default_edge_ratio is not None:
            ratios.append(("any other model", self.default_edge_ratio))
        problems += [
            f"edge ratio of {model} must be a finite number above 0, got {shown(ratio)}"
            for model, ratio in ratios
            if not _is_number(ratio) or ratio <= 0
        ]
        problems += [
            f"memory_gib of {model} must be a finite number of at least 0, got {shown(memory)}"
            for model, memory in self.memory_gib
            if not _is_number(memory) or memory < 0
        ]
        if problems:
            raise UsageError(f"rate catalog {self.name!r}: {'; '.join(problems)}")

    @classmethod
    def from_table(
        cls,
        table: Mapping[tuple[str, int], Mapping[int, float]],
        *,
        edge_ratios: Mapping[str, float] | None = None,
        default_edge_ratio: float | None = MEDIAN_EDGE_RATIO,
        memory_gib: Mapping[str, float] | None = None,
        name: str = "",
    ) -> RateCatalog:
        """Return the catalog of ``table[model, batch][gpus] = iterations/s``.

        Parameters are those of the class, as mappings; `default_edge_ratio` is the median of 37
        published models unless given.
        """
        return cls(
            profiles=tuple(
                RateProfile(model=model, batch=batch, rates=tuple(sorted(rates.items())))
                for (model, batch), rates in table.items()
            ),
            edge_ratios=tuple((edge_ratios or {}).items()),
            default_edge_ratio=default_edge_ratio,
            memory_gib=tuple((memory_gib or {}).items()),
            name=name,
        )

    @cached_property
    def _by_key(self) -> dict[tuple[str, int], RateProfile]:
        return {(profile.model, profile.batch): profile for profile in self.profiles}

    @cached_property
    def _ratio_of(self) -> dict[str, float]:
        return dict(self.edge_ratios)

    @cached_property
    def _memory_of(self) -> dict[str, float]:
        return dict(self.memory_gib)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, each once, in the order of the profiles."""
        return tuple(dict.fromkeys(profile.model for profile in self.profiles))

    def batches(self, model: str) -> tuple[int, ...]:
        """Return the batches known of `model`; none for an unknown model."""
        return tuple(profile.batch for profile in self.profiles if profile.model == model)

    def has(self, model: str, batch: int) -> bool:
        """Whether rates of `model` with global batch `batch` are known."""
        return (model, batch) in self._by_key

    def profile(self, model: str, batch: int) -> RateProfile:
        """Return the rates of `model` with global batch `batch`.

        Raises
        ------
        UsageError
            If they are not known; the known names are given.
        """
        found = self._by_key.get((model, batch))
        if found is None:
            raise UsageError(f"rate catalog: {self.unknown(model, batch)}")
        return found

    def unknown(self, model: str, batch: int) -> str:
        """Return in words what is not known of (`model`, `batch`), and what is."""
        known = self.batches(model)
        if not known:
            return f"model {shown(model)} is not known; known are {', '.join(self.models)}"
        return (
            f"batch {shown(batch)} of model {shown(model)} is not known; known are "
            f"{', '.join(map(str, known))}"
        )

    def rates(self, model: str, batch: int) -> dict[int, float]:
        """Return ``{GPUs: iterations/s}`` of `model` with global batch `batch`.

        Raises
        ------
        UsageError
            If they are not known.
        """
        return dict(self.profile(model, batch).rates)

    def edge_ratio(self, model: str) -> float:
        """Return the throughput of an edge server over that of one cloud GPU.

        Raises
        ------
        UsageError
            If the model has none and the catalog no default.
        """
        ratio = self._ratio_of.get(model, self.default_edge_ratio)
        if ratio is None:
            raise UsageError(
                f"rate catalog: model {shown(model)} has no edge ratio; name it in edge_ratios or "
                "set default_edge_ratio"
            )
        return ratio

    def memory(self, model: str) -> float:
        """Return the device memory that `model` needs on one unit, GiB; 0 where none is named."""
        return self._memory_of.get(model, 0.0)

    def modes(
        self,
        model: str,
        batch: int,
        cloud_site: str = "cloud",
        edge_site: str | None = "edge",
        max_gpus: int | None = None,
        *,
        beyond_knee: bool = False,
        requested: int | None = None,
    ) -> tuple[Mode, ...]:
        """Return the ways to run a job: powers of two on the cloud, one edge server.

        Parameters
        ----------
        model, batch
            What is trained.
        cloud_site, edge_site
            Names of the sites; `edge_site` None = no edge mode.
        max_gpus
            Size of the cloud cluster: no larger mode, but that of one GPU always stays. None = no
            limit.
        beyond_knee
            Keep GPU counts beyond that of the best rate, which are slower: for policies that hold
            the most GPUs whatever it brings.
        requested
            Keep this count even if it is beyond the knee, or no power of two; None = none asked for.

        Raises
        ------
        UsageError
            If the model or batch is not known, or there is no edge ratio.
        """
        profile = self.profile(model, batch)
        top = profile.rates[-1][0] if beyond_knee else profile.knee
        if max_gpus is not None:
            top = min(top, max_gpus)
        modes = [
            Mode(site=cloud_site, gpus=gpus, rate=rate)
            for gpus, rate in profile.rates
            if gpus == 1
            or (gpus <= top and gpus & (gpus - 1) == 0)
            or (gpus == requested and (max_gpus is None or gpus <= max_gpus))
        ]
        if edge_site is not None:
            rate = self.edge_ratio(model) * profile.rates[0][1]
            modes.append(Mode(site=edge_site, gpus=1, rate=rate))
        return tuple(modes)

    def with_edge_ratios(self, ratios: Mapping[str, float] | float) -> RateCatalog:
        """Return a copy with other edge ratios: some by model, or one number for all models."""
        if isinstance(ratios, Mapping):
            merged = {**self._ratio_of, **ratios}
            return self.replace(edge_ratios=tuple(merged.items()))
        return self.replace(edge_ratios=(), default_edge_ratio=ratios)

    def with_memory(self, memory_gib: Mapping[str, float]) -> RateCatalog:
        """Return a copy with other device memories, GiB by model."""
        merged = {**self._memory_of, **memory_gib}
        return self.replace(memory_gib=tuple(merged.items()))

    def replace(self, **changes: Any) -> RateCatalog:
        """Return a validated copy with `changes` to its fields."""
        return dataclasses.replace(self, **changes)

    def __getstate__(self) -> dict[str, Any]:
        # Cached look-ups are rebuilt on demand: they would only make the pickle larger.
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def _is_number(value: object) -> bool:
    return is_number(value) and abs(value) <= MAX_MAGNITUDE


def _profile_faults(profile: RateProfile) -> list[str]:
    """Return in words what is wrong with a profile."""
    owner = f"{profile.model} with batch {shown(profile.batch)}"
    faults = []
    counts = [gpus for gpus, _ in profile.rates]
    if not profile.model or not is_whole(profile.batch) or profile.batch < 1:
        faults.append(f"{owner}: the model needs a name and a whole batch of at least 1")
    if 1 not in counts:
        faults.append(f"{owner}: a rate on 1 GPU is missing")
    if sorted(set(counts)) != counts or any(not isinstance(g, int) or g < 1 for g in counts):
        faults.append(f"{owner}: GPUs must be whole, at least 1 and rising, got {shown(counts)}")
    faults += [
        f"{owner}: the rate on {gpus} GPUs must be a finite number above 0, got {shown(rate)}"
        for gpus, rate in profile.rates
        if not _is_number(rate) or rate <= 0
    ]
    return faults


#: The published rates and the default edge ratios (sources: see the module).
DEFAULT_CATALOG = RateCatalog.from_table(
    {
        key: {1 << power: rate for power, rate in enumerate(rates)}
        for key, rates in _A100_RATES.items()
    },
    edge_ratios=_EDGE_RATIOS,
    default_edge_ratio=None,
    name="ElasticFlow, A100",
)

_COLUMNS = ("gpu_type", "model", "global_batch_size", "num_gpus", "iterations_per_s")


def read_rates(
    path: str | Path,
    *,
    gpu_type: str = "A100",
    edge_ratios: Mapping[str, float] | None = None,
    default_edge_ratio: float | None = MEDIAN_EDGE_RATIO,
    memory_gib: Mapping[str, float] | None = None,
) -> RateCatalog:
    """Return the catalog in a CSV file.

    Parameters
    ----------
    path
        CSV or CSV.gz with the columns ``gpu_type, model, global_batch_size, num_gpus,
        iterations_per_s``, in any order; others are passed over.
    gpu_type
        Rows of this type of GPU make the cloud rates, the others are checked and left.
    edge_ratios, default_edge_ratio, memory_gib
        As in :class:`RateCatalog`; ratios of the models of :data:`DEFAULT_CATALOG` are its own
        unless given.

    Raises
    ------
    TraceError
        With every fault of the file.
    """
    table = Table(read_bytes(path, TraceError), str(path))
    missing = [column for column in _COLUMNS if column not in table.columns]
    if missing:
        raise table.error(
            Fault(
                "header", "", f"columns are missing: {', '.join(missing)}",
                f"the columns {shown(list(table.columns))}", f"needed are {', '.join(_COLUMNS)}",
            )
        )  # fmt: skip
    table.refuse_doubles(_COLUMNS)
    faults: list[Fault] = []
    seen: dict[tuple[str, str, int, int], int] = {}
    rates: dict[tuple[str, int], dict[int, float]] = {}
    types: dict[str, None] = {}
    for row in table.rows():
        kind, model = row.text("gpu_type"), row.text("model")
        batch, gpus = row.count_in("global_batch_size"), row.count_in("num_gpus")
        rate = row.number_in("iterations_per_s", positive=True)
        first = seen.setdefault((kind, model, batch, gpus), row.number)
        if not row.faults and first != row.number:
            row.refuse("", f"gives again what row {first} gives", remedy="keep one of the two")
        faults += row.faults
        if len(faults) >= MAX_FAULTS:
            faults.append(Fault("file", "", "reading stopped here", remedy="correct these first"))
            break
        types[kind] = None
        if kind == gpu_type:
            rates.setdefault((model, batch), {})[gpus] = rate
    if not faults:
        if not rates:
            faults.append(Fault("file", "gpu_type", f"no row has {gpu_type!r}", shown(list(types))))
        faults += [
            Fault(f"model {shown(model)}, batch {batch}", "num_gpus", "a rate on 1 GPU is missing")
            for (model, batch), levels in rates.items()
            if 1 not in levels
        ]
    if faults:
        raise table.error(*faults)
    return RateCatalog.from_table(
        rates,
        edge_ratios={**_EDGE_RATIOS, **(edge_ratios or {})},
        default_edge_ratio=default_edge_ratio,
        memory_gib=memory_gib,
        name=Path(path).name,
    )
