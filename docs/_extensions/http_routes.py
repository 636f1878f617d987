"""The routes of the service, from its OpenAPI document."""

from __future__ import annotations

import schemas
from markup import code, plain, table


def page() -> str:
    """Return the routes with what they do and answer, and what each status means."""
    from edgeflow_opt.service.openapi import OPEN, openapi_document

    rows = []
    meanings: dict[str, str] = {}
    document = openapi_document()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            meanings |= {status: told["description"] for status, told in responses.items()}
            token = "no" if path in OPEN else "yes"
            rows.append((code(f"{method.upper()} {path}"), plain(operation["summary"]),
                         ", ".join(responses), token))  # fmt: skip
    text = table(("route", "what it does", "statuses", "token"), rows)
    bodies = {
        name: told
        for name, told in document["components"]["schemas"].items()
        if name.endswith(("Request", "Answer")) or name == "ProblemDetails"
    }
    told = [(status, plain(meanings[status])) for status in sorted(meanings)]
    text += f"\n## Statuses\n\n{table(('status', 'meaning'), told)}\n## Bodies\n\n"
    return text + schemas.tables(bodies)
