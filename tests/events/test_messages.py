"""CloudEvents and XML messages."""

from __future__ import annotations

import base64
import io

import orjson
import pyarrow as pa
import pytest

from headgate.errors import UsageError
from headgate.events import Decoded, Limits, from_cloudevents, from_xml, read_cloudevents, read_xml
from headgate.schema import Schema

CLOUD = Schema.of("c", {"id": "string", "type": "string", "data.x": "bigint", "tenant": "string"}, time="time")
EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "time": "1970-01-01T00:00:01Z"}


def rows(*batches: Decoded) -> list[dict[str, object]]:
    return [
        {".".join(path): v for path, v in batch.columns.row(i).items() if v is not None}
        for batch in batches
        for i in range(batch.columns.rows)
    ]


def test_context_attributes_extensions_and_data_become_paths() -> None:
    decoded = from_cloudevents({**EVENT, "tenant": "z", "data": {"x": 5}}, CLOUD)
    assert rows(decoded) == [{"id": "1", "type": "t", "data.x": 5, "tenant": "z", "time": 1_000_000}]


def test_base64_data_is_read_as_json_when_its_type_allows() -> None:
    encoded = base64.b64encode(b'{"x": 7}').decode()
    for content in ({}, {"datacontenttype": "application/json; charset=utf-8"}, {"datacontenttype": "text/x+json"}):
        assert rows(from_cloudevents([{**EVENT, **content, "data_base64": encoded}], CLOUD))[0]["data.x"] == 7
    raw = Schema.of("c", {"data": "binary"})
    event = {**EVENT, "datacontenttype": "image/png", "data_base64": encoded}
    assert rows(from_cloudevents([event], raw)) == [{"data": b'{"x": 7}'}]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"id": "2"}, "not a CloudEvent: it lacks source, specversion, type"),
        ({**EVENT, "id": ""}, "not a CloudEvent: it lacks id"),
        ({**EVENT, "id": 5}, "not a CloudEvent: it lacks id (id is 5, not text)"),
        ({**EVENT, "specversion": "0.3"}, "CloudEvents '0.3' is not supported, only 1.x"),
        ({**EVENT, "data_base64": "!"}, "data_base64 is not base64: '!'"),
        ({**EVENT, "data_base64": "eA=="}, "the data is not the JSON that its content type promises"),
        ({**EVENT, "data": 1, "data_base64": "MQ=="}, "it has both data and data_base64"),
        (7, "an event must be an object, not 7"),
        ({**EVENT, "data": 5}, "data.x: data is 5, not an object, so it has no x"),
    ],
)
def test_what_is_no_cloudevent_is_rejected(event: object, reason: str) -> None:
    decoded = from_cloudevents([EVENT, event], CLOUD, first=3)
    assert rows(decoded) == [{"id": "1", "type": "t", "time": 1_000_000}]
    assert decoded.rejected[0].event == 4 and reason in decoded.rejected[0].reason


def test_the_binary_mode_is_a_table_of_headers_and_data() -> None:
    table = pa.table(
        {
            "ce_id": ["1", None],
            "ce_source": [b"/a", b"/b"],
            "ce_type": ["t", "t"],
            "ce_specversion": ["1.0", "1.0"],
            "ce-tenant": ["z", "z"],
            "value": [b'{"x": 5}', b"{}"],
        }
    )
    decoded = from_cloudevents(table, CLOUD)
    assert rows(decoded) == [{"id": "1", "type": "t", "data.x": 5, "tenant": "z"}]
    assert decoded.rejected[0].reason == "not a CloudEvent: it lacks id"


def test_a_table_without_such_columns_is_refused() -> None:
    with pytest.raises(UsageError, match="the table has no CloudEvents columns"):
        from_cloudevents(pa.table({"x": [1]}), CLOUD)


@pytest.mark.parametrize("form", ["lines", "batch", "single"])
def test_structured_json_is_read_as_lines_as_a_batch_and_alone(form: str) -> None:
    events = [{**EVENT, "data": {"x": i}} for i in range(1 if form == "single" else 3)]
    text = orjson.dumps(events) if form == "batch" else b"\n".join(map(orjson.dumps, events))
    assert [r["data.x"] for r in rows(*read_cloudevents(io.BytesIO(text), CLOUD))] == list(range(len(events)))


def test_a_bad_line_among_cloudevents_is_rejected_with_its_line() -> None:
    big = orjson.dumps({**EVENT, "data": {"x": 1}}).replace(b'"x":1', b'"x":-9223372036854775809')
    (batch,) = read_cloudevents(io.BytesIO(orjson.dumps(EVENT) + b'\n{"id": "1"}\n' + big), CLOUD)
    assert [r.reason for r in batch.rejected] == [
        "line 2: not a CloudEvent: it lacks source, specversion, type",
        "line 3: data.x: -9223372036854775809 is not a BIGINT: it needs more than 64 bits",
    ]


XML = Schema.of(
    "m", {"company": "string", "product": "string", "price": "double", "tag": "array<bigint>", "addr.city": "string"}
)
PAPER = """<company> IBM </company>

<product> PC AT, 20 Mhz, 256 KB RAM

</product>

<price> 5000 </price>"""


def test_the_message_of_the_paper_is_total_and_its_second_lacks_the_price() -> None:
    second = "<company> Future Inc. </company>\n<product> 100 GHz Super PC </product>"
    assert rows(from_xml([PAPER, second], XML)) == [
        {"company": "IBM", "product": "PC AT, 20 Mhz, 256 KB RAM", "price": 5000.0},
        {"company": "Future Inc.", "product": "100 GHz Super PC"},
    ]


def test_nested_elements_are_paths_and_repeated_ones_an_array() -> None:
    text = b"<m xmlns='urn:x'><addr><city>Rome</city></addr><tag>1</tag><tag/><tag> 2 </tag></m>"
    assert rows(from_xml([text], XML)) == [{"addr.city": "Rome", "tag": [1, None, 2]}]


def test_one_element_is_an_array_of_one() -> None:
    assert rows(from_xml(["<m><tag>1</tag></m>"], XML)) == [{"tag": [1]}]


def test_an_empty_element_is_missing_but_for_text() -> None:
    assert rows(from_xml(["<m><price/><company/></m>", "<message/>"], XML)) == [{"company": ""}, {}]


BOMB = "<!DOCTYPE z [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><message><company>&b;</company></message>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "XML with a document type or entities is refused"),
        ("<a><b></a>", "not XML: mismatched tag"),
        ("", "not XML: no element found"),
        ("plain text", "not XML: syntax error"),
        ("<m><price>much</price></m>", "price: the text 'much' is not a DOUBLE"),
        ("<m><price>1</price><price>2</price></m>", "price: it occurs 2 times but is not an ARRAY"),
        ("<m><addr>Rome</addr></m>", "addr.city: addr is text, not an object, so it has no city"),
        ("<m><price><a/></price></m>", "price: it holds other elements but is a DOUBLE"),
        (b"<?xml version='1.0' encoding='klingon'?><m/>", "not XML: "),
        ("<m>" + "x" * 300 + "</m>", "an event of 307 bytes is above the limit of 200 (event_bytes)"),
    ],
)
def test_a_bad_message_is_rejected_alone(text: str | bytes, reason: str) -> None:
    decoded = from_xml([PAPER, text, PAPER], XML, limits=Limits(event_bytes=200))
    assert decoded.rows.tolist() == [0, 2]
    assert decoded.rejected[0].event == 1 and reason in decoded.rejected[0].reason


def test_deep_xml_does_no_harm() -> None:
    assert len(rows(from_xml(["<a>" * 50_000 + "</a>" * 50_000], XML))) == 1


ONE = "<message><price>1</price></message>"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (ONE, 1),
        (ONE * 3, 3),
        (f"<?xml version='1.0'?>\n<all>{ONE * 3}</all>", 3),
        (f"<all>{ONE}</all>", 1),
        ("<all><order><price>1</price></order> <order><price>1</price></order></all>", 2),
        ("<price>1</price><company>x</company>", 1),
        ("<m><addr><city>x</city></addr><price>1</price></m>", 1),
        ("", 0),
    ],
)
def test_a_file_of_messages_is_split(text: str, count: int) -> None:
    found = rows(*read_xml(io.BytesIO(text.encode()), XML, limits=Limits(batch_rows=2)))
    assert [row["price"] for row in found] == [1.0] * count


def test_a_hostile_message_in_a_file_spoils_only_itself() -> None:
    (batch,) = read_xml(io.BytesIO((ONE + BOMB + ONE).encode()), XML)
    assert batch.rows.tolist() == [0, 2]
    assert "refused" in batch.rejected[0].reason


def test_an_xml_file_beyond_the_limit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"is larger than 10 bytes \(document_bytes\)"):
        list(read_xml(io.BytesIO(PAPER.encode()), XML, limits=Limits(document_bytes=10)))
