"""The configuration of `headgate run`: every mistake with the path of its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import headgate as hg
from headgate.cli.run import run
from headgate.schema import Schema
from headgate.spark.config import Config, Source, Target, load
from headgate.spark.launch import ddl

GOOD = """
store = "book.db"
checkpoint = "state"
trigger = "5 seconds"

[sources.stock]
format = "json"
path = "ticks"
event_id = ["a", "b"]
options = { maxFilesPerTrigger = 1, multiLine = true }

[sink]
format = "kafka"
servers = "host:9092"
topic = "matches"

[metrics]
port = 9108
"""


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "run.toml").write_text(text, "utf-8")
    return tmp_path / "run.toml"


def test_a_configuration_is_read(tmp_path: Path) -> None:
    options = {"maxFilesPerTrigger": "1", "multiLine": "true"}
    assert load(written(tmp_path, GOOD)) == Config(
        store="book.db",
        checkpoint="state",
        trigger="5 seconds",
        sources={"stock": Source("json", path="ticks", event_id=("a", "b"), options=options)},
        sink=Target("kafka", servers="host:9092", topic="matches"),
        metrics_port=9108,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('store = "book.db"', ""), "store: it is missing"),
        (("checkpoint", "chekpoint"), "chekpoint: there is no such key; did you mean checkpoint?"),
        (('format = "json"', 'format = "jsn"'), "sources.stock.format: 'jsn' is unknown; choose one of json, parquet"),
        (('path = "ticks"', ""), "sources.stock.path: it is missing, and json needs it"),
        (('path = "ticks"', "path = 5"), "sources.stock.path: it must be a text, not 5"),
        (('event_id = ["a", "b"]', "event_id = []"), r"sources.stock.event_id: it must be a text or a list of texts"),
        (('topic = "matches"', ""), "sink.topic: it is missing, and kafka needs it"),
        (("port = 9108", 'port = "9108"'), "metrics.port: it must be a whole number, not '9108'"),
        (("[sources.stock]", "[elsewhere]"), "sources: it is missing"),
        (("[metrics]", "[metrics"), "is not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(hg.UsageError, match=said):
        load(written(tmp_path, GOOD.replace(*change)))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('store = "book.db"', "").replace('topic = "matches"', "")
    with pytest.raises(hg.UsageError, match=r"(?s)store: it is missing.*sink\.topic: it is missing"):
        load(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(hg.UsageError, match=r"cannot read .*none\.toml: No such file"):
        load(tmp_path / "none.toml")


def test_a_configuration_can_be_checked_without_running_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(run, [str(written(tmp_path, GOOD)), "--check"])
    assert result.exit_code == 0
    assert result.output.endswith("run.toml: fine\n")


def test_a_declared_stream_becomes_the_schema_of_its_files() -> None:
    schema = Schema.of("s", {"a": "bigint", "b.c": "array<string>", "b.d": "timestamp", "g": "graph"})
    assert ddl(schema) == "`a` bigint, `b` struct<`c`: array<string>, `d`: timestamp>, `g` string"
