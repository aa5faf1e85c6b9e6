"""`match` on frames: the matches of `plan.match`, whatever the shape of the input."""

from __future__ import annotations

import contextlib
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from tests.spark.ticks import book, expected, found, frame, ticks

import headgate as hg
from headgate.spark import match, split

pytestmark = pytest.mark.spark


def test_a_frame_gives_the_matches_that_the_plan_gives_in_process(spark: SparkSession) -> None:
    events, subs = ticks(500), book()
    matches, errors = split(match(frame(spark, events).repartition(3), subs, on="stock", event_id="id"))
    assert found(matches) == expected(subs, events)
    assert errors.count() == 0


def test_strangers_take_the_columns_of_an_undeclared_frame_for_different_things(spark: SparkSession) -> None:
    texts = {
        "on": "state = 'on'",
        "inside": "state.status = 'x'",
        "above": "state > 5",
        "listed": "items.price > 5",
        "plain": "n > 1 AND n <> 'a'",
        "nowhere": "colour = 'red' OR n = 3",
    }
    df = spark.createDataFrame(
        [("0", "on", [(1,), (7,)], 2), ("1", "off", [], 3), ("2", None, None, None)],
        "id string, state string, items array<struct<price: int>>, n int",
    )
    subs = hg.Subscriptions()
    for name, text in texts.items():
        subs.add(name, text)
    matches, errors = split(match(df, subs, event_id="id"))
    assert sorted((r["event"], r["subscription"]) for r in matches.collect()) == [
        ("0", "listed"), ("0", "on"), ("0", "plain"), ("1", "nowhere"), ("1", "plain")
    ]  # fmt: skip
    assert errors.count() == 0


def test_match_is_a_function_for_transform(spark: SparkSession) -> None:
    events, subs = ticks(50), book()
    df = frame(spark, events).transform(match, subs, event_id="id", errors="raise")
    assert df.columns == ["id", "stream", "event", "subscription", "output", "labels"]
    assert found(df) == expected(subs, events)
    labels = {r["labels"] for r in df.where("subscription = 'cheap'").collect()}
    assert labels == {'{"owner":"desk 4"}'}


def test_a_book_in_segments_with_tombstones_matches_as_one(spark: SparkSession) -> None:
    events, subs = ticks(200), book()
    subs.compile()
    subs.remove(next(iter(subs))).add("newest", "price > 3", on="stock")
    assert len(subs.compile().segments) == 2
    df = match(frame(spark, events), subs, event_id="id", errors="raise")
    assert found(df) == expected(subs, events)


def test_counts_add_up_over_partitions(spark: SparkSession) -> None:
    events, subs = ticks(300), book()
    df = match(frame(spark, events).repartition(4), subs, event_id="id", output="counts", errors="raise")
    counted = {r["subscription"]: r["count"] for r in df.collect()}
    named = [name for _, _, name in expected(subs, events)]
    assert counted == {name: named.count(name) for name in set(named)}


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("bigint", lambda i: i),
        ("binary", lambda i: bytes([i])),
        ("decimal(10,2)", lambda i: i),
        ("struct<p: int, o: bigint>", lambda i: (0, i)),
        ("boolean", lambda i: bool(i)),
        ("timestamp", None),
        ("date", None),
    ],
)
def test_an_event_id_may_have_any_type(spark: SparkSession, kind: str, make: Any) -> None:
    subs = hg.Subscriptions().stream("s", {"x": "bigint"}).add("all", "x >= 0")
    if make is None:
        df = spark.range(2).select(
            fn.expr(f"cast(date '2024-01-01' + cast(id as int) as {kind})").alias("key"), fn.col("id").alias("x")
        )
    else:
        values = [Decimal(i) if kind.startswith("decimal") else make(i) for i in range(2)]
        df = spark.createDataFrame([(v, i) for i, v in enumerate(values)], f"key {kind}, x bigint")
    result = match(df, subs, event_id="key", errors="raise")
    assert result.schema["event"].dataType == df.schema["key"].dataType
    rows = result.collect()
    assert {r["event"] for r in rows} == {r["key"] for r in df.collect()}
    assert len({r["id"] for r in rows}) == 2
    assert {r["id"] for r in rows} == {r["id"] for r in match(df, subs, event_id="key", errors="raise").collect()}


def test_several_columns_make_one_event_id(spark: SparkSession) -> None:
    subs = hg.Subscriptions().stream("s", {"x": "bigint"}).add("all", "x >= 0")
    df = spark.createDataFrame([(0, "a", 1), (0, "b", 1)], "p int, q string, x bigint")
    rows = match(df, subs, event_id=["p", "q"], errors="raise").collect()
    assert {r["event"] for r in rows} == {'{"p":0,"q":"a"}', '{"p":0,"q":"b"}'}


def test_several_streams_meet_in_one_frame(spark: SparkSession) -> None:
    subs = hg.Subscriptions().stream("a", {"x": "bigint"}).stream("b", {"y": "string"})
    subs.add("on a", "x > 1", on="a").add("on b", "y = 'k'", on="b")
    left = spark.createDataFrame([(1, 1), (2, 2)], "id bigint, x bigint")
    right = spark.createDataFrame([("u", "k"), ("v", "l")], "key string, y string")
    rows = match({"a": left, "b": right}, subs, event_id={"a": "id", "b": "key"}, errors="raise").collect()
    assert {(r["stream"], r["event"], r["subscription"]) for r in rows} == {("a", "2", "on a"), ("b", "u", "on b")}


def test_only_the_needed_columns_and_fields_are_read(spark: SparkSession, tmp_path: Path) -> None:
    frame(spark, ticks(10)).write.parquet(str(tmp_path / "ticks"))
    subs = hg.Subscriptions().stream("s", {"venue.city": "string", "price": "double"})
    subs.add("one", "venue.city = 'Oslo' AND price > 0")
    df = match(spark.read.parquet(str(tmp_path / "ticks")), subs, event_id="id")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        df.explain()
    (read,) = [line for line in said.getvalue().splitlines() if "ReadSchema" in line]
    assert "ReadSchema: struct<id:string,price:double,venue:struct<city:string>>" in read


def test_a_bad_event_is_a_row_and_the_others_match(spark: SparkSession) -> None:
    subs = hg.Subscriptions.parse(
        "CREATE STREAM s (x BIGINT NOT NULL, y STRING); CREATE SUBSCRIPTION all ON s AS x > 0;"
    )
    df = spark.createDataFrame([("a", 1, "k"), ("b", None, "l"), (None, 3, "m")], "id string, x bigint, y string")
    matches, errors = split(match(df, subs, event_id="id"))
    assert [(r["event"], r["subscription"]) for r in matches.collect()] == [("a", "all")]
    bad = {r["event"]: r for r in errors.collect()}
    assert bad["b"]["code"] == "not_null"
    assert bad["b"]["reason"] == "x: it is NOT NULL but missing"
    assert bad[None]["code"] == "event_id"
    assert '"x":3' in bad[None]["text"]
    assert len({r["id"] for r in bad.values()}) == 2


def test_a_bad_event_fails_the_job_where_that_is_asked_for(spark: SparkSession) -> None:
    subs = hg.Subscriptions.parse("CREATE STREAM s (x BIGINT NOT NULL); CREATE SUBSCRIPTION all ON s AS x > 0;")
    df = spark.createDataFrame([("b", None)], "id string, x bigint")
    with pytest.raises(PythonException, match="event 'b' of stream s: x: it is NOT NULL but missing"):
        match(df, subs, event_id="id", errors="raise").collect()


def test_events_may_be_json_texts_and_a_broken_one_keeps_its_text(spark: SparkSession) -> None:
    subs = hg.Subscriptions().stream("s", {"x": "bigint", "a.b": "string"}).add("all", "x > 0 OR a.b = 'k'")
    rows = [(1, b'{"x": 5}'), (2, b'{"x": '), (3, b'{"a": {"b": "k"}}'), (4, b'{"x": "many"}'), (5, None)]
    df = spark.createDataFrame(rows, "offset bigint, value binary")
    matches, errors = split(match(df, subs, event_id="offset", json="value"))
    assert {r["event"] for r in matches.collect()} == {1, 3}
    bad = {r["event"]: r for r in errors.collect()}
    assert set(bad) == {2, 4, 5}
    assert (bad[2]["code"], bad[2]["text"]) == ("json", '{"x": ')
    assert bad[4]["reason"].startswith("x: ")


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"on": "stok"}, hg.UsageError, "there is no stream stok"),
        ({"output": "all"}, hg.UsageError, "output = 'all' is unknown"),
        ({"errors": "ignore"}, hg.UsageError, "errors = 'ignore' is unknown"),
        ({"event_id": None}, hg.UsageError, "the events need a stable id"),
        ({"event_id": "key"}, hg.SchemaError, "the frame has no column key for the event id"),
        ({"json": "value"}, hg.SchemaError, "the frame has no column value to read JSON from"),
        ({"json": "price"}, hg.SchemaError, "column price is double"),
    ],
)
def test_a_wrong_argument_is_named(
    spark: SparkSession, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        match(frame(spark, ticks(1)), book(), **{"on": "stock", "event_id": "id", **change})


def test_a_lost_column_and_a_type_that_cannot_fit_are_named_before_a_job_starts(spark: SparkSession) -> None:
    df = frame(spark, ticks(1))
    with pytest.raises(hg.SchemaError, match="stream stock: the frame has no column price, which subscriptions need"):
        match(df.drop("price"), book(), event_id="id")
    with pytest.raises(hg.SchemaError, match="column price is STRING, and declared is DOUBLE"):
        match(df.withColumn("price", fn.col("price").cast("string")), book(), event_id="id")
    with pytest.raises(hg.SchemaError, match=r"no column venue\.city"):
        match(df.withColumn("venue", fn.struct(fn.lit(1).alias("tier"))), book(), event_id="id")


def test_a_book_without_subscriptions_says_so(spark: SparkSession) -> None:
    with pytest.raises(hg.UsageError, match="the book is empty"):
        match(frame(spark, ticks(1)), hg.Subscriptions(), event_id="id")


@pytest.mark.parametrize("text", ["TRUE", "always()", "NOT given(NULL) OR always()"])
def test_a_book_that_reads_no_attribute_matches_every_event(spark: SparkSession, text: str) -> None:
    always = hg.operator(name="always")(lambda event: True)
    given = hg.operator(name="given")(lambda event, a: True)
    subs = hg.Subscriptions([always, given]).add("all", text)
    df = spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, x string")
    assert sorted(r["event"] for r in match(df, subs, event_id="id", errors="raise").collect()) == [1, 2]


def test_an_operator_receives_the_value_of_a_column_without_a_type(spark: SparkSession) -> None:
    same = hg.operator(name="same")(lambda event, a, b: a == b)
    subs = hg.Subscriptions([same]).add("q", "same(x, y)")
    df = spark.createDataFrame([(1, "a", "a"), (2, "b", "c"), (3, None, "c")], "id bigint, x string, y string")
    assert [r["event"] for r in match(df, subs, event_id="id", errors="raise").collect()] == [1]
