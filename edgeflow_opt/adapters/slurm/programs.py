"""The command-line programs of Slurm: called with a limit on their time, and their failures told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from edgeflow_opt.adapters.base import AdapterError


class SlurmPrograms:
    """Calls ``squeue`` and ``scontrol``.

    Parameters
    ----------
    folder
        Where the programs are; None = on the search path.
    timeout_s
        Longest time of one call, wall seconds, above 0.
    """

    def __init__(self, folder: Path | None = None, timeout_s: float = 30.0) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        # Times in the answers must not depend on the settings of whoever runs this.
        self._environment = os.environ | {"SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"}

    def run(self, program: str, *arguments: str, folder: str | None = None) -> str:
        """Return what a program wrote to stdout; `folder` = the one in which it runs.

        Raises
        ------
        AdapterError
            If it is not there, takes too long, or fails; with the command and its stderr.
        """
        command = [str(self._folder / program) if self._folder else program, *arguments]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_s,
                env=self._environment,
                cwd=folder,
                # Ctrl-C at a terminal must not break off an order half-way.
                start_new_session=True,
                check=False,
            )
        except OSError as problem:
            raise AdapterError(
                f"program '{command[0]}' of Slurm cannot be run ({problem.strerror}); "
                "install the Slurm client, or name the folder of its programs"
            ) from None
        except subprocess.TimeoutExpired:
            rule = f"no answer within {self._timeout_s:g} s"
            raise AdapterError(f"command '{_shown(command)}': {rule}; is slurmctld up?") from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip() or "nothing on stderr"
            raise AdapterError(
                f"command '{_shown(command)}' failed (exit code {done.returncode}): {said}"
            )
        return done.stdout.decode(errors="replace")


def _shown(command: list[str]) -> str:
    text = " ".join(command)
    return text if len(text) <= 300 else text[:300] + "…"
