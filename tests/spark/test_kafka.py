"""A real Kafka broker and Spark's connector: events from a topic, matches into another, repeats told by their key."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from tests.spark.conftest import CONNECTOR
from tests.spark.servers import free_port, process
from tests.spark.ticks import book, expected, ticks

from headgate.spark import deduplicated, sinks, start
from headgate.store import Store

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not CONNECTOR:
        done = subprocess.run(
            ["/bin/sh", str(ROOT / "scripts" / "kafka.sh"), "fetch"], capture_output=True, text=True, check=False
        )
        said = done.stderr.strip().splitlines()[-1:] or ["fetched only now: the session of this run started without it"]
        pytest.skip(f"no Kafka: {said[0]}")
    folder, port = tmp_path_factory.mktemp("kafka"), free_port()
    command = ["sh", str(ROOT / "scripts" / "kafka.sh"), "run", str(port), str(folder / "data")]
    with process(command, folder / "log", "Kafka Server started"):
        yield f"127.0.0.1:{port}"


def write(df: DataFrame, broker: str, topic: str) -> None:
    df.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()


def topic(spark: Any, broker: str, name: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": broker, "subscribe": name, "startingOffsets": "earliest"}
    found: DataFrame = spark.format("kafka").options(**options).load()
    return found


def test_events_of_a_topic_match_and_the_matches_go_to_a_topic(
    spark: SparkSession, broker: str, tmp_path: Path
) -> None:
    events = ticks(60)
    bodies = [(json.dumps({k: v for k, v in e.items() if k != "id"}),) for e in events]
    write(spark.createDataFrame([*bodies, ("{broken",)], "value string"), broker, "ticks")
    store = Store(tmp_path / "book.db")
    store.load(book())
    running = start(
        topic(spark.readStream, broker, "ticks"),
        store,
        sinks.Kafka(broker, "matches"),
        tmp_path / "checkpoint",
        json="value",
        trigger="available",
    )
    running.wait()
    # By what Kafka says of each event, its id is made again here.
    placed = {
        r["value"]: f"{r['topic']}/{r['partition']}/{r['offset']}"
        for r in topic(spark.read, broker, "ticks")
        .select(fn.col("value").cast("string"), "topic", "partition", "offset")
        .collect()
    }
    wanted = expected(book(), [{**e, "id": placed[b]} for e, (b,) in zip(events, bodies, strict=True)])
    again = topic(spark.read, broker, "matches").select(fn.col("key").cast("string"), fn.col("value").cast("string"))
    write(again.select("key", "value"), broker, "matches")
    kind = "id string, event string, subscription string"
    read = topic(spark.read, broker, "matches").select(fn.from_json(fn.col("value").cast("string"), kind).alias("m"))
    rows = deduplicated(read.select("m.*")).collect()
    assert read.count() == 2 * len(rows)
    assert {(r["id"], r["event"], r["subscription"]) for r in rows} == wanted
    (problem,) = store.logs.errors()
    assert (problem.event, problem.text) == (placed["{broken"], "{broken")
