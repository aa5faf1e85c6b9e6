"""Where the matches of a micro-batch go, and what a crash in between leaves behind.

| sink | after a crash and a restart |
|---|---|
| `Files` | a batch writes a folder of its own, anew when it is replayed: each match once |
| `Notifications` | one transaction makes a batch visible, a match that is there stays: each match once, in the store |
| `Kafka` | a batch may be written again: each match at least once, with its id as the key; see `deduplicated` |
| `Console` | may show a batch again |
| a function | called as `foreachBatch` calls it, again with the same number for the same batch |

Errors go to a sink as well: by default to the error log of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import orjson
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from headgate.errors import UsageError
from headgate.results import ERROR
from headgate.spark.frame import is_complex
from headgate.store import Store
from headgate.store.database import Database
from headgate.store.logs import Logs, staged

Each = Callable[[DataFrame, int], None]
FORMATS = ("parquet", "json", "csv", "orc")


class Sink(Protocol):
    """Takes the matches, or the errors, of one micro-batch; called again with the same batch after a crash."""

    @property
    def name(self) -> str: ...

    def write(self, df: DataFrame, query: str, batch: int, /) -> None: ...


@dataclass(frozen=True)
class Files:
    """Files of a format under `path/query=.../batch=...`; Spark reads the path as one table with these two columns."""

    path: str
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(f"format = {self.format!r} is unknown", f"choose one of {', '.join(FORMATS)}")

    @property
    def name(self) -> str:
        return f"{self.format} files in {self.path}"

    def write(self, df: DataFrame, query: str, batch: int) -> None:
        if self.format == "csv":
            df = with_text(df)
            if "subscriptions" in df.columns:
                df = df.withColumn("subscriptions", fn.to_json("subscriptions"))
        folder = f"{self.path.rstrip('/')}/query={query}/batch={batch}"
        df.write.format(self.format).options(**self.options).mode("overwrite").save(folder)


@dataclass(frozen=True)
class Kafka:
    """A topic: the key is the id of the match, the value a JSON object of its columns."""

    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"Kafka topic {self.topic}"

    def write(self, df: DataFrame, _query: str, _batch: int) -> None:
        value = fn.to_json(fn.struct(*(fn.col(f"`{c}`") for c in df.columns)))
        made = df.select(fn.col("id").alias("key"), value.alias("value"))
        settings = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, **self.options}
        made.write.format("kafka").options(**settings).save()


@dataclass(frozen=True)
class Console:
    """Rows on standard output, for trying things out."""

    rows: int = 20

    @property
    def name(self) -> str:
        return "the console"

    def write(self, df: DataFrame, _query: str, _batch: int) -> None:
        df.show(self.rows, truncate=False)


@dataclass(frozen=True)
class Notifications:
    """The notifications of a store, and its error log."""

    store: Store

    @property
    def name(self) -> str:
        return "the store"

    def write(self, df: DataFrame, query: str, batch: int) -> None:
        if "code" in df.columns:
            df = df.select("id", "stream", "event", fn.struct(*(f.name for f in ERROR)).alias("error"))
        self.take(df, query, batch)

    def take(self, df: DataFrame, query: str, batch: int) -> dict[str, int]:
        """Matches, errors and tallies of one frame, in one job; how many events, matches and errors there were.

        As `format("headgate")` writes, but in Spark's own workers: a data source gets new processes for each write.
        Rows that a dead driver left staged are those of the same batch: they come in when it is done again.
        """
        job = f"{query}/{batch}"
        try:
            parts = with_text(df).mapInArrow(Stage(self.store.url, job), STAGED).collect()
        except BaseException:
            self.store.logs.abort([job])
            raise
        rows = [row for part in parts if part["rows"] for row in orjson.loads(part["rows"])]
        if any(part["matches"] or part["errors"] for part in parts):
            self.store.logs.commit([job], rows)
        return {name: sum(part[name] for part in parts) for name in ("events", "matches", "errors")}


STAGED = "events bigint, matches bigint, errors bigint, rows binary"
INLINE = 1000
"""A task with at most this many rows sends them to the driver, which has a transaction to write them in anyway."""


@dataclass(frozen=True)
class Stage:
    """In a worker: rows into the staging table of a store, or, if they are few, to the driver."""

    store: str
    job: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        events = matches = errors = 0
        held: list[dict[str, Any]] = []
        for batch in batches:
            for row in batch.to_pylist():
                if row["id"] is None:
                    events += orjson.loads(row["output"]).get("events", 0)
                    continue
                held.append(staged(row))
                matches, errors = (matches, errors + 1) if row.get("error") else (matches + 1, errors)
            if len(held) > INLINE:
                Logs(_database(self.store)).stage(self.job, held)
                held = []
        counts = {"events": [events], "matches": [matches], "errors": [errors]}
        yield pa.table({**counts, "rows": pa.array([orjson.dumps(held) if held else None], pa.binary())}).to_batches()[
            0
        ]


@cache
def _database(url: str) -> Database:
    """One for each worker process, which lives on for the next batch."""
    return Database(url)


@dataclass(frozen=True)
class Function:
    """A function of the user."""

    call: Each

    @property
    def name(self) -> str:
        return getattr(self.call, "__name__", type(self.call).__name__)

    def write(self, df: DataFrame, _query: str, batch: int) -> None:
        self.call(df, batch)


def sink_of(given: Sink | Each | str, store: Store) -> Sink:
    """A sink by what the user said: a sink, a function, "console", "store", or a folder for Parquet files."""
    if isinstance(given, Files | Kafka | Console | Notifications | Function):
        return given
    if isinstance(given, str):
        if given == "console":
            return Console()
        if given == "store":
            return Notifications(store)
        if "/" in given:
            return Files(given)
        raise UsageError(f"sink = {given!r} is unknown", 'say "console", "store", the path of a folder, or pass a sink')
    if hasattr(given, "write") and hasattr(given, "name"):
        return given
    if callable(given):
        return Function(given)
    raise UsageError(f"a {type(given).__name__} is no sink", "pass a sink, or a function of a frame and a batch number")


def with_text(df: DataFrame) -> DataFrame:
    """The event ids as texts."""
    kind = df.schema["event"].dataType
    if kind.typeName() == "string":
        return df
    column: Column = fn.to_json("event") if is_complex(kind) else fn.col("event").cast("string")
    return df.withColumn("event", column)
