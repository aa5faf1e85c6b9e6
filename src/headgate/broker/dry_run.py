"""The try-it box: who would match an event, and why the others would not.

The broker gives an excerpt of its book, all definitions and some subscriptions; the rest is done in a process apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from headgate.errors import HeadgateError
from headgate.plan import Entry
from headgate.store.records import KINDS, OPERATOR, SUBSCRIPTION, Change, all_of, entry_body
from headgate.store.replica import Replica
from headgate.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Seen:
    """What a subscription makes of an event."""

    id: str
    text: str
    matched: bool
    why: str
    blocking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A text that is no subscription yet."""

    text: str
    stream: str | None
    missing: str


def excerpt(book: Subscriptions, names: Iterable[str] = ()) -> list[Change]:
    """All definitions of a book, and some of its subscriptions, as if they were not paused."""

    def changes() -> Iterator[Change]:
        for name in book.operators:
            yield Change(0, OPERATOR, name, KINDS[OPERATOR].body(book, name))
        yield from takewhile(lambda change: change.kind != SUBSCRIPTION, all_of(book))
        for name in names:
            if name in book:
                yield Change(0, SUBSCRIPTION, name, entry_body(replace(book[name], paused=False)))

    return list(changes())


def book_of(changes: Sequence[Change]) -> Subscriptions:
    replica = Replica()
    subscriptions = [change for change in changes if change.kind == SUBSCRIPTION]
    replica.load((change for change in changes if change.kind != SUBSCRIPTION), subscriptions, 0)
    return replica.book


def warm() -> None:
    """Load, or compile, what every family needs, so that the first who asks does not pay for it."""
    event = {"a": 1, "name": "x", "about": "_:H <urn:p> 1 ."}
    book = Subscriptions().stream("warm", {"a": "bigint", "name": "string", "about": "graph"})
    texts = ("a = 1 AND name LIKE 'x%'", "GRAPH { _:H <urn:p> ?v . FILTER (?v > 0) }", "SELECT * FROM warm NEXT warm")
    changes = excerpt(book)
    tried(changes, {str(number): Wanted(text, "warm", "null") for number, text in enumerate(texts)}, event)


def tried(changes: Sequence[Change], drafts: Mapping[str, Wanted], event: Mapping[str, Any]) -> list[Seen]:
    """Each subscription of an excerpt, and each draft, on one event."""
    book = book_of(changes)
    for name, draft in drafts.items():
        book.add(name, draft.text, on=draft.stream, missing=draft.missing)
    plan = book.compile()
    matched: set[str] = set()
    for stream in dict.fromkeys(book[name].stream for name in book):
        table, _ = plan.match({stream: [dict(event)]}, errors="collect")
        matched.update(str(s) for s in table.column("subscription").to_pylist())
    found = []
    for name in book:
        try:
            told = plan.explain(name, dict(event))
            why, blocking = str(told), told.blocking
        except HeadgateError as problem:
            why, blocking = problem.message, ()
        entry: Entry = book[name]
        found.append(Seen(name, entry.text, name in matched, why, blocking))
    return found
