"""What the service measures of itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from edgeflow_opt.analysis.extras import load

_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters of one service, in a registry of its own.

    Parameters
    ----------
    under_way
        Returns the number of requests that have or wait for a solver process.
    sessions
        Returns the number of sessions.
    ended
        Returns how many solver processes have ended, by reason.
    """

    def __init__(
        self,
        under_way: Callable[[], int],
        sessions: Callable[[], int],
        ended: Callable[[], dict[str, int]],
    ) -> None:
        client = load("prometheus_client", "serve", "the service")
        self._client = client
        self._registry = client.CollectorRegistry()
        self._ended = ended
        self._requests = client.Counter(
            "edgeflow_requests", "Requests answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = client.Histogram(
            "edgeflow_request_seconds",
            "Wall time of requests.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._rungs = client.Counter(
            "edgeflow_rungs", "Rungs that answers came from.", ["rung"], registry=self._registry
        )
        self._processes = client.Gauge(
            "edgeflow_solver_processes_ended",
            "Solver processes that have ended, by reason.",
            ["reason"],
            registry=self._registry,
        )
        for name, text, read in (
            ("edgeflow_under_way", "Requests that have or wait for a solver process.", under_way),
            ("edgeflow_sessions", "Sessions.", sessions),
        ):
            client.Gauge(name, text, registry=self._registry).set_function(read)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def rung(self, name: str, known: bool) -> None:
        """Count the rung of an answer; names that are not registered are one, lest they be many."""
        self._rungs.labels(name if known else "other").inc()

    def text(self) -> bytes:
        """Return all of it in the format of Prometheus."""
        for reason, count in self._ended().items():
            self._processes.labels(reason).set(count)
        text: bytes = self._client.generate_latest(self._registry)
        return text
