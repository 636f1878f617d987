"""Fixtures and settings shared by all tests.

Helpers are imported as ``tests.strategies`` (random instances) and ``tests.oracle`` (brute force).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from edgeflow_opt.solvers.kernels import compile_in_parallel
from tests.effort import EFFORT, examples

# Compilation on first use and shared machines make the time of one example meaningless.
settings.register_profile(
    "default",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
# Whoever runs the tests as they are sees what everybody sees; more effort looks elsewhere each time.
settings.register_profile("same", settings.get_profile("default"), derandomize=True)
settings.load_profile("same" if EFFORT <= 1.0 else "default")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C work, and compile the kernels once before workers begin that would do it anew.

    A shell starts what runs in its background with Ctrl-C ignored, and processes inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        print("loading kernels; the first time they are compiled, in a minute or two", flush=True)
        compile_in_parallel()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that read public traces, so that they can be run by themselves."""
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("public_data")


@pytest.fixture(autouse=True)
def _ctrl_c_left_alone() -> Iterator[None]:
    """Name the test that leaves Ctrl-C to something else, rather than let others fail for it."""
    yield
    left = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert left is signal.default_int_handler, f"the handler of SIGINT is left as {left!r}"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of public traces named by EDGEFLOW_DATA; skip the test without it."""
    folder = os.environ.get("EDGEFLOW_DATA")
    if not folder:
        pytest.skip("EDGEFLOW_DATA does not name a folder of public traces")
    path = Path(folder)
    if not path.is_dir():
        pytest.skip(f"EDGEFLOW_DATA names {folder}, which is not a folder")
    return path
