"""`headgate serve` with its Spark query: what is published is matched there; a query that dies is started again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.broker.processes import PATIENCE_S, Process
from tests.broker.running import until

import headgate as hg

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
STOCK = {"name": "string", "vol": "bigint"}


def test_events_are_matched_on_spark_and_a_query_that_dies_loses_nothing(tmp_path: Path) -> None:
    broker = Process("spark", tmp_path / "data", engine="spark")
    broker.start()
    try:
        broker.wait()
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
        pid = broker.query()
        assert broker.end() == 0
        assert (
            pid is None
            or not Path(f"/proc/{pid}/status").exists()
            or "zombie" in Path(f"/proc/{pid}/status").read_text()
        )
    finally:
        if broker.child is not None and broker.child.poll() is None:
            broker.kill()
