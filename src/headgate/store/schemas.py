"""The declaration of a stream as JSON, and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from headgate.schema import Attribute, Schema, Type, format_path, parse_path


def pack(schema: Schema) -> dict[str, Any]:
    return {
        "attributes": [
            {
                "name": a.name,
                "type": str(a.type) if a.type else None,
                **({"default": _plain(a.default)} if a.default is not None else {}),
                **({"not_null": True} if a.not_null else {}),
            }
            for a in schema
        ],
        "time": [format_path(path) for path in schema.time],
        "open": {format_path(path): str(kind) if kind else None for path, kind in schema.open.items()},
        **({} if schema.declared else {"declared": False}),
        **({"derived": True} if schema.derived else {}),
    }


def unpack(stream: str, body: Mapping[str, Any]) -> Schema:
    attributes = {}
    for item in body["attributes"]:
        path, kind = parse_path(item["name"]), _type(item["type"])
        attributes[path] = Attribute(path, kind, _value(item.get("default")), item.get("not_null", False))
    opened = {parse_path(name): _type(kind) for name, kind in body.get("open", {}).items()}
    time = tuple(map(parse_path, body["time"]))
    return Schema(stream, attributes, time, body.get("declared", True), opened, body.get("derived", False))


def _type(text: str | None) -> Type | None:
    return None if text is None else Type.parse(text)


def _plain(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _value(value: Any) -> object:
    return base64.b64decode(value["base64"]) if isinstance(value, Mapping) else value
