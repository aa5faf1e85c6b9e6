"""JSON, one event a line; or a file that is one JSON array of events, or one event over several lines.

orjson parses each line by itself: joining lines to parse them at once would be faster, but two broken lines can make a
sound one. What orjson refuses is worded here; what it rounds (integers beyond 64 bits) is caught in `objects`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import orjson

from headgate.events.decoder import Change, decode_objects
from headgate.events.lines import Lines, batches
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, Needs, too_large
from headgate.events.sources import Bytes, chunks, opened
from headgate.schema import Schema

_BOM = b"\xef\xbb\xbf"
_STEP = 4096


def read_json_lines(
    source: Bytes,
    schema: Schema,
    needs: Needs = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    change: Change | None = None,
) -> Iterator[Decoded]:
    """Batches of events from a path, `-`, a binary file, or an iterable with one event (bytes) an item.

    Blank lines are skipped and have no row number. Of a key that occurs twice the last counts. `change` turns a parsed
    object into the event that is decoded, and may raise Misfit.
    """
    needs = None if needs is None else list(needs)
    if not isinstance(source, str) and not hasattr(source, "read") and not hasattr(source, "__fspath__"):
        for batch in _items(source, limits):
            yield _decode(batch, "event", schema, needs, first, limits, change)
            first += len(batch.lines)
        return
    with opened(source) as file:
        stream = chunks(file)
        head = next(stream, b"").removeprefix(_BOM)
        whole, stream = _document(head, stream, limits)
        if whole is not None:
            for start in range(0, len(whole), limits.batch_rows):
                part = whole[start : start + limits.batch_rows]
                yield decode_objects(part, schema, needs, first + start, limits, change)
            return
        for batch in batches(stream, limits):
            yield _decode(batch, "line", schema, needs, first, limits, change)
            first += len(batch.lines)


def _items(source: Iterable[bytes | str], limits: Limits) -> Iterator[Lines]:
    batch = Lines()
    for number, item in enumerate(source, 1):
        raw = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else bytes(item)
        if len(raw) > limits.event_bytes:
            batch.too_long[len(batch.lines)] = len(raw)
            raw = raw[:2000]
        batch.lines.append(raw)
        batch.at.append(number)
        batch.size += len(raw)
        if len(batch.lines) >= limits.batch_rows or batch.size >= limits.batch_bytes:
            yield batch
            batch = Lines()
    if batch.lines:
        yield batch


def _document(head: bytes, stream: Iterator[bytes], limits: Limits) -> tuple[list[Any] | None, Iterator[bytes]]:
    """The events of a file that is one JSON value, if it looks and proves so; else the bytes to cut into lines."""
    start = head.lstrip()
    if not start.startswith(b"[") and start.split(b"\n", 1)[0].strip() != b"{":
        return None, chain([head], stream)
    held, size = [head], len(head)
    for chunk in stream:
        held.append(chunk)
        size += len(chunk)
        if size > limits.document_bytes:
            return None, chain(held, stream)
    try:
        value = parse_document(b"".join(held))
    except (ValueError, RecursionError):
        return None, iter(held)
    return (value, iter(())) if isinstance(value, list) else ([value], iter(()))


def parse_document(text: bytes) -> Any:
    """One JSON value. Python's parser, which is slower, keeps integers beyond 64 bits as they are."""
    value = orjson.loads(text)
    if re.search(rb"[0-9]{19}", text):
        value = json.loads(text)
    return value


def _decode(
    batch: Lines,
    noun: str,
    schema: Schema,
    needs: Needs,
    first: int,
    limits: Limits,
    change: Change | None,
) -> Decoded:
    events, rejected = _parse(batch.lines)
    rejected |= {row: too_large(size, limits) for row, size in batch.too_long.items()}
    place = lambda row: f"{noun} {batch.at[row]}: "  # noqa: E731 - it reads better here
    return decode_objects(events, schema, needs, first, limits, change, batch.lines, place, rejected)


def _parse(lines: list[bytes]) -> tuple[list[Any], dict[int, Misfit]]:
    events: list[Any] = []
    problems: dict[int, Misfit] = {}
    rest = iter(lines)
    while step := list(islice(rest, _STEP)):
        try:
            events.extend(list(map(orjson.loads, step)))
        except (ValueError, RecursionError):
            for line in step:
                try:
                    events.append(orjson.loads(line))
                except (ValueError, RecursionError) as problem:
                    problems[len(events)] = _explain(line, problem)
                    events.append(None)
    return events, problems


def _explain(line: bytes, problem: Exception) -> Misfit:
    said = str(getattr(problem, "msg", problem))
    at = int(getattr(problem, "pos", 0))
    if isinstance(problem, RecursionError) or "depth" in said or "ecursion" in said:
        return Misfit("the JSON is nested too deeply (more than 1024 levels)", "depth")
    try:
        text = line.decode()
    except UnicodeDecodeError as wrong:
        return Misfit(f"the event is not UTF-8 (at byte {wrong.start + 1})", "encoding")
    if "surrogate" in said:
        return Misfit(f"a text holds half of a surrogate pair (at character {at + 1})", "encoding")
    if "infinity when parsed" in said:
        return Misfit(f"a number is beyond the range of DOUBLE (at character {at + 1})", "range")
    if re.search(r"NaN|Infinity", text[max(0, at - 2) : at + 9]):
        return Misfit(f"NaN and Infinity are not JSON (at character {at + 1}): write null, or leave it out", "json")
    return Misfit(f"not JSON: {said} (at character {at + 1})", "json")
