"""The body of a publication: plain JSON or CloudEvents, one event, a batch, or a stream of lines.

| content type | what it is |
|---|---|
| `application/json` | an object is one event, an array is a batch |
| `application/x-ndjson` | one event a line, as long as the publisher likes |
| `application/cloudevents+json`, `application/cloudevents-batch+json` | structured CloudEvents |
| any JSON with `ce-` headers | a CloudEvent in binary mode |

Events go into the log as JSON texts. A CloudEvent becomes one object: its context attributes, and its payload in `data`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from headgate.broker.problems import Refused
from headgate.broker.settings import Settings
from headgate.events.cloudevents import payload, unwrap
from headgate.events.json_lines import parse_document
from headgate.events.outcome import Misfit

JSON, LINES = "application/json", "application/x-ndjson"
CLOUD, CLOUD_BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
KINDS = (JSON, LINES, CLOUD, CLOUD_BATCH)
_LONG = re.compile(rb"[0-9]{19}")


class Event(NamedTuple):
    """An event of a body: as the log keeps it, and as it was parsed."""

    text: str
    values: dict[str, Any]


def media(header: str | None) -> str:
    """The content type, without its parameters; JSON if there is none."""
    kind = (header or JSON).split(";")[0].strip().lower()
    if kind in ("application/ndjson", "application/jsonl", "application/jsonlines"):
        return LINES
    if kind not in KINDS:
        raise Refused(415, "media", f"{kind} is not taken here", f"send one of {', '.join(KINDS)}")
    return kind


def events(raw: bytes, kind: str, headers: Mapping[str, str], settings: Settings) -> list[Event]:
    """The events of a body that came whole."""
    given = parsed(raw)
    context = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
    if context and kind == JSON:
        return [_event({**context, "data": payload(raw, kind)}, settings, cloud=True)]
    if kind == CLOUD and isinstance(given, list):
        raise Refused(400, "event", "this is a batch of CloudEvents", f"send it as {CLOUD_BATCH}")
    if kind == CLOUD_BATCH and not isinstance(given, list):
        raise Refused(400, "event", "a batch of CloudEvents is a JSON array", f"send one event as {CLOUD}")
    listed = given if isinstance(given, list) else [given]
    if len(listed) > settings.batch_events:
        hint = f"send at most {settings.batch_events:,} at once, or a stream of lines ({LINES})"
        raise Refused(413, "size", f"the batch has {len(listed):,} events", hint)
    made = []
    for number, event in enumerate(listed):
        place = f"event {number}: " if isinstance(given, list) else ""
        made.append(_event(event, settings, cloud=kind != JSON, place=place))
    return made


def parsed(raw: bytes) -> Any:
    try:
        return parse_document(raw) if _LONG.search(raw) else orjson.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise Refused(400, "json", f"the body is not JSON: {problem}") from None


def line(raw: bytes, number: int, settings: Settings) -> Event:
    """One line of a stream. Its text is kept as it came."""
    place = f"line {number}: "
    if len(raw) > settings.event_bytes:
        raise Refused(413, "size", f"{place}the event has {len(raw):,} bytes", f"at most {settings.event_bytes:,}")
    try:
        event = orjson.loads(raw)
        kept = raw.decode("utf-8")
    except (ValueError, RecursionError) as problem:
        raise Refused(400, "json", f"{place}it is not JSON: {problem}") from None
    _checked(event, settings, place)
    return Event(kept, event)


def _event(event: Any, settings: Settings, *, cloud: bool = False, place: str = "") -> Event:
    if cloud:
        try:
            event = unwrap(event)
        except Misfit as problem:
            raise Refused(400, problem.code, f"{place}{problem.reason}") from None
    _checked(event, settings, place)
    try:
        made = orjson.dumps(event).decode()
    except (TypeError, ValueError):
        # An integer beyond 64 bits: Python's own writer keeps it as it is.
        made = json.dumps(event, separators=(",", ":"), default=str)
    if len(made) > settings.event_bytes:
        raise Refused(413, "size", f"{place}the event has {len(made):,} bytes", f"at most {settings.event_bytes:,}")
    return Event(made, event)


def _checked(event: Any, settings: Settings, place: str) -> None:
    if not isinstance(event, dict):
        raise Refused(400, "object", f"{place}an event must be a JSON object")
    level: Iterable[Any] = event.values()
    for _ in range(settings.depth):
        inner = [v for v in level if type(v) in (dict, list)]
        if not inner:
            return
        level = [x for v in inner for x in (v.values() if type(v) is dict else v)]
    raise Refused(413, "depth", f"{place}the event is nested deeper than {settings.depth} levels")
