"""Publishing: bodies of every form, keys, quotas and rates, repetition, and being told to wait."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.broker.running import Running, running, until

EVENTS = "/v1/streams/stock/events"


def bodies(broker: Running, since: int) -> list[dict[str, Any]]:
    logs = broker.broker.store.logs
    return [json.loads(e.body) for e in logs.events(since, logs.last())]


def post(broker: Running, content: Any, kind: str = "application/json", **headers: str) -> Any:
    with broker.http() as http:
        return http.post(EVENTS, content=content, headers={"Content-Type": kind, **headers})


def test_one_event_and_a_batch_are_published(broker: Running) -> None:
    since = broker.broker.store.logs.last()
    one = post(broker, b'{"name": "IBM", "vol": 123456789012345678901}')
    assert (one.status_code, one.json()["accepted"]) == (202, 1)
    many = post(broker, b'[{"vol": 1}, {"vol": 2}]').json()
    assert (many["accepted"], many["last"]) == (2, since + 3)
    assert bodies(broker, since) == [{"name": "IBM", "vol": 123456789012345678901}, {"vol": 1}, {"vol": 2}]


def test_a_stream_of_lines_is_published_as_it_comes(broker: Running) -> None:
    since = broker.broker.store.logs.last()
    lines = (f'{{"vol": {n}}}\n'.encode() for n in range(5000))
    done = post(broker, lines, "application/x-ndjson").json()
    assert done["accepted"] == 5000
    assert [b["vol"] for b in bodies(broker, since)] == list(range(5000))


def test_a_bad_line_ends_the_stream_and_what_stood_before_it_is_published_and_told(broker: Running) -> None:
    since = broker.broker.store.logs.last()
    answer = post(broker, b'{"vol": 1}\n{"vol": 2}\n{broken\n{"vol": 4}\n', "application/x-ndjson")
    assert answer.status_code == 400
    said = answer.json()
    assert said["detail"].startswith("line 3: it is not JSON")
    assert said["accepted"] == 2
    assert [b["vol"] for b in bodies(broker, since)] == [1, 2]


def test_cloud_events_are_published_structured_in_batches_and_binary(broker: Running) -> None:
    since = broker.broker.store.logs.last()
    event = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "data": {"vol": 3}}
    assert post(broker, json.dumps(event), "application/cloudevents+json").status_code == 202
    assert post(broker, json.dumps([event]), "application/cloudevents-batch+json").status_code == 202
    head = {"ce-specversion": "1.0", "ce-id": "8", "ce-source": "/s", "ce-type": "t"}
    assert post(broker, b'{"vol": 4}', "application/json", **head).status_code == 202
    assert [b["data"]["vol"] for b in bodies(broker, since)] == [3, 3, 4]
    bad = post(broker, json.dumps({"id": "7"}), "application/cloudevents+json")
    assert bad.status_code == 400
    assert "not a CloudEvent: it lacks source" in bad.json()["detail"]


def test_with_an_idempotency_key_events_are_published_once(broker: Running) -> None:
    since = broker.broker.store.logs.last()
    first = post(broker, b'[{"vol": 1}]', **{"Idempotency-Key": "a"})
    again = post(broker, b'[{"vol": 1}]', **{"Idempotency-Key": "a"})
    assert not first.json()["repeated"] and again.json()["repeated"]
    assert again.json()["first"] == first.json()["first"]
    other = post(broker, b'[{"vol": 2}]', **{"Idempotency-Key": "a"})
    assert other.status_code == 409
    assert "was used for other events" in other.json()["detail"]
    assert len(bodies(broker, since)) == 1


@pytest.mark.parametrize(
    ("content", "kind", "status", "said"),
    [
        (b"{", "application/json", 400, "the body is not JSON"),
        (b"[1]", "application/json", 400, "event 0: an event must be a JSON object"),
        (b'"text"', "application/json", 400, "an event must be a JSON object"),
        (b"\xff", "application/json", 400, "the body is not JSON"),
        (b"", "application/json", 400, "the body is not JSON"),
        (b"{}", "text/html", 415, "text/html is not taken here"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "application/json", 413, "nested deeper than 64 levels"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "application/json", 400, "the body is not JSON"),
        (b'{"a": "' + b"x" * (1 << 20) + b'"}', "application/json", 413, "a body may have 1,048,576 bytes"),
    ],
)
def test_a_bad_body_is_refused_with_its_reason(
    broker: Running, content: bytes, kind: str, status: int, said: str
) -> None:
    answer = post(broker, content, kind)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


def test_a_body_without_a_length_is_cut_off_when_it_is_too_large(broker: Running) -> None:
    answer = post(broker, (b"[" + b" " * 100_000 for _ in range(100)), "application/json")
    assert answer.status_code == 413


def raw(broker: Running, text: bytes) -> bytes:
    """What the broker says, until it closes the connection, to a client that then sends nothing more."""
    at = urlsplit(broker.url)
    # Less than the 30 seconds for which an idle connection is kept.
    with socket.create_connection((at.hostname, at.port), timeout=20) as connection:
        connection.sendall(text)
        said = b""
        while part := connection.recv(65536):
            said += part
        return said


def partial_post(path: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    return head.encode() + b'{"vol"'


def test_a_body_that_dribbles_is_cut_off(broker: Running) -> None:
    said = raw(broker, partial_post(EVENTS))
    assert said.startswith(b"HTTP/1.1 408")
    assert b"nothing came for 1 seconds" in said
    assert b"connection: close" in said.lower()


def test_headers_that_dribble_are_cut_off(broker: Running) -> None:
    assert raw(broker, b"GET /healthz HTTP/1.1\r\nHost") == b""


def test_a_body_that_dribbles_after_an_early_answer_is_cut_off(broker: Running) -> None:
    assert raw(broker, partial_post("/v1/streams/nowhere/events")).startswith(b"HTTP/1.1 404")


def test_headers_that_dribble_in_a_later_request_are_cut_off(broker: Running) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    at = urlsplit(broker.url)
    with socket.create_connection((at.hostname, at.port), timeout=20) as connection:
        connection.sendall(whole)
        said = b""
        while not said.endswith(b'"alive"}'):
            said += connection.recv(65536)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost")
        assert connection.recv(65536) == b""


def test_an_unknown_stream_is_not_published_to(broker: Running) -> None:
    with broker.http() as http:
        answer = http.post("/v1/streams/nowhere/events", json={"vol": 1})
    assert answer.status_code == 404
    assert answer.json()["detail"] == "there is no stream nowhere"


def test_a_key_is_held_to_its_rate_and_its_quota(broker: Running) -> None:
    slow, small = broker.key(rate=2.0), broker.key(quota=3)
    for _ in range(1):
        assert post(broker, b'[{"vol": 1}, {"vol": 2}]', **{"Headgate-Key": slow}).status_code == 202
    refused = post(broker, b'{"vol": 1}', **{"Headgate-Key": slow})
    assert refused.status_code == 429
    assert refused.json()["detail"] == "at most 2 events a second"
    assert int(refused.headers["retry-after"]) >= 1
    assert post(broker, b'[{"vol": 1}, {"vol": 2}]', **{"Headgate-Key": small}).status_code == 202
    refused = post(broker, b'[{"vol": 1}, {"vol": 2}]', **{"Headgate-Key": small})
    assert refused.status_code == 429
    assert refused.json()["detail"] == "at most 3 events a day"
    assert post(broker, b'[{"vol": 1}]', **{"Headgate-Key": small}).status_code == 202


def test_a_wrong_or_revoked_key_or_one_without_the_scope_is_refused(broker: Running) -> None:
    listener, gone = broker.key(scopes=["subscribe"]), broker.key()
    broker.broker.keys.revoke(gone.split("_")[1])
    assert post(broker, b"{}", **{"Headgate-Key": listener}).status_code == 403
    assert post(broker, b"{}", **{"Headgate-Key": gone}).status_code == 401
    assert post(broker, b"{}", **{"Headgate-Key": "hgk_x_y"}).status_code == 401


def test_publishers_wait_while_matching_is_behind(tmp_path: Path) -> None:
    with running(tmp_path, engine="none", backlog=10) as broker:
        broker.broker.publisher.look(now=True)
        assert broker.broker.publisher.pending == 0, "an empty log waits for nobody"
        with broker.client() as client:
            client.declare("stock", {"vol": "bigint"})
        assert post(broker, json.dumps([{"vol": n} for n in range(8)])).status_code == 202
        refused = until(lambda: (a := post(broker, b'[{"vol": 1},{"vol": 2},{"vol": 3}]')).status_code == 429 and a)
        assert refused.json()["detail"] == "8 events wait to be matched"
        assert refused.headers["retry-after"] == "1"
        broker.broker.shared.advance("elsewhere", 8)
        until(lambda: post(broker, b'[{"vol": 1},{"vol": 2},{"vol": 3}]').status_code == 202, "the log to be free")


def test_where_keys_are_required_nobody_comes_without_one(tmp_path: Path) -> None:
    with running(tmp_path, require_keys=True) as broker:
        with broker.client(broker.key()) as client:
            client.declare("stock", {"vol": "bigint"})
            client.publish("stock", [{"vol": 1}])
        assert post(broker, b'{"vol": 1}').status_code == 401
