"""``edgeflow schema``: the JSON Schema of a file format."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeflow_opt.cli.options import one_of

#: Formats with a schema, and short names of them.
_SHORT = {
    "epoch": "edgeflow-epoch/1",
    "instance": "edgeflow-epoch/1",
    "schedule": "edgeflow-schedule/1",
    "bound": "edgeflow-bound/1",
    "model": "edgeflow-model/1",
    "events": "edgeflow-events/1",
    "session": "edgeflow-session/1",
    "decision": "edgeflow-decision/1",
}


def schema(
    format_name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="edgeflow-epoch/1 (or: epoch), edgeflow-schedule/1 (or: schedule), "
            "edgeflow-bound/1 (or: bound), edgeflow-model/1 (or: model; of 'edgeflow export'), "
            "edgeflow-events/1, edgeflow-session/1 and edgeflow-decision/1 (or: events, session, "
            "decision; of sessions and 'edgeflow serve').",
        ),
    ],
) -> None:
    """Print the JSON Schema of a file format, made from the code that reads it."""
    from edgeflow_opt.clairvoyant.document import BOUND_FORMAT, bound_schema
    from edgeflow_opt.cli.console import show_json
    from edgeflow_opt.problem import json_schema

    known = [*dict.fromkeys(_SHORT.values()), *_SHORT]
    name = one_of("format", format_name, known)
    name = _SHORT.get(name, name)
    if name == "edgeflow-model/1":
        from edgeflow_opt.solvers.exchange.export import MODEL_SCHEMA

        show_json(MODEL_SCHEMA)
        return
    if name.split("/")[0] in ("edgeflow-events", "edgeflow-session", "edgeflow-decision"):
        from edgeflow_opt.service.schemas import service_schema

        show_json(service_schema(name))
        return
    show_json(bound_schema() if name == BOUND_FORMAT else json_schema(name))
