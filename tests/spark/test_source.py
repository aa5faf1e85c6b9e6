"""`format("headgate")`: options are checked, offsets move as they must, and writing takes the frame of `match`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.spark.ticks import book, expected, frame, ticks

import headgate as hg
from headgate.spark import match
from headgate.spark.checkpoint import claim, must_not_be_ahead
from headgate.spark.source import EventReader, HeadgateSource, Range
from headgate.store import Store

ANY = StructType()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "book.db")


def source(store: Store, /, **options: Any) -> HeadgateSource:
    return HeadgateSource({"store": store.url, **{k: str(v) for k, v in options.items()}})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"maxEventsPerTriger": 5}, r'format\("headgate"\) has no option maxEventsPerTriger\n  hint: did you mean max'),
        ({"store": ""}, r'format\("headgate"\) needs the option store'),
        ({"startingOffsets": "middle"}, "startingOffsets = 'middle' is unknown"),
        ({"maxEventsPerTrigger": "many"}, "maxEventsPerTrigger = 'many' must be a number from 1 on"),
        ({"eventsPerPartition": 0}, "eventsPerPartition = '0' must be a number from 1 on"),
        ({"table": "notifications"}, "the table notifications cannot be read as a stream"),
        ({"table": "subscriptions"}, "the store has no table subscriptions"),
    ],
)
def test_a_wrong_option_is_named(store: Store, options: dict[str, Any], said: str) -> None:
    with pytest.raises(hg.UsageError, match=said):
        source(store, **options).streamReader(ANY)


@pytest.mark.spark
def test_a_wrong_option_reaches_the_user_of_spark(spark: SparkSession, store: Store) -> None:
    with pytest.raises(AnalysisException, match="has no option tabel"):
        spark.read.format("headgate").options(store=store.url, tabel="events").load().collect()


def test_a_reader_goes_on_from_its_offset_and_cuts_what_is_much(store: Store) -> None:
    store.logs.append("s", ["{}"] * 25)
    reader = source(store, maxEventsPerTrigger=10, eventsPerPartition=4).streamReader(ANY)
    assert isinstance(reader, EventReader)
    limit = reader.getDefaultReadLimit()
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert (first, reader.latestOffset({"id": 20}, limit)) == ({"id": 10}, {"id": 25})
    assert reader.partitions({"id": 0}, first) == [Range(0, 4), Range(4, 8), Range(8, 10)]
    assert [row[0] for row in reader.read(Range(8, 10))] == [9, 10]


def test_a_reader_may_begin_with_what_comes_next(store: Store) -> None:
    store.logs.append("s", ["{}"] * 3)
    assert source(store, startingOffsets="latest").streamReader(ANY).initialOffset() == {"id": 3}


@pytest.mark.parametrize("options", [{}, {"maxEventsPerTrigger": 10}])
def test_a_reader_that_is_ahead_of_its_log_is_refused(store: Store, options: dict[str, Any]) -> None:
    store.logs.append("s", ["{}"] * 3)
    reader = source(store, **options).streamReader(ANY)
    assert isinstance(reader, EventReader)
    limit = reader.getDefaultReadLimit()
    assert reader.latestOffset({"id": 3}, limit) == {"id": 3}
    with pytest.raises(hg.EnvironmentProblem, match="has read event 4, and the log of its store ends with 3"):
        reader.latestOffset({"id": 4}, limit)


def test_a_checkpoint_that_is_ahead_of_its_store_is_refused(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    made = claim(str(folder), store.identity, ("s",))
    must_not_be_ahead(str(folder), made, store.logs)
    (folder / "commits").mkdir()
    for name in ("9", "10", ".10.crc"):
        (folder / "commits" / name).touch()
    with pytest.raises(hg.EnvironmentProblem, match="it has done batch 10, and the store knows none"):
        must_not_be_ahead(str(folder), made, store.logs)
    store.logs.version_of(made.query, 9, 1)
    with pytest.raises(hg.EnvironmentProblem, match="the store knows of batch 9"):
        must_not_be_ahead(str(folder), made, store.logs)
    store.logs.version_of(made.query, 10, 1)
    must_not_be_ahead(str(folder), made, store.logs)


@pytest.mark.spark
def test_matches_are_written_once_however_often(spark: SparkSession, store: Store) -> None:
    events = ticks(30)
    df = match(frame(spark, events), book(), event_id="id")
    for _ in range(2):
        df.write.format("headgate").option("store", store.url).mode("append").save()
    notified = {(n.id, n.event, n.subscription) for n in store.logs.notifications()}
    assert len(store.logs.notifications()) == len(notified)
    assert notified == expected(book(), events)


def test_a_frame_that_is_not_of_match_and_an_overwrite_are_refused(store: Store) -> None:
    with pytest.raises(hg.SchemaError, match="the frame has no column id"):
        source(store).writer(StructType().add("x", "long"), overwrite=False)
    with pytest.raises(hg.UsageError, match="notifications are added, never overwritten"):
        source(store).writer(ANY, overwrite=True)
