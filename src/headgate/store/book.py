"""The store: a book that outlives processes and is shared by them.

Every change has a version, counted up by one; `Store.book(version)` is the book as it was after that change, and
`Store.changes(since)` is what happened afterwards. A change is checked as a book checks it, against the newest state
and in the transaction that writes it: a bad subscription is refused with its caret and leaves no trace.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import orjson

from headgate.errors import UsageError
from headgate.plan import Entry
from headgate.schema import Schema
from headgate.store import schemas
from headgate.store.database import Database
from headgate.store.files import Files
from headgate.store.logs import Logs
from headgate.subscriptions import Subscriptions

log = logging.getLogger("headgate.store")
STREAM, SUBSCRIPTION = "stream", "subscription"


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the book. `body` is what is declared or subscribed from now on; None if it is gone."""

    version: int
    kind: str
    name: str
    body: Mapping[str, Any] | None


class Store:
    """A book in a database: a path for SQLite, `postgresql://...` for PostgreSQL. Safe to pickle: it is its URL."""

    def __init__(self, url: str | FilePath, operators: Sequence[Any] = ()) -> None:
        self.database = self._database = Database(str(url))
        self._operators = tuple(operators)
        self._mirror: tuple[int, Subscriptions] | None = None
        self.logs = Logs(self._database)
        self.files = Files(self._database)

    def __reduce__(self) -> tuple[type[Store], tuple[str, tuple[Any, ...]]]:
        return type(self), (self.url, self._operators)

    @property
    def url(self) -> str:
        return self._database.url

    @property
    def identity(self) -> str:
        """What tells this store from every other, wherever it is moved."""
        return str(self._database.value("SELECT value FROM facts WHERE name = 'store'"))

    @property
    def shared(self) -> bool:
        """Whether other hosts reach it: a server, not a file."""
        return self._database.path is None

    @property
    def version(self) -> int:
        """The number of the newest change; 0 for an empty store."""
        return int(self._database.value("SELECT coalesce(max(version), 0) FROM changes"))

    def close(self) -> None:
        self._database.close()

    # -- reading

    def changes(self, since: int = 0, until: int | None = None) -> list[Change]:
        """What happened after a version, in order."""
        sql, values = "SELECT version, kind, name, body FROM changes WHERE version > ?", [since]
        if until is not None:
            sql, values = f"{sql} AND version <= ?", [since, until]
        rows = self._database.rows(f"{sql} ORDER BY version", values)
        return [Change(int(v), kind, name, orjson.loads(body) if body else None) for v, kind, name, body in rows]

    def book(self, version: int | None = None) -> Subscriptions:
        """The book as it is, or as it was after a version. It is the caller's own."""
        newest = self.version
        at = newest if version is None else version
        if not 0 <= at <= newest:
            raise UsageError(f"the store has no version {at}", f"the newest is {newest}")
        made = Subscriptions(self._operators)
        self._play(made, at)
        return made

    def _play(self, book: Subscriptions, at: int) -> None:
        """Only the last change of each name counts, and the order in which the names first came."""
        newest = f"""SELECT c.kind, c.name, c.body FROM changes c JOIN (
            SELECT kind, name, min(version) AS first, max(version) AS last FROM changes
            WHERE version <= ? GROUP BY kind, name) k ON c.version = k.last
            WHERE c.body IS NOT NULL ORDER BY CASE c.kind WHEN '{STREAM}' THEN 0 ELSE 1 END, k.first"""  # noqa: S608 - a constant of this module
        for kind, name, body in self._database.rows(newest, (at,)):
            apply(book, Change(at, kind, name, orjson.loads(body)))

    def streams(self) -> list[str]:
        """The streams that were declared, or that a subscription was made on."""
        return list(self.look().streams)

    def look(self) -> Subscriptions:
        """The newest book, to look into: it is the store's own, for the thread that makes the changes."""
        newest = self.version
        book = self._newest(newest)
        self._mirror = (newest, book)
        return book

    def __len__(self) -> int:
        return int(self._database.value("SELECT count(*) FROM subscriptions"))

    # -- changing

    def stream(
        self, name: str, attributes: Mapping[str, str] | Schema, time: str | tuple[str, str] | None = None
    ) -> int:
        """Declare a stream. Every change gives the version from which on it counts."""
        return self._change(lambda book: book.stream(name, attributes, time), [], [name])

    def add(
        self,
        name: str,
        text: str,
        on: str | None = None,
        missing: str = "null",
        labels: Mapping[str, str] | None = None,
    ) -> int:
        return self._change(lambda book: book.add(name, text, on, missing, labels), [name])

    def add_all(self, given: Mapping[str, Mapping[str, Any]]) -> int:
        """Add several by name, each with the arguments of `add`; all or nothing."""

        def every(book: Subscriptions) -> None:
            for name, arguments in given.items():
                book.add(name, **arguments)

        return self._change(every, list(given))

    def remove_all(self, names: Sequence[str]) -> int:
        """Remove those of the names that are there."""

        def every(book: Subscriptions) -> None:
            for name in names:
                if name in book:
                    book.remove(name)

        return self._change(every, names)

    def replace(self, name: str, text: str, **changes: Any) -> int:
        return self._change(lambda book: book.replace(name, text, **changes), [name])

    def remove(self, name: str) -> int:
        return self._change(lambda book: book.remove(name), [name])

    def pause(self, name: str) -> int:
        return self._change(lambda book: book.pause(name), [name])

    def resume(self, name: str) -> int:
        return self._change(lambda book: book.resume(name), [name])

    def load(self, book: Subscriptions) -> int:
        """Add all of a book: its declared streams that the store lacks, and its subscriptions. All or nothing."""

        def merge(mine: Subscriptions) -> None:
            for schema in book.streams.values():
                known = mine.streams.get(schema.stream)
                if schema.declared and (known is None or not known.declared):
                    mine.stream(schema.stream, schema)
            for name in book:
                apply(mine, Change(0, SUBSCRIPTION, name, _body(book[name])), new=True)

        return self._change(merge, list(book), [s.stream for s in book.streams.values() if s.declared])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Changes of the book, and whatever else is written to the database, take effect together or not at all."""
        try:
            with self._database.writing():
                yield
        except BaseException:
            # What the mirror has taken in may not have been written.
            self._mirror = None
            raise

    def _change(self, change: Callable[[Subscriptions], Any], names: Iterable[str], streams: Iterable[str] = ()) -> int:
        with self._database.writing():
            book = self._newest()
            # Until it is written the mirror is ahead of the store; whatever fails in between drops it.
            self._mirror = None
            known = {s: schemas.pack(book.streams[s]) for s in streams if _declared(book, s)}
            change(book)
            fresh = {s: schemas.pack(book.streams[s]) for s in streams}
            rows = [(STREAM, s, body) for s, body in fresh.items() if known.get(s) != body]
            self._write([*rows, *((SUBSCRIPTION, name, _body(book[name]) if name in book else None) for name in names)])
            version = self.version
        self._mirror = (version, book)
        return version

    def _write(self, rows: Iterable[tuple[str, str, Mapping[str, Any] | None]]) -> None:
        before, now = self.version, time.time()
        self._database.many(
            "INSERT INTO changes (kind, name, body, at) VALUES (?, ?, ?, ?)",
            [(kind, name, None if body is None else orjson.dumps(body).decode(), now) for kind, name, body in rows],
        )
        recent = "FROM changes WHERE version > ? AND kind = ?"
        values = (before, SUBSCRIPTION)
        self._database.execute(f"DELETE FROM subscriptions WHERE name IN (SELECT name {recent})", values)  # noqa: S608 - a constant of this function
        self._database.execute(
            f"INSERT INTO subscriptions SELECT name, body, version {recent} AND body IS NOT NULL", values
        )

    def _newest(self, newest: int | None = None) -> Subscriptions:
        """The book at the newest version, carried on from the last time."""
        newest = self.version if newest is None else newest
        if self._mirror is None:
            book = Subscriptions(self._operators)
            self._play(book, newest)
        else:
            since, book = self._mirror
            for change in self.changes(since, newest):
                apply(book, change)
        return book


def apply(book: Subscriptions, change: Change, *, new: bool = False) -> None:
    """Bring a book one change further; with `new`, a name that is taken is an error."""
    if change.kind == STREAM:
        assert change.body is not None
        if change.name not in book.streams or not book.streams[change.name].declared:
            book.stream(change.name, schemas.unpack(change.name, change.body))
        return
    if change.body is None:
        if change.name in book:
            book.remove(change.name)
        return
    body = dict(change.body)
    paused, text = body.pop("paused", False), body.pop("text")
    if change.name in book and not new:
        book.replace(change.name, text, **body)
    else:
        book.add(change.name, text, **body)
    if paused != book[change.name].paused:
        (book.pause if paused else book.resume)(change.name)


def follow(store: Store, book: Subscriptions, since: int, until: int) -> list[Change]:
    """Bring a book from one version of its store to another; gives the changes that it took.

    A change passed the check of the process that wrote it. Where it cannot be made here (an operator is not installed,
    say), it is left out, and the others are made."""
    made = []
    for change in store.changes(since, until):
        try:
            apply(book, change)
        except Exception:
            log.warning("%s %s is left out", change.kind, change.name, exc_info=True)
        else:
            made.append(change)
    return made


def _declared(book: Subscriptions, stream: str) -> bool:
    return stream in book.streams and book.streams[stream].declared


def _body(entry: Entry) -> dict[str, Any]:
    body: dict[str, Any] = {"text": entry.text, "on": entry.stream, "missing": entry.missing}
    if entry.labels:
        body["labels"] = dict(entry.labels)
    if entry.paused:
        body["paused"] = True
    return body
