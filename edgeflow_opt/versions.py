"""What is installed here, for reports of faults."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from edgeflow_opt._version import __version__

#: Libraries whose versions matter for results.
_LIBRARIES = ("numpy", "ortools", "highspy", "numba", "msgspec")

#: Such as no part of the package needs: named where they are installed.
_EXTRAS = ("pulp",)


def versions_document() -> dict[str, Any]:
    """Return versions, platform and processors as a document ``edgeflow-versions/1``.

    None = not installed.
    """
    usable = getattr(os, "sched_getaffinity", None)
    return {
        "format": "edgeflow-versions/1",
        "edgeflow_opt": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "cpu_usable": os.cpu_count() if usable is None else len(usable(0)),
        **{name: _version_of(name) for name in _LIBRARIES},
        **{name: found for name in _EXTRAS if (found := _version_of(name)) is not None},
    }


def shown_versions() -> list[tuple[str, str]]:
    """Return the same as pairs of a name and a text."""
    return [
        (name, "not installed" if value is None else str(value))
        for name, value in versions_document().items()
        if name != "format"
    ]


def show_versions() -> None:
    """Print versions, platform and processors, to be pasted into a report of a fault."""
    pairs = shown_versions()
    width = max(len(name) for name, _ in pairs)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in pairs))


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
