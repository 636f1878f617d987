"""JSON Schemas of the formats of the service, made from the code that reads and writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from edgeflow_opt.service.decision import DECISION_FORMAT
from edgeflow_opt.service.events import EVENTS_FORMAT, WireEvents
from edgeflow_opt.service.snapshot import SESSION_FORMAT, WireSession
from edgeflow_opt.service.wire import DecisionAnswer

_WIRE: dict[str, Any] = {
    EVENTS_FORMAT: WireEvents,
    SESSION_FORMAT: WireSession,
    DECISION_FORMAT: DecisionAnswer,
}


def service_schema(format_name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a format of the service.

    Parameters
    ----------
    format_name
        ``"edgeflow-events/1"``, ``"edgeflow-session/1"`` or ``"edgeflow-decision/1"``.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format_name,
        **msgspec.json.schema(_WIRE[format_name]),
    }
