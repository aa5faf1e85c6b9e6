from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.errors import SchemaError
from headgate.schema import Attribute, Kind, Schema, Type, format_path, parse_path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bigint", "BIGINT"),
        ("INT", "BIGINT"),
        ("long", "BIGINT"),
        ("Real", "DOUBLE"),
        ("varchar", "STRING"),
        ("bool", "BOOLEAN"),
        ("array<text>", "ARRAY<STRING>"),
        ("ARRAY < integer >", "ARRAY<BIGINT>"),
        ("graph", "GRAPH"),
    ],
)
def test_a_type_is_read_in_any_case_and_by_its_synonyms(text: str, shown: str) -> None:
    assert str(Type.parse(text)) == shown


def test_an_unknown_type_is_refused_with_the_list_of_types() -> None:
    with pytest.raises(SchemaError, match=r"unknown type 'strin'\n  hint: the types are BOOLEAN, BIGINT"):
        Type.parse("strin")


def test_an_array_of_arrays_is_refused() -> None:
    with pytest.raises(SchemaError, match="an ARRAY of ARRAY is not supported"):
        Type.parse("array<array<bigint>>")


@pytest.mark.parametrize("path", [("a",), ("a", "b"), ("odd name", "x"), ("a.b",), ("tick`s",), ("1st",), ("größe",)])
def test_a_path_and_its_name_are_inverse(path: tuple[str, ...]) -> None:
    assert parse_path(format_path(path)) == path


def test_odd_parts_of_a_name_stand_in_backticks() -> None:
    assert Attribute(("a", "b c"), None).name == "a.`b c`"


@pytest.mark.parametrize("name", ["", "a..b", ".a", "a.", "`a", "a`b`"])
def test_a_broken_name_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="is not the name of an attribute"):
        parse_path(name)


def test_a_time_attribute_that_is_not_listed_is_a_timestamp() -> None:
    schema = Schema.of("stock", {"price": "double"}, time="at")
    assert schema.attributes[("at",)].type == Type(Kind.TIMESTAMP)
    assert schema.time == (("at",),)


def test_time_may_be_a_start_and_an_end() -> None:
    assert Schema.of("s", {"start": "bigint"}, time=("start", "end")).time == (("start",), ("end",))


def test_time_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"stream s: the TIME attribute at is STRING\n  hint: TIME needs"):
        Schema.of("s", {"at": "string"}, time="at")


def test_time_takes_at_most_two_attributes() -> None:
    with pytest.raises(SchemaError, match="TIME takes one attribute or two"):
        Schema.of("s", {}, time=("a", "b", "c"))


def test_an_attribute_inside_a_scalar_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"stream s: a is BIGINT, so a\.b cannot be inside it"):
        Schema.of("s", {"a": "bigint", "a.b": "string"})


ARROW = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("addr", pa.struct([("city", pa.large_string()), ("zip", pa.dictionary(pa.int8(), pa.string()))])),
        pa.field("tags", pa.list_(pa.float32())),
        pa.field("day", pa.date32()),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("count", pa.decimal128(10, 0)),
        pa.field("extra", pa.map_(pa.string(), pa.string())),
        pa.field("none", pa.null()),
    ]
)


def test_arrow_types_become_ours_and_structs_become_paths() -> None:
    schema = Schema.from_arrow("s", ARROW)
    assert {a.name: str(a.type) for a in schema} == {
        "id": "BIGINT",
        "addr.city": "STRING",
        "addr.zip": "STRING",
        "tags": "ARRAY<DOUBLE>",
        "day": "TIMESTAMP",
        "amount": "DOUBLE",
        "count": "BIGINT",
        "none": "None",
    }
    assert schema.attributes[("id",)].not_null


def test_any_key_of_a_map_is_an_attribute() -> None:
    schema = Schema.from_arrow("s", ARROW)
    assert schema.get(("extra", "anything")) == Attribute(("extra", "anything"), Type(Kind.STRING))
    assert schema.get(("extra",)) is None


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.time64("us"), pa.list_(pa.list_(pa.int64()))])
def test_an_unsupported_arrow_type_is_refused_by_column_and_type(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_arrow("s", pa.schema([("a", pa.struct([("b", kind)]))]))
    assert f"column a.b has the type {kind}, which is not supported" in str(caught.value)


def test_to_arrow_and_back_gives_the_same_schema() -> None:
    schema = Schema.from_arrow(
        "s",
        Schema.of(
            "s",
            {"a.b": "bigint", "a.c": "string", "g": "graph", "t": "array<timestamp>", "x": None},
            time="a.at",
            not_null=["a.b"],
        ).to_arrow(),
    )
    assert Schema.from_arrow("s", schema.to_arrow()) == schema
    assert schema.attributes[("g",)].type == Type(Kind.GRAPH)
    assert schema.attributes[("a", "b")].not_null
    assert schema.time == (("a", "at"),)


SPARK: dict[str, object] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "amount", "type": "decimal(12,3)", "nullable": True, "metadata": {}},
        {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
        {
            "name": "tags",
            "type": {"type": "array", "elementType": "string", "containsNull": True},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "m",
            "type": {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
            "nullable": True,
            "metadata": {},
        },
        {
            "name": "a",
            "type": {"type": "struct", "fields": [{"name": "b", "type": "varchar(3)", "nullable": True}]},
            "nullable": True,
            "metadata": {},
        },
    ],
}


def test_a_spark_schema_is_read_from_its_json_or_from_the_object() -> None:
    class StructType:
        def jsonValue(self) -> dict[str, object]:  # noqa: N802 - Spark calls it so
            return SPARK

    schema = Schema.from_spark("s", StructType(), time="at")
    assert schema == Schema.from_spark("s", SPARK, time="at")
    shown = {a.name: str(a.type) for a in schema}
    assert shown == {"id": "BIGINT", "amount": "DOUBLE", "at": "TIMESTAMP", "tags": "ARRAY<STRING>", "a.b": "STRING"}
    assert schema.open == {("m",): Type(Kind.DOUBLE)}


def test_an_unsupported_spark_type_is_refused_by_column() -> None:
    field = {"name": "v", "type": "variant", "nullable": True}
    with pytest.raises(SchemaError, match="column v has the Spark type variant, which is not supported"):
        Schema.from_spark("s", {"type": "struct", "fields": [field]})


def test_something_else_is_no_spark_schema() -> None:
    with pytest.raises(SchemaError, match="not a Spark schema"):
        Schema.from_spark("s", {"a": 1})
