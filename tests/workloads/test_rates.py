"""Rates of models: what the catalog says, and what it refuses."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from edgeflow_opt.errors import TraceError, UsageError
from edgeflow_opt.problem import Mode
from edgeflow_opt.workloads import DEFAULT_CATALOG, RateCatalog, read_rates

HEADER = "gpu_type,model,global_batch_size,num_gpus,iterations_per_s\n"


def test_default_catalog_agrees_with_published_table(data_folder: Path) -> None:
    """Every built-in rate equals the published A100 figure to 6 significant digits."""
    published = read_rates(data_folder / "throughput_elasticflow" / "throughput.csv")
    for profile in DEFAULT_CATALOG.profiles:
        assert dict(profile.rates) == pytest.approx(
            published.rates(profile.model, profile.batch), rel=1e-5
        )


def test_default_catalog_has_the_six_models() -> None:
    """The six models of the public traces are known, in 14 pairs of model and batch."""
    assert DEFAULT_CATALOG.models == (
        "bert", "deepspeech2", "gpt2", "inception3", "resnet50", "vgg16",
    )  # fmt: skip
    assert len(DEFAULT_CATALOG.profiles) == 14
    assert DEFAULT_CATALOG.batches("resnet50") == (64, 128, 256)


def test_modes_stop_at_the_knee() -> None:
    """Modes are the powers of two up to the best rate, and one edge server."""
    modes = DEFAULT_CATALOG.modes("bert", 64)
    assert [m.gpus for m in modes if m.site == "cloud"] == [1, 2, 4, 8]
    assert modes[-1] == Mode(site="edge", gpus=1, rate=0.49 * 6.03066)


def test_modes_beyond_the_knee_on_request() -> None:
    """With beyond_knee all counts of the table stay, slower ones too."""
    modes = DEFAULT_CATALOG.modes("bert", 64, edge_site=None, beyond_knee=True)
    assert [m.gpus for m in modes] == [1, 2, 4, 8, 16, 32, 64]
    assert modes[-1].rate < modes[3].rate


@pytest.mark.parametrize(
    ("limit", "counts"), [(0, [1]), (1, [1]), (6, [1, 2, 4]), (8, [1, 2, 4, 8])]
)
def test_modes_fit_the_cluster(limit: int, counts: list[int]) -> None:
    """No mode is larger than the cluster, but one GPU always stays."""
    modes = DEFAULT_CATALOG.modes("vgg16", 256, "c", None, limit)
    assert [m.gpus for m in modes] == counts
    assert {m.site for m in modes} == {"c"}


def test_modes_leave_out_odd_counts_and_keep_dips() -> None:
    """Counts that are no power of two are no modes; a dip before the knee is."""
    catalog = RateCatalog.from_table({("m", 8): {1: 2.0, 2: 1.5, 3: 9.0, 4: 3.0}})
    assert [m.gpus for m in catalog.modes("m", 8, edge_site=None)] == [1, 2]
    assert [m.gpus for m in catalog.modes("m", 8, edge_site=None, beyond_knee=True)] == [1, 2, 4]


def test_edge_ratio_may_exceed_one() -> None:
    """An edge server faster than a cloud GPU is as good a figure as any."""
    catalog = DEFAULT_CATALOG.with_edge_ratios({"bert": 1.5})
    assert catalog.modes("bert", 64)[-1].rate == pytest.approx(1.5 * 6.03066)
    assert catalog.edge_ratio("vgg16") == 0.55
    assert DEFAULT_CATALOG.with_edge_ratios(0.7).edge_ratio("vgg16") == 0.7


def test_memory_defaults_to_fitting_everywhere() -> None:
    """No model needs memory unless it is said."""
    assert DEFAULT_CATALOG.memory("bert") == 0.0
    assert DEFAULT_CATALOG.with_memory({"bert": 12.0}).memory("bert") == 12.0


def test_catalog_is_comparable_and_picklable() -> None:
    """A catalog survives pickling after use and equals its copy."""
    DEFAULT_CATALOG.rates("bert", 64)
    assert pickle.loads(pickle.dumps(DEFAULT_CATALOG)) == DEFAULT_CATALOG
    assert hash(DEFAULT_CATALOG.replace()) == hash(DEFAULT_CATALOG)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    """Unknown model or batch: the message lists what there is."""
    with pytest.raises(UsageError, match=r"model 'brt' is not known; known are bert, deepspeech2"):
        DEFAULT_CATALOG.rates("brt", 64)
    with pytest.raises(UsageError, match=r"batch 32 of model 'bert' .* known are 64, 128"):
        DEFAULT_CATALOG.modes("bert", 32)
    with pytest.raises(UsageError, match="'other' has no edge ratio"):
        DEFAULT_CATALOG.edge_ratio("other")


@pytest.mark.parametrize(
    ("rates", "rule"),
    [
        ({2: 1.0}, "a rate on 1 GPU is missing"),
        ({1: 0.0}, "the rate on 1 GPUs must be a finite number above 0"),
        ({1: float("nan")}, "the rate on 1 GPUs must be a finite number above 0"),
        ({1: 1e308}, "the rate on 1 GPUs must be a finite number above 0"),
        ({0: 1.0, 1: 1.0}, "GPUs must be whole, at least 1 and rising"),
    ],
)
def test_bad_figures_are_refused(rates: dict[int, float], rule: str) -> None:
    """A catalog with a figure out of range does not come into being."""
    with pytest.raises(UsageError, match=rule):
        RateCatalog.from_table({("m", 8): rates})


def test_bad_ratios_and_memories_are_refused_together() -> None:
    """All faults of a catalog are in one message."""
    with pytest.raises(UsageError, match=r"edge ratio of m .*memory_gib of m "):
        RateCatalog.from_table({("m", 8): {1: 1.0}}, edge_ratios={"m": -1}, memory_gib={"m": -2})


def test_rates_are_read_by_gpu_type(tmp_path: Path) -> None:
    """Rows of the wanted type make the catalog; gz works; columns may stand in any order."""
    path = tmp_path / "r.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "A100,m,8,1,2\nA100,m,8,2,3\nT4,m,8,1,1\n").encode()))
    assert read_rates(path).rates("m", 8) == {1: 2.0, 2: 3.0}
    assert read_rates(path, gpu_type="T4").rates("m", 8) == {1: 1.0}
    assert read_rates(path).edge_ratio("m") == 0.55
    assert read_rates(path, edge_ratios={"m": 0.9}).edge_ratio("m") == 0.9


def test_faults_of_a_rate_table_come_together(tmp_path: Path) -> None:
    """Blank, non-number, zero GPUs and repeated rows are all named in one error."""
    path = tmp_path / "r.csv"
    path.write_text(
        HEADER + "A100,m,8,1,2\nA100,m,8,1,2\nA100,,8,2,x\nA100,m,8,0,1\nA100,m,8,4,-1\n"
    )
    with pytest.raises(TraceError, match="5 faults") as caught:
        read_rates(path)
    text = str(caught.value)
    for part in (
        "row 3: gives again what row 2 gives",
        "row 4, model: must not be blank",
        "row 4, iterations_per_s: must be a number, got 'x'",
        "row 5, num_gpus: must be above 0, got '0'",
        "row 6, iterations_per_s: must be above 0, got '-1'",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("model,num_gpus\nm,1\n", "columns are missing: gpu_type, global_batch_size"),
        (HEADER + "T4,m,8,1,1\n", "no row has 'A100'"),
        (HEADER + "A100,m,8,2,1\n", "a rate on 1 GPU is missing"),
        (HEADER, "no row has 'A100'"),
    ],
)
def test_unusable_rate_tables_are_refused(tmp_path: Path, content: str, rule: str) -> None:
    """A table without columns, type or one-GPU rate says which."""
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(TraceError, match=rule):
        read_rates(path)
