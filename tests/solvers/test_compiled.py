"""Tests of how the kernels are written: what would make their compilation long."""

from __future__ import annotations

import ast
from pathlib import Path

import edgeflow_opt.solvers
from edgeflow_opt.solvers import kernels

FOLDER = Path(edgeflow_opt.solvers.__file__).parent
#: Kernels that this test speaks for.
FILES = sorted(
    [
        *(FOLDER / "price").glob("*_kernels.py"),
        *(FOLDER / "plan").glob("*_kernels.py"),
        *(FOLDER / "greedy").glob("*.py"),
        FOLDER / "polish" / "kernels.py",
        FOLDER / "leftovers.py",
    ]
)


def _kernels() -> dict[str, list[tuple[Path, ast.FunctionDef]]]:
    """Return the functions with one of the decorators, by name."""
    found: dict[str, list[tuple[Path, ast.FunctionDef]]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(mark, ast.Name) and mark.id in ("kernel", "shared", "entry")
                for mark in node.decorator_list
            ):
                found.setdefault(node.name, []).append((path, node))
    return found


def _is_literal(node: ast.expr) -> bool:
    """Whether numba types `node` by its value: a whole number, True or False."""
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def test_no_kernel_is_given_a_literal() -> None:
    """No kernel passes a literal to another: it would be compiled once for each value."""
    known = _kernels()
    assert len(known) > 60
    at_fault = [
        f"{path.name}:{call.lineno} {call.func.id}"
        for functions in known.values()
        for path, function in functions
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in known
        and any(_is_literal(argument) for argument in call.args)
    ]
    assert not at_fault


def test_entries_that_are_loaded_have_one_signature() -> None:
    """After a warm-up no kernel of these modules has more than one set of types."""
    import importlib

    kernels.warm_up()
    counted = 0
    for path in FILES:
        dotted = path.relative_to(FOLDER.parent.parent).with_suffix("").parts
        module = importlib.import_module(".".join(dotted))
        for name, found in vars(module).items():
            if hasattr(found, "py_func") and found.py_func.__module__ == module.__name__:
                counted += len(found.signatures)
                assert len(found.signatures) <= 1, f"{module.__name__}.{name}"
    assert counted >= 10
