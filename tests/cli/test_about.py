"""``edgeflow solvers``, ``policies``, ``versions`` and ``schema``, and the help."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from importlib.metadata import version

import jsonschema
import pytest

from edgeflow_opt import __version__
from edgeflow_opt.cli.options import DEFAULT_TIME_LIMIT_S, DEFAULT_WORKERS
from edgeflow_opt.policies import POLICIES
from edgeflow_opt.solvers import SOLVERS, SolveOptions
from tests.cli.helpers import INSTANCE, ScriptedSolver, edgeflow

versions = importlib.import_module("edgeflow_opt.versions")

Install = Callable[..., None]


def test_solvers(scripted: Install) -> None:
    """Every solver is listed with its features, and why it cannot run if so."""
    scripted(
        ScriptedSolver("exact", bound=1.0, params={"depth": "how deep"}),
        ScriptedSolver("absent", requires=("no_such_module",), features=frozenset({"losses"})),
    )
    ran = edgeflow("solvers", "--json")
    exact, absent = ran.document["solvers"]
    assert exact["available"]
    assert exact["exact"]
    assert exact["params"] == {"depth": "how deep"}
    assert not absent["available"]
    assert absent["features"] == ["losses"]
    assert "no_such_module" in absent["reason"]
    text = edgeflow("solvers").out
    assert "scripted exact" in text
    assert "depth  how deep" in text
    assert "no_such_module" in text


def test_a_broken_solver_does_not_hide_the_others(
    scripted: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that cannot be loaded is listed with the reason."""
    scripted(ScriptedSolver("fine"), ScriptedSolver("broken"))
    honest = SOLVERS.get

    def get(name: str) -> object:
        if name == "broken":
            raise ImportError("no such library")
        return honest(name)

    monkeypatch.setattr(SOLVERS, "get", get)
    fine, broken = edgeflow("solvers", "--json").document["solvers"]
    assert fine["available"]
    assert broken["reason"] == "ImportError: no such library"


def test_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every policy is listed with its first line and its options with their defaults."""

    class Sample:
        """Do this and that.

        More.

        Parameters
        ----------
        horizon_s
            Seconds ahead,
            above 0.
        solver, other
            A name.
        """

        def __init__(
            self, horizon_s: float = 60.0, solver: str | None = None, plain: bool = True
        ) -> None: ...

    monkeypatch.setattr(POLICIES, "names", lambda: ("sample",))
    monkeypatch.setattr(POLICIES, "get", lambda name: Sample)
    (entry,) = edgeflow("policies", "--json").document["policies"]
    assert entry["summary"] == "Do this and that."
    assert entry["options"] == {
        "horizon_s": {"default": 60.0, "meaning": "Seconds ahead, above 0."},
        "solver": {"default": None, "meaning": "A name."},
        "plain": {"default": True, "meaning": ""},
    }
    text = edgeflow("policies").out
    assert "horizon_s=60.0" in text
    assert "solver=null" in text
    assert "plain=true" in text


def test_versions() -> None:
    """Versions are those installed; a library that is missing is null."""
    document = edgeflow("versions", "--json").document
    assert document["edgeflow_opt"] == __version__
    assert document["numpy"] == version("numpy")
    assert set(document) >= {"python", "platform", "cpu_count", "ortools", "highspy"}
    assert version("numpy") in edgeflow("versions").out
    assert __version__ in edgeflow("--version").out


def test_versions_of_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that nothing here needs is named where it is installed, and only there."""
    monkeypatch.setattr(versions, "_EXTRAS", ("no-such-library", "pytest"))
    document = edgeflow("versions", "--json").document
    assert "no-such-library" not in document
    assert document["pytest"] == version("pytest")


def test_options_that_share_a_line_have_meanings_of_their_own() -> None:
    """Each rule of Algorithm 1 has its own help, in a derived policy too."""
    entries = {e["name"]: e["options"] for e in edgeflow("policies", "--json").document["policies"]}
    for name in ("edgeflow", "edgeflow-select"):
        meanings = [entries[name][f"rule_{number}"]["meaning"] for number in (1, 2, 3)]
        assert all(meanings)
        assert len(set(meanings)) == 3


def test_defaults_are_those_of_the_library() -> None:
    """Time limit and workers are those of the library, where nothing is given."""
    assert SolveOptions().time_limit_s == DEFAULT_TIME_LIMIT_S
    assert SolveOptions().workers == DEFAULT_WORKERS


def test_debug_shows_the_log() -> None:
    """With --debug what the package logs appears on stderr, and what others debug does not."""

    def names_in(err: str) -> list[str]:
        return [word for word in ("heed me", "never mind") if word in err]

    def speak() -> None:
        logging.getLogger("edgeflow_opt.some.module").debug("heed me")
        logging.getLogger("numba").debug("never mind")

    honest = versions.shown_versions
    for flags, expected in ((["--debug"], ["heed me"]), ([], [])):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(versions, "shown_versions", lambda: (speak(), honest())[1])
            assert names_in(edgeflow(*flags, "versions").err) == expected


@pytest.mark.parametrize("name", ["epoch", "edgeflow-epoch/1", "instance"])
def test_schema(name: str) -> None:
    """The schema is valid, and the instance of the documentation obeys it."""
    schema = edgeflow("schema", name).document
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(INSTANCE, schema)
    with pytest.raises(jsonschema.ValidationError, match="'grid' is a required property"):
        jsonschema.validate({key: INSTANCE[key] for key in INSTANCE if key != "grid"}, schema)


def test_help_names_every_command() -> None:
    """The help lists every command; without arguments it is shown too."""
    text = edgeflow("--help").out
    for command in ("demo", "solve", "check", "compare", "simulate", "generate", "solvers",
                    "policies", "versions", "schema", "warm-up"):  # fmt: skip
        assert f" {command} " in text
        assert edgeflow(command, "--help").code == 0
    assert "Exit codes" in text
    ran = edgeflow()
    assert ran.code == 2
    assert "Error" not in ran.err
