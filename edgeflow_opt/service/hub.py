"""The sessions of a service: in memory, and before that on the disk."""

from __future__ import annotations

import logging
import secrets
import threading
from dataclasses import dataclass, field
from typing import Any

from edgeflow_opt.errors import EventError, Fault, InputError, InstanceError
from edgeflow_opt.problem.formats import problem_from_dict
from edgeflow_opt.problem.parsing import convert_part, parse_json
from edgeflow_opt.problem.values import shown
from edgeflow_opt.service.events import MAX_CLOCK, events_from_dict, events_to_dict
from edgeflow_opt.service.options import SessionOptions
from edgeflow_opt.service.pool import SolverPool
from edgeflow_opt.service.refusals import NoSuchSessionError, TooManyError
from edgeflow_opt.service.session import EpochSession
from edgeflow_opt.service.settings import ServiceSettings
from edgeflow_opt.service.state import later_than
from edgeflow_opt.service.store import SessionStore
from edgeflow_opt.service.tasks import parsed
from edgeflow_opt.service.wire import DecideRequest, SessionRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session, and whether its decisions are to come to their ends at once."""

    session: EpochSession
    ending: threading.Event = field(default_factory=threading.Event)


class SessionHub:
    """All sessions of a service. Safe from any thread.

    Parameters
    ----------
    settings
        Limits.
    store
        Where they are kept; sessions in it are taken up.
    pool
        Processes to solve in.
    """

    def __init__(self, settings: ServiceSettings, store: SessionStore, pool: SolverPool) -> None:
        self._settings = settings
        self._store = store
        self._pool = pool
        self._lock = threading.Lock()
        self._sessions: dict[str, _Kept] = {}
        self._stopping = False
        for name, snapshot, documents in store.read_all():
            session = EpochSession.from_snapshot(snapshot, pool=pool, source=f"session {name}")
            for document in documents:
                batch = events_from_dict(document)
                session.update(batch.events, batch=batch.batch)
            self._sessions[name] = _Kept(session)

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, body: bytes) -> dict[str, Any]:
        """Begin a session and return what it is."""
        request, documents = parsed(
            body, SessionRequest, "sites", "jobs", "objective", "now", "snapshot"
        )
        if documents["snapshot"] is not None:
            given = [k for k, v in documents.items() if k != "snapshot" and v is not None]
            if given or request.options is not None:
                rule = "goes without other keys: all is in the snapshot"
                raise InputError((Fault("request", "snapshot", rule, ", ".join(given)),))
            session = EpochSession.from_snapshot(documents["snapshot"], pool=self._pool)
        else:
            session = self._fresh(documents, request.options)
        self._refuse_too_many(len(session.view.jobs), session.options.max_slots)
        name = secrets.token_hex(8)
        with self._lock:
            if len(self._sessions) >= self._settings.max_sessions:
                raise TooManyError(
                    f"there are {len(self._sessions)} sessions, the most that this service holds; "
                    "delete one"
                )
            self._store.begin(name, session.snapshot())
            kept = self._sessions[name] = _Kept(session)
            if self._stopping:
                kept.ending.set()
        return _about(name, session)

    def _fresh(self, documents: dict[str, Any], options: Any) -> EpochSession:
        now = 0.0 if documents["now"] is None else documents["now"]
        if not isinstance(now, (int, float)) or isinstance(now, bool) or not abs(now) <= MAX_CLOCK:
            rule = "must be a number of seconds, of magnitude at most 1e14"
            raise InputError((Fault("request", "now", rule, shown(now)),))
        document = {
            "format": "edgeflow-epoch/1",
            "now": now,
            "grid": [now, later_than(now)],
            "sites": documents["sites"] or [],
            "jobs": documents["jobs"] or [],
        }
        if documents["objective"] is not None:
            document["objective"] = documents["objective"]
        problem = problem_from_dict(document)
        settings = {}
        if options is not None:
            settings = {name: getattr(options, name) for name in options.__struct_fields__}
        return EpochSession(
            problem.sites,
            now=problem.now,
            jobs=problem.jobs,
            objective=problem.objective,
            options=SessionOptions(**settings),
            pool=self._pool,
        )

    def _refuse_too_many(self, jobs: int, slots: int) -> None:
        for what, count, most in (
            ("jobs", jobs, self._settings.max_jobs),
            ("options.max_slots", slots, self._settings.max_slots),
        ):
            if count > most:
                fault = Fault("session", what, f"this service takes at most {most}", str(count))
                raise InstanceError((fault,))

    def session(self, name: str) -> EpochSession:
        """Return the session of an id.

        Raises
        ------
        NoSuchSessionError
            If there is none.
        """
        return self._kept(name).session

    def _kept(self, name: str) -> _Kept:
        kept = self._sessions.get(name)
        if kept is None:
            raise NoSuchSessionError(
                f"there is no session '{name[:40]}'; POST /sessions begins one"
            )
        return kept

    def about(self, name: str) -> dict[str, Any]:
        """Return what a session is."""
        return _about(name, self.session(name))

    def all(self) -> list[dict[str, Any]]:
        """Return what all sessions are."""
        return [_about(name, kept.session) for name, kept in tuple(self._sessions.items())]

    def snapshot(self, name: str) -> dict[str, Any]:
        """Return a session as a document."""
        return self.session(name).snapshot()

    def update(self, name: str, body: bytes) -> dict[str, Any]:
        """Take events; they are on the disk when this returns."""
        session = self.session(name)
        batch = events_from_dict(parse_json(body, "", EventError))
        arrivals = sum(type(event).__name__ == "JobArrived" for event in batch.events)
        self._refuse_too_many(len(session.view.jobs) + arrivals, 0)
        document = events_to_dict(batch.events, batch.batch)
        taken = session.update(
            batch.events,
            batch=batch.batch,
            commit=lambda: self._store.add_events(name, document),
        )
        return {"taken": taken, "sequence": session.sequence}

    def decide(self, name: str, body: bytes) -> dict[str, Any]:
        """Decide; the session after it is on the disk when this returns.

        Raises
        ------
        NoSuchSessionError
            If there is no session of that id, or it was deleted meanwhile.
        """
        kept = self._kept(name)
        request = convert_part(parse_json(body or b"{}", "", InputError), DecideRequest, "request")
        if isinstance(request, tuple):
            raise InputError(request)
        most = self._settings.max_time_limit_s
        if request.time_limit_s > most:
            rule = f"this service takes at most {most:g} s"
            fault = Fault("request", "time_limit_s", rule, repr(request.time_limit_s))
            raise InputError((fault,))
        decision = kept.session.decide(
            request.now,
            request.time_limit_s,
            fresh=request.fresh,
            cancelled=kept.ending,
            commit=lambda snapshot: self._store.replace(name, snapshot),
        )
        return decision.document()

    def delete(self, name: str) -> None:
        """End a session; decisions of it that are under way end at once, and come to nothing."""
        with self._lock:
            kept = self._kept(name)
            self._store.delete(name)
            del self._sessions[name]
        kept.ending.set()

    def stop(self) -> None:
        """Let decisions answer at once with the best that they have, from now on."""
        # Without the lock, as a signal may call this; a session begun meanwhile looks after itself.
        self._stopping = True
        for kept in tuple(self._sessions.values()):
            kept.ending.set()


def _about(name: str, session: EpochSession) -> dict[str, Any]:
    """Return what a session is."""
    view = session.view
    return {
        "id": name,
        "clock": view.clock,
        "jobs": len(view.jobs),
        "sequence": session.sequence,
        "decisions": session.decisions,
    }
