"""The folder of public data, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the public data sets; tests that need it skip without it."""
    folder = os.environ.get("EDGEFLOW_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("EDGEFLOW_DATA does not name the folder of the public data sets")
    return Path(folder)
