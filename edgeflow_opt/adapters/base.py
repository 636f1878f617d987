"""What a cluster has to offer to follow the decisions of a session, and the loop that makes it so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from edgeflow_opt.errors import EdgeflowError, UsageError
from edgeflow_opt.service.decision import SessionDecision
from edgeflow_opt.service.events import Event
from edgeflow_opt.service.session import EpochSession
from edgeflow_opt.service.state import ClusterView


class AdapterError(EdgeflowError):
    """The cluster could not be asked, or did not do what it was told; asking again may help."""


@runtime_checkable
class Cluster(Protocol):
    """A cluster that is asked what happened, and told what to do.

    An adapter is a class with these three methods; it keeps no plan of its own. What the session
    knows, it is given; what the session does not know yet, it tells.
    """

    def now(self) -> float:
        """Return the time on the clock of the cluster, seconds: the clock of the session."""
        ...

    def observe(self, view: ClusterView) -> Iterable[Event]:
        """Return what happened that `view` does not hold yet, in the order in which it happened.

        Parameters
        ----------
        view
            What the session knows: its jobs with what they hold, its sites.

        Raises
        ------
        AdapterError
            If the cluster cannot be asked.
        """
        ...

    def carry_out(self, decision: SessionDecision) -> Iterable[Event]:
        """Do what the changes of a decision say, stops before starts.

        Parameters
        ----------
        decision
            What the session wants.

        Returns
        -------
        events
            What came out otherwise, above all
            :class:`~edgeflow_opt.service.events.JobPlaced` for each job that could not be placed as
            decided; empty = all is as decided.

        Raises
        ------
        AdapterError
            If the cluster cannot be told; the next look at it says what it did do.
        """
        ...


def advance(
    cluster: Cluster, session: EpochSession, *, time_limit_s: float = 1.0
) -> SessionDecision:
    """Take one turn: tell the session what happened, decide, and have the cluster follow.

    Parameters
    ----------
    cluster
        The cluster.
    session
        The session that decides for it.
    time_limit_s
        Of the decision, wall seconds.

    Returns
    -------
    decision
        What was decided, and carried out.

    Raises
    ------
    AdapterError
        From the cluster.
    EventError
        If what the cluster tells makes no sense.
    """
    session.update(cluster.observe(session.view))
    decision = session.decide(cluster.now(), time_limit_s)
    session.update(cluster.carry_out(decision))
    return decision


def follow(
    cluster: Cluster,
    session: EpochSession,
    *,
    time_limit_s: float = 1.0,
    interval_s: float = 10.0,
    stop: threading.Event | None = None,
    on_decision: Callable[[SessionDecision], None] | None = None,
    on_error: Callable[[AdapterError], None] | None = None,
    wait: Callable[[float], None] | None = None,
) -> None:
    """Take turns until told to stop: at least every `interval_s`, and when the plan changes something.

    Parameters
    ----------
    cluster, session, time_limit_s
        As for :func:`advance`.
    interval_s
        Longest wait between two looks at the cluster, wall seconds, above 0.
    stop
        Set it from another thread to end the loop; None = it ends by an exception only.
    on_decision
        Called with each decision after it was carried out.
    on_error
        Called where the cluster could not be asked or told; the loop goes on after `interval_s`.
        None = the error is raised.
    wait
        Called with the most seconds to wait for something to happen in the cluster; None = that is
        not told, so that all the seconds are waited.

    Raises
    ------
    AdapterError
        From the cluster, without `on_error`.
    UsageError
        If `interval_s` makes no sense.
    """
    if not interval_s > 0.0:
        rule = "must be a number of seconds above 0"
        raise UsageError(f"option interval_s: {rule}, got {interval_s!r}")
    stop = stop or threading.Event()
    while not stop.is_set():
        wait_s = interval_s
        try:
            decision = advance(cluster, session, time_limit_s=time_limit_s)
        except AdapterError as error:
            if on_error is None:
                raise
            on_error(error)
        else:
            if on_decision is not None:
                on_decision(decision)
            wait_s = min(interval_s, max(0.0, decision.until - cluster.now()))
            if wait is not None and not stop.is_set():
                wait(wait_s)
                continue
        stop.wait(wait_s)
