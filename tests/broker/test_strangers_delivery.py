"""Delivery among strangers: slow hooks and names, broken redirects, clocks that are set, quotas and caps."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import declare
from tests.broker.running import Running, running, until
from tests.broker.test_delivery import hooked, publish, receiving

from headgate.broker.client import Subscribed
from headgate.broker.clock import WallClock
from headgate.broker.delivery import webhook
from headgate.broker.delivery.slots import FairSlots
from headgate.broker.throttle import Interval, MinuteCounts
from headgate.store.logs import Notice


@contextmanager
def silent() -> Iterator[str]:
    """A webhook that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=500) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"


def test_a_hundred_silent_webhooks_hold_up_nobody_else(tmp_path: Path) -> None:
    with running(tmp_path, allow_private=True, hook_seconds=30.0) as broker, silent() as url, receiving() as receiver:
        declare(broker)
        with broker.client() as client:
            hostile = {"text": "vol > 0", "stream": "stock", "delivery": {"kind": "webhook", "url": url}}
            client.subscribe_all([hostile] * 100)
            key = broker.key()
        publish(broker, 1)
        until(lambda: len(broker.broker.pusher) == 100, "the silent ones to be called")
        began = time.monotonic()
        with broker.client(key) as client:
            client.subscribe("vol > 1", stream="stock", delivery={"kind": "webhook", "url": receiver.url})
        publish(broker, 2)
        until(lambda: receiver.got, "the call")
        assert time.monotonic() - began < 25, "no silent one had to be given up first"


def test_slots_go_to_who_holds_the_fewest() -> None:
    order: list[str] = []

    async def hold(slots: FairSlots, owner: str, until: asyncio.Event) -> None:
        async with slots.held(owner):
            order.append(owner)
            await until.wait()

    async def crowd() -> None:
        slots, done = FairSlots(3, 2), asyncio.Event()
        tasks = [asyncio.create_task(hold(slots, "many", done)) for _ in range(10)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(hold(slots, "few", done))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == ["many", "many", "few"]
        tasks[5].cancel()
        done.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order.count("many") == 9
        async with slots.held("many"), slots.held("many"), slots.held("few"):
            pass

    asyncio.run(crowd())


def test_a_name_that_is_looked_up_slowly_holds_up_nobody_else(broker: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    real, going = socket.getaddrinfo, threading.Event()

    def lookup(host: Any, *more: Any, **named: Any) -> Any:
        if str(host).endswith("slow.example"):
            going.wait(60)
            raise OSError("gone")
        return real(host, *more, **named)

    monkeypatch.setattr("headgate.broker.delivery.webhook.socket.getaddrinfo", lookup)
    try:
        with ThreadPoolExecutor(60) as pool, receiving() as receiver:
            slow = [pool.submit(refused, broker, f"http://{n}.slow.example/") for n in range(60)]
            began = time.monotonic()
            with broker.client(broker.key()) as client:
                mine = {"kind": "webhook", "url": receiver.url}
                client.subscribe("vol = 4242", stream="stock", delivery=mine)
            publish(broker, 4242)
            until(lambda: receiver.got, "the call")
            assert time.monotonic() - began < 30
            assert all("could not be looked up in time" in said.result() for said in slow)
    finally:
        going.set()


def refused(broker: Running, url: str) -> str:
    with broker.http() as http:
        body = {"text": "vol > 0", "stream": "stock", "delivery": {"kind": "webhook", "url": url}}
        answer = http.post("/v1/subscriptions", json=body, timeout=60)
        assert answer.status_code == 422, answer.text
        return str(answer.json()["detail"])


@pytest.mark.parametrize("where", ["http://[", "http://[::1", "//[", "http://a:b:c/"])
def test_a_redirect_to_nonsense_is_a_failure_like_any_other(broker: Running, where: str) -> None:
    with receiving(307, location=where) as receiver, broker.http() as http:
        mine = hooked(broker, receiver.url, "vol = 950")
        publish(broker, 950)
        proof = {"Authorization": f"Bearer {mine.ticket}"}
        ask = f"/v1/subscriptions/{mine.id}/letters"
        assert until(lambda: http.get(ask, headers=proof).json()["letters"], "the dead letter")


def test_a_signature_beyond_ascii_is_wrong_and_no_failure(broker: Running) -> None:
    assert not webhook.verify("key", b"{}", "t=1,v1=\u00e9\u20ac", 1.0)
    assert not webhook.verify("key", b"{}", "t=\u0663,v1=\udce9", 1.0)
    with broker.http() as http:
        answer = http.post("/v1/links/hello", json={"name": "x"}, headers={b"Headgate-Link": b"t=1,v1=\xe9"})
    assert answer.status_code == 403


def notice(at: float, seq: int = 1, published: float | None = None, name: str = "s") -> Notice:
    return Notice(seq, "", "", "", name, None, at, "{}", published, None, None)


def test_a_clock_that_is_set_back_drops_no_notification() -> None:
    rule = Interval("", 60.0)
    assert rule.passes(notice(1000.0), None)
    assert not rule.passes(notice(1059.0), 1000.0)
    assert rule.passes(notice(1060.0), 1000.0)
    assert rule.passes(notice(400.0), 1000.0), "the clock was set back"


def test_an_interval_holds_however_a_subscriber_pulls(broker: Running) -> None:
    with broker.client() as client:
        rule = {"kind": "pull", "key": "name", "interval": 3600}
        subscribed = [client.subscribe("vol > 7000 AND vol < 7100", stream="stock", delivery=rule) for _ in range(3)]
        at_once, one_by_one, acknowledging = subscribed
        publish(broker, 7001, 7002, name="a")
        publish(broker, 7003, 7004, name="b")
        publish(broker, 7005, name="a")
        publish(broker, 7006, name="c")
        until(lambda: pulled(broker, at_once, limit=100) == [7001, 7003, 7006], "the notifications")
        assert pulled(broker, at_once, limit=100) == [7001, 7003, 7006], "what is not acknowledged comes again"
        assert pulled(broker, one_by_one, limit=1) == [7001, 7003, 7006]
        assert pulled(broker, acknowledging, limit=1, acknowledge=True) == [7001, 7003, 7006]
        publish(broker, 7007, name="b")
        publish(broker, 7008, name="d")
        until(lambda: pulled(broker, one_by_one, limit=2) == [7001, 7003, 7006, 7008], "the last")
        until(lambda: pulled(broker, acknowledging, limit=2) == [7008], "what was not acknowledged")


def pulled(broker: Running, mine: Subscribed, limit: int, *, acknowledge: bool = False) -> list[int]:
    """What a subscriber gets who asks for so many until there is no more."""
    vols, since = [], None
    with broker.client() as client:
        while page := client.pull(mine.id, mine.ticket, since=since, limit=limit):
            vols += [note["data"]["vol"] for note in page]
            since = page[-1]["seq"]
            if acknowledge:
                client.acknowledge(mine.id, mine.ticket, since)
    return vols


def test_a_clock_that_jumps_is_believed_when_it_has_run_evenly_for_a_while() -> None:
    wall, steady = [1e9], [0.0]
    clock = WallClock(lambda: wall[0], lambda: steady[0], hold=60.0)

    def later(seconds: float, jump: float = 0.0) -> bool:
        steady[0] += seconds
        wall[0] += seconds + jump
        return clock.believable()

    assert later(1) and later(5000), "a long step of both is no jump"
    assert not later(1, jump=90_000)
    assert not later(5)
    assert not later(1, jump=-90_000)
    assert not later(59)
    assert later(1)


def test_a_clock_that_is_a_day_ahead_for_some_seconds_ends_no_subscription(
    broker: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    with broker.client() as client:
        mine = client.subscribe("vol > 0", stream="stock")
        until(broker.broker._clock.believable, "a clock that is believed", 90)
        turns = broker.broker.turns
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + 25 * 3600)
            until(lambda: broker.broker.turns >= turns + 3, "the house to be kept")
        until(lambda: broker.broker.turns >= turns + 5, "the house to be kept")
        assert client.subscription(mine.id, mine.ticket)["state"] == "active"


def test_a_letter_whose_notification_is_gone_is_no_success(broker: Running) -> None:
    with receiving(500, 500, 500, 200) as receiver, broker.http() as http:
        mine = hooked(broker, receiver.url, "vol = 960")
        publish(broker, 960, 961)
        proof = {"Authorization": f"Bearer {mine.ticket}"}
        ask = f"/v1/subscriptions/{mine.id}/letters"
        (letter,) = until(lambda: http.get(ask, headers=proof).json()["letters"], "the dead letter")
        broker.broker.store.database.execute("DELETE FROM notifications WHERE seq = ?", (letter["notification"],))
        done = http.post(f"/v1/subscriptions/{mine.id}/redelivery", headers=proof).json()
        assert done == {"delivered": 0, "failures": [f"notification {letter['notification']} is no longer kept"]}
        assert http.get(ask, headers=proof).json()["letters"] == []


def test_a_cap_counts_by_when_events_were_published_and_not_by_when_they_arrive() -> None:
    counts = MinuteCounts()
    hours_ago = [notice(1e9, seq, published=1e9 - 7200 + 30 * seq) for seq in range(200)]
    assert counts.add(hours_ago) == {"s": 2}
    assert counts.add([notice(1e9, seq, published=1e9) for seq in range(200)])["s"] >= 200


def test_every_alarm_of_ones_own_is_shown_however_many_others_there_are(broker: Running) -> None:
    key = broker.key()
    with broker.client(key) as client:
        mine = client.subscribe("vol > 0", stream="stock")
    for n in range(1001):
        broker.broker.outbox.alarm("somebody", "cap", f"{n}")
    broker.broker.outbox.alarm(mine.id, "cap", "too much")
    with broker.http() as http:
        for proof in ({"Headgate-Key": key}, {"Headgate-Tickets": f"{mine.id}:{mine.ticket}"}):
            alarms = http.get("/v1/alarms", headers=proof).json()["alarms"]
            assert [a["reason"] for a in alarms] == ["too much"]
        assert http.get("/v1/alarms").json()["alarms"] == []
        admin = {"Headgate-Key": broker.key(scopes=["admin"])}
        assert http.get("/v1/alarms", headers=admin).json()["alarms"][-1]["reason"] == "too much"


def test_publications_at_the_same_time_stay_within_a_quota(broker: Running) -> None:
    key = broker.key(quota=100)

    def put(_: int) -> int:
        with broker.http() as http:
            events = [{"vol": -1}] * 10
            return http.post("/v1/streams/stock/events", json=events, headers={"Headgate-Key": key}).status_code

    with ThreadPoolExecutor(30) as pool:
        statuses = list(pool.map(put, range(90)))
    assert (statuses.count(202), statuses.count(429)) == (10, 80)
