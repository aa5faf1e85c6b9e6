"""The part of a Spark frame that matching needs: the event's id and the columns that subscriptions mention.

Spark cannot prune columns through `mapInArrow`, so they are selected before it: of a struct only the needed fields, so
that a Parquet reader skips the others too. A needed column that the frame lacks, or whose type can never fit, is an
error here, before a job starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from headgate.errors import SchemaError, UsageError
from headgate.events.tables import always_fits
from headgate.language.catalogue import nearest
from headgate.runtime.batches import BODY, EVENT
from headgate.schema import Attribute, Kind, Path, Schema, Type, format_path

STREAM = "__stream"
EVERY = "*"
"""In the place of a stream: each event names its own, in the column `stream`, as in the event log of a store."""
KAFKA = ("topic", "partition", "offset")
EventId = str | Column | Sequence[str] | None
_NUMBERS = frozenset({Kind.BIGINT, Kind.DOUBLE})
_FITS: Mapping[Kind, frozenset[Kind]] = {
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}),
    Kind.BIGINT: _NUMBERS,
    Kind.DOUBLE: _NUMBERS,
    Kind.STRING: frozenset({Kind.STRING}),
    Kind.GRAPH: frozenset({Kind.STRING}),
    Kind.TIMESTAMP: frozenset({Kind.TIMESTAMP, Kind.STRING, Kind.BIGINT}),
    Kind.BINARY: frozenset({Kind.BINARY, Kind.STRING}),
}
"""The kinds of column that may hold an attribute of a kind; single values may still not fit."""


def wanted(df: DataFrame, schema: Schema, needs: Iterable[Path]) -> dict[Path, Attribute]:
    """What must be read for these needs: they, what every event of the stream must have, and what may not fit."""
    paths = dict.fromkeys(sorted(needs))
    paths.update((a.path, None) for a in schema if a.not_null or a.path in schema.time)
    if schema.declared:
        paths.update((a.path, None) for a in schema if not _typed(df, a))
    return {path: schema.get(path) or Attribute(path, None) for path in paths}


def selected(
    df: DataFrame,
    schema: Schema,
    needs: Iterable[Path],
    event_id: EventId,
    json: str | None,
    lenient: bool = False,
    extra: Sequence[str] = (),
) -> DataFrame:
    """`EVENT` first, then the needed columns, or `BODY` where the events are JSON texts in one column."""
    identity = event_column(df, event_id).alias(EVENT)
    if json is not None:
        if json not in df.columns:
            raise SchemaError(f"the frame has no column {json} to read JSON from", _has(df))
        kind = df.schema[json].dataType.typeName()
        if kind not in ("string", "binary"):
            raise SchemaError(f"column {json} is {kind}, and JSON is read from a string or binary column")
        return df.select(identity, fn.col(_quoted(json)).alias(BODY), *extra)
    attributes = wanted(df, schema, needs)
    if not lenient:
        check(df, schema, {path: a for path, a in attributes.items() if a.type is not None})
    # What has the type ANY may be missing, and may lie in an array.
    attributes = {
        path: a
        for path, a in attributes.items()
        if _kind(df.schema, path) is not None or (a.type is None and path[0] in df.columns)
    }
    by_column: dict[str, list[Path]] = {}
    for path in attributes:
        by_column.setdefault(path[0], []).append(path)
    columns = [_pruned((name,), df.schema[name].dataType, paths).alias(name) for name, paths in by_column.items()]
    return df.select(identity, *columns)


def routed(df: DataFrame, event_id: EventId, json: str | None) -> DataFrame:
    """As `selected`, for a frame of events of every stream: the columns are not those of one stream, so it is all JSON."""
    if json is None:
        raise UsageError('on = "*" reads events of every stream, as JSON texts', "say json= the column that has them")
    if "stream" not in df.columns:
        raise SchemaError('on = "*" reads the stream of an event from the column stream, and there is none', _has(df))
    texts = selected(df, Schema(EVERY, {}, declared=False), (), event_id, json, extra=("stream",))
    return texts.withColumnRenamed("stream", STREAM)


def absent(df: DataFrame, needs: Iterable[Path]) -> list[str]:
    """Which of the needed paths a frame does not have."""
    kind = df.schema
    return [format_path(path) for path in sorted(needs) if _kind(kind, path) is None]


def check(df: DataFrame, schema: Schema, attributes: Mapping[Path, Attribute]) -> None:
    """Refuses a frame that cannot have the attributes, which have declared types."""
    have = Schema.from_spark(
        schema.stream, df.select(*{_quoted(p[0]) for p in attributes if p[0] in df.columns}).schema
    )
    for path, attribute in attributes.items():
        kind = _kind(df.schema, path)
        if kind is None:
            raise SchemaError(
                f"stream {schema.stream}: the frame has no column {format_path(path)}, which subscriptions need",
                nearest(format_path(path), df.columns, _has(df)),
            )
        found = have.get(path)
        if found is None or found.type is None:
            continue
        assert attribute.type is not None
        if not _fits(found.type, attribute.type):
            raise SchemaError(
                f"stream {schema.stream}: column {format_path(path)} is {found.type}, and declared is {attribute.type}",
                "cast the column, or declare the stream with the type that it has",
            )


def event_column(df: DataFrame, event_id: EventId) -> Column:
    """The column that identifies an event for ever; of several columns, a text of them all."""
    if isinstance(event_id, Column):
        return event_id
    if event_id is None:
        if all(name in df.columns for name in KAFKA):
            return fn.concat_ws("/", *(fn.col(name).cast("string") for name in KAFKA))
        raise UsageError(
            "the events need a stable id: the same event must have the same one whenever it is read again",
            "say event_id= a column or several; a frame read from Kafka or from the event log brings its own",
        )
    names = [event_id] if isinstance(event_id, str) else list(event_id)
    for name in names:
        if _kind(df.schema, tuple(name.split("."))) is None and name not in df.columns:
            raise SchemaError(f"the frame has no column {name} for the event id", _has(df))
    if not names:
        raise UsageError("event_id names no column", _has(df))
    columns = [fn.col(_quoted(name) if name in df.columns else name) for name in names]
    return columns[0] if len(columns) == 1 else fn.to_json(fn.struct(*columns), {"ignoreNullFields": "false"})


def _has(df: DataFrame) -> str:
    return f"it has {', '.join(df.columns)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _kind(kind: DataType, path: Path) -> DataType | None:
    """The Spark type at a path; any key of a map of texts is there."""
    for part in path:
        if isinstance(kind, StructType):
            if part not in kind.names:
                return None
            kind = kind[part].dataType
        elif isinstance(kind, MapType):
            kind = kind.valueType
        else:
            return None
    return kind


def _pruned(path: Path, kind: DataType, needs: Sequence[Path]) -> Column:
    """A column with the needed fields of structs alone."""
    column = fn.col(".".join(map(_quoted, path)))
    below: dict[str, list[Path]] = {}
    for need in needs:
        if len(need) == len(path) or not isinstance(kind, StructType):
            return column
        if need[len(path)] in kind.names:
            below.setdefault(need[len(path)], []).append(need)
    if not below:
        return column
    assert isinstance(kind, StructType)
    fields = [_pruned((*path, name), kind[name].dataType, paths).alias(name) for name, paths in below.items()]
    return fn.when(column.isNotNull(), fn.struct(*fields))


def _typed(df: DataFrame, attribute: Attribute) -> bool:
    """Whether the frame has an attribute in its declared type, or not at all."""
    kind = _kind(df.schema, attribute.path)
    if kind is None:
        return True
    try:
        found = Schema.from_spark("", StructType([StructField("x", kind)])).get(("x",))
    except SchemaError:
        return True
    return found is None or always_fits(found.type, attribute.type)


def _fits(found: Type, declared: Type) -> bool:
    return found.array == declared.array and found.kind in _FITS[declared.kind]


def is_complex(kind: Any) -> bool:
    """Whether an event id of this type is a value with parts."""
    return isinstance(kind, StructType | ArrayType | MapType)
