"""``edgeflow versions``: what is installed here, for reports of faults."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from edgeflow_opt._version import __version__
from edgeflow_opt.cli.options import AsJson

#: Libraries whose versions matter for results.
_LIBRARIES = ("numpy", "ortools", "highspy", "numba", "msgspec")

#: Such as no part of the package needs: named where they are installed.
_EXTRAS = ("pulp",)


def versions(as_json: AsJson = False) -> None:
    """Show the versions of the package and its libraries; paste this into reports of faults."""
    from edgeflow_opt.cli.console import facts, show, show_json

    document = versions_document()
    if as_json:
        show_json(document)
        return
    pairs = [
        (name, "not installed" if value is None else str(value))
        for name, value in document.items()
        if name != "format"
    ]
    show(facts("Versions", pairs))


def versions_document() -> dict[str, Any]:
    """Return versions, platform and processors; null = not installed."""
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


def _version_of(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
