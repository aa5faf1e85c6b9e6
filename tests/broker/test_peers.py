"""Three and seven real brokers that know each other; one of them killed and started again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.broker.processes import PATIENCE_S, Process, network
from tests.broker.running import running, until

import headgate as hg
from headgate.broker.client import Subscribed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STOCK = {"name": "string", "price": "double"}


def told(broker: Process, peer: str) -> int:
    (found,) = [p for p in broker.stats()["peers"] if p["name"] == peer]
    return int(found["told"]) if found["level"] else -1


def number(broker: Process, name: str) -> int:
    text = httpx.get(f"{broker.url}/metrics", trust_env=False).text
    (found,) = [line.split(" ")[1] for line in text.splitlines() if line.startswith(f"headgate_broker_{name} ")]
    return int(found)


def prices(broker: Process, mine: Subscribed) -> list[float]:
    with broker.client() as client:
        return [n["data"]["price"] for n in client.pull(mine.id, mine.ticket, since=0, limit=1000)]


def acquainted(brokers: dict[str, Process]) -> Callable[[], bool]:
    """Whether what was subscribed anywhere is known everywhere: links keep the order, so a later subscription that nothing
    covers has reached a broker only if the earlier ones have. It is heard of by an event from each of the others."""
    marks: list[tuple[Process, Subscribed]] = []
    for number, broker in enumerate(brokers.values()):
        with broker.client() as client:
            marks.append((broker, client.subscribe(f"price = {-1 - number}", stream="stock")))

    def known() -> bool:
        silent: dict[str, list[dict[str, Any]]] = {}
        for number, (broker, mark) in enumerate(marks):
            with broker.client() as client:
                heard = {n["data"]["name"] for n in client.pull(mark.id, mark.ticket, since=0, limit=1000)}
            for name in brokers.keys() - heard:
                silent.setdefault(name, []).append({"name": name, "price": -1.0 - number})
        for name, events in silent.items():
            with brokers[name].client() as client:
                client.publish("stock", events)
        return not silent

    return known


def test_three_brokers_tell_what_is_not_covered_and_promote_what_was(tmp_path: Path) -> None:
    with network(tmp_path, {"a": [], "b": ["a"], "c": ["b"]}) as brokers:
        a, b, c = brokers.values()
        with a.client() as at_a, c.client() as at_c, b.client() as at_b:
            at_a.declare("stock", STOCK)
            wide = at_a.subscribe("price < 100", stream="stock")
            until(lambda: told(a, "b") == 1 and told(b, "c") == 1, "the wide one to be told", PATIENCE_S)
            narrow = at_a.subscribe("price < 50 AND name = 'IBM'", stream="stock")
            outside = at_a.subscribe("price > 500", stream="stock")
            until(lambda: told(a, "b") == 2 and told(b, "c") == 2, "what is not covered", PATIENCE_S)
            events = [{"name": "IBM", "price": p} for p in (10.0, 70.0, 200.0, 600.0)]
            at_c.publish("stock", events)
            until(lambda: prices(a, wide) == [10.0, 70.0], "the wide one", PATIENCE_S)
            until(lambda: prices(a, narrow) == [10.0] and prices(a, outside) == [600.0], "the others", PATIENCE_S)
            # What nobody wants there did not travel.
            assert number(a, "published_events_total") == 3
            at_a.unsubscribe(wide.id, wide.ticket)
            until(lambda: told(a, "b") == 2 and told(b, "c") == 2, "the narrow one in its place", PATIENCE_S)
            at_b.publish("stock", [{"name": "IBM", "price": 20.0}, {"name": "SAP", "price": 21.0}])
            until(lambda: prices(a, narrow) == [10.0, 20.0], "the promoted one", PATIENCE_S)
            c.kill()
            at_b.publish("stock", [{"name": "IBM", "price": 30.0}])
            late = at_b.subscribe("price = 40", stream="stock")
            c.start()
            c.wait()
            until(lambda: told(b, "c") == 3, "the restarted one to know all", PATIENCE_S)
            at_c.publish("stock", [{"name": "IBM", "price": 40.0}])
            until(lambda: prices(a, narrow) == [10.0, 20.0, 30.0, 40.0], "both ways", PATIENCE_S)
            until(lambda: prices(b, late) == [40.0], "the one in the middle", PATIENCE_S)
        assert [c.end(), b.end(), a.end()] == [0, 0, 0]


def test_seven_brokers_notify_as_one_would_while_one_is_killed(tmp_path: Path) -> None:
    tree: dict[str, list[str]] = {"r": [], "x": ["r"], "y": ["r"], "x1": ["x"], "x2": ["x"], "y1": ["y"], "y2": ["y"]}
    rng = random.Random(7)
    with network(tmp_path, tree) as brokers:
        with brokers["r"].client() as client:
            client.declare("stock", STOCK)
        whole = hg.Subscriptions().stream("stock", STOCK)
        made: dict[str, tuple[Process, Subscribed]] = {}
        for number in range(28):
            at = list(brokers.values())[number % 7]
            low = rng.randrange(0, 900)
            text = f"price BETWEEN {low} AND {low + rng.randrange(20, 300)}"
            with at.client() as client:
                mine = client.subscribe(text, stream="stock")
            made[mine.id] = (at, mine)
            whole.add(mine.id, text, on="stock")
        total = {name: sum(at.name != name for at, _ in made.values()) for name in brokers}

        until(acquainted(brokers), "subscriptions to be known everywhere", PATIENCE_S)
        published: list[dict[str, Any]] = []

        def publish(at: str) -> None:
            events = [{"name": "e", "price": float(rng.randrange(0, 1200))} for _ in range(10)]
            with brokers[at].client() as client:
                client.publish("stock", events)
            published.extend(events)

        for name in ("x1", "y2", "r", "x2"):
            publish(name)
        brokers["x"].kill()
        for name in ("x1", "y1", "r"):
            publish(name)
        brokers["x"].start()
        brokers["x"].wait()
        for name in ("x2", "y", "x"):
            publish(name)
        expected: dict[str, list[float]] = {id: [] for id in made}
        for row in whole.compile().match({"stock": published}).to_pylist():
            expected[row["subscription"]].append(published[row["event"]]["price"])
        assert sum(map(len, expected.values())) > 100

        def complete() -> bool:
            return all(len(prices(at, mine)) >= len(expected[id]) for id, (at, mine) in made.items())

        until(complete, "every notification", PATIENCE_S)
        for id, (at, mine) in made.items():
            assert sorted(prices(at, mine)) == sorted(expected[id])
        # Covering saved some of the telling.
        assert told(brokers["r"], "x") < total["x"]


def test_a_link_that_would_close_a_circle_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, link_key=b"a key of sixteen bytes") as broker:
        peers = broker.broker.peers
        message = {
            "epoch": "e",
            "number": 1,
            "whole": True,
            "set": [{"name": "z/s1", "stream": "stock", "text": "price > 1", "missing": "null"}],
            "unset": [],
            "streams": {},
        }

        def post(peer: str) -> Any:
            body = orjson.dumps(message)
            path = f"/v1/links/{peer}/subscriptions"
            with broker.http() as http:
                return http.post(
                    path, content=body, headers={"Headgate-Link": peers.sign(path, body, int(time.time()))}
                )

        assert post("b").status_code == 200
        refused = post("c")
        assert refused.status_code == 409
        assert refused.json()["detail"] == "z/s1 is known by another way: the links must form a tree"
