"""Bad input of every kind, made from the OpenAPI document: no answer may be a failure of the broker."""

from __future__ import annotations

from typing import Any

import hypothesis.core
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from tests.broker.running import Running

STREAMING = ("/v1/feed", "/v1/subscriptions/{id}/events")
"""These have no end where they are allowed, and are tested by themselves."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def printer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemathesis replaces hypothesis' printer by one that shows no values: put it back for the tests that follow."""
    core: Any = hypothesis.core
    monkeypatch.setattr(core, "RepresentationPrinter", core.RepresentationPrinter)


@pytest.fixture(scope="module")
def document(broker: Running) -> Any:
    with broker.http() as http:
        found: Any = http.get("/openapi.json").json()
    found["paths"] = {path: item for path, item in found["paths"].items() if path not in STREAMING}
    return found


def test_the_document_describes_every_route_and_its_problems(document: Any) -> None:
    assert len(document["paths"]) >= 15
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert "application/problem+json" in operation["responses"]["422"]["content"], (method, path)


@pytest.mark.parametrize("examples", [8, pytest.param(300, marks=pytest.mark.nightly)])
def test_no_input_makes_the_broker_fail(broker: Running, document: Any, examples: int) -> None:
    api = schemathesis.openapi.from_dict(document)
    tried = 0
    for result in api.get_all_operations():
        found: Any = result
        operation = found.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            nonlocal tried
            tried += 1
            case.call_and_validate(base_url=broker.url, checks=[not_a_server_error], timeout=30)

        check()
    assert tried > 10 * examples
