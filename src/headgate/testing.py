"""For the tests of those who use Headgate: the oracle, random events and subscriptions, a clock, a source that stops.

`oracle_match` answers as `Plan.match` does, by trying every subscription on every event with the naive evaluator that
follows the definition of the language. It is slow and obviously right, so it can judge a plan, or a pipeline of your
own around one. The generators draw from small domains on purpose: values meet, and boundaries are hit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from headgate.errors import EventError, UsageError
from headgate.events import decode
from headgate.identity import combine, hashes, row_hashes, text
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.parser import parse_body
from headgate.oracle.filters import attributes, truth
from headgate.plan import Entry
from headgate.results import MATCHES
from headgate.schema import Attribute, Kind, Schema, Type, format_path
from headgate.subscriptions import Subscriptions

__all__ = ["FakeClock", "ReplayableSource", "SourceStopped", "oracle_match", "random_events", "random_subscriptions"]


# -- the oracle


def oracle_match(subscriptions: Subscriptions, events: Any) -> pa.Table:
    """The matches of the filters in a book, one by one. The same table as `subscriptions.compile().match(events)`.

    `events` is what `Plan.match` takes. An event that cannot be used raises an EventError.
    """
    book = {name: subscriptions[name] for name in subscriptions if not subscriptions[name].paused}
    if not isinstance(events, Mapping):
        streams = {e.stream for e in book.values()} or set(subscriptions.streams)
        if len(streams) != 1:
            raise UsageError(f"the book has {len(streams)} streams", "pass {stream: events}")
        events = {streams.pop(): events}
    rows = [row for stream, given in events.items() for row in _matches(subscriptions, book, stream, given)]
    rows.sort()
    columns = [[row[-1][name] for row in rows] for name in MATCHES.names]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, MATCHES, strict=True)], schema=MATCHES)


def _matches(
    subscriptions: Subscriptions, book: Mapping[str, Entry], stream: str, events: Any
) -> Iterator[tuple[Any, ...]]:
    schema = subscriptions.streams.get(stream) or Schema(stream, {}, declared=False)
    asked = {name: (e, parse_body(e.text)) for name, e in book.items() if e.stream == stream}
    for name, (_, body) in asked.items():
        if any(isinstance(node, ast.Call | ast.Graph | ast.Pattern) for node in ast.walk(body)):
            raise UsageError(f"subscription {name} is no plain filter", "oracle_match judges filters only")
    needs: set[Path] = set(schema.time)
    for entry, body in asked.values():
        needs |= set(attributes(body)) if entry.missing != "total" else set(schema.attributes)
    part = decode(events, schema, needs)
    if part.rejected:
        raise EventError(f"event {part.rejected[0].event} of stream {stream}: {part.rejected[0].reason}")
    events_ids = row_hashes(stream, part.rows)
    for at, row in enumerate(part.rows.tolist()):
        event = {path: column.value(at) for path, column in part.columns.columns.items()}
        time = event.get(schema.time[-1]) if schema.time else row
        for name, (entry, body) in asked.items():
            if truth(body, event, schema, entry.missing) is not True:
                continue
            made = text(combine(hashes([name]), events_ids[at : at + 1]))[0].as_py()
            labels = orjson.dumps(entry.labels).decode() if entry.labels else None
            match = dict(zip(MATCHES.names, (made, stream, row, name, None, labels), strict=True))
            yield time or 0, stream, row, name, made, match


# -- what to match

_WORDS = ("", "a", "ab", "abc", "b", "ba", "IBM", "ibm", "é")
_START = datetime(2026, 1, 1, tzinfo=UTC)


def random_events(schema: Schema, count: int, seed: int = 0, missing: float = 0.2) -> list[dict[str, Any]]:
    """Events that fit a schema; each attribute that may be missing is so with the probability `missing`."""
    rng = random.Random(seed)  # noqa: S311 - test data, not secrets
    made = []
    for _ in range(count):
        event: dict[str, Any] = {}
        for attribute in schema:
            required = attribute.not_null or attribute.path in schema.time
            if attribute.type is None or (not required and rng.random() < missing):
                continue
            inside = event
            for part in attribute.path[:-1]:
                inside = inside.setdefault(part, {})
            inside[attribute.path[-1]] = _value(rng, attribute.type)
        made.append(event)
    return made


def _value(rng: random.Random, kind: Type) -> Any:
    if kind.array:
        return [_value(rng, kind.element) for _ in range(rng.randrange(4))]
    draw: Mapping[Kind, Callable[[], Any]] = {
        Kind.BOOLEAN: lambda: rng.random() < 0.5,
        Kind.BIGINT: lambda: rng.randrange(-3, 10),
        Kind.DOUBLE: lambda: rng.randrange(-6, 20) / 2,
        Kind.STRING: lambda: rng.choice(_WORDS),
        Kind.TIMESTAMP: lambda: _START + timedelta(minutes=rng.randrange(60)),
        Kind.BINARY: lambda: rng.choice(_WORDS).encode(),
        Kind.GRAPH: lambda: "_:H a <http://example.org/Thing> .",
    }
    return draw[kind.kind]()


def random_subscriptions(schema: Schema, count: int, seed: int = 0, depth: int = 3) -> dict[str, str]:
    """Texts of filters that fit a schema, by name (`s0`, `s1`, ...); `depth` bounds how far AND, OR and NOT nest."""
    rng = random.Random(seed)  # noqa: S311 - test data, not secrets
    usable = [a for a in schema if a.type is not None and a.type.kind is not Kind.GRAPH]
    if not usable:
        raise UsageError(f"stream {schema.stream} has no attribute to ask about", "give the schema an attribute")
    return {f"s{i}": _predicate(rng, usable, depth) for i in range(count)}


def _predicate(rng: random.Random, usable: Sequence[Attribute], depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return _atom(rng, rng.choice(usable))
    if kind < 0.5:
        return f"NOT ({_predicate(rng, usable, depth - 1)})"
    word = " AND " if kind < 0.8 else " OR "
    return word.join(f"({_predicate(rng, usable, depth - 1)})" for _ in range(rng.randrange(2, 4)))


def _atom(rng: random.Random, attribute: Attribute) -> str:
    name, kind = format_path(attribute.path), attribute.type
    assert kind is not None
    if kind.kind is Kind.BINARY or rng.random() < 0.08:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if kind.array:
        name = rng.choice([name, f"ALL({name})"])
    literals = [_literal(_value(rng, kind.element)) for _ in range(3)]
    if kind.kind is Kind.BOOLEAN:
        return name if not kind.array and rng.random() < 0.5 else f"{name} {rng.choice(['=', '<>'])} {literals[0]}"
    forms = [
        f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {literals[0]}",
        f"{name} BETWEEN {literals[0]} AND {literals[1]}",
        f"{name} IN ({', '.join(literals)})",
    ]
    if kind.kind is Kind.STRING:
        word = literals[0]
        forms += [f"{name} {test} {word}" for test in ("CONTAINS", "STARTS WITH", "ENDS WITH")]
        forms += [f"{name} LIKE '{word[1:-1]}%'", f"{name} ILIKE '_{word[1:-1]}%'"]
    return rng.choice(forms)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


# -- time and recovery


class FakeClock:
    """A clock that moves only when told: pass it where a `time.monotonic` or a `time.sleep` is expected."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise UsageError("a clock does not go back", "advance by a positive number of seconds")
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        """What a sleeper sees: the time has passed, and nobody has waited."""
        self.advance(max(0.0, seconds))


class SourceStopped(Exception):
    """A source was told to break off here. `position` is the number of events it had given."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the source stopped after {position} events, as it was told to")
        self.position = position


class ReplayableSource:
    """Events in batches, that can break off anywhere and be read again from any position.

    Iterate over it for lists of at most `batch` events. With `stop_after` it raises SourceStopped once it has given so
    many events in all, in the middle of a batch if need be; what was given before counts as delivered. `resumed` is a
    source of the rest, or of all that followed an earlier checkpoint.
    """

    def __init__(
        self, events: Sequence[Any], batch: int = 100, *, position: int = 0, stop_after: int | None = None
    ) -> None:
        if batch < 1:
            raise UsageError(f"a batch of {batch} events", "a batch holds at least one")
        self._events = events
        self._batch = batch
        self.position = position
        self.stop_after = stop_after

    def __iter__(self) -> Iterator[list[Any]]:
        while self.position < len(self._events):
            end = min(self.position + self._batch, len(self._events))
            stop = self.stop_after is not None and end > self.stop_after
            end = max(self.position, self.stop_after) if stop and self.stop_after is not None else end
            part = list(self._events[self.position : end])
            self.position = end
            if part:
                yield part
            if stop:
                raise SourceStopped(self.position)

    def resumed(self, position: int | None = None, *, stop_after: int | None = None) -> ReplayableSource:
        """A new source over the same events, from `position` on; by default from where this one is."""
        start = self.position if position is None else position
        return ReplayableSource(self._events, self._batch, position=start, stop_after=stop_after)
