"""Messages between brokers, as a stranger on the wire or a neighbour that is away would meet them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.broker.conftest import declare
from tests.broker.running import Running, running, until

from headgate.broker.delivery.webhook import signature

KEY = b"the key of a network in the tests"


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, link_key=KEY, events_kept=0.0) as made:
        declare(made)
        yield made


def signed(path: str, message: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    body = orjson.dumps(message)
    return body, {"Headgate-Link": signature(KEY, b"%s.%s" % (path.encode(), body), int(time.time()))}


def told(number: int, *texts: str, epoch: str = "e") -> dict[str, Any]:
    wanted = [{"name": f"far/{t}", "stream": "stock", "text": t, "missing": "null"} for t in texts]
    return {"epoch": epoch, "number": number, "whole": True, "set": wanted, "unset": [], "streams": {}}


def subscribed(broker: Running) -> set[str]:
    book = broker.broker.store.book()
    return {book[name].text for name in book}


def test_a_message_that_somebody_sends_again_is_refused(linked: Running) -> None:
    path = "/v1/links/far/subscriptions"
    body, headers = signed(path, told(1, "vol > 1"))
    with linked.http() as http:
        assert http.post(path, content=body, headers=headers).status_code == 200
        again = http.post(path, content=body, headers=headers)
    assert (again.status_code, again.json()["detail"]) == (403, "this message came before")


def test_a_whole_that_is_older_than_what_is_known_changes_nothing(linked: Running) -> None:
    path = "/v1/links/far/subscriptions"
    with linked.http() as http:
        for message in (told(4, "vol > 1"), told(5, "vol > 2"), {**told(4, "vol > 1"), "nonce": "other"}):
            body, headers = signed(path, message)
            assert http.post(path, content=body, headers=headers).status_code == 200
    assert subscribed(linked) == {"vol > 2"}


def test_events_are_kept_for_a_neighbour_that_is_away(linked: Running) -> None:
    path = "/v1/links/far/subscriptions"
    body, headers = signed(path, told(1, "vol > 1"))
    with linked.http() as http, linked.client() as client:
        assert http.post(path, content=body, headers=headers).status_code == 200
        first, last = client.publish("stock", [{"vol": 0}, {"vol": 2}, {"vol": 3}, {"vol": 0}])
        until(lambda: linked.broker.store.logs.last_notification() == 2, "the matches")
    linked.broker._sweep()
    kept = [e.id for e in linked.broker.store.logs.events(0, last)]
    assert kept == list(range(first + 1, last + 1)), "from the first on that the neighbour has not taken"
