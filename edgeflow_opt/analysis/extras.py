"""Libraries that are there only with an extra of the package."""

from __future__ import annotations

import importlib
from types import ModuleType

from edgeflow_opt.errors import UsageError


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
            f"install it with: pip install 'edgeflow-opt[{extra}]'"
        ) from missing
