"""The OpenAPI document, held against the service by schemathesis."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from edgeflow_opt.service.app import make_app
from edgeflow_opt.service.openapi import openapi_document
from edgeflow_opt.service.settings import ServiceSettings
from tests.effort import EFFORT, examples

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

schema = schemathesis.openapi.from_dict(openapi_document())

#: The explicit cases follow from the document alone: thousands, and the same every time.
PHASES = (Phase.explicit, Phase.generate) if EFFORT >= 1.0 else (Phase.generate,)


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    """Return a running application, whose sessions are few and whose limits are short."""
    made = make_app(ServiceSettings(workers=1, max_time_limit_s=1.0, max_sessions=5))
    with TestClient(made) as client:
        while client.get("/ready").status_code != 200:
            time.sleep(0.2)
        yield made


@schema.parametrize()
@settings(
    max_examples=examples(5),
    deadline=None,
    derandomize=True,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_documented(case: Any, app: Any) -> None:
    """Whatever is sent, valid or not, the answer has a documented status, type and schema."""
    transport = schemathesis.transport.get(app)
    response = transport.send(case, app=app)
    # Others of the 5xx are documented: no process free, or no answer, in a time that may be short.
    assert response.status_code != 500
    case.validate_response(response, checks=CHECKS)


def test_the_document_is_valid_and_complete() -> None:
    """Every route of the application is in the document, and no other."""
    routes = {
        (method.lower(), route.path)
        for route in make_app(ServiceSettings()).routes
        for method in route.methods - {"HEAD"}
    }
    document = openapi_document()
    listed = {(method, path) for path, item in document["paths"].items() for method in item}
    assert listed == routes
