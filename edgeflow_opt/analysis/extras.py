"""Libraries that are there only with an extra of the package."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from edgeflow_opt.errors import UsageError, how_to_install


def load(module: str, extra: str, purpose: str) -> ModuleType:
    """Return `module`, which `purpose` needs.

    Parameters
    ----------
    module
        Dotted name of the module.
    extra
        The extra of the package that brings it.
    purpose
        What needs it, in words.

    Raises
    ------
    UsageError
        If its library is not installed; the extra is named.
    """
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        library = module.partition(".")[0]
        raise UsageError(
            f"{purpose} needs {library}, which cannot be loaded ({missing}); "
            f"install it with: {how_to_install(extra)}"
        ) from missing


def require(modules: Sequence[str], extra: str, purpose: str) -> None:
    """Make sure, without loading them, that modules are there, so that no work is lost later.

    Parameters
    ----------
    modules, extra, purpose
        As in :func:`load`.

    Raises
    ------
    UsageError
        If one is not installed.
    """
    for module in modules:
        if module in sys.modules and sys.modules[module] is not None:
            continue
        if module in sys.modules or importlib.util.find_spec(module) is None:
            raise UsageError(
                f"{purpose} needs {module}, which is not installed; "
                f"install it with: {how_to_install(extra)}"
            )


def require_report() -> None:
    """Make sure that a report can be made; see :func:`require`."""
    require(("jinja2", "matplotlib", "scipy"), "report", "a report")
