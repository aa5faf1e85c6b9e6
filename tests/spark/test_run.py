"""`headgate run` from a file to the notifications in the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from tests.spark.ticks import book, expected, ticks

import headgate as hg
from headgate.cli.run import run
from headgate.spark.config import parse
from headgate.spark.launch import launch
from headgate.store import Store

pytestmark = pytest.mark.spark

CONFIG = """
store = "{here}/book.db"
rules = "{here}/rules.hg"
checkpoint = "{here}/checkpoint"
trigger = "available"
[sources.stock]
format = "json"
path = "{here}/in"
event_id = "id"
[errors]
format = "json"
path = "{here}/bad"
[metrics]
file = "{here}/headgate.prom"
"""

RULES = """
CREATE STREAM stock (name STRING, price DOUBLE, vol BIGINT, venue.city STRING, venue.tier BIGINT);
CREATE SUBSCRIPTION cheap ON stock AS name = 'IBM' AND price < 100;
CREATE SUBSCRIPTION oslo ON stock AS venue.city = 'Oslo';
"""


def test_a_configuration_runs(spark: SparkSession, tmp_path: Path) -> None:
    events = ticks(40)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(map(json.dumps, events)), "utf-8")
    (tmp_path / "rules.hg").write_text(RULES, "utf-8")
    (tmp_path / "run.toml").write_text(CONFIG.format(here=tmp_path), "utf-8")
    result = CliRunner().invoke(run, [str(tmp_path / "run.toml")], catch_exceptions=False)
    assert result.exit_code == 0
    assert "batch 0, version 3, 2 subscriptions, 40 events" in result.output
    notified = {(n.id, n.event, n.subscription) for n in Store(tmp_path / "book.db").logs.notifications()}
    assert notified == expected(hg.Subscriptions.parse(RULES), events)
    assert 'headgate_events_total{query="headgate"} 40\n' in (tmp_path / "headgate.prom").read_text("utf-8")


def test_a_rate_source_is_there_for_trying_out(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(tmp_path / "book.db")
    store.stream("numbers", {"value": "bigint"})
    store.add("even", "value % 2 = 0")
    source = {"format": "rate", "options": {"rowsPerSecond": 50}}
    given = {"store": store.url, "checkpoint": str(tmp_path / "c"), "sources": {"numbers": source}}
    running = launch(parse(given))
    try:
        while not store.logs.last_notification():
            assert running.query.isActive, running.query.exception()
            running.wait(0.2)
    finally:
        running.stop()
    first = store.logs.notifications(most=1)[0]
    assert (first.subscription, int(first.event) % 2) == ("even", 0)


def test_what_is_wrong_with_a_source_is_said_with_its_key(spark: SparkSession, tmp_path: Path) -> None:
    Store(tmp_path / "book.db").load(book())
    given = {"store": str(tmp_path / "book.db"), "checkpoint": str(tmp_path / "c")}
    nowhere = {"format": "json", "path": str(tmp_path / "none")}
    with pytest.raises(hg.UsageError, match=r"sources\.stock\.path: there is no folder"):
        launch(parse({**given, "sources": {"stock": nowhere}}))
    undeclared = {"format": "json", "path": str(tmp_path)}
    with pytest.raises(hg.UsageError, match=r"sources\.news\.schema: it is missing"):
        launch(parse({**given, "sources": {"news": undeclared}}))
