"""The try-it box: who would match an event, and why the others would not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.errors import HeadgateError
from headgate.plan import Entry
from headgate.schema import Schema
from headgate.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Seen:
    """What a subscription makes of an event."""

    id: str
    text: str
    matched: bool
    why: str
    blocking: tuple[str, ...]


def book_of(streams: Mapping[str, Schema], entries: Mapping[str, Entry]) -> Subscriptions:
    """A small book of some subscriptions, with the streams of the whole."""
    made = Subscriptions()
    for schema in streams.values():
        if schema.declared:
            made.stream(schema.stream, schema)
    for name, entry in entries.items():
        made.add(name, entry.text, on=entry.stream, missing=entry.missing)
    return made


def tried(book: Subscriptions, event: Mapping[str, Any]) -> list[Seen]:
    """Each subscription of a book on one event."""
    plan = book.compile()
    streams = dict.fromkeys(book[name].stream for name in book)
    matched: set[str] = set()
    for stream in streams:
        table, _ = plan.match({stream: [dict(event)]}, errors="collect")
        matched.update(str(s) for s in table.column("subscription").to_pylist())
    found = []
    for name in book:
        try:
            told = plan.explain(name, dict(event))
            why, blocking = str(told), tuple(getattr(told, "blocking", ()))
        except HeadgateError as problem:
            why, blocking = problem.message, ()
        found.append(Seen(name, book[name].text, name in matched, why, blocking))
    return found
