"""Operators on Spark: they travel by name or by value, match as in process, and what they teach is shared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.spark.asked import near
from tests.spark.test_stream import lines, stream
from tests.spark.ticks import expected, found, frame, ticks

import headgate as hg
from headgate.operators import operator_pickling
from headgate.operators.statistics import Prior, Statistics
from headgate.spark import learned, match, start
from headgate.store import Store


def local() -> Any:
    """An operator that exists in no module: it travels by value."""

    @hg.operator(cost=1.0)
    def parts(event: Any, most: int, part: Any) -> Iterable[tuple[int]]:
        if event["vol"] is None:
            raise ValueError("no volume")
        return [(d,) for d in range(2, most) if event["vol"] % d == 0]

    return parts


def declared() -> dict[str, str]:
    return {"name": "string", "price": "double", "vol": "bigint"}


def subscriptions() -> dict[str, str]:
    return {
        "near": "near(20.0, 90.0) AND NOT name = 'SAP'",
        "far": "NOT near(20.0, 90.0) AND price > 0",
        "parts": "vol > 100 AND parts(5, ?part) AND ?part > 2",
        "both": "near(0.0, 50.0) OR name = 'IBM' AND vol > 10 AND parts(4, ?p)",
        "plain": "price > 100",
    }


def book() -> hg.Subscriptions:
    subs = hg.Subscriptions(operators=[near, local()]).stream("stock", declared())
    for name, text in subscriptions().items():
        subs.add(name, text)
    return subs


@pytest.mark.spark
def test_operators_match_on_spark_as_in_process_and_teach_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, subs = ticks(120), book()
    plans = tmp_path / "plans"
    df = match(frame(spark, events).repartition(2), subs, event_id="id", errors="raise", plans=str(plans))
    assert found(df) == expected(book(), events)
    outputs = {r["output"] for r in df.where("subscription = 'parts'").collect()}
    assert outputs == {'{"part":3}', '{"part":4}'}
    (file,) = plans.glob("*.learned")
    asked = learned.read(file).counts("near(20.0, 90.0)")
    assert asked[0] > 50
    # A second shipment of the same book takes part: the driver has never called the operator itself.
    learned._exchanges.clear()
    match(frame(spark, events), subs, event_id="id", plans=str(plans))
    assert subs.compile().context.engine.statistics.counts("near(20.0, 90.0)")[0] == pytest.approx(asked[0])


@pytest.mark.spark
def test_a_query_with_operators_matches_as_the_process_and_follows_its_book(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(tmp_path / "book.db", operators=[near, local()])
    store.stream("stock", declared())
    for name, text in subscriptions().items():
        store.add(name, text)
    events = ticks(60)
    where: Any = {"checkpoint": tmp_path / "c", "event_id": "id", "trigger": "available"}
    start(stream(spark, lines(tmp_path / "in", events[:30], 30)), store, **where).wait()
    store.add("late", "near(50.0, 60.0)")
    lines(tmp_path / "more", events[30:], 30, first=1)
    (tmp_path / "more" / "000001.json").replace(tmp_path / "in" / "000001.json")
    start(stream(spark, tmp_path / "in"), store, **where).wait()
    notified = {(n.id, n.event, n.subscription) for n in store.logs.notifications()}
    assert notified == expected(book(), events[:30]) | expected(book().add("late", "near(50.0, 60.0)"), events[30:])
    errors = [e for e in store.logs.errors() if "no volume" in e.reason]
    assert {json.dumps(e.event) for e in errors} <= {json.dumps(e["id"]) for e in events if e["vol"] is None}


@pytest.mark.spark
def test_an_operator_that_ends_its_process_costs_a_query_one_call(spark: SparkSession, tmp_path: Path) -> None:
    @hg.operator
    def deadly(event: Any) -> bool:
        import os

        if event["id"] == "e7":
            os._exit(1)
        return True

    store = Store(tmp_path / "book.db", operators=[deadly])
    store.stream("stock", {"id": "string", **declared()})
    store.add("a", "deadly()")
    events = ticks(20)
    where: Any = {"checkpoint": tmp_path / "c", "event_id": "id", "trigger": "available"}
    start(stream(spark, lines(tmp_path / "in", events, 20)), store, **where).wait()
    assert sorted(n.event for n in store.logs.notifications()) == sorted(e["id"] for e in events if e["id"] != "e7")
    assert [(e.event, e.reason) for e in store.logs.errors()] == [("e7", "the process of deadly died")]


def test_an_operator_of_a_module_travels_by_its_name_and_another_by_value() -> None:
    by_name, by_value = operator_pickling.pack([near]), operator_pickling.pack([local()])
    assert b"tests.spark.asked:near" in by_name
    assert len(by_name) < 200 < len(by_value)
    assert operator_pickling.unpack(by_name) == [near]


def test_several_processes_learn_together_as_one_that_sees_all_events(tmp_path: Path) -> None:
    """Without decay the counts are plain sums, whoever saw an event and whenever he shared it."""
    rng = np.random.default_rng(1)
    alone = Statistics(decay=1.0)
    workers = [Statistics(decay=1.0) for _ in range(3)]
    exchanges = [learned.Exchange(tmp_path / "x.learned") for _ in workers]

    def see(statistics: Statistics, predicate: str, held: bool) -> None:
        row = statistics.number(predicate, "op", Prior())
        statistics.observe(np.array([row]), np.array([held]), np.array([2.0]))
        pair = [predicate, "q"]
        statistics.pairs.watch(pair)
        statistics.pairs.observe(statistics.pairs.slots(pair), np.array([held, True]))

    for _ in range(200):
        who, predicate, held = int(rng.integers(3)), f"p{rng.integers(4)}", bool(rng.integers(2))
        see(workers[who], predicate, held)
        see(alone, predicate, held)
        if rng.random() < 0.2:
            exchanges[who](workers[who])
    for _ in range(2):
        for exchange, statistics in zip(exchanges, workers, strict=True):
            exchange(statistics)
    for statistics in (*workers, learned.read(tmp_path / "x.learned")):
        for n in range(4):
            assert statistics.counts(f"p{n}") == pytest.approx(alone.counts(f"p{n}"))
        assert statistics.pairs.saved() == alone.pairs.saved()


def test_a_broken_file_of_statistics_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "x.learned").write_bytes(b'{"version": 99}')
    assert len(learned.read(tmp_path / "x.learned")) == 0
    (tmp_path / "x.learned").write_bytes(b"{")
    assert len(learned.read(tmp_path / "x.learned")) == 0
