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


def test_simulate_shows_the_share_of_the_bound(trace: str) -> None:
    """With --bound every policy's row has its share, and the document the bound itself."""
    options = ("--cloud-gpus", "2", "--edge-servers", "0", "--bound", "5", "-q")
    names = ("--policy", "edgeflow,edgeflow-select")
    document = edgeflow("simulate", trace, *names, *options, "--json").document
    assert document["bound"]["bound"] == 2.0
    assert [row["share_of_bound"] for row in document["results"]] == [1.0, 1.0]
    shown = edgeflow("simulate", trace, *names, *options).out
    assert "share of the bound, 2" in shown


def test_nodes_fail_and_servers_are_withdrawn_in_both_commands(trace: str) -> None:
    """The same options and seed give the same outages; the policy stays within the bound."""
    options = (
        "--cloud-gpus", "2", "--edge-servers", "1", "--failures", "900,600",
        "--withdrawals", "500,500", "--seed", "2", "--json", "-q",
    )  # fmt: skip
    bound = edgeflow("bound", trace, *options).document
    row = edgeflow("simulate", trace, "-p", "edgeflow-select", *options).document["results"][0]
    assert bound["settings"]["failures"] == "900,600"
    assert row["met"] <= bound["bound"]
    assert row["interruptions"] > 0
    assert row["met"] + row["late"] + row["refused"] + row["unfinished"] == row["jobs"]


@pytest.mark.parametrize("option", ["--failures", "--withdrawals"])
def test_outages_need_two_mean_times(trace: str, option: str) -> None:
    """One number, or one that is 0, is a usage error with an example."""
    for text in ("900", "0,5", "5,x"):
        ran = edgeflow("bound", trace, "--cloud-gpus", "2", "--edge-servers", "0", option, text)
        assert ran.code == 2
        assert f"option {option}: must be two mean times" in ran.err
