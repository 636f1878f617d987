"""The document ``edgeflow-bound/1``, and its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from edgeflow_opt.clairvoyant.bound import ClairvoyantBound

#: Name and version of the document.
BOUND_FORMAT = "edgeflow-bound/1"


class WireBound(msgspec.Struct, forbid_unknown_fields=True):
    """What is possible on a trace when all arrivals are known."""

    format: Literal["edgeflow-bound/1"]
    trace: str
    settings: Annotated[dict[str, Any], Meta(description="the options in effect")]
    jobs: Annotated[int, Meta(ge=0, description="jobs with a deadline")]
    bound: Annotated[
        float, Meta(ge=0, description="proven: no schedule, online or not, meets more")
    ]
    best_known: Annotated[
        float | None,
        Meta(description="met by the best schedule found; null: none was looked for"),
    ]
    linear_bound: Annotated[float, Meta(ge=0, description="of the linear program, not rounded")]
    gap: Annotated[
        float | None, Meta(description="(bound - best_known) / best_known; null: no meaning")
    ]
    source: Annotated[str | None, Meta(description="how the best schedule was found")]
    events: Annotated[int, Meta(ge=0, description="intervals between event times")]
    intervals: Annotated[int, Meta(ge=0, description="those used: fewer where merged")]
    nodes: Annotated[int, Meta(ge=0, description="of the search that brought the bound down")]
    limit: Annotated[
        Literal["time", "interrupted"] | None,
        Meta(description="what ended the work before bound and best schedule met"),
    ]
    seconds: Annotated[float, Meta(ge=0, description="wall time")]


def bound_document(
    trace: str, settings: Mapping[str, Any], result: ClairvoyantBound
) -> dict[str, Any]:
    """Return the document of a bound, ready for JSON.

    Parameters
    ----------
    trace
        Name of the trace.
    settings
        The options in effect.
    result
        The bound.
    """
    return {
        "format": BOUND_FORMAT,
        "trace": trace,
        "settings": dict(settings),
        **result.to_dict(),
    }


def bound_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``edgeflow-bound/1``, made from the code."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": BOUND_FORMAT,
        **msgspec.json.schema(WireBound),
    }
