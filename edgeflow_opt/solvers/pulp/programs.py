"""The programs that PuLP starts: files in a folder of their own, and an end when time is up.

PuLP waits for a program as long as it takes, does not tell which process it is, and leaves the files
of one that failed. CBC looks at its limit between long steps only.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from types import TracebackType
from typing import Any, Self

#: Seconds that a program gets from the first request to stop: for writing the solution it has.
_LAST_WORDS_S = 0.1


class Programs:
    """What one solve of PuLP starts; a context, at whose end the files are gone.

    Parameters
    ----------
    solver
        A solver of PuLP; from here on its files are in the folder by which its programs are known.
    """

    def __init__(self, solver: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="edgeflow-pulp-", ignore_cleanup_errors=True
        )
        self._asked_at: float | None = None
        solver.tmpDir = self._folder.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def stop(self) -> None:
        """End the programs, on the second request after a moment; to be called until they have."""
        try:
            import psutil
        except ImportError:
            return  # PuLP was installed without the extra: programs go on to their own end

        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
        if now - self._asked_at < _LAST_WORDS_S:
            return
        for child in psutil.Process().children(recursive=True):
            # It may end by itself meanwhile.
            with contextlib.suppress(psutil.Error):
                if any(self._folder.name in part for part in child.cmdline()):
                    child.kill()
