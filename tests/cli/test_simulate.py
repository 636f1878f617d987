"""``edgeflow simulate``."""

from __future__ import annotations

import importlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.errors import PolicyError
from edgeflow_opt.policies import POLICIES, ClusterState, Decision
from edgeflow_opt.registry import Registry
from tests.cli.helpers import Ran, edgeflow

warm_up = importlib.import_module("edgeflow_opt.cli.warm_up")

TRACE = """job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration
a,0,1000,resnet50,4000,64,1,146.135
b,100,1000,vgg16,150,64,1,197.902
c,200,4000,bert,9000,64,2,462.776
"""


class OneGpu:
    """Give every job one GPU.

    Parameters
    ----------
    shift
        How many jobs get none.
    """

    def __init__(self, *, shift: int = 0, time_limit_s: float = 1.0, solver: str = "x") -> None:
        if shift < 0:
            from edgeflow_opt.errors import UsageError

            raise UsageError(f"option shift: must be at least 0, got {shift}")
        self.shift = shift
        self.made = (shift, time_limit_s, solver)

    def decide(self, state: ClusterState) -> Decision:
        """Return the least cloud mode of each job."""
        return Decision(
            allocation={
                s.job.id: next(m for m in s.job.modes if m.site == "cloud")
                for s in state.jobs[self.shift :]
            }
        )


class Broken:
    """Fail at the first event."""

    def decide(self, state: ClusterState) -> Decision:
        """Fail."""
        raise ZeroDivisionError("by zero")


class Interrupted(OneGpu):
    """Press Ctrl-C within a decision, which, as a solver does, takes it for its own."""

    def decide(self, state: ClusterState) -> Decision:
        """Swallow the interrupt and go on."""
        try:
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                pass
        except KeyboardInterrupt:
            return super().decide(state)


class StruckKernel(OneGpu):
    """Be struck by Ctrl-C within a compiled kernel, which makes a SystemError of it."""

    def decide(self, state: ClusterState) -> Decision:
        """Raise what a kernel raises."""
        raise SystemError("a result with an exception set") from KeyboardInterrupt()


@pytest.fixture(autouse=True)
def policies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put simple policies in the place of the registered ones."""
    known: dict[str, Any] = {
        "one": OneGpu, "two": OneGpu, "broken": Broken, "interrupted": Interrupted, "struck": StruckKernel,
    }  # fmt: skip
    unknown = Registry("policy", "no.such.group", dict.fromkeys(known, "nowhere:nothing"))
    monkeypatch.setattr(POLICIES, "names", lambda: tuple(known))
    monkeypatch.setattr(POLICIES, "get", lambda name: known.get(name) or unknown.get(name))
    return known


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Return a file with the trace."""
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def simulate(trace: Path | str, *args: str | Path, stdin: str | None = None) -> Ran:
    """Simulate on a small cluster; later options win."""
    cluster = ("--policy", "one", "--cloud-gpus", "4", "--edge-servers", "1")
    return edgeflow("simulate", trace, *cluster, *args, stdin=stdin)


def test_document(trace_file: Path, tmp_path: Path) -> None:
    """The document has a row for each policy with the numbers that the contract names."""
    output = tmp_path / "out.json"
    ran = simulate(trace_file, "--policy", "one,two", "--json", "-o", output)
    assert ran.code == 0, ran.err
    document = ran.document
    assert json.loads(output.read_text()) == document
    assert document["format"] == "edgeflow-simulation/1"
    assert document["trace"] == trace_file.stem
    assert [row["policy"] for row in document["results"]] == ["one", "two"]
    row = document["results"][0]
    assert (row["jobs"], row["met"], row["late"]) == (3, 2, 1)
    assert row["dsr"] == pytest.approx(2 / 3)
    assert set(row) >= {
        "refused", "unfinished", "cloud_utilisation", "edge_utilisation", "events",
        "reconfigurations_per_job", "migrations_per_job", "decision_s",
    }  # fmt: skip
    assert set(row["decision_s"]) == {"mean", "p50", "p99", "max", "total"}
    assert document["settings"]["cloud_gpus"] == 4
    assert "one" in ran.err


def test_people_get_a_table(trace_file: Path) -> None:
    """The table has a column for each policy, the line above tells the load."""
    ran = simulate(trace_file, "--policy", "one,two", "--quiet")
    assert ran.code == 0
    assert "deadlines met" in ran.out
    assert "2/3" in ran.out
    assert "load" in ran.out
    assert ran.err == ""


def test_trace_from_stdin() -> None:
    """The file - is stdin."""
    ran = simulate("-", "--json", stdin=TRACE)
    assert ran.code == 0, ran.err
    assert ran.document["results"][0]["jobs"] == 3


def test_options_of_traces(trace_file: Path, tmp_path: Path) -> None:
    """Head, arrivals, deadlines, tide and overhead change what is simulated."""
    ran = simulate(trace_file, "--head", "1", "--json")
    assert ran.document["results"][0]["jobs"] == 1
    ran = simulate(trace_file, "--deadlines", "0,0", "--json")
    assert ran.document["results"][0]["met"] == 0
    ran = simulate(trace_file, "--deadlines", "5,5", "--arrival-scale", "2", "--json")
    assert ran.document["results"][0]["met"] == 3
    tide = tmp_path / "tide.csv"
    tide.write_text("time_s,units\n0,1\n50,0\n")
    ran = simulate(trace_file, "--tide", tide, "--json")
    assert ran.document["results"][0]["events"] > 0
    ran = simulate(trace_file, "--tide", "daily", "--overhead", "10,20", "--merge", "5", "--json")
    assert ran.code == 0
    assert ran.document["settings"]["overhead"] == "10,20"


def test_bad_rows(trace_file: Path, tmp_path: Path) -> None:
    """A bad row refuses the trace, or is dropped and counted where asked for."""
    trace_file.write_text(TRACE + "d,,10,resnet50,400,64,1,5\n" + "e,1,NaN,vgg16,150,64,0,1\n")
    output = tmp_path / "out.json"
    ran = simulate(trace_file, "--json", "-o", output)
    assert ran.code == 5
    assert ran.out == ""
    for word in ("submission_time", "num_iteration", "num_gpu"):
        assert word in ran.err
    assert not output.exists()
    ran = simulate(trace_file, "--json", "--skip-bad-rows")
    assert ran.code == 0
    assert ran.document["settings"]["skipped_rows"] == 2
    out = simulate(trace_file, "--skip-bad-rows").out
    assert "2 bad rows skipped" in " ".join(out.split())


def test_words_agree_with_numbers(trace_file: Path) -> None:
    """One job is no jobs, and the last line of progress does not miscount those finished."""
    ran = simulate(trace_file, "--head", "1")
    assert "1 job on 4 cloud GPUs and 1 edge server (" in ran.out
    assert ran.err.splitlines()[-1].endswith(" 1 event  done"), ran.err


def test_kernels_are_loaded_before_the_clock_of_a_decision(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling or loading kernels is done before the first policy starts."""
    done = []
    monkeypatch.setattr(warm_up, "compile_once", lambda quiet, *modules: done.append("kernels"))
    monkeypatch.setattr(OneGpu, "decide", lambda self, state: done.append("decision"))
    simulate(trace_file)
    assert done[:2] == ["kernels", "decision"]


def test_policy_options(trace_file: Path) -> None:
    """An option goes to every policy that has it, or to the one that is named."""
    ran = simulate(
        trace_file, "--policy", "one,two,broken", "--policy-option", "shift=1", "--policy-option",
        "two.shift=2", "--time-limit", "3", "--solver", "y", "--json",
    )  # fmt: skip
    assert ran.document["settings"]["policy_options"] == {
        "one": {"shift": 1, "time_limit_s": 3.0, "solver": "y"},
        "two": {"shift": 2, "time_limit_s": 3.0, "solver": "y"},
        "broken": {},
    }


def test_a_policy_that_fails_does_not_stop_the_others(trace_file: Path) -> None:
    """A failure is told on stderr and in the document; the exit code is its own."""
    ran = simulate(trace_file, "--policy", "broken,one", "--json", "--quiet")
    assert ran.code == PolicyError.exit_code
    assert [row["policy"] for row in ran.document["results"]] == ["one"]
    (failure,) = ran.document["failures"]
    assert failure["policy"] == "broken"
    assert "ZeroDivisionError" in failure["message"]
    assert ran.err.startswith("Error: broken: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("policy", ["interrupted", "struck"])
def test_ctrl_c_within_a_decision_ends_the_simulation(trace_file: Path, policy: str) -> None:
    """Ctrl-C ends the simulation though a solver swallowed it; finished policies are kept."""
    before = signal.getsignal(signal.SIGINT)
    ran = simulate(trace_file, "--policy", f"one,{policy},two", "--json", "--quiet")
    assert ran.code == 130
    assert [row["policy"] for row in ran.document["results"]] == ["one"]
    assert ran.document["failures"] == [{"policy": policy, "message": "interrupted"}]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["--policy", "oen"], 2, "did you mean 'one'"),
        (["--policy", "one,,two"], 2, "--policy"),
        (["--policy", ""], 2, "--policy"),
        (["--cloud-gpus", "-1"], 2, "--cloud-gpus"),
        (["--cloud-gpus", "1.5"], 2, "--cloud-gpus"),
        (["--edge-servers", "-1"], 2, "--edge-servers"),
        (["--cloud-gpus", "0", "--edge-servers", "0"], 2, "at least one"),
        (["--overhead", "much"], 2, "must be none, elasticflow or RESTART_S,MIGRATION_S"),
        (["--overhead", "jobs"], 2, "must be none, elasticflow or RESTART_S,MIGRATION_S"),
        (["--overhead", "1"], 2, "overhead"),
        (["--overhead", "nan,1"], 2, "overhead"),
        (["--overhead", "-1,1"], 2, "overhead"),
        (["--tide", "dayly"], 5, "does not exist"),
        (["--deadlines", "2,1"], 2, "--deadlines"),
        (["--deadlines", "-1,1"], 2, "--deadlines"),
        (["--deadlines", "nan,1"], 2, "--deadlines"),
        (["--deadlines", "1"], 2, "--deadlines"),
        (["--arrival-scale", "0"], 2, "--arrival-scale"),
        (["--arrival-scale", "inf"], 2, "--arrival-scale"),
        (["--arrival-scale", "1e308"], 5, "1e15"),
        (["--merge", "-1"], 2, "--merge"),
        (["--merge", "nan"], 2, "--merge"),
        (["--head", "0"], 2, "--head"),
        (["--seed", "-1"], 2, "--seed"),
        (["--time-limit", "0"], 2, "--time-limit"),
        (["--policy", "broken", "--time-limit", "1"], 2, "--time-limit"),
        (["--policy", "broken", "--solver", "x"], 2, "--solver"),
        (["--policy-option", "shift"], 2, "--policy-option"),
        (["--policy-option", "shfit=1"], 2, "did you mean 'shift'"),
        (["--policy-option", "two.shift=1"], 2, "'two' is not known"),
        (["--policy-option", "one.x=1"], 2, "'x'"),
        (["--policy-option", "shift=-1"], 2, "at least 0"),
        (["--output", "no/such/folder/x.json"], 2, "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_options(trace_file: Path, options: list[str], code: int, word: str) -> None:
    """A bad option is one readable error with the right exit code."""
    ran = simulate(trace_file, *options)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert word in ran.err
    assert ran.err.startswith("Error: ")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "header"),
        ("junk\n" * 1000, "header"),
        (b"\xff\xfe\x00", "binary"),
        (TRACE.splitlines()[0] + "\n", "no rows"),
        (TRACE + TRACE.splitlines()[1] + "\n", "unique"),
        (TRACE.replace("resnet50", "resnet51"), "resnet51"),
        (TRACE.replace("4000", "1e308", 1), "1e308"),
    ],
    ids=["empty", "junk", "bytes", "no rows", "duplicate id", "unknown model", "1e308"],
)
def test_bad_traces(trace_file: Path, content: str | bytes, word: str) -> None:
    """A malformed trace is exit code 5 and names what is wrong."""
    trace_file.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = simulate(trace_file)
    assert ran.code == 5, ran.err
    assert ran.out == ""
    assert word in ran.err
    assert "Traceback" not in ran.err


def test_output_must_not_overwrite_the_trace(trace_file: Path) -> None:
    """The trace is safe from a slip."""
    ran = simulate(trace_file, "-o", trace_file)
    assert ran.code == 2
    assert trace_file.read_text() == TRACE


def test_report(trace_file: Path, tmp_path: Path) -> None:
    """``--report`` writes a page with what every policy carried out."""
    output = tmp_path / "r.html"
    assert simulate(trace_file, "--policy", "one,two", "--report", output).code == 0
    html = output.read_text()
    assert html.count("carried out</h2>") == 2
    assert "2 of 3 deadlines met" in html
