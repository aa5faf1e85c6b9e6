"""The feed of several subscriptions: every notification once and in order, whoever else listens, reads slowly or is dead."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.broker.conftest import declare
from tests.broker.running import Running, running, until

from headgate.broker.client import Subscribed
from headgate.broker.hub import Connection
from headgate.store.logs import Notice


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as made:
        declare(made)
        yield made


class Listener:
    """A raw connection to /v1/feed, read as a stranger's program would."""

    def __init__(self, broker: Running, mine: Sequence[Subscribed], since: int | None = None) -> None:
        at = urlsplit(broker.url)
        tickets = ", ".join(f"{one.id}:{one.ticket}" for one in mine)
        resume = "" if since is None else f"Last-Event-ID: {since}\r\n"
        self._socket = socket.create_connection((at.hostname, at.port), timeout=60)
        head = f"GET /v1/feed HTTP/1.1\r\nHost: {at.netloc}\r\nHeadgate-Tickets: {tickets}\r\n{resume}\r\n"
        self._socket.sendall(head.encode())
        self._rest = b""
        self.notes: list[dict[str, Any]] = []

    def read(self, count: int, step: int = 1 << 16) -> list[dict[str, Any]]:
        """Read until there are so many notifications."""
        while len(self.notes) < count:
            part = self._socket.recv(step)
            assert part, f"the feed ended after {len(self.notes)} of {count}"
            *lines, self._rest = (self._rest + part).split(b"\n")
            self.notes += [json.loads(line[6:]) for line in lines if line.startswith(b'data: {"seq"')]
        return self.notes

    def close(self) -> None:
        self._socket.close()


def keys(notes: Sequence[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((note["subscription"], note["data"]["vol"]) for note in notes)


def subscribe(broker: Running, count: int) -> list[Subscribed]:
    with broker.client() as client:
        return client.subscribe_all([{"text": f"vol > -{n + 1}", "stream": "stock"} for n in range(count)])


def every(mine: Sequence[Subscribed], vols: range) -> Counter[tuple[str, int]]:
    return Counter((one.id, vol) for one in mine for vol in vols)


def test_a_feed_of_two_subscriptions_has_what_matches_both(fresh: Running) -> None:
    mine = subscribe(fresh, 2)
    listener = Listener(fresh, mine)
    until(lambda: len(fresh.broker.hub) == 1, "the connection")
    with fresh.client() as client:
        client.publish("stock", [{"vol": n} for n in range(10)])
    assert keys(listener.read(20)) == every(mine, range(10))
    listener.close()


def test_a_feed_of_two_subscriptions_keeps_up_with_many_small_publications(fresh: Running) -> None:
    mine = subscribe(fresh, 2)
    listener = Listener(fresh, mine)
    until(lambda: len(fresh.broker.hub) == 1, "the connection")
    with fresh.client() as client:
        for n in range(0, 2000, 10):
            client.publish("stock", [{"vol": vol} for vol in range(n, n + 10)])
    notes = listener.read(4000)
    assert keys(notes) == every(mine, range(2000))
    assert [n["seq"] for n in notes] == sorted(n["seq"] for n in notes)
    listener.close()


def test_a_feed_of_fifty_subscriptions_is_whole_beside_slow_and_dead_readers(fresh: Running) -> None:
    mine = subscribe(fresh, 50)
    dead = [Listener(fresh, mine) for _ in range(5)]
    slow = Listener(fresh, mine)
    live = Listener(fresh, mine)
    breaking = Listener(fresh, mine)
    until(lambda: len(fresh.broker.hub) == 8, "the connections")
    threads = [
        threading.Thread(target=slow.read, args=(50 * 400, 2000), daemon=True),
        threading.Thread(target=live.read, args=(50 * 400,), daemon=True),
        threading.Thread(target=breaking.read, args=(1000,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    with fresh.client() as client:
        for n in range(0, 400, 20):
            client.publish("stock", [{"vol": vol, "name": "x" * 1000} for vol in range(n, n + 20)])
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    breaking.close()
    resumed = Listener(fresh, mine, since=breaking.notes[-1]["seq"])
    resumed.read(50 * 400 - len(breaking.notes))
    assert keys(live.notes) == every(mine, range(400))
    assert keys(slow.notes) == every(mine, range(400))
    assert keys([*breaking.notes, *resumed.notes]) == every(mine, range(400))
    late = dead[0].read(50 * 400)
    assert keys(late) == every(mine, range(400)), "one that was dead for long has missed nothing"
    for listener in [*dead, slow, live, resumed]:
        listener.close()
    until(lambda: len(fresh.broker.hub) == 0, "the connections to be gone")


def test_a_feed_outlives_one_of_its_subscriptions(fresh: Running) -> None:
    first, second = subscribe(fresh, 2)
    listener = Listener(fresh, [first, second])
    until(lambda: len(fresh.broker.hub) == 1, "the connection")
    with fresh.client() as client:
        client.publish("stock", [{"vol": 1}])
        listener.read(2)
        client.unsubscribe(first.id, first.ticket)
        client.publish("stock", [{"vol": 2}])
    assert keys(listener.read(3)[2:]) == every([second], range(2, 3))
    listener.close()


def test_a_connection_that_breaks_before_the_first_notification_resumes_where_it_began(fresh: Running) -> None:
    (mine,) = subscribe(fresh, 1)
    with fresh.client() as client:
        client.publish("stock", [{"vol": 1}])
        until(lambda: fresh.broker.tail.seq == 1, "the notification")
        with (
            fresh.http() as http,
            http.stream("GET", "/v1/feed", headers={"Headgate-Tickets": f"{mine.id}:{mine.ticket}"}) as feed,
        ):
            began = next(line for line in feed.iter_lines() if line.startswith("id: "))
        client.publish("stock", [{"vol": 2}])
    listener = Listener(fresh, [mine], since=int(began[4:]))
    assert [note["data"]["vol"] for note in listener.read(1)] == [2]
    listener.close()


def test_pages_and_queues_of_large_events_are_small() -> None:
    notices = [Notice(n + 1, "", "", "", "s", None, 0.0, "x" * 1_000_000, None, None, None) for n in range(150)]

    async def listen() -> list[list[Notice]]:
        since = 0
        connection = Connection(since, [], lambda seq, most: notices[seq : seq + 1])
        pages = connection.pages()
        found = [await anext(pages)]
        for notice in notices[1:]:
            connection.put([notice])
        assert connection.queued <= 4_000_000
        while len(found) < 150:
            found.append(await anext(pages))
        return found

    pages = asyncio.run(listen())
    assert [notice.seq for page in pages for notice in page] == list(range(1, 151))
    assert max(map(len, pages)) == 1


def test_a_page_of_the_log_is_bounded_by_size(fresh: Running) -> None:
    mine = subscribe(fresh, 2)
    with fresh.client() as client:
        for vol in range(4):
            client.publish("stock", [{"vol": vol, "name": "x" * 900_000}])
        until(lambda: fresh.broker.store.logs.last_notification() == 8, "the notifications")
        logs, names = fresh.broker.store.logs, [one.id for one in mine]
        assert len(logs.notices_of(names, 0, 1000)) == 1
        assert logs.until(0, 1000, size=2_000_000) == 2
        assert logs.until(0, 1000, size=1) == 1
        pulled, since = [], 0
        while page := client.pull(mine[0].id, mine[0].ticket, since=since, limit=1000):
            pulled += page
            since = page[-1]["seq"]
    assert [note["data"]["vol"] for note in pulled] == [0, 1, 2, 3]


def test_a_connection_that_does_not_read_for_long_is_closed(tmp_path: Path) -> None:
    with running(tmp_path, stall_seconds=0.5) as broker:
        declare(broker)
        mine = subscribe(broker, 1)
        dead = Listener(broker, mine)
        until(lambda: len(broker.broker.hub) == 1, "the connection")
        with broker.client() as client:
            for vol in range(20):
                client.publish("stock", [{"vol": vol, "name": "x" * 900_000}])
        until(lambda: len(broker.broker.hub) == 0, "the end of the connection")
        dead.close()
        resumed = Listener(broker, mine, since=0)
        assert keys(resumed.read(20)) == every(mine, range(20)), "its notifications wait for it"
        resumed.close()


def test_a_client_that_listens_takes_line_separators_in_a_text_for_text(fresh: Running) -> None:
    (mine,) = subscribe(fresh, 1)
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    with fresh.client() as client:
        client.publish("stock", [{"vol": 1, "name": text, "big": 1 << 70}])
        note = next(client.listen(mine.id, mine.ticket, since=0))
    assert note["data"] == {"vol": 1, "name": text, "big": 1 << 70}
