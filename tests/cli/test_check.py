"""``edgeflow check``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflow_opt.cli import check as check_module
from tests.cli.helpers import ScriptedSolver, edgeflow

Install = Callable[..., None]


@pytest.fixture
def plan_file(scripted: Install, instance_file: Path, tmp_path: Path) -> Path:
    """Return a valid schedule of the instance: nothing runs."""
    scripted(ScriptedSolver("one"))
    path = tmp_path / "plan.json"
    assert edgeflow("solve", instance_file, "-s", "one", "-o", path).code == 0
    return path


def _change(path: Path, **changes: object) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | changes))


def test_valid_schedule(instance_file: Path, plan_file: Path) -> None:
    """A valid schedule gives exit code 0 and no violations."""
    ran = edgeflow("check", instance_file, plan_file, "--json")
    assert ran.code == 0
    assert ran.document == {
        "format": "edgeflow-check/1",
        "valid": True,
        "met_weight": 0.0,
        "met": 0,
        "violations": [],
    }
    ran = edgeflow("check", instance_file, plan_file)
    assert ran.code == 0
    assert "valid" in ran.out


def test_violations(instance_file: Path, plan_file: Path) -> None:
    """Violations give exit code 6, a table for people and all fields in the document."""
    _change(
        plan_file,
        allocations=[{"job": "j1", "start": 0, "end": 10, "site": "cloud", "gpus": 2}],
        bound=-1,
    )
    ran = edgeflow("check", instance_file, plan_file, "--json")
    assert ran.code == 6
    kinds = {v["kind"] for v in ran.document["violations"]}
    assert {"off_grid", "bound", "objective"} <= kinds
    assert all(
        set(v) == {"kind", "job", "site", "time", "amount", "message"}
        for v in ran.document["violations"]
    )
    ran = edgeflow("check", instance_file, plan_file)
    assert ran.code == 6
    assert "off_grid" in ran.out
    assert "invalid" in ran.out


@pytest.mark.parametrize("status", ["infeasible", "no_solution"])
def test_claim_without_a_plan(instance_file: Path, plan_file: Path, status: str) -> None:
    """Where there is no plan, people are told so, and that the claim is not proven."""
    _change(plan_file, status=status, allocations=[], outcomes=[], objective=None, bound=None)
    ran = edgeflow("check", instance_file, plan_file)
    assert ran.code == 0
    assert "nothing to check" in ran.out
    assert f"{status}: the word of 'one', not proven here" in ran.out
    assert "deadlines met" not in ran.out
    ran = edgeflow("check", instance_file, plan_file, "--json")
    assert ran.document["valid"]
    assert ran.document["met"] == 0


def test_many_violations_are_cut(
    instance_file: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is cut where it gets long, and says so."""
    monkeypatch.setattr(check_module, "_SHOWN", 2)
    one = {"job": "j1", "start": 0, "end": 10, "site": "nowhere", "gpus": 2}
    _change(plan_file, allocations=[one] * 5)
    ran = edgeflow("check", instance_file, plan_file)
    assert ran.code == 6
    assert " more; --json shows all" in ran.out


def test_bad_schedule_is_bad_input(instance_file: Path, plan_file: Path) -> None:
    """A document that is no schedule is exit code 5, not 6."""
    _change(plan_file, status="great")
    assert edgeflow("check", instance_file, plan_file).code == 5
    ran = edgeflow("check", plan_file, instance_file)
    assert ran.code == 5
    assert "edgeflow-epoch/1" in ran.err


def test_stdin_once(instance_file: Path) -> None:
    """Only one of both may come from stdin."""
    ran = edgeflow("check", "-", "-", stdin="{}")
    assert ran.code == 2
    assert "stdin" in ran.err


def test_control_characters_do_not_reach_the_terminal(instance_file: Path, plan_file: Path) -> None:
    """Names from files cannot steer the terminal nor be taken for markup."""
    one = {"job": "\x1b[31mred[bold]", "start": 0, "end": 300, "site": "cloud", "gpus": 2}
    _change(plan_file, allocations=[one])
    ran = edgeflow("check", instance_file, plan_file)
    assert ran.code == 6
    assert "\x1b" not in ran.out
    assert "\\x1b[31mred[bold]" in ran.out
