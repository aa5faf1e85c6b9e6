"""Tickets: what opens a subscription, and that everything else gets one and the same answer."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest
from tests.broker.running import Running

from headgate.broker.client import Subscribed

CALLS = [
    ("GET", "", None),
    ("PUT", "/validity", {}),
    ("DELETE", "", None),
    ("GET", "/notifications", None),
    ("GET", "/events", None),
    ("POST", "/acknowledgements", {"until": 1}),
    ("GET", "/letters", None),
    ("POST", "/redelivery", None),
]


def made(broker: Running, **more: Any) -> Subscribed:
    with broker.client() as client:
        return client.subscribe("vol > 1", stream="stock", **more)


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_a_ticket_that_is_wrong_expired_revoked_or_of_another_is_refused_alike(
    broker: Running, method: str, path: str, body: Any
) -> None:
    mine, other, gone, old = made(broker), made(broker), made(broker), made(broker)
    with broker.client() as client:
        client.unsubscribe(gone.id, gone.ticket)
    broker.broker.tickets.renew(old.id, 1.0)
    attempts = [
        (mine.id, "hgt_wrong"),
        (mine.id, other.ticket),
        (mine.id, ""),
        (gone.id, gone.ticket),
        (old.id, old.ticket),
        ("s-that-never-was", mine.ticket),
    ]
    answers = []
    with broker.http() as http:
        for id, ticket in attempts:
            headers = {"Authorization": f"Bearer {ticket}"} if ticket else {}
            answer = http.request(method, f"/v1/subscriptions/{id}{path}", json=body, headers=headers)
            answers.append((answer.status_code, answer.json()))
    assert len({repr(a) for a in answers}) == 1
    assert answers[0][0] == 403
    assert answers[0][1]["detail"] == "this ticket does not open this subscription"


def test_every_proof_costs_one_hash_and_one_comparison(broker: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = made(broker), made(broker)
    counted: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def compare(a: str, b: str) -> bool:
        counted.append((len(a), len(b)))
        return real(a, b)

    hashed: list[int] = []
    real_new = hmac.new

    def new(*given: Any, **more: Any) -> Any:
        hashed.append(1)
        return real_new(*given, **more)

    monkeypatch.setattr("headgate.store.tickets.hmac.compare_digest", compare)
    monkeypatch.setattr("headgate.store.tickets.hmac.new", new)
    tickets = broker.broker.tickets
    for id, ticket in (
        (mine.id, mine.ticket),
        (mine.id, "x"),
        (mine.id, other.ticket),
        ("never", "x"),
        (mine.id, None),
    ):
        counted.clear()
        hashed.clear()
        tickets.proven(id, ticket, 0.0)
        assert counted == [(hashlib.sha256().digest_size * 2,) * 2]
        assert len(hashed) == 1


def test_what_others_subscribe_to_is_not_shown_in_a_trial(broker: Running) -> None:
    mine = made(broker)
    made(broker)
    with broker.http() as http:
        answer = http.post(
            "/v1/try",
            json={"stream": "stock", "event": {"vol": 0}},
            headers={"Headgate-Tickets": f"{mine.id}:{mine.ticket}"},
        )
    (verdict,) = answer.json()["verdicts"]
    assert (verdict["id"], verdict["matched"], verdict["blocking"]) == (mine.id, False, ["vol > 1"])


def test_a_signed_message_of_a_stranger_is_refused(broker: Running) -> None:
    with broker.http() as http:
        for header in ("", "t=1,v1=00", "t=x", "t=99999999999999999999,v1=0"):
            answer = http.post("/v1/links/hello", json={"name": "x"}, headers={"Headgate-Link": header})
            assert answer.status_code == 403
