"""Sequences in the broker's own process: they match, and a kill at any moment loses nothing and doubles nothing."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.broker.processes import Process
from tests.broker.running import Running, running, until

from headgate.broker.client import Client
from headgate.store import Store
from headgate.store.shared import Shared

pytestmark = pytest.mark.timeout(300)
TRADE = {"name": "string", "price": "double", "at": "timestamp"}
PAIR = "SELECT a.price AS first, b.price AS second FROM trade AS a NEXT {$2.name = $1.name} trade AS b"


def trades(*given: tuple[str, float], after: float = 0.0) -> list[dict[str, Any]]:
    """Ten microseconds apart, from `after` seconds before now on."""
    first = datetime.now(UTC) - timedelta(seconds=after)
    return [
        {"name": name, "price": price, "at": (first + timedelta(microseconds=10 * i)).isoformat()}
        for i, (name, price) in enumerate(given)
    ]


def outputs(client: Client, mine: Any, count: int) -> list[dict[str, Any]]:
    got = until(lambda: n if len(n := client.pull(mine.id, mine.ticket)) >= count else [], f"{count} matches")
    return [n["output"] for n in got]


@pytest.fixture
def trading(both: Running) -> Running:
    with both.client() as client:
        client.declare("trade", TRADE, "at")
    return both


def test_a_sequence_matches_beside_a_filter(trading: Running) -> None:
    with trading.client() as client:
        pair = client.subscribe(PAIR, stream="trade")
        dear = client.subscribe("price > 2", stream="trade")
        client.publish("trade", trades(("x", 1.0), ("y", 3.0), ("x", 2.0)))
        assert outputs(client, pair, 1) == [{"first": 1.0, "second": 2.0}]
        assert len(outputs(client, dear, 1)) == 1


def test_an_absence_is_noticed_by_the_clock_alone(trading: Running) -> None:
    text = "SELECT a.name AS name FROM trade AS a ABSENT {$2.name = $1.name} trade AS b WITHIN 1 SECONDS"
    with trading.client() as client:
        mine = client.subscribe(text, stream="trade")
        client.publish("trade", trades(("lonely", 1.0)))
        assert outputs(client, mine, 1) == [{"name": "lonely"}]


def test_a_sequence_sees_no_event_that_was_published_before_it(trading: Running) -> None:
    with trading.client() as client:
        client.publish("trade", trades(("x", 1.0)))
        mine = client.subscribe(PAIR, stream="trade")
        client.publish("trade", trades(("x", 2.0), ("x", 3.0)))
        assert outputs(client, mine, 1) == [{"first": 2.0, "second": 3.0}]


def test_a_late_event_is_on_the_error_log(trading: Running) -> None:
    with trading.client() as client:
        client.subscribe(PAIR, stream="trade")
        client.publish("trade", trades(("x", 1.0)))
        shared = Shared(trading.broker.store.database)
        until(
            lambda: shared.progress() == trading.broker.store.logs.last() and trading.broker.watermark, "the watermark"
        )
        client.publish("trade", trades(("x", 2.0), after=3600))
        (problem,) = until(trading.broker.store.logs.errors, "the error")
        assert problem.code == "late" and "it is late by" in problem.reason


def test_runs_survive_a_broker_that_is_stopped_and_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as one, one.client() as client:
        client.declare("trade", TRADE, "at")
        mine = client.subscribe(PAIR, stream="trade")
        client.publish("trade", trades(("x", 1.0)))
        until(lambda: Shared(one.broker.store.database).progress() == one.broker.store.logs.last(), "matching")
        time.sleep(0.01)
    with running(tmp_path) as again, again.client() as client:
        client.publish("trade", trades(("x", 2.0)))
        assert outputs(client, mine, 1) == [{"first": 1.0, "second": 2.0}]


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    broker = Process("killed", tmp_path / "data")
    store = tmp_path / "data" / "broker.db"
    broker.start()
    try:
        broker.wait()
        with broker.client() as client:
            client.declare("trade", TRADE, "at")
            client.subscribe(PAIR, stream="trade")
        count = 0
        for turn in range(4):
            with broker.client() as client:
                for _ in range(5):
                    client.publish("trade", trades(*((f"n{i % 10}", float(count + i)) for i in range(50))))
                    count += 50
            if turn < 3:
                broker.kill()
                broker.start()
                broker.wait()
        until(lambda: len(Store(store).logs.notifications()) >= count - 10, f"{count - 10} matches", 120)
    finally:
        broker.kill()
    logs = Store(store).logs
    assert logs.errors() == []
    pairs = [json.loads(n.output or "") for n in logs.notifications()]
    assert sorted((p["first"], p["second"]) for p in pairs) == [(float(i), float(i + 10)) for i in range(count - 10)]
