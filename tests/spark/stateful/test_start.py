"""`start` with sequences: state that outlives the query, changes while it runs, a look inside, other buckets."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from headgate.cli.run import run
from headgate.errors import UsageError
from headgate.spark import start
from headgate.spark.stream import Running
from headgate.store import Store

pytestmark = pytest.mark.spark

COLUMNS = "id string, name string, price double, at bigint"
PAIR = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.name = $1.name} stock"
RISE = "SELECT e1.price AS p, e2.price AS q FROM stock NEXT {$2.price > $1.price} stock"
PATIENCE_S = 120


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "book.db")
    made.stream("stock", {"name": "string", "price": "double", "at": "bigint"}, time="at")
    made.add("pair", PAIR)
    made.add("dear", "price > 100")
    return made


class Feed:
    """A folder of JSON files, one a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._files = spark, folder, 0
        folder.mkdir()

    def frame(self) -> DataFrame:
        return self._spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self._folder))

    def add(self, *events: tuple[str, str, float, int]) -> None:
        rows = [dict(zip(("id", "name", "price", "at"), e, strict=True)) for e in events]
        fresh = self._folder.parent / "fresh.json"
        fresh.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        fresh.replace(self._folder / f"{self._files:04}.json")
        self._files += 1


def told(store: Store) -> list[tuple[str, str]]:
    return sorted((n.subscription, n.event) for n in store.logs.notifications())


def until_published(running: Running, version: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (running.published or 0) < version:
        assert time.monotonic() < deadline, "the change was never published"
        time.sleep(0.01)


def test_runs_outlive_changes_restarts_and_other_buckets(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    feed = Feed(spark, tmp_path / "in")
    where: dict[str, Any] = {"checkpoint": tmp_path / "state", "event_id": "id", "buckets": 4}
    feed.add(("a", "IBM", 1, 1), ("b", "SAP", 200, 2), ("c", "IBM", 2, 2))
    running = start(feed.frame(), store, **where)
    try:
        running.query.processAllAvailable()
        assert told(store) == [("dear", "b")], "the epoch of c is open"
        until_published(running, store.add("twin", PAIR))
        feed.add(("d", "IBM", 3, 4), ("e", "SAP", 1, 5))
        running.query.processAllAvailable()
        assert told(store) == [("dear", "b"), ("pair", "c"), ("pair", "d")]
        assert running.metrics.activated == {"twin": (1, 2)}
        feed.add(("late", "IBM", 9, 3), ("f", "IBM", 4, 6))
        running.query.processAllAvailable()
    finally:
        running.stop()
    assert told(store) == [("dear", "b"), ("pair", "c"), ("pair", "d"), ("pair", "e")]
    (error,) = store.logs.errors()
    assert (error.event, error.code) == ("late", "late")
    assert error.reason == "it is late by 2 ticks: its epoch is closed already"
    numbers = running.metrics.numbers
    assert (numbers.events_total, numbers.watermark, numbers.version) == (7, 6, store.version)

    # Another book: the runs of those that stay are still there.
    store.add("rise", RISE)
    store.remove("dear")
    feed.add(("g", "IBM", 5, 8), ("h", "SAP", 300, 9))
    running = start(feed.frame(), store, trigger="available", **where)
    running.wait()
    assert set(told(store)) == {
        ("dear", "b"), ("pair", "c"), ("pair", "d"), ("pair", "e"), ("pair", "f"), ("pair", "g"),
        ("twin", "f"), ("twin", "g"),
    }  # fmt: skip
    assert running.metrics.activated == {"rise": (3, 6)}

    # What waits can be seen.
    config = tmp_path / "run.toml"
    config.write_text(
        f'store = "{tmp_path / "book.db"}"\ncheckpoint = "{tmp_path / "state"}"\n'
        f'[sources.stock]\nformat = "json"\npath = "{tmp_path / "in"}"\n',
        "utf-8",
    )
    shown = CliRunner().invoke(run, [str(config), "--state", "--json"], catch_exceptions=False)
    held = [json.loads(line) for line in shown.output.splitlines() if line.startswith("{")]
    runs: dict[str, int] = {}
    for one in held:
        runs[one["subscription"]] = runs.get(one["subscription"], 0) + one["runs"]
    assert runs == {"pair": 2, "twin": 2, "rise": 1}
    assert {one["group"] for one in held} == {"stock.name", "global"}

    # Other buckets need the tool, and with it nothing is lost.
    with pytest.raises(UsageError, match="has 4 buckets, and the query asks for 3") as problem:
        start(feed.frame(), store, **{**where, "buckets": 3})
    assert "headgate run CONFIG --rebucket" in str(problem.value.hint)
    dealt = CliRunner().invoke(run, [str(config), "--rebucket", "3"], catch_exceptions=False)
    assert "4 buckets are 3 now" in dealt.output
    feed.add(("i", "IBM", 6, 10), ("j", "SAP", 400, 11), ("end", "X", 0, 99))
    start(feed.frame(), store, trigger="available", **{**where, "buckets": None}).wait()
    assert set(told(store)) >= {
        ("pair", "h"),
        ("pair", "i"),
        ("pair", "j"),
        ("twin", "h"),
        ("twin", "i"),
        ("twin", "j"),
    }
    assert [e for s, e in told(store) if s == "rise"] == ["h", "j", "j"], "j ends the runs of h and of i"


def test_absence_is_told_when_nothing_comes_any_more(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("stock", {"name": "string", "price": "double", "at": "timestamp"}, time="at")
    store.add("silent", "SELECT e1.price AS p FROM stock ABSENT {$2.name = $1.name} stock WITHIN 1 SECONDS")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.json").write_text('{"id": "a", "name": "IBM", "price": 1, "at": "2024-01-01T00:00:00Z"}', "utf-8")
    df = spark.readStream.schema("id string, name string, price double, at timestamp").json(str(folder))
    running = start(df, store, checkpoint=tmp_path / "state", event_id="id", idle="2 seconds", buckets=2)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not store.logs.notifications():
            assert running.query.isActive, running.query.exception()
            assert time.monotonic() < deadline, "nobody noticed the silence"
            time.sleep(0.05)
    finally:
        running.stop()
    assert told(store) == [("silent", "a")]
    assert running.metrics.numbers.idle_streams == 1


def test_a_checkpoint_that_was_begun_without_state_leaves_sequences_out(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("stock", {"name": "string", "price": "double", "at": "bigint"}, time="at")
    store.add("dear", "price > 100")
    feed = Feed(spark, tmp_path / "in")
    feed.add(("a", "IBM", 200, 1))
    where: dict[str, Any] = {"checkpoint": tmp_path / "state", "event_id": "id", "trigger": "available"}
    start(feed.frame(), store, **where).wait()
    store.add("pair", PAIR)
    feed.add(("b", "IBM", 201, 2), ("c", "IBM", 1, 3))
    with caplog.at_level("WARNING", "headgate.spark"):
        start(feed.frame(), store, **where).wait()
    assert told(store) == [("dear", "a"), ("dear", "b")]
    assert "was begun without state: 1 sequences are left out" in caplog.text


def test_a_query_has_no_more_partitions_than_buckets(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    feed = Feed(spark, tmp_path / "in")
    feed.add(("a", "IBM", 1, 1))
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    assert before is not None
    spark.conf.set(key, "200")
    try:
        start(feed.frame(), store, checkpoint=tmp_path / "state", event_id="id", trigger="available", buckets=3).wait()
        assert spark.conf.get(key) == "200", "the session's own setting is as it was"
    finally:
        spark.conf.set(key, before)
    kept = [p.name for p in (tmp_path / "state" / "state" / "0").iterdir() if p.name.isdigit()]
    assert sorted(kept) == ["0", "1", "2"]


def test_wrong_settings_are_said_before_the_query_starts(spark: SparkSession, tmp_path: Path, store: Store) -> None:
    feed = Feed(spark, tmp_path / "in")
    with pytest.raises(UsageError, match=r"idle= needs a query that goes on"):
        start(feed.frame(), store, checkpoint=tmp_path / "a", event_id="id", idle="1 second", trigger="available")
    with pytest.raises(UsageError, match=r"watermark = '1 minute', but the TIME of these streams is BIGINT"):
        start(feed.frame(), store, checkpoint=tmp_path / "b", event_id="id", watermark="1 minute")
    assert not (tmp_path / "b" / "headgate").exists(), "a query that never ran leaves no mark"


def state_of(folder: Path, args: Sequence[str]) -> str:
    config = folder / "run.toml"
    config.write_text(
        f'store = "{folder / "b.db"}"\ncheckpoint = "{folder / "none"}"\n[sources.s]\nformat = "rate"\n', "utf-8"
    )
    outcome = CliRunner().invoke(run, [str(config), *args])
    assert outcome.exit_code != 0
    return str(outcome.exception)


def test_a_look_into_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    assert "there is no checkpoint of Headgate in" in state_of(tmp_path, ["--state"])
    assert "there is no checkpoint of Headgate in" in state_of(tmp_path, ["--rebucket", "3"])
