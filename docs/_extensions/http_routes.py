"""The routes of the service, from its OpenAPI document."""

from __future__ import annotations

from markup import code, plain, table


def page() -> str:
    """Return the routes with what they do and answer, and what each status means."""
    from edgeflow_opt.service.openapi import OPEN, openapi_document

    rows = []
    meanings: dict[str, str] = {}
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            meanings |= {status: told["description"] for status, told in responses.items()}
            token = "no" if path in OPEN else "yes"
            rows.append((code(f"{method.upper()} {path}"), plain(operation["summary"]),
                         ", ".join(responses), token))  # fmt: skip
    text = table(("route", "what it does", "statuses", "token"), rows)
    told = [(status, plain(meanings[status])) for status in sorted(meanings)]
    return text + "\n" + table(("status", "meaning"), told)
