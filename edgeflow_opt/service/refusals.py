"""What the service refuses and why."""

from __future__ import annotations

from edgeflow_opt.errors import EdgeflowError


class NoSuchSessionError(EdgeflowError):
    """There is no session, or no solve under way, of that id."""


class TooManyError(EdgeflowError):
    """A limit of the service is reached."""


class NotReadyError(EdgeflowError):
    """The service cannot solve now."""


class TooLargeError(EdgeflowError):
    """The body of a request is too large."""


class SlowBodyError(EdgeflowError):
    """The body of a request did not come in time."""


class BadLimitError(EdgeflowError, ValueError):
    """The time limit of a request is beyond that of the service."""
