"""`headgate serve` with its Spark query: what is published is matched there; a query that dies is started again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.broker.processes import PATIENCE_S, Process
from tests.broker.running import until

import headgate as hg

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
STOCK = {"name": "string", "vol": "bigint"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    made = Process("spark", tmp_path_factory.mktemp("spark") / "data", engine="spark")
    made.start()
    try:
        made.wait()
        yield made
    finally:
        if made.child is not None and made.child.poll() is None:
            made.kill()


def test_events_are_matched_on_spark_and_a_query_that_dies_loses_nothing(broker: Process) -> None:
    book = hg.Subscriptions().stream("stock", STOCK)
    with broker.client() as client:
        client.declare("stock", STOCK)
        mine = {}
        for low in range(10):
            text = f"vol >= {low * 10} AND name <> 'x'"
            made = client.subscribe(text, stream="stock")
            mine[made.id] = made
            book.add(made.id, text, on="stock")
        events = [{"name": "xyz"[n % 3], "vol": n} for n in range(120)]
        client.publish("stock", events[:60])
        first = next(iter(mine.values()))
        until(lambda: len(client.pull(first.id, first.ticket, limit=1000)) == 40, "the first", PATIENCE_S)
        pid = broker.query()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        client.publish("stock", events[60:90])
        # A stream that is declared while the query runs, or while it does not, is matched too.
        client.declare("news", {"headline": "string"})
        news = client.subscribe("headline CONTAINS 'profit'", stream="news")
        client.publish("news", [{"headline": "profit warning"}])
        client.publish("stock", events[90:])
        expected = book.compile().match({"stock": events}).to_pylist()
        until(
            lambda: sum(len(client.pull(m.id, m.ticket, limit=1000)) for m in mine.values()) >= len(expected),
            "every notification",
            PATIENCE_S,
        )
        found = [
            (n["subscription"], n["data"]["vol"])
            for m in mine.values()
            for n in client.pull(m.id, m.ticket, limit=1000)
        ]
        assert sorted(found) == sorted((m["subscription"], m["event"]) for m in expected)
        until(lambda: client.pull(news.id, news.ticket), "the news", PATIENCE_S)


def test_a_sequence_is_matched_by_a_query_of_its_own_also_after_that_has_died(broker: Process) -> None:
    with broker.client() as client:
        client.declare("trade", {"name": "string", "price": "double", "at": "timestamp"}, "at")
        text = "SELECT a.name AS name, b.price AS price FROM trade AS a NEXT {$2.name = $1.name} trade AS b"
        client.publish("trade", [trade("x", 0.0)])
        mine = client.subscribe(text, stream="trade")
        client.publish("trade", [trade("x", 1.0), trade("y", 2.0)])
        client.publish("trade", [trade("x", 3.0)])
        (note,) = until(lambda: client.pull(mine.id, mine.ticket), "the sequence", PATIENCE_S)
        assert note["output"] == {"name": "x", "price": 3.0}
        pid = broker.query()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        client.publish(
            "trade", [trade("y", 4.0), trade("x", 5.0), {"name": "x", "price": 6.0, "at": "2999-01-01T00:00:00Z"}]
        )
        until(lambda: len(client.pull(mine.id, mine.ticket)) >= 3, "the sequences after the kill", PATIENCE_S)
        client.publish("trade", [trade("y", 7.0)])
        until(lambda: len(client.pull(mine.id, mine.ticket)) >= 4, "time is not that of the wrong clock", PATIENCE_S)
        found = [(n["output"]["name"], n["output"]["price"]) for n in client.pull(mine.id, mine.ticket)]
        assert sorted(found) == [("x", 3.0), ("x", 5.0), ("y", 4.0), ("y", 7.0)]
    with urlopen(f"{broker.url}/metrics", timeout=30) as answer:  # noqa: S310 - our own address
        assert b"sequences_watermark_delay_seconds" in answer.read()


def trade(name: str, price: float) -> dict[str, object]:
    return {"name": name, "price": price, "at": datetime.now(UTC).isoformat()}


def test_the_query_ends_with_the_broker(broker: Process) -> None:
    pid = broker.query()
    assert pid is not None
    assert broker.end() == 0
    status = Path(f"/proc/{pid}/status")
    assert not status.exists() or "zombie" in status.read_text()
