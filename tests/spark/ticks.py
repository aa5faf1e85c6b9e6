"""Events and a book that the Spark tests share, and the matches that the engine finds in process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import headgate as hg
from headgate.events import decode

SCHEMA = """id string, name string, price double, vol bigint, venue struct<city: string, tier: int>,
            tags array<string>, extra map<string, string>"""
Match = tuple[str, Any, str]


def book() -> hg.Subscriptions:
    subs = hg.Subscriptions()
    subs.stream(
        "stock",
        {
            "name": "string",
            "price": "double",
            "vol": "bigint",
            "venue.city": "string",
            "venue.tier": "bigint",
            "tags": "array<string>",
            "extra.desk": "string",
        },
    )
    subs.add("cheap", "name = 'IBM' AND price < 100", labels={"owner": "desk 4"})
    subs.add("large", "vol > 5000 OR price > 150")
    subs.add("frankfurt", "venue.city = 'Frankfurt' AND NOT venue.tier = 2")
    subs.add("hot", "tags = 'hot'")
    subs.add("desk", "extra.desk = 'A' AND price BETWEEN 20 AND 120")
    subs.add("strict", "name = 'SAP' OR vol < 100", missing="strict")
    for n in range(20):
        subs.add(f"band{n}", f"price >= {n * 10} AND price < {n * 10 + 5} AND vol % 2 = {n % 2}")
    return subs


def ticks(count: int, seed: int = 7) -> list[dict[str, Any]]:
    rng = random.Random(seed)

    def one(i: int) -> dict[str, Any]:
        return {
            "id": f"e{i}",
            "name": rng.choice(["IBM", "SAP", "ACME", None]),
            "price": rng.choice([None, round(rng.uniform(0, 200), 2)]),
            "vol": rng.choice([None, rng.randrange(10_000)]),
            "venue": rng.choice([None, {"city": rng.choice(["Frankfurt", "Oslo", None]), "tier": rng.randrange(3)}]),
            "tags": rng.choice([None, [], ["hot"], ["cold", "hot"], ["cold"]]),
            "extra": rng.choice([None, {}, {"desk": "A"}, {"desk": "B", "x": "y"}]),
        }

    return [one(i) for i in range(count)]


def frame(spark: SparkSession, events: Sequence[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(e.values()) for e in events], SCHEMA)


def expected(subs: hg.Subscriptions, events: Sequence[dict[str, Any]], stream: str = "stock") -> set[Match]:
    """(match id, event id, subscription) as `plan.match` gives them in this process, by the ids of the events."""
    plan = subs.compile()
    decoded = decode([{k: v for k, v in e.items() if k != "id"} for e in events], plan.schemas[stream])
    ids = [events[int(row)]["id"] for row in decoded.rows]
    columns = replace(decoded.columns, identity=pa.array([str(i) for i in ids]))
    table = plan.match({stream: columns})
    return {(r["id"], ids[r["event"]], r["subscription"]) for r in table.to_pylist()}


def found(df: DataFrame) -> set[Match]:
    """The same of a frame, which must not hold a match twice."""
    rows = [(r["id"], r["event"], r["subscription"]) for r in df.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)
