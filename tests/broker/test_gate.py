"""The door: which hosts, origins and proxies are let in, and how much a request may send."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.broker.conftest import declare
from tests.broker.running import Running, running, until
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

EVENTS = "/v1/streams/stock/events"


def published(broker: Running, **headers: str) -> Any:
    with broker.http() as http:
        return http.post(EVENTS, content=b'{"vol": 1}', headers=headers)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1:1", "null", "http://localhost.evil.example"]
)
def test_a_page_of_another_site_cannot_publish(broker: Running, origin: str) -> None:
    since = broker.broker.store.logs.last()
    for kind in ({}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
        answer = published(broker, Origin=origin, **kind)
        assert (answer.status_code, answer.json()["code"]) == (403, "origin")
    assert broker.broker.store.logs.last() == since


def test_the_brokers_own_page_may_publish(broker: Running) -> None:
    assert published(broker, Origin=broker.url).status_code == 202


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "x"])
def test_a_name_that_is_not_the_brokers_is_refused(broker: Running, host: str) -> None:
    with broker.http() as http:
        for path in ("/", "/v1/streams", "/metrics", "/web/app.js"):
            answer = http.get(path, headers={"Host": host})
            assert (answer.status_code, answer.json()["code"]) == (421, "host"), path
    assert "--allow-host" in answer.json()["hint"]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:8080", "10.1.2.3:80", "known.example"]
)
def test_addresses_localhost_and_names_that_the_owner_gives_are_served(tmp_path: Path, host: str) -> None:
    with running(tmp_path, allow_hosts=("known.example",)) as broker, broker.http() as http:
        assert http.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_page_behind_a_proxy_with_tls_is_the_brokers_own(tmp_path: Path) -> None:
    with running(tmp_path, allow_hosts=("known.example",)) as broker, broker.http() as http:
        own = {"Host": "known.example", "Origin": "https://known.example"}
        assert http.get("/healthz", headers=own).status_code == 200


def test_a_socket_of_another_site_is_refused(broker: Running) -> None:
    at = f"{broker.url.replace('http', 'ws')}/v1/subscriptions/x/socket"
    with pytest.raises(InvalidStatus, match="403"):
        connect(at, origin=Origin("http://evil.example"))


@pytest.mark.parametrize(("trusted", "status"), [((), 429), (("127.0.0.1",), 202)])
def test_an_address_that_a_client_claims_is_believed_from_a_trusted_proxy_alone(
    tmp_path: Path, trusted: tuple[str, ...], status: int
) -> None:
    with running(tmp_path, anonymous_rate=0.01, trusted_proxies=trusted) as broker:
        declare(broker)
        assert published(broker, **{"X-Forwarded-For": "1.1.1.1"}).status_code == 202
        assert published(broker, **{"X-Forwarded-For": "2.2.2.2"}).status_code == status


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("closed"), require_keys=True) as made:
        yield made


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/streams", None),
        ("POST", "/v1/streams", {"name": "x", "attributes": {"a": "bigint"}}),
        ("GET", "/v1/stats", None),
        ("GET", "/v1/errors", None),
        ("GET", "/v1/alarms", None),
        ("POST", "/v1/check", {"text": "a > 1"}),
        ("POST", "/v1/try", {"event": {}}),
        ("POST", "/v1/picture", {"kind": "diagram", "text": "a > 1", "stream": "s"}),
        ("POST", "/v1/picture", {"kind": "cover"}),
        ("POST", "/v1/subscriptions", {"text": "a > 1", "stream": "s"}),
        ("GET", "/v1/subscriptions", None),
        ("GET", "/v1/feed", None),
    ],
)
def test_where_keys_are_required_every_door_asks_for_one(closed: Running, method: str, path: str, body: Any) -> None:
    with closed.http() as http:
        assert http.request(method, path, json=body).status_code == 401
        if path != "/v1/feed":
            key = {"Headgate-Key": closed.key(scopes=["publish", "subscribe"])}
            assert http.request(method, path, json=body, headers=key).status_code not in (401, 403)


def dribbled(size: int) -> Iterator[bytes]:
    yield b'{"text": "'
    for _ in range(size // 65536):
        yield b"x" * 65536
    yield b'"}'


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (EVENTS, "application/json; x=ndjson"),
        (EVENTS, "application/json; charset=jsonl"),
        ("/v1/check", "application/x-ndjson"),
        ("/v1/links/hello", "application/x-ndjson"),
    ],
)
def test_no_content_type_lifts_the_limit_of_a_body(broker: Running, path: str, kind: str) -> None:
    with broker.http() as http:
        for content in (dribbled(4 << 20), b"".join(dribbled(4 << 20))):
            answer = http.post(path, content=content, headers={"Content-Type": kind})
            assert answer.status_code == 413, answer.text


def test_bodies_that_are_too_large_together_are_put_off(tmp_path: Path) -> None:
    with running(tmp_path, bodies_bytes=3 << 20) as broker:
        declare(broker)
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(unfinished(broker, 1_400_000))
            until(lambda: published_large(broker).status_code == 503, "the third to be put off")
        until(lambda: published_large(broker).status_code == 202, "the first two to be gone")


@contextmanager
def unfinished(broker: Running, size: int) -> Iterator[None]:
    """A request that has sent so much of its body, and then waits."""
    at = urlsplit(broker.url)
    head = f"POST {EVENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {size + 100}\r\n\r\n".encode() + b" " * size)
        yield


def published_large(broker: Running) -> Any:
    with broker.http() as http:
        return http.post(EVENTS, json={"vol": 1, "name": "x" * 900_000})


def test_lines_may_be_longer_together_than_a_body_may_be(broker: Running) -> None:
    line = json.dumps({"vol": 1, "name": "x" * 1000}).encode() + b"\n"
    with broker.http() as http:
        kind = {"Content-Type": "application/x-ndjson"}
        answer = http.post(EVENTS, content=line * 2000, headers=kind)
    assert answer.json()["accepted"] == 2000
