"""Events that cannot be matched: their publisher is told, and their reasons are there to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.broker.running import Running, running, until

from headgate.store.logs import ERROR

REASON = "price: the text 'abc' is not a DOUBLE"


def errors(broker: Running, headers: dict[str, str] | None = None, **asked: Any) -> list[dict[str, Any]]:
    with broker.http() as http:
        answer = http.get("/v1/errors", params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["errors"]
        return found


def test_a_publisher_is_told_which_events_do_not_fit_their_stream(broker: Running) -> None:
    with broker.http() as http:
        given = [{"price": 1}, {"price": "abc"}, {"name": 7}]
        said = http.post("/v1/streams/stock/events", json=given).json()
    first = said["first"]
    assert (said["accepted"], said["unfit"]) == (3, 2)
    assert said["problems"] == [
        {"event": first + 1, "code": "type", "reason": REASON},
        {"event": first + 2, "code": "type", "reason": "name: 7 is not a STRING"},
    ]


def test_a_publisher_of_lines_is_told_too(broker: Running) -> None:
    lines = b'{"price": 1}\n\n{"price": "abc"}\n'
    with broker.http() as http:
        kind = {"Content-Type": "application/x-ndjson"}
        said = http.post("/v1/streams/stock/events", content=lines, headers=kind).json()
    assert (said["accepted"], said["unfit"]) == (2, 1)
    assert said["problems"] == [{"event": said["last"], "code": "type", "reason": REASON}]


def test_a_publisher_on_a_stream_that_nobody_declared_is_told_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client, broker.http() as http:
        client.subscribe("price < 100", stream="undeclared")
        said = http.post("/v1/streams/undeclared/events", json={"price": "abc"}).json()
    assert (said["unfit"], said["problems"]) == (0, [])


def test_an_event_that_cannot_be_matched_is_listed_with_its_reason_and_counted(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        client.declare("ticks", {"price": "double"})
        client.subscribe("price < 100", stream="ticks")
        first, _ = client.publish("ticks", [{"price": "abc"}, {"price": 1}])
        (one,) = until(lambda: errors(broker, stream="ticks"), "the error")
        counted = 'headgate_broker_event_errors_total{kind="type"}'
        until(lambda: counted in http.get("/metrics").text, "the metric")
    assert (one["stream"], one["event"], one["code"], one["reason"]) == ("ticks", str(first), "type", REASON)
    assert one["text"] == '{"price":"abc"}'
    assert errors(broker, stream="ticks", since=one["seq"]) == []
    assert errors(broker, stream="other") == []


def test_errors_are_read_page_by_page_and_the_newest_come_first_without_a_number(broker: Running) -> None:
    with broker.client() as client, broker.http() as http:
        client.declare("many", {"price": "double"})
        client.subscribe("price < 100", stream="many")
        client.publish("many", [{"price": f"no {n}"} for n in range(5)])
        until(lambda: len(errors(broker, stream="many")) == 5, "the errors")
        page = http.get("/v1/errors", params={"stream": "many", "since": 0, "limit": 3}).json()
        rest = http.get("/v1/errors", params={"stream": "many", "since": page["next"], "limit": 3}).json()
        newest = http.get("/v1/errors", params={"stream": "many", "limit": 2}).json()
    said = [e["text"] for e in page["errors"] + rest["errors"]]
    assert said == [f'{{"price":"no {n}"}}' for n in range(5)]
    assert [e["text"] for e in newest["errors"]] == said[3:]


def test_what_went_wrong_for_a_subscription_is_shown_to_its_owner_and_to_the_admin_alone(broker: Running) -> None:
    with broker.client() as client:
        mine = client.subscribe("vol > 1", stream="stock")
        theirs = client.subscribe("vol > 2", stream="stock")
    names = f'["{mine.id}", "{theirs.id}"]'
    row = {"kind": ERROR, "id": "e", "stream": "private", "subscriptions": names, "concerned": 2}
    broker.broker.store.logs.notify([{**row, "event": "1", "code": "call", "reason": "it broke", "text": "{}"}])
    assert errors(broker, stream="private") == []
    (shown,) = errors(broker, {"Headgate-Tickets": f"{mine.id}:{mine.ticket}"}, stream="private")
    assert (shown["reason"], shown["subscriptions"], shown["concerned"]) == ("it broke", [mine.id], 2)
    (all_of_it,) = errors(broker, {"Headgate-Key": broker.key(scopes=["admin"])}, stream="private")
    assert all_of_it["subscriptions"] == [mine.id, theirs.id]


@pytest.mark.parametrize("asked", [{"since": -1}, {"limit": 0}, {"limit": 5000}, {"stream": ""}])
def test_a_bad_question_is_refused(broker: Running, asked: dict[str, Any]) -> None:
    with broker.http() as http:
        assert http.get("/v1/errors", params=asked).status_code == 422
