"""What a service may take and how long it may take over it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem.values import is_finite, is_whole, make_plain, shown
from edgeflow_opt.service.pool import DEFAULT_MEMORY_MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the service.

    Parameters
    ----------
    host, port
        Where to listen; port 0 = any free one.
    tokens
        Any of them lets a request in (``Authorization: Bearer``); empty = all requests, which is
        allowed on addresses of this machine only.
    store
        File of the sessions (SQLite); None = they are lost when the service ends.
    workers
        Solver processes.
    memory_mib
        Memory that each may take beyond its libraries, MiB.
    waiting
        Requests that may wait for a solver process; more are told to come again (429).
    max_bytes
        Largest body of a request.
    max_jobs, max_slots
        Largest instance.
    max_time_limit_s
        Longest time limit that a request may ask for, seconds.
    max_sessions
        Most sessions at a time.
    max_store_mib
        Largest size of the file of the sessions; None = as the disk allows.
    body_timeout_s
        Seconds within which the head of a request has to be there, and then its body.
    stop_s
        Seconds that requests under way are given when the service is asked to stop.

    Raises
    ------
    UsageError
        If one makes no sense.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: tuple[str, ...] = ()
    store: Path | None = None
    workers: int = 2
    memory_mib: int = DEFAULT_MEMORY_MIB
    waiting: int = 16
    max_bytes: int = 16 << 20
    max_jobs: int = 5_000
    max_slots: int = 2_000
    max_time_limit_s: float = 60.0
    max_sessions: int = 1_000
    max_store_mib: int | None = None
    body_timeout_s: float = 30.0
    stop_s: float = 10.0

    def __post_init__(self) -> None:
        make_plain(self, self.__slots__)
        if not isinstance(self.host, str):
            raise UsageError(f"option host: must be a text, got {shown(self.host)}")
        if self.store is not None and not isinstance(self.store, Path):
            raise UsageError(f"option store: must be a Path or None, got {shown(self.store)}")
        for name in ("workers", "memory_mib", "max_bytes", "max_jobs", "max_slots", "max_sessions"):
            self._whole(name, 1)
        self._whole("waiting", 0)
        self._whole("port", 0)
        if self.max_store_mib is not None:
            self._whole("max_store_mib", 1)
        for name in ("max_time_limit_s", "body_timeout_s", "stop_s"):
            value = getattr(self, name)
            if not (is_finite(value) and value > 0.0):
                raise UsageError(f"option {name}: must be a number above 0, got {shown(value)}")
        if not isinstance(self.tokens, tuple):
            raise UsageError("option tokens: must be a tuple of texts")
        if not all(isinstance(token, str) and token and token.isascii() for token in self.tokens):
            raise UsageError("option tokens: each must be a text of ASCII characters, not empty")
        if not self.tokens and not _is_local(self.host):
            raise UsageError(
                f"host '{self.host}' can be reached from other machines, and there is no token: set "
                "EDGEFLOW_TOKENS, or listen on 127.0.0.1"
            )

    def _whole(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not (is_whole(value) and value >= least):
            raise UsageError(
                f"option {name}: must be a whole number >= {least}, got {shown(value)}"
            )


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
