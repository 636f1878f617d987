"""The options that commands share, each validated before any work starts."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflow_opt.errors import UsageError


def _positive(value: float | None) -> float | None:
    """Refuse what is no finite number above 0."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"must be a finite number above 0, got {value:g}")
    return value


def _at_least(least: int, most: int | None = None) -> Callable[[int | None], int | None]:
    """Return a callback that refuses whole numbers outside a range."""

    def validate(value: int | None) -> int | None:
        if value is not None and (value < least or (most is not None and value > most)):
            rule = f"at least {least}" if most is None else f"from {least} to {most}"
            raise typer.BadParameter(f"must be a whole number {rule}, got {value}")
        return value

    return validate


def positive(name: str, help_text: str, metavar: str = "S") -> Any:
    """Return the declaration of an option that takes a finite number above 0."""
    return typer.Option(name, metavar=metavar, callback=_positive, help=help_text)


def whole(
    name: str, help_text: str, least: int, most: int | None = None, metavar: str = "N"
) -> Any:
    """Return the declaration of an option that takes a whole number of a range."""
    return typer.Option(name, metavar=metavar, callback=_at_least(least, most), help=help_text)


#: Defaults of the library (``SolveOptions``), which is not loaded to show a help text.
DEFAULT_TIME_LIMIT_S, DEFAULT_WORKERS = 10.0, 2

TimeLimit = Annotated[float, positive("--time-limit", "Seconds a solve, model building included.")]
Seed = Annotated[int, whole("--seed", "Seed of everything random.", 0, 2**31 - 1)]
Workers = Annotated[int, whole("--workers", "Threads that a solver may use.", 1, 4096)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables for people.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Also write the JSON document there, whole or not "
        "at all.",
    ),
]  # fmt: skip


def one_of(what: str, name: str, known: Iterable[str]) -> str:
    """Return `name` if it is known.

    Raises
    ------
    UsageError
        With the nearest name, and all of them, if not.
    """
    names = list(known)
    if name in names:
        return name
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    raise UsageError(f"{what} {name!r} is not known; {hint}known are {', '.join(names)}")


def names_of(text: str, option: str) -> list[str]:
    """Return the names in a list with commas.

    Raises
    ------
    UsageError
        If the list has an empty entry, or a name twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"option {option}: must be names with commas between them, got {text!r}")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"option {option}: '{name}' is named twice; name it once")
    return names


def assignments_of(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Return what options of the form ``NAME=VALUE`` say.

    A value that is a JSON number, true, false or null is that; any other is a text.

    Raises
    ------
    UsageError
        If there is no ``=``, no name, or a name twice.
    """
    values: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"option {option}: must be NAME=VALUE, got {text!r}")
        if name in values:
            raise UsageError(f"option {option}: '{name}' is given twice; give it once")
        values[name] = _value_of(value.strip())
    return values


def _value_of(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value if isinstance(value, (bool, int, float)) or value is None else text


def range_of(text: str, option: str, rising: bool = True) -> tuple[float, float]:
    """Return the two numbers of ``LO,HI``, finite and at least 0, and rising unless told otherwise.

    Raises
    ------
    UsageError
        If they are not.
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = math.nan
    if not (0 <= low < math.inf and 0 <= high < math.inf) or (rising and low > high):
        order = ", the second at least the first" if rising else ""
        raise UsageError(
            f"option {option}: must be two finite numbers >= 0 with a comma between them{order}, "
            f"got {text!r}"
        )
    return low, high


def check_output(output: Path | None, *inputs: str | Path) -> None:
    """Make sure that a file can be written at the end, so that no work is lost.

    Parameters
    ----------
    output
        File to be written; None = none.
    *inputs
        Files that must not be overwritten by it.

    Raises
    ------
    UsageError
        If it is a folder or an input, or its folder is missing or may not be written to.
    """
    if output is None:
        return
    if output.is_dir() or not output.name:
        raise UsageError(f"output '{output}': is a folder; name a file")
    folder = output.parent
    if not folder.is_dir():
        raise UsageError(f"output '{output}': its folder does not exist; make '{folder}' first")
    if not os.access(folder, os.W_OK | os.X_OK) and not (output.exists() and not output.is_file()):
        raise UsageError(f"output '{output}': its folder may not be written to; name another one")
    for path in inputs:
        if output.exists() and Path(path).exists() and output.samefile(path):
            raise UsageError(f"output '{output}': would overwrite an input; name another file")
