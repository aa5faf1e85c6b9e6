"""CloudEvents 1.0: structured JSON, and the binary mode as columns.

The context attributes become attributes (`id`, `source`, `type`, `time`, extensions), the payload stands under `data`.
`data_base64` is decoded, and read as JSON when `datacontenttype` says so or says nothing.
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from headgate.errors import UsageError
from headgate.events.decoder import Change, decode_objects
from headgate.events.json_lines import parse_document, read_json_lines
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, Needs, show
from headgate.events.sources import Bytes
from headgate.schema import Schema

_REQUIRED = ("id", "source", "specversion", "type")


def from_cloudevents(
    events: Any, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Decoded:
    """From dicts in the structured form, or a table with `ce_id`, `ce_type`, ... and `data` or `value`."""
    change: Change = unwrap
    if isinstance(events, pa.Table | pa.RecordBatch):
        names = _names(events)
        events = events.select(list(names)).to_pylist()
        change = partial(_unwrap_row, names=names)
    elif isinstance(events, Mapping):
        events = [events]
    elif isinstance(events, str | bytes):
        raise UsageError("from_cloudevents takes parsed events", "use read_cloudevents for JSON text")
    return decode_objects(list(events), schema, needs, first, limits, change)


def read_cloudevents(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """From JSON: one event, a batch (`application/cloudevents-batch+json`), or one event a line."""
    return read_json_lines(source, schema, needs, first=first, limits=limits, change=unwrap)


def unwrap(event: Any) -> dict[str, Any]:
    """One structured event as {context, "data": payload}; Misfit says what the specification misses."""
    if not isinstance(event, Mapping):
        raise Misfit(f"an event must be an object, not {show(event)}", "object")
    missing = [name for name in _REQUIRED if not isinstance(event.get(name), str) or not event[name]]
    if missing:
        have = f" ({missing[0]} is {show(event[missing[0]])}, not text)" if event.get(missing[0]) else ""
        raise Misfit(f"not a CloudEvent: it lacks {', '.join(missing)}{have}", "cloudevent")
    if not event["specversion"].startswith("1."):
        raise Misfit(f"CloudEvents {show(event['specversion'])} is not supported, only 1.x", "cloudevent")
    plain = dict(event)
    encoded = plain.pop("data_base64", None)
    if encoded is not None:
        if plain.get("data") is not None:
            raise Misfit("not a CloudEvent: it has both data and data_base64", "cloudevent")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except (TypeError, ValueError):
            raise Misfit(f"data_base64 is not base64: {show(encoded)}", "cloudevent") from None
        plain["data"] = payload(raw, event.get("datacontenttype"))
    return plain


def payload(raw: Any, content: Any) -> Any:
    """Bytes or text as the content type means them."""
    if not isinstance(raw, bytes | str) or not _is_json(content):
        return raw
    try:
        return parse_document(raw.encode() if isinstance(raw, str) else raw)
    except (ValueError, RecursionError) as problem:
        raise Misfit(f"the data is not the JSON that its content type promises: {problem}", "cloudevent") from None


def _is_json(content: Any) -> bool:
    if content is None:
        return True
    kind = str(content).split(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))


def _names(table: pa.Table | pa.RecordBatch) -> dict[str, str]:
    """The columns of the binary mode, and what each of them is in the structured form."""
    names = {}
    for name in table.schema.names:
        plain = name.lower()
        if plain.startswith(("ce_", "ce-")):
            names[name] = plain[3:]
        elif plain in ("content-type", "content_type", "datacontenttype"):
            names[name] = "datacontenttype"
        elif plain in ("data", "value"):
            names[name] = "data"
    if not any(name.lower().startswith(("ce_", "ce-")) for name in names):
        raise UsageError("the table has no CloudEvents columns", "name them ce_id, ce_source, ..., and data or value")
    return names


def _unwrap_row(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    event = {names[name]: value for name, value in row.items() if value is not None}
    for name, value in event.items():
        if name != "data" and isinstance(value, bytes):
            event[name] = value.decode("utf-8", "replace")
    plain = unwrap(event)
    if "data" in plain:
        plain["data"] = payload(plain["data"], plain.get("datacontenttype"))
    return plain
