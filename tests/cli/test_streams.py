"""Purity of stdout, pipes that break, Ctrl-C, and what a start loads: in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeflow_opt.problem import check, read_problem, read_schedule
from tests.cli.helpers import Ran, run_apart, spawn

#: The command line with two solvers of its own: one that writes to stdout wherever it can, and
#: one that finds a plan and then searches until it is told to stop.
SCRIPT = """
import ctypes, os, sys, time
from pathlib import Path
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.solvers import SOLVERS, Draft
from tests.cli.helpers import ScriptedSolver

def loud(control):
    print("from Python")
    os.write(1, b"from the system\\n")
    ctypes.CDLL(None).puts(b"from C, buffered")

def deaf(control):
    # As Python does where it cleans up: the exception is dropped, and the solver never knows.
    try:
        os.kill(os.getpid(), 2)
        time.sleep(10)
    except KeyboardInterrupt:
        pass

def long(control):
    print("searching", file=sys.stderr, flush=True)
    stop = []
    control.run(lambda: [time.sleep(0.01) for _ in iter(lambda: bool(stop), True)],
                lambda: stop.append(1))

class Long(ScriptedSolver):
    def solve(self, problem, arrays, options, control):
        draft = super().solve(problem, arrays, options, control)
        draft.limit = control.limit
        return draft

known = {
    "loud": ScriptedSolver("loud", act=loud),
    "long": Long("long", act=long),
    "deaf": ScriptedSolver("deaf", act=deaf),
}
SOLVERS.names = lambda: tuple(known)

def get(name):
    print("looked up", file=sys.stderr, flush=True)
    return known[name]

SOLVERS.get = get
from edgeflow_opt.cli import main
main()
"""

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and pipes")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the script in a file."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def start(script: Path, *args: str | Path, **settings: Any) -> subprocess.Popen[str]:
    """Start the script with the arguments of the command line."""
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, script, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
        **settings,
    )


def finish(process: subprocess.Popen[str]) -> Ran:
    """Return what a process left."""
    out, err = process.communicate(timeout=120)
    return Ran(process.returncode, out, err)


@needs_posix
def test_native_output_does_not_reach_stdout(script: Path, instance_file: Path) -> None:
    """Whatever a solver prints, from Python or from C, stdout holds the document alone."""
    native = ("from the system", "from C, buffered")
    ran = finish(start(script, "solve", instance_file, "-s", "loud", "--json"))
    assert ran.code == 0
    assert ran.document["solver"] == "loud"
    assert "from Python" in ran.err
    assert not any(text in ran.err for text in native)
    ran = finish(start(script, "--debug", "solve", instance_file, "-s", "loud", "--json"))
    assert ran.document["solver"] == "loud"
    assert all(text in ran.err for text in native)
    ran = finish(start(script, "compare", instance_file, "--solvers", "loud", "--json"))
    assert [row["solver"] for row in ran.document["rows"]] == ["loud"]


@needs_posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_during_a_solve(
    number: int, script: Path, instance_file: Path, tmp_path: Path
) -> None:
    """Ctrl-C, or a batch system, ends the search: the incumbent is printed and written, code 130."""
    output = tmp_path / "out.json"
    process = start(script, "solve", instance_file, "-s", "long", "--json", "-q", "-o", output)
    assert process.stderr is not None
    for line in process.stderr:
        if line == "searching\n":
            break
        assert line == "looked up\n"
    process.send_signal(number)
    ran = finish(process)
    assert ran.code == 130
    assert ran.document["limit"] == "interrupted"
    schedule = read_schedule(output)
    assert check(read_problem(instance_file), schedule).valid
    assert json.loads(output.read_text()) == ran.document


@needs_posix
@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto"])
def test_ctrl_c_during_a_real_solve(solver: str, tmp_path: Path) -> None:
    """The solvers themselves stop at Ctrl-C and keep their incumbent."""
    instance, output = tmp_path / "instance.json", tmp_path / "out.json"
    size = ("--jobs", "80", "--slots", "40", "--losses", "30,60")
    assert run_apart("generate", *size, "-o", instance).code == 0
    process = spawn(
        "solve", instance, "-s", solver, "--time-limit", "300", "--json", "-o", output,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "  greedy" in line:
            break
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert ran.code == 130, ran.err
    assert "Traceback" not in ran.err
    assert ran.document["status"] == "feasible"
    assert ran.document["limit"] == "interrupted"
    assert json.loads(output.read_text()) == ran.document
    assert check(read_problem(instance), read_schedule(output)).valid


@needs_posix
def test_ctrl_c_outside_a_solve(script: Path) -> None:
    """Ctrl-C while an instance is read is exit code 130 and one word."""
    process = start(script, "solve", "-", "-s", "long", stdin=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == "looked up\n"
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert ran.code == 130
    assert ran.err == "Interrupted.\n"
    assert ran.out == ""


@needs_posix
@pytest.mark.parametrize("command", ["solve", "compare"])
def test_a_lost_ctrl_c_is_told_at_the_end(command: str, script: Path, instance_file: Path) -> None:
    """Where nobody took note of Ctrl-C, the result is still printed, and the exit code says so."""
    solvers = ["-s", "deaf"] if command == "solve" else ["--solvers", "deaf"]
    ran = finish(start(script, command, instance_file, *solvers, "--json", "-q"))
    assert ran.code == 130
    assert ran.document["format"] in ("edgeflow-schedule/1", "edgeflow-compare/1")


@needs_posix
@pytest.mark.parametrize("command", [("schema", "epoch"), ("solvers",)])
def test_broken_pipe_is_silent(command: tuple[str, ...]) -> None:
    """A reader that goes away, as head does, causes no complaint, of texts and of tables."""
    process = spawn(*command)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


@needs_posix
def test_stdout_that_cannot_be_written() -> None:
    """A closed stdout is a choice, a full disk one readable error; neither a traceback."""
    command = f"'{sys.executable}' -m edgeflow_opt"
    for args, code in (("versions --json >&-", 0), ("versions >/dev/full", 1), ("slove 2>&-", 2)):
        done = subprocess.run(
            f"{command} {args}", shell=True, stderr=subprocess.PIPE, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr
        assert ("cannot be written" in done.stderr) is (code == 1)


def test_names_that_the_terminal_cannot_show(instance_file: Path, tmp_path: Path) -> None:
    """A narrow encoding of stdout is no reason to fail."""
    text = instance_file.read_text().replace('"j1"', '"jøb-一"')
    instance_file.write_text(text, encoding="utf-8")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "format": "edgeflow-schedule/1", "solver": "x", "status": "feasible",
                "limit": None, "objective": None, "bound": None, "seconds": 0, "outcomes": [],
                "allocations": [
                    {"job": "jøb-一", "start": 0, "end": 1, "site": "cloud", "gpus": 1}
                ],
            }
        )
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "edgeflow_opt", "check", instance_file, plan],
        env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 6
    assert done.stderr == b""
    assert b"j\\xf8b-\\u4e00" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["solve", "--help"], ["simulate", "--help"], ["--version"], ["slove"],
     ["solve", "x", "--seed", "-1"]],
    ids=" ".join,
)  # fmt: skip
def test_start_loads_little(arguments: list[str]) -> None:
    """Help and usage errors load neither numpy nor a solver nor the formats: they answer at once."""
    code = (
        "import sys\nfrom edgeflow_opt.cli import main\ntry:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print('\\n' + ' '.join(sorted({n.split('.')[0] for n in sys.modules} | "
        "{n for n in sys.modules if n.startswith('edgeflow_opt.')})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "typer" in loaded
    heavy = {"numpy", "numba", "ortools", "highspy", "pandas", "scipy", "pulp", "msgspec"}
    assert loaded & heavy == set()
    layers = {f"edgeflow_opt.{name}" for name in ("problem", "solvers", "simulation", "workloads")}
    assert loaded & layers == set()


def test_json_commands_print_one_document() -> None:
    """With --json stdout is one document, stderr empty."""
    for command in ("versions", "solvers", "policies"):
        ran = run_apart(command, "--json")
        assert ran.code == 0, ran.err
        assert ran.document["format"] == f"edgeflow-{command}/1"
        assert ran.err == ""
