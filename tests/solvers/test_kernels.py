"""Tests of loading compiled kernels by module, ahead of time and off the clock."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numba
import pytest

from edgeflow_opt.policies import POLICIES, kernels_of_policies
from edgeflow_opt.solvers import SOLVERS, kernels, kernels_of
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.kernels import MODULES, PLAN, PRICE, compile_or_load, missing, shared_out

if TYPE_CHECKING:
    from collections.abc import Callable

#: Stands for a module with kernels.
NAME = "a.module.with.kernels"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[str]]:
    """Return a function that makes a module whose ``warm_up`` is given; it returns the calls."""
    calls: list[str] = []

    def make(work: Callable[[], Any]) -> list[str]:
        def warm_up() -> None:
            work()
            calls.append(NAME)

        monkeypatch.setattr(kernels, "_loaded", {})
        monkeypatch.setitem(sys.modules, NAME, SimpleNamespace(warm_up=warm_up))
        return calls

    return make


def test_what_is_loaded_is_not_loaded_again(given: Any) -> None:
    """The second call does nothing, and without compilation there is nothing to forgive."""
    calls = given(lambda: None)
    assert compile_or_load(NAME) == 0.0
    assert compile_or_load(NAME) == 0.0
    assert calls == [NAME]


def test_compilation_is_told_and_forgiven(given: Any) -> None:
    """The time of a compilation comes off the clock of the whole solve, from a part of it too."""
    twice = numba.njit(lambda x: 2 * x)
    given(lambda: twice(1.5))
    control = SolveControl(1000.0)
    part = control.part(500.0)
    part.load_kernels(NAME)
    assert len(twice.signatures) == 1
    assert control._forgiven == part._forgiven
    assert control._forgiven[0] > 0.0


def test_missing_compiles_nothing(given: Any) -> None:
    """Kernels that would have to be compiled are named and left alone; compiled ones are loaded."""
    thrice = numba.njit(lambda x: 3 * x)
    calls = given(lambda: thrice(1.5))
    assert missing(NAME) == [NAME]
    assert not thrice.signatures
    thrice(1.5)
    assert missing(NAME) == []
    assert calls == [NAME]


@pytest.mark.parametrize("processes", [1, 2, 4, 20])
def test_every_module_has_one_process(processes: int) -> None:
    """What is shared out is shared out once, `plan` after the kernels that it links."""
    for modules in (list(MODULES), [PLAN], [PRICE], [PLAN, *list(MODULES)[:2]], []):
        shares = shared_out(modules, processes)
        assert sorted(module for share in shares for module in share) == sorted(modules)
        assert len(shares) <= processes
        assert all(shares)
    with_both = next(share for share in shared_out(list(MODULES), processes) if PLAN in share)
    assert with_both.index(PRICE) < with_both.index(PLAN)


def test_two_processes_are_done_at_about_the_same_time() -> None:
    """On two processors neither waits for more than a tenth of all the work."""
    first, second = (sum(MODULES[m] for m in share) for share in shared_out(list(MODULES), 2))
    assert abs(first - second) <= 0.1 * (first + second)


def test_solvers_and_policies_name_modules_with_kernels() -> None:
    """Every module that is named exists, and only `plan` needs those of `plan`."""
    for name in SOLVERS.names():
        needed = set(kernels_of(name))
        assert needed <= set(MODULES), name
        assert (PLAN in needed) == (name == "plan")
    assert set(kernels_of_policies(POLICIES.names())) <= set(MODULES)
    assert kernels.AFS in kernels_of_policies(["afs"])
