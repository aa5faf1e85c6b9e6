"""From a configuration to a running query: session, store, sources, sinks."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.errors import EnvironmentProblem, UsageError
from headgate.schema import Kind, Schema, Type
from headgate.spark.config import FILES, Config, Source, Target
from headgate.spark.frame import EVERY, EventId
from headgate.spark.metrics import Metrics
from headgate.spark.session import spark_session
from headgate.spark.sinks import Console, Files, Kafka, Notifications, Sink
from headgate.spark.source import HeadgateSource
from headgate.spark.stream import Running, start
from headgate.store import Store
from headgate.subscriptions import Subscriptions

_SQL = {Kind.TIMESTAMP: "timestamp", Kind.GRAPH: "string"}
BODIES = {"kafka": "value", "headgate": "body", "socket": "value"}
"""Where the sources that bring texts have them; these are JSON unless the configuration says otherwise."""


def launch(config: Config) -> Running:
    """Start what a configuration describes."""
    store = Store(config.store)
    if config.rules is not None and store.version == 0:
        store.load(Subscriptions.load(config.rules))
    bodies = {source.json or BODIES.get(source.format) for source in config.sources.values()}
    if len(bodies) > 1:
        raise UsageError(
            "sources: the events of all sources must be JSON texts in columns of one name, or typed columns",
            "run a query for each kind",
        )
    spark = spark_session(config.master, config.name, config.spark)
    frames = {stream: _frame(spark, source, store, stream) for stream, source in config.sources.items()}
    metrics = Metrics(config.name, Path(config.metrics_file) if config.metrics_file else None)
    if config.metrics_port is not None:
        metrics.serve(config.metrics_port)
    return start(
        frames,
        store,
        _sink(config.sink, store),
        config.checkpoint,
        event_id={stream: _event_id(source) for stream, source in config.sources.items()},
        json=bodies.pop(),
        errors=_sink(config.errors, store),
        trigger=config.trigger,
        name=config.name,
        plans=config.plans,
        metrics=metrics,
        watermark=config.watermark,
        idle=config.idle,
        ahead=config.ahead,
        buckets=config.buckets,
    )


def _event_id(source: Source) -> EventId:
    if source.event_id is not None:
        return source.event_id
    return {"headgate": "id", "rate": "value", "socket": "line"}.get(source.format)


def _frame(spark: SparkSession, source: Source, store: Store, stream: str) -> DataFrame:
    reader = spark.readStream.format(source.format).options(**source.options)
    if source.format in FILES:
        if not Path(source.path or "").exists() and "://" not in (source.path or ""):
            raise UsageError(f"sources.{stream}.path: there is no folder {source.path}")
        return reader.schema(source.schema or _declared(store, stream, source)).load(source.path)
    if source.format == "kafka":
        try:
            settings = {"kafka.bootstrap.servers": str(source.servers), "subscribe": str(source.topic)}
            return reader.options(**settings).load()
        except Exception as problem:
            if "kafka" in str(problem).lower() and "find" in str(problem).lower():
                hint = 'put it into [spark]: "spark.jars", or "spark.jars.packages" with its Maven coordinates'
                raise EnvironmentProblem("Spark lacks its Kafka connector", hint) from None
            raise
    if source.format == "socket":
        # A line of a socket is gone once it is read: its place in the batch is all the identity that there is.
        lines = (
            reader.option("host", str(source.host)).option("port", str(source.port)).option("includeTimestamp", True)
        )
        return lines.load().withColumn("line", fn.expr("uuid()"))
    if source.format == "headgate":
        spark.dataSource.register(HeadgateSource)
        log = reader.option("store", store.url)
        return (log if stream == EVERY else log.option("stream", stream)).load()
    return reader.load()


def _declared(store: Store, stream: str, source: Source) -> str:
    """The columns of files, from the declaration of their stream, and the id column, which need not be declared."""
    schema = store.book().streams.get(stream)
    if schema is None or not schema.declared:
        raise UsageError(f"sources.{stream}.schema: it is missing", "files need one where the stream is not declared")
    ids = [source.event_id] if isinstance(source.event_id, str) else source.event_id or ()
    known = {path[0] for path in schema.attributes} | {path[0] for path in schema.open}
    return ", ".join([ddl(schema), *(f"`{name}` string" for name in ids if name not in known)])


def ddl(schema: Schema) -> str:
    """A stream as Spark's DDL: nested paths as structs, open prefixes as maps."""
    tree: dict[str, object] = {}
    for attribute in schema:
        _put(tree, attribute.path, _sql(attribute.type))
    for path, kind in schema.open.items():
        _put(tree, path, f"map<string, {_sql(kind)}>")
    return ", ".join(f"`{name}` {_ddl(kind)}" for name, kind in tree.items())


def _put(tree: dict[str, object], path: tuple[str, ...], kind: str) -> None:
    for part in path[:-1]:
        below = tree.setdefault(part, {})
        assert isinstance(below, dict)
        tree = below
    tree[path[-1]] = kind


def _ddl(kind: object) -> str:
    if isinstance(kind, dict):
        return "struct<" + ", ".join(f"`{name}`: {_ddl(below)}" for name, below in kind.items()) + ">"
    return str(kind)


def _sql(kind: Type | None) -> str:
    if kind is None:
        return "string"
    name = _SQL.get(kind.kind, kind.kind.value)
    return f"array<{name}>" if kind.array else name


def _sink(target: Target, store: Store) -> Sink:
    if target.format in FILES:
        return Files(str(target.path), target.format, target.options)
    if target.format == "kafka":
        return Kafka(str(target.servers), str(target.topic), target.options)
    return Console() if target.format == "console" else Notifications(store)
