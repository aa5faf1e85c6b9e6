"""What an event of a stream may hold: attribute types, and Arrow and Spark schemas to ours and back.

There are few types on purpose. Every number of a source becomes BIGINT or DOUBLE, every instant a TIMESTAMP in
microseconds UTC, and a struct dissolves into paths, because a subscription speaks of `addr.city` and never of `addr`
as a thing. A map keeps its keys open: any `m.key` is an attribute, which `Schema.get` answers without listing it.

An attribute whose type is None has the type ANY: each of its values has a kind of its own. So is every attribute of a
stream that nobody declared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from headgate.errors import SchemaError

Path = tuple[str, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_GRAPH = {b"headgate.kind": b"graph"}


class Kind(StrEnum):
    BOOLEAN = "boolean"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"
    BINARY = "binary"
    GRAPH = "graph"


class Instant(int):
    """Microseconds since 1970 in UTC, where nothing but the value itself tells that it is a time."""

    __slots__ = ()


_NAMES = {kind.value: kind for kind in Kind} | {
    "bool": Kind.BOOLEAN,
    **dict.fromkeys(("int", "integer", "long", "smallint", "tinyint"), Kind.BIGINT),
    **dict.fromkeys(("float", "real", "double precision"), Kind.DOUBLE),
    **dict.fromkeys(("text", "varchar", "char", "str"), Kind.STRING),
    **dict.fromkeys(("datetime", "date"), Kind.TIMESTAMP),
    "bytes": Kind.BINARY,
}


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    array: bool = False

    def __str__(self) -> str:
        name = self.kind.value.upper()
        return f"ARRAY<{name}>" if self.array else name

    @property
    def element(self) -> Type:
        """The type of one element of an ARRAY; of a scalar, itself."""
        return Type(self.kind)

    @classmethod
    def parse(cls, text: str) -> Type:
        """`bigint`, `ARRAY<STRING>` and their common synonyms, in any case."""
        name = " ".join(text.split()).lower()
        inner = re.fullmatch(r"array ?< ?(.*?) ?>", name)
        if inner and inner[1].startswith("array"):
            raise SchemaError(f"type {text.strip()!r}: an ARRAY of ARRAY is not supported", "flatten the inner arrays")
        kind = _NAMES.get(inner[1] if inner else name)
        if kind is None:
            known = ", ".join(k.value.upper() for k in Kind)
            raise SchemaError(f"unknown type {text.strip()!r}", f"the types are {known}, ARRAY<T> of these, and ANY")
        return cls(kind, bool(inner))


def parse_type(text: str) -> Type | None:
    """The type of an attribute; None is ANY."""
    return None if text.strip().lower() == "any" else Type.parse(text)


def parse_path(name: str) -> Path:
    """`a.b` to ("a", "b"); a part in backticks may hold anything, a doubled backtick stands for one."""
    parts, at = [], 0
    while True:
        part = _PART.match(name, at)
        if part is None:
            raise SchemaError(f"{name!r} is not the name of an attribute", "write a.b, or `odd name` in backticks")
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        at = part.end()
        if at == len(name):
            return tuple(parts)
        if name[at] != ".":
            raise SchemaError(f"{name!r} is not the name of an attribute", "write a.b, or `odd name` in backticks")
        at += 1


def format_path(path: Path) -> str:
    return ".".join(p if _PLAIN.match(p) else "`" + p.replace("`", "``") + "`" for p in path)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a stream. `default` is a Python value of the type; None means that there is no default."""

    path: Path
    type: Type | None
    default: object = None
    not_null: bool = False

    @property
    def name(self) -> str:
        return format_path(self.path)


@dataclass(frozen=True)
class Schema:
    """The attributes of one stream. `open` holds the prefixes whose keys are not listed: maps, with their value type."""

    stream: str
    attributes: Mapping[Path, Attribute]
    time: tuple[Path, ...] = ()
    declared: bool = True
    open: Mapping[Path, Type | None] = field(default_factory=dict)
    derived: bool = False
    """Whether a pattern gives its events, which keep the time of those that they are made of."""

    def __post_init__(self) -> None:
        if len(self.time) > 2:
            raise SchemaError(
                f"stream {self.stream}: TIME takes one attribute or two (start, end), not {len(self.time)}"
            )
        for path in self.time:
            attribute = self.attributes.get(path)
            if attribute is None:
                raise SchemaError(f"stream {self.stream}: the TIME attribute {format_path(path)} is not declared")
            if attribute.type not in (Type(Kind.BIGINT), Type(Kind.TIMESTAMP)):
                raise SchemaError(
                    f"stream {self.stream}: the TIME attribute {attribute.name} is {attribute.type}",
                    "TIME needs a TIMESTAMP or a BIGINT",
                )

    def may_have(self, path: Path) -> bool:
        """Whether events of the stream can have an attribute: of an undeclared stream, any."""
        return not self.declared or self.get(path) is not None

    def get(self, path: Path) -> Attribute | None:
        """The attribute at a path, or None. A key below an open prefix is an attribute too."""
        found = self.attributes.get(path)
        if found is None and path[:-1] in self.open:
            return Attribute(path, self.open[path[:-1]])
        return found

    @property
    def time_kind(self) -> Kind | None:
        """What TIME is, TIMESTAMP or BIGINT; None where there is none."""
        found = self.attributes[self.time[-1]].type if self.time else None
        return None if found is None else found.kind

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes.values())

    @classmethod
    def of(
        cls,
        stream: str,
        attributes: Mapping[str, str | Type | None],
        time: str | Sequence[str] = (),
        *,
        not_null: Sequence[str] = (),
        defaults: Mapping[str, object] | None = None,
        declared: bool = True,
    ) -> Schema:
        """From names and type names. A TIME attribute that is not listed is a TIMESTAMP."""
        defaults = defaults or {}
        made: dict[Path, Attribute] = {}
        for name, kind in attributes.items():
            path = parse_path(name)
            kind = parse_type(kind) if isinstance(kind, str) else kind
            made[path] = Attribute(path, kind, defaults.get(name), name in not_null)
        times = tuple(parse_path(t) for t in ([time] if isinstance(time, str) else time))
        for path in times:
            made.setdefault(path, Attribute(path, Type(Kind.TIMESTAMP)))
        _no_clash(stream, made)
        return cls(stream, made, times, declared)

    @classmethod
    def from_arrow(cls, stream: str, schema: pa.Schema, time: str | Sequence[str] | None = None) -> Schema:
        """Structs become dotted paths, maps open prefixes. A field that may not be null is NOT NULL."""
        made: dict[Path, Attribute] = {}
        open_: dict[Path, Type | None] = {}

        def visit(path: Path, f: pa.Field[Any], required: bool) -> None:
            kind, required = f.type, required and not f.nullable
            if path in made or path in open_:
                raise SchemaError(f"stream {stream}: column {format_path(path)} occurs twice")
            if pa.types.is_struct(kind):
                for i in range(kind.num_fields):
                    visit((*path, kind.field(i).name), kind.field(i), required)
            elif pa.types.is_map(kind) and is_text(kind.key_type):
                open_[path] = arrow_type(kind.item_type, format_path(path))
            else:
                ours = arrow_type(kind, format_path(path))
                if ours and (f.metadata or {}).get(b"headgate.kind") == b"graph":
                    ours = Type(Kind.GRAPH, ours.array)
                made[path] = Attribute(path, ours, None, required)

        for f in schema:
            visit((f.name,), f, True)
        if time is None:
            noted = (schema.metadata or {}).get(b"headgate.time")
            time = json.loads(noted) if noted else ()
        times = tuple(parse_path(t) for t in ([time] if isinstance(time, str) else time))
        return cls(stream, made, times, open=open_)

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema of events of this stream; `from_arrow` reads back all but the defaults."""
        tree: dict[str, Any] = {}
        inner = {path[:n] for path in (*self.attributes, *self.open) for n in range(1, len(path))}
        for attribute in self.attributes.values():
            if attribute.path in inner:
                continue
            node = tree
            for part in attribute.path[:-1]:
                node = node.setdefault(part, {})
            node[attribute.path[-1]] = attribute
        for path, kind in self.open.items():
            node = tree
            for part in path[:-1]:
                node = node.setdefault(part, {})
            node[path[-1]] = pa.field(path[-1], pa.map_(pa.string(), to_arrow_type(kind)))

        def build(name: str, node: Any) -> pa.Field[Any]:
            if isinstance(node, pa.Field):
                return node
            if isinstance(node, Attribute):
                graph = _GRAPH if node.type and node.type.kind is Kind.GRAPH else None
                return pa.field(name, to_arrow_type(node.type), nullable=not node.not_null, metadata=graph)
            children = [build(key, child) for key, child in node.items()]
            return pa.field(name, pa.struct(children), nullable=all(c.nullable for c in children))

        noted: dict[bytes | str, bytes | str] | None = None
        if self.time:
            noted = {"headgate.time": json.dumps([format_path(t) for t in self.time])}
        return pa.schema([build(name, node) for name, node in tree.items()], metadata=noted)

    @classmethod
    def from_spark(cls, stream: str, schema: Any, time: str | Sequence[str] = ()) -> Schema:
        """From a Spark StructType, or from its JSON as a dict. Spark itself is not imported."""
        tree = schema.jsonValue() if hasattr(schema, "jsonValue") else schema
        if not isinstance(tree, Mapping) or tree.get("type") != "struct":
            raise SchemaError(f"stream {stream}: not a Spark schema", "pass df.schema, or df.schema.jsonValue()")
        fields = [pa.field(f["name"], _spark_type(f["type"], f["name"]), f["nullable"]) for f in tree["fields"]]
        return cls.from_arrow(stream, pa.schema(fields), time)


def _no_clash(stream: str, attributes: Mapping[Path, Attribute]) -> None:
    for path in attributes:
        for n in range(1, len(path)):
            above = attributes.get(path[:n])
            if above is not None and above.type is not None:
                raise SchemaError(
                    f"stream {stream}: {above.name} is {above.type}, so {format_path(path)} cannot be inside it"
                )


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_bytes(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind)


def is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)


def arrow_type(kind: Any, column: str) -> Type | None:
    """Our type for an Arrow type; None for Arrow's null type, SchemaError for what we cannot hold."""
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return arrow_type(kind.storage_type, column)
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return arrow_type(kind.value_type, column)
    if t.is_null(kind):
        return None
    if is_list(kind):
        inner = arrow_type(kind.value_type, column) if not is_list(kind.value_type) else None
        if inner is None:
            raise SchemaError(f"column {column} has the type {kind}, which is not supported", "see ARRAY<T>")
        return Type(inner.kind, True)
    for holds, ours in (
        (t.is_boolean, Kind.BOOLEAN),
        (t.is_integer, Kind.BIGINT),
        (t.is_floating, Kind.DOUBLE),
        (is_text, Kind.STRING),
        (t.is_timestamp, Kind.TIMESTAMP),
        (t.is_date, Kind.TIMESTAMP),
        (is_bytes, Kind.BINARY),
    ):
        if holds(kind):
            return Type(ours)
    if t.is_decimal(kind):
        return Type(Kind.BIGINT if kind.scale <= 0 else Kind.DOUBLE)
    raise SchemaError(f"column {column} has the type {kind}, which is not supported", "drop the column, or cast it")


_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.BINARY: pa.binary(),
    Kind.GRAPH: pa.string(),
}


def to_arrow_type(ours: Type | None) -> Any:
    if ours is None:
        return pa.null()
    return pa.list_(_ARROW[ours.kind]) if ours.array else _ARROW[ours.kind]


_SPARK = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "void": pa.null(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def _spark_type(kind: Any, column: str) -> Any:
    """The Arrow type of a Spark type in its JSON form."""
    if isinstance(kind, str):
        if kind in _SPARK:
            return _SPARK[kind]
        if re.fullmatch(r"(var)?char\(\d+\)", kind) or kind.startswith("string collate"):
            return pa.string()
        if size := re.fullmatch(r"decimal\((\d+), ?(-?\d+)\)", kind):
            return pa.decimal128(int(size[1]), int(size[2]))
    elif kind["type"] == "struct":
        return pa.struct([pa.field(f["name"], _spark_type(f["type"], column), f["nullable"]) for f in kind["fields"]])
    elif kind["type"] == "array":
        return pa.list_(_spark_type(kind["elementType"], column))
    elif kind["type"] == "map":
        return pa.map_(_spark_type(kind["keyType"], column), _spark_type(kind["valueType"], column))
    elif kind["type"] == "udt":
        return _spark_type(kind["sqlType"], column)
    raise SchemaError(f"column {column} has the Spark type {kind}, which is not supported", "drop it, or cast it")
