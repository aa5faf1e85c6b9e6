"""Streams: any cut into micro-batches gives the same matches, and a query follows its book."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.ticks import SCHEMA, book, expected, found, ticks

import headgate as hg
from headgate.spark import match, sinks, split, start
from headgate.store import Store

pytestmark = pytest.mark.spark


def lines(folder: Path, events: Sequence[dict[str, Any]], size: int, first: int = 0) -> Path:
    """JSON files of `size` events each; their names, and so their order, count on from `first`."""
    folder.mkdir(exist_ok=True)
    for n, at in enumerate(range(0, len(events), size)):
        text = "\n".join(json.dumps(e) for e in events[at : at + size])
        fresh = folder.parent / f"{folder.name}.{n}"
        fresh.write_text(text, "utf-8")
        fresh.replace(folder / f"{first + n:06}.json")
    return folder


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """One file a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "book.db")
    made.load(book())
    return made


@pytest.mark.parametrize(("count", "size"), [(6, 1), (30, 7), (2000, 1000)])
def test_a_stream_matches_as_a_batch_however_it_is_cut(
    spark: SparkSession, tmp_path: Path, count: int, size: int
) -> None:
    events, subs = ticks(count), book()
    result = match(stream(spark, lines(tmp_path / "in", events, size)), subs, event_id="id", errors="raise")
    query = (
        result.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(query.recentProgress) >= -(-count // size)
    assert found(spark.read.parquet(str(tmp_path / "out"))) == expected(subs, events)


def test_a_change_in_the_store_counts_from_the_next_batch_on(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    events, subs = ticks(40), book()
    folder = lines(tmp_path / "in", events[:20], 20)
    where: Any = {"checkpoint": tmp_path / "checkpoint", "event_id": "id", "sink": sinks.Files(str(tmp_path / "out"))}
    running = start(stream(spark, folder), store, **where)
    try:
        running.query.processAllAvailable()
        store.add("late", "price >= 0")
        store.remove("large")
        store.replace("cheap", "name = 'SAP'")
        lines(tmp_path / "more", events[20:], 20, first=1)
        (tmp_path / "more" / "000001.json").replace(folder / "000001.json")
        running.query.processAllAvailable()
    finally:
        running.stop()
    changed = book().add("late", "price >= 0").remove("large").replace("cheap", "name = 'SAP'")
    assert found(spark.read.parquet(str(tmp_path / "out"))) == expected(subs, events[:20]) | expected(
        changed, events[20:]
    )
    assert running.metrics.numbers.version == store.version
    assert running.metrics.numbers.events_total == 40
    assert [p.observedMetrics["headgate"]["events"] for p in running.query.recentProgress if p.numInputRows] == [20, 20]
    assert running.metrics.numbers.subscriptions == len(changed)
    assert 'headgate_events_total{query="headgate"} 40\n' in running.metrics.text()


def test_a_replayed_batch_uses_the_version_of_its_first_time(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    events, subs = ticks(20), book()
    folder = lines(tmp_path / "in", events, 20)

    class Crash:
        name = "a sink that fails once"

        def write(self, df: DataFrame, query: str, batch: int) -> None:
            sinks.Files(str(tmp_path / "out")).write(df, query, batch)
            raise RuntimeError("out of luck")

    where: Any = {"checkpoint": tmp_path / "checkpoint", "event_id": "id", "trigger": "available"}
    with pytest.raises(StreamingQueryException, match="out of luck"):
        start(stream(spark, folder), store, Crash(), **where).wait()
    store.add("late", "price >= 0")
    start(stream(spark, folder), store, sinks.Files(str(tmp_path / "out")), **where).wait()
    assert found(spark.read.parquet(str(tmp_path / "out"))) == expected(subs, events)


def test_the_event_log_goes_in_and_notifications_and_errors_come_out(
    spark: SparkSession, tmp_path: Path, store: Store
) -> None:
    events, subs = ticks(30), book()
    bodies = [json.dumps({k: v for k, v in e.items() if k != "id"}) for e in events]
    store.logs.append("stock", [*bodies[:10], "{broken", *bodies[10:]])
    store.logs.append("news", ["{}"])
    log = spark.readStream.format("headgate").options(store=store.url, stream="stock", maxEventsPerTrigger="8").load()
    running = start(log, store, "store", tmp_path / "c", on="stock", event_id="id", json="body", trigger="available")
    running.wait()
    numbered = [{**e, "id": i + 1 if i < 10 else i + 2} for i, e in enumerate(events)]
    notified = {(n.id, int(n.event), n.subscription) for n in store.logs.notifications()}
    assert notified == expected(subs, numbered)
    (problem,) = store.logs.errors()
    assert (problem.event, problem.code, problem.text) == ("11", "json", "{broken")
    assert running.metrics.numbers.batches_total == 4
    assert running.metrics.numbers.errors_total == 1
    # One Spark job a batch: how soon a notification is there hangs on it.
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(str(running.query.runId))) == 4
    table = spark.read.format("headgate").options(store=store.url, table="notifications").load()
    assert {(r["id"], int(r["event"]), r["subscription"]) for r in table.collect()} == notified


def test_the_whole_log_is_one_source_and_streams_declared_later_are_taken_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("a", {"x": "bigint"})
    store.add("on a", "x > 1", on="a")
    store.logs.append("a", ['{"x": 1}', '{"x": 2}'])
    store.logs.append("b", ['{"y": "k"}', "{broken"])
    log = spark.readStream.format("headgate").option("store", store.url).load()
    running = start(log, store, "store", tmp_path / "c", on="*", event_id="id", json="body")
    try:
        running.query.processAllAvailable()
        store.stream("b", {"y": "string"})
        store.add("on b", "y = 'k'", on="b")
        store.logs.append("b", ['{"y": "l"}', '{"y": "k"}', '{"y": 5}'])
        running.query.processAllAvailable()
    finally:
        running.stop()
    notified = {(n.stream, n.event, n.subscription) for n in store.logs.notifications()}
    assert notified == {("a", "2", "on a"), ("b", "6", "on b")}
    assert {(e.stream, e.event, e.code) for e in store.logs.errors()} == {("b", "4", "json"), ("b", "7", "type")}
    assert running.metrics.numbers.events_total == 7


def test_a_stream_that_a_query_does_not_read_is_named_in_its_log(
    spark: SparkSession, tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.stream("news", {"headline": "string"})
    store.add("scoop", "headline LIKE '%scoop%'", on="news")
    df = stream(spark, lines(tmp_path / "in", ticks(4), 2))
    with caplog.at_level(logging.WARNING, "headgate.spark"):
        start(df, store, checkpoint=tmp_path / "c", on="stock", event_id="id", trigger="available").wait()
    said = [r.getMessage() for r in caplog.records if "news" in r.getMessage()]
    assert said == ["query headgate does not read stream news: start a query with a frame for it"]


def test_a_column_that_subscriptions_need_later_and_the_frame_lacks_is_named(
    spark: SparkSession, tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    wide = Store(tmp_path / "wide.db")
    wide.stream("stock", {"price": "double", "colour": "string"})
    wide.add("dear", "price > 100")
    df = stream(spark, lines(tmp_path / "in", ticks(4), 2))
    where: Any = {"checkpoint": tmp_path / "c", "event_id": "id"}
    running = start(df, wide, **where)
    try:
        running.query.processAllAvailable()
        wide.add("red", "colour = 'red' OR price > 150")
        with caplog.at_level(logging.WARNING, "headgate.spark"):
            lines(tmp_path / "more", ticks(4), 4, first=7)
            (tmp_path / "more" / "000007.json").replace(tmp_path / "in" / "000007.json")
            running.query.processAllAvailable()
    finally:
        running.stop()
    (said,) = caplog.records
    assert said.getMessage().startswith("query headgate: the frame of stock has no column colour, which subscriptions")
    with pytest.raises(hg.SchemaError, match="the frame has no column colour, which subscriptions need"):
        start(df, wide, **where)


def test_an_event_that_names_no_stream_is_an_error(spark: SparkSession) -> None:
    rows = [(1, "stock", '{"price": 500}'), (2, None, '{"price": 500}')]
    df = spark.createDataFrame(rows, "id bigint, stream string, body string")
    matches, errors = split(match(df, book(), on="*", event_id="id", json="body"))
    assert {(r["event"], r["subscription"]) for r in matches.collect()} == {(1, "large")}
    (problem,) = errors.collect()
    assert (problem["event"], problem["code"], problem["reason"]) == (2, "stream", "the event names no stream")


def test_errors_have_a_sink_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.load(hg.Subscriptions.parse("CREATE STREAM s (x BIGINT NOT NULL); CREATE SUBSCRIPTION all ON s AS x > 0;"))
    lines(tmp_path / "in", [{"id": "a", "x": 1}, {"id": "b"}], 2)
    df = spark.readStream.schema("id string, x bigint").json(str(tmp_path / "in"))
    seen: list[tuple[int, list[str]]] = []
    start(
        df,
        store,
        lambda df, batch: seen.append((batch, [r["event"] for r in df.collect()])),
        tmp_path / "checkpoint",
        event_id="id",
        errors=str(tmp_path / "bad"),
        trigger="available",
    ).wait()
    assert seen == [(0, ["a"])]
    (row,) = spark.read.parquet(str(tmp_path / "bad")).collect()
    assert (row["event"], row["code"], row["reason"]) == ("b", "not_null", "x: it is NOT NULL but missing")


def test_several_streams_run_in_one_query(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("a", {"x": "bigint"})
    store.stream("b", {"y": "string"})
    store.add("on a", "x > 1", on="a")
    store.add("on b", "y = 'k'", on="b")
    lines(tmp_path / "a", [{"id": 1, "x": 1}, {"id": 2, "x": 2}], 2)
    lines(tmp_path / "b", [{"key": "u", "y": "k"}, {"key": "v", "y": "l"}], 2)
    frames = {
        "a": spark.readStream.schema("id bigint, x bigint").json(str(tmp_path / "a")),
        "b": spark.readStream.schema("key string, y string").json(str(tmp_path / "b")),
    }
    ids = {"a": "id", "b": "key"}
    running = start(frames, store, checkpoint=tmp_path / "c", event_id=ids, trigger="available")
    running.wait()
    assert {(n.stream, n.event, n.subscription) for n in store.logs.notifications()} == {
        ("a", "2", "on a"),
        ("b", "u", "on b"),
    }
    assert running.metrics.numbers.events_total == 4


def test_a_stream_that_nobody_declared_has_the_columns_of_its_frame(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    lines(tmp_path / "in", ticks(1), 1)
    df = stream(spark, tmp_path / "in")
    start(df, store, checkpoint=tmp_path / "c", on="stock", event_id="id", trigger="available").wait()
    with pytest.raises(hg.LanguageError, match="colour"):
        store.add("wrong", "colour = 'red'", on="stock")
    store.add("right", "price > 1 AND extra.desk = 'A'", on="stock")


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    df = stream(spark, lines(tmp_path / "in", ticks(1), 1))
    where: Any = {"checkpoint": tmp_path / "c", "event_id": "id", "trigger": "available"}
    start(df, store, **where).wait()
    other = Store(tmp_path / "other.db")
    other.load(book())
    with pytest.raises(hg.UsageError, match=r"belongs to another query: store .*\n  hint: name a folder of its own"):
        start(df, other, **where)
    (tmp_path / "foreign" / "offsets").mkdir(parents=True)
    with pytest.raises(hg.UsageError, match="was made by a query that is not Headgate's"):
        start(df, store, **{**where, "checkpoint": tmp_path / "foreign"})


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"checkpoint": None}, hg.UsageError, "a query needs a checkpoint"),
        ({"event_id": None}, hg.UsageError, "the events need a stable id"),
        ({"sink": "kafka"}, hg.UsageError, "sink = 'kafka' is unknown"),
        ({"sink": 7}, hg.UsageError, "a int is no sink"),
        ({"on": "*"}, hg.UsageError, r'on = "\*" reads events of every stream, as JSON texts'),
        ({"on": "*", "json": "name"}, hg.SchemaError, "from the column stream, and there is none"),
        ({"trigger": "soon"}, hg.UsageError, "trigger = 'soon' is no interval"),
    ],
)
def test_a_query_that_cannot_work_does_not_start(
    spark: SparkSession, tmp_path: Path, store: Store, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    df = stream(spark, lines(tmp_path / "in", ticks(1), 1))
    with pytest.raises(error, match=said):
        start(df, store, **{"checkpoint": tmp_path / "c", "event_id": "id", **change})
    assert not spark.streams.active


def test_a_stream_without_a_needed_column_does_not_start(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    df = stream(spark, lines(tmp_path / "in", ticks(1), 1)).drop("vol")
    with pytest.raises(hg.SchemaError, match="the frame has no column vol, which subscriptions need"):
        start(df, store, checkpoint=tmp_path / "c", event_id="id")
    with pytest.raises(hg.UsageError, match="the frame of stock is not a stream"):
        start(spark.createDataFrame([("a",)], "id string"), store, checkpoint=tmp_path / "c", event_id="id")
