"""The life of a subscription, on both databases: subscribe, be notified, renew, unsubscribe, expire."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.broker.running import Running, running, until

from headgate.broker.client import BrokerError
from headgate.store.shared import Shared


def test_who_subscribes_gets_what_matches_and_nothing_else(both: Running) -> None:
    with both.client() as client:
        cheap = client.subscribe("name = 'IBM' AND price < 100", stream="stock", name="cheap")
        other = client.subscribe("name = 'SAP'", stream="stock")
        client.publish("stock", [{"name": "IBM", "price": 98.5}, {"name": "IBM", "price": 120.0}])
        (note,) = until(lambda: client.pull(cheap.id, cheap.ticket), "the notification")
        assert note["data"] == {"name": "IBM", "price": 98.5}
        assert note["subscription"] == cheap.id
        until(lambda: both.broker.publisher.pending == 0, "matching")
        assert client.pull(other.id, other.ticket) == []


def test_pulling_again_gives_again_what_was_not_acknowledged(both: Running) -> None:
    with both.client() as client:
        mine = client.subscribe("vol > 10", stream="stock")
        client.publish("stock", [{"vol": v} for v in (5, 11, 12, 13)])
        until(lambda: len(client.pull(mine.id, mine.ticket)) == 3, "three notifications")
        first = client.pull(mine.id, mine.ticket, limit=2)
        assert [n["data"]["vol"] for n in first] == [11, 12]
        assert client.pull(mine.id, mine.ticket, limit=2) == first
        client.acknowledge(mine.id, mine.ticket, first[-1]["seq"])
        assert [n["data"]["vol"] for n in client.pull(mine.id, mine.ticket)] == [13]


def test_after_unsubscribing_the_ticket_opens_nothing(both: Running) -> None:
    with both.client() as client:
        mine = client.subscribe("vol > 10", stream="stock")
        client.unsubscribe(mine.id, mine.ticket)
        for call in (client.pull, client.unsubscribe, client.renew, client.subscription):
            with pytest.raises(BrokerError, match="this ticket does not open this subscription") as refused:
                call(mine.id, mine.ticket)
            assert refused.value.status == 403
        client.publish("stock", [{"vol": 20}])
        until(lambda: both.broker.publisher.pending == 0, "matching")
        assert both.broker.store.logs.last_notification() == 0


def test_a_subscription_expires_unless_it_is_renewed(both: Running) -> None:
    with both.client() as client:
        short = client.subscribe("vol > 10", stream="stock", validity=0.5)
        longer = client.subscribe("vol > 10", stream="stock", validity=0.5)
        assert client.renew(longer.id, longer.ticket, 3600) > time.time() + 3000
        until(lambda: both.broker.tickets.find(short.id).state == "expired", "the expiry")  # type: ignore[union-attr]  # it is kept for a while
        assert list(both.broker.store.book()) == [longer.id]
        with pytest.raises(BrokerError) as refused:
            client.renew(short.id, short.ticket)
        assert refused.value.status == 403


def test_the_default_validity_is_one_day(both: Running) -> None:
    with both.client() as client:
        assert client.subscribe("vol > 1", stream="stock").expires == pytest.approx(time.time() + 86_400, abs=60)


def test_a_bad_subscription_is_refused_with_the_languages_own_error(both: Running) -> None:
    with both.client() as client:
        with pytest.raises(BrokerError, match="BIGINT cannot be compared with STRING") as refused:
            client.subscribe("name > 5", stream="stock")
        assert refused.value.status == 422
        (problem,) = refused.value.problem["problems"]
        assert problem["caret"] == "name > 5\n       ^"
        with pytest.raises(BrokerError, match="prize") as refused:
            client.subscribe_all([{"text": "price > 5", "stream": "stock"}, {"text": "prize > 5", "stream": "stock"}])
        assert len(both.broker.store) == 0
        assert both.broker.tickets.count() == 0


def test_only_the_hash_of_a_ticket_is_in_the_store(both: Running) -> None:
    with both.client() as client:
        mine = client.subscribe("vol > 10", stream="stock")
    row = both.broker.tickets.find(mine.id)
    assert row is not None
    assert mine.ticket not in repr(row)
    assert row.hash == both.broker.tickets.hash(mine.id, mine.ticket)


def test_one_lists_ones_own_by_key_and_by_ticket(both: Running) -> None:
    key = both.key()
    with both.client(key) as mine, both.client() as anybody:
        made = {mine.subscribe("vol > 1", stream="stock").id for _ in range(3)}
        foreign = anybody.subscribe("vol > 2", stream="stock")
        assert {s["id"] for s in mine.subscriptions()} == made
        assert [s["id"] for s in anybody.subscriptions({foreign.id: foreign.ticket})] == [foreign.id]
        assert list(anybody.subscriptions({foreign.id: "hgt_wrong", "x": foreign.ticket})) == []
        with both.http(headers={"Headgate-Key": key}) as http:
            page = http.get("/v1/subscriptions?limit=2").json()
            rest = http.get(f"/v1/subscriptions?limit=2&after={page['next']}").json()
        assert {s["id"] for s in page["subscriptions"] + rest["subscriptions"]} == made
        assert rest["next"] is None


def test_what_is_declared_later_is_matched_too(both: Running) -> None:
    with both.client() as client:
        client.declare("news", {"headline": "string"})
        mine = client.subscribe("headline CONTAINS 'profit'", stream="news")
        client.publish("news", [{"headline": "a profit warning"}])
        assert until(lambda: client.pull(mine.id, mine.ticket), "the notification")


def test_an_event_that_cannot_be_used_is_on_the_error_log(both: Running) -> None:
    with both.client() as client:
        client.subscribe("vol > 1", stream="stock")
        client.publish("stock", [{"vol": "many"}])
        (problem,) = until(both.broker.store.logs.errors, "the error")
        assert problem.text == '{"vol":"many"}'


def test_a_sequence_is_refused_where_matching_keeps_no_state(tmp_path: Path) -> None:
    text = "SELECT * FROM stock AS a NEXT {$2.name = $1.name} stock AS b"
    with running(tmp_path, engine="none", master="sc://elsewhere") as made, made.client() as client:
        client.declare("stock", {"name": "string"})
        with pytest.raises(BrokerError, match="this broker's matching keeps no state") as refused:
            client.subscribe(text, stream="stock")
    assert refused.value.status == 422


def test_a_sequence_needs_events_that_say_when_they_happened_and_begins_with_the_next_one(tmp_path: Path) -> None:
    text = "SELECT * FROM {0} AS a NEXT {{$2.name = $1.name}} {0} AS b"
    with running(tmp_path, engine="none") as made, made.client() as client:
        shared = Shared(made.broker.store.database)
        with pytest.raises(BrokerError, match="nowhere, whose events do not say when they happened"):
            client.subscribe("SELECT * FROM nowhere AS a NEXT {$2.vol > 1} nowhere AS b")
        client.declare("ticks", {"name": "string", "at": "bigint"}, "at")
        client.declare("trade", {"name": "string", "at": "timestamp"}, "at")
        with pytest.raises(BrokerError, match="ticks, whose events do not say when they happened"):
            client.subscribe(text.format("ticks"), stream="ticks")
        assert shared.sequences() is None, "nothing of it was written"
        _, last = client.publish("trade", [{"name": "x", "at": "2026-01-01T00:00:00Z"}])
        client.subscribe(text.format("trade"), stream="trade")
        assert shared.sequences() == last
        made_of = "SELECT a.name AS name FROM trade AS a NEXT {$2.name = $1.name} trade AS b PUBLISH pairs"
        client.subscribe(made_of, stream="trade")
        client.subscribe("SELECT * FROM pairs AS a NEXT {$2.name = $1.name} pairs AS b")
