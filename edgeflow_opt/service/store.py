"""Where sessions outlive the service: SQLite with a write-ahead log.

An event is on the disk before it is acknowledged; a decision puts the whole session in the place of
the one before and of the events since.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from edgeflow_opt.errors import EdgeflowError, UsageError
from edgeflow_opt.service.refusals import NoSuchSessionError

#: Number of the layout of the tables (``PRAGMA user_version``).
_LAYOUT = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, begun REAL NOT NULL, snapshot BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    document BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS events_of ON events (session);
"""


class StoreError(EdgeflowError):
    """The sessions cannot be written, as on a full disk; nothing has changed."""


class SessionStore:
    """Sessions in a file. Safe from any thread; one service at a time.

    Parameters
    ----------
    path
        The file; it is made where it is missing. None = in memory: nothing outlives the service.
    max_mib
        Largest size; None = as the disk allows.

    Raises
    ------
    UsageError
        If the file cannot be used.
    """

    def __init__(self, path: Path | None, max_mib: int | None = None) -> None:
        self._lock = threading.Lock()
        where = ":memory:" if path is None else str(path)
        try:
            self._line = sqlite3.connect(where, check_same_thread=False, isolation_level=None)
            self._line.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._line.execute("PRAGMA journal_mode=WAL")
            # Nothing is acknowledged before the disk has it.
            self._line.execute("PRAGMA synchronous=FULL")
            self._line.execute("PRAGMA foreign_keys=ON")
            (layout,) = self._line.execute("PRAGMA user_version").fetchone()
            if layout not in (0, _LAYOUT):
                raise UsageError(f"store '{where}': was written by another version of this package")
            self._line.executescript(_TABLES)
            self._line.execute(f"PRAGMA user_version={_LAYOUT}")
            if max_mib is not None:
                (page,) = self._line.execute("PRAGMA page_size").fetchone()
                self._line.execute(f"PRAGMA max_page_count={max(1, (max_mib << 20) // page)}")
        except sqlite3.Error as problem:
            raise UsageError(
                f"store '{where}': cannot be used ({problem}); name a file that may be written to, "
                "and that no other service holds"
            ) from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._line.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Make a change, whole or not at all."""
        with self._lock:
            try:
                self._line.execute("BEGIN IMMEDIATE")
                yield self._line
                self._line.execute("COMMIT")
            except sqlite3.Error as problem:
                raise StoreError(f"the sessions cannot be written: {problem}") from problem
            finally:
                if self._line.in_transaction:
                    self._line.execute("ROLLBACK")

    def begin(self, session: str, snapshot: dict[str, Any]) -> None:
        """Add a session.

        Raises
        ------
        StoreError
            If it cannot be written; all is as before.
        """
        data = msgspec.json.encode(snapshot)
        with self._change() as line:
            line.execute("INSERT INTO sessions VALUES (?, ?, ?)", (session, time.time(), data))

    def replace(self, session: str, snapshot: dict[str, Any]) -> None:
        """Put a snapshot in the place of what there is of a session.

        Raises
        ------
        NoSuchSessionError
            If there is nothing of it, as when it was deleted meanwhile.
        StoreError
            If it cannot be written; all is as before.
        """
        data = msgspec.json.encode(snapshot)
        with self._change() as line:
            found = line.execute("UPDATE sessions SET snapshot = ? WHERE id = ?", (data, session))
            if found.rowcount == 0:
                raise _gone(session)
            line.execute("DELETE FROM events WHERE session = ?", (session,))

    def add_events(self, session: str, document: dict[str, Any]) -> None:
        """Add events of a session.

        Raises
        ------
        NoSuchSessionError
            If there is nothing of it, as when it was deleted meanwhile.
        StoreError
            If they cannot be written; all is as before.
        """
        data = msgspec.json.encode(document)
        with self._change() as line:
            if line.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone() is None:
                raise _gone(session)
            line.execute("INSERT INTO events (session, document) VALUES (?, ?)", (session, data))

    def delete(self, session: str) -> None:
        """Delete a session.

        Raises
        ------
        StoreError
            If that cannot be written; all is as before.
        """
        with self._change() as line:
            line.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def read_all(self) -> Iterator[tuple[str, Any, list[Any]]]:
        """Yield of each session its id, its snapshot, and the documents of the events since."""
        with self._lock:
            rows = self._line.execute("SELECT id, snapshot FROM sessions ORDER BY begun").fetchall()
            events = {
                name: self._line.execute(
                    "SELECT document FROM events WHERE session = ? ORDER BY number", (name,)
                ).fetchall()
                for name, _ in rows
            }
        for name, snapshot in rows:
            documents = [msgspec.json.decode(data) for (data,) in events[name]]
            yield name, msgspec.json.decode(snapshot), documents


def _gone(session: str) -> NoSuchSessionError:
    return NoSuchSessionError(f"session '{session}' was deleted meanwhile")
