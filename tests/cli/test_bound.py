"""``edgeflow bound``."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from edgeflow_opt.clairvoyant.document import WireBound
from tests.cli.helpers import edgeflow
from tests.cli.test_simulate import TRACE


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Return the path of a trace of three jobs, of which one cannot be met."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return str(path)


def test_the_bound_of_a_trace_for_people(trace: str) -> None:
    """The figures are told in words: at most, found, by what."""
    ran = edgeflow("bound", trace, "--cloud-gpus", "2", "--edge-servers", "0", "-q")
    assert ran.code == 0
    assert "3 jobs on 2 cloud GPUs and 0 edge servers" in ran.out
    assert "at most (proven)     2 of 3 (66.7 %)" in ran.out
    assert "best schedule found  2 of 3 (66.7 %)" in ran.out
    assert "gap                  0 %" in ran.out


def test_the_document_keeps_to_its_schema(trace: str, tmp_path: Path) -> None:
    """--json prints what --output writes, in the published format."""
    file = tmp_path / "bound.json"
    ran = edgeflow(
        "bound", trace, "--cloud-gpus", "2", "--edge-servers", "1", "--json", "--output", str(file),
        "--losses", "5,9", "--tide", "daily", "--deadlines", "0.5,1.5", "--seed", "3", "-q",
    )  # fmt: skip
    assert ran.code == 0
    assert ran.out == file.read_text()
    document = msgspec.json.decode(ran.out, type=WireBound)
    assert document.settings["overhead"] == "5,9"
    assert document.best_known is not None
    assert document.best_known <= document.bound <= document.jobs == 3


def test_no_schedule_is_looked_for_where_none_is_wanted(trace: str) -> None:
    """--no-schedule leaves the best schedule open, and the bound proven."""
    ran = edgeflow(
        "bound", trace, "--cloud-gpus", "2", "--edge-servers", "0", "--no-schedule", "--json", "-q"
    )
    document = json.loads(ran.out)
    assert (document["best_known"], document["source"], document["gap"]) == (None, None, None)
    assert document["bound"] == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--losses", "5"), "option --losses: must be RESTART_S,MIGRATION_S"),
        (("--losses", "none"), "option --losses: must be RESTART_S,MIGRATION_S"),
        (("--intervals", "0"), "must be a whole number from 1"),
        (("--time-limit", "0"), "must be a finite number above 0"),
        (("--deadlines", "2,1"), "--deadlines"),
    ],
)
def test_wrong_options_are_usage_errors(trace: str, options: tuple[str, ...], message: str) -> None:
    """Each is refused with its name before any work starts."""
    ran = edgeflow("bound", trace, "--cloud-gpus", "2", "--edge-servers", "0", *options)
    assert ran.code == 2
    assert message in ran.err


def test_a_cluster_without_units_is_refused(trace: str) -> None:
    """Neither a GPU nor a server: a usage error."""
    ran = edgeflow("bound", trace, "--cloud-gpus", "0", "--edge-servers", "0")
    assert ran.code == 2
    assert "at least one must be above 0" in ran.err


def test_the_schema_is_printed() -> None:
    """``edgeflow schema bound`` names the format and every field."""
    schema = json.loads(edgeflow("schema", "bound").out)
    assert schema["title"] == "edgeflow-bound/1"
    properties = schema["$defs"]["WireBound"]["properties"]
    assert {"jobs", "bound", "best_known", "seconds"} <= set(properties)
