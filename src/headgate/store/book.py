"""The store: a book that outlives processes and is shared by them.

A book is kept as the log of its changes, of all kinds of definitions (see `records`). Every change has a version, counted
up by one; `Store.book(version)` is the book as it was after that change, and `Store.changes(since)` is what happened
afterwards. A change is checked as a book checks it, against the newest state and in the transaction that writes it: a bad
subscription is refused with its caret and leaves no trace.

The log keeps the last change of each name, and all of the newest ones, so that it grows with the book and not with its
changes. From the `oldest` version on, every version can be asked for; micro-batches that may be done again hold it back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import orjson

from headgate.errors import UsageError
from headgate.schema import Schema
from headgate.store.database import Database
from headgate.store.files import Files
from headgate.store.logs import Logs
from headgate.store.records import KINDS, OPERATOR, SUBSCRIPTION, Body, Change, all_of, operators_of
from headgate.store.replica import Key, Quarantined, Replica
from headgate.subscriptions import Subscriptions
from headgate.subscriptions.journal import ONTOLOGY, PREFIX, STREAM, Journal

log = logging.getLogger("headgate.store")
COMPACT_EVERY = 10_000
"""Versions."""
PINNED_S = 30 * 86_400.0
"""A query that has not begun a batch for so long no longer holds back the oldest version."""
_NEWEST = """changes c JOIN (SELECT kind, name, max(version) AS last FROM changes WHERE version <= ? AND kind {} ?
    GROUP BY kind, name) k ON c.version = k.last WHERE c.body IS NOT NULL"""
_Row = tuple[str, str, Body | None, bool]
"""A kind, a name, a body, and whether the name was there before."""


class Store:
    """A book in a database: a path for SQLite, `postgresql://...` for PostgreSQL. Safe to pickle: it is its URL."""

    def __init__(self, url: str | FilePath, operators: Sequence[Any] = ()) -> None:
        self.database = self._database = Database(str(url))
        self._operators = tuple(operators)
        self._replica: Replica | None = None
        self._undo: tuple[Journal, int, dict[Key, Quarantined]] | None = None
        """Within a transaction that has changed the book: how it was before."""
        self._failed = self._nested = False
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
        return str(self._fact("store"))

    @property
    def shared(self) -> bool:
        """Whether other hosts reach it: a server, not a file."""
        return self._database.path is None

    @property
    def version(self) -> int:
        """The number of the newest change; 0 for an empty store."""
        return int(self._database.value("SELECT coalesce(max(version), 0) FROM changes"))

    @property
    def oldest(self) -> int:
        """The oldest version that can still be asked for."""
        return int(self._fact("oldest"))

    def _fact(self, name: str) -> Any:
        return self._database.value("SELECT value FROM facts WHERE name = ?", (name,))

    def close(self) -> None:
        self._database.close()

    # -- reading

    def changes(self, since: int = 0, until: int | None = None) -> list[Change]:
        """What happened after a version, in order."""
        found = self._changes(since, until)
        if since < (oldest := self.oldest):
            raise UsageError(f"the changes after version {since} are gone", f"the oldest version is {oldest}")
        return found

    def _changes(self, since: int, until: int | None) -> list[Change]:
        sql, values = "SELECT version, kind, name, body FROM changes WHERE version > ?", [since]
        if until is not None:
            sql, values = f"{sql} AND version <= ?", [since, until]
        return [_change(*row) for row in self._database.rows(f"{sql} ORDER BY version", values)]

    def replica(self, version: int | None = None) -> Replica:
        """The book as it is, or as it was after a version, with what of it is set aside. It is the caller's own."""
        newest = self.version
        at = newest if version is None else version
        if at > newest or at < 0:
            raise UsageError(f"the store has no version {at}", f"the newest is {newest}")
        definitions, subscriptions = self._live("<>", at), self._live("=", at)
        # Asked after reading: another process may have compacted the log meanwhile.
        if at < (oldest := self.oldest):
            hint = f"the oldest is {oldest}; a query that needs an older one begins with a new checkpoint"
            raise UsageError(f"the store no longer has version {at}", hint)
        made = Replica(self._operators)
        made.load(definitions, subscriptions, at)
        return made

    def _live(self, comparison: str, version: int) -> Iterator[Change]:
        """The subscriptions (`=`) or all other definitions (`<>`) of a version, in the order in which they came."""
        sql = f"SELECT c.version, c.kind, c.name, c.body FROM {_NEWEST.format(comparison)} ORDER BY c.born"  # noqa: S608 - a constant of this module
        return (_change(*row) for row in self._database.rows(sql, (version, SUBSCRIPTION)))

    def book(self, version: int | None = None) -> Subscriptions:
        """The book of a `replica`."""
        return self.replica(version).book

    def follow(self, replica: Replica, version: int) -> list[Change] | None:
        """Bring a replica to a version; gives the changes, or None if it is too old and must be made anew."""
        changes = self._changes(replica.version, version)
        # Asked after reading: another process may have compacted the log meanwhile.
        if replica.version < self.oldest:
            return None
        for change in changes:
            if not replica.take(change):
                log.warning("set aside: %s", replica.quarantined[change.kind, change.name])
        replica.version = version
        return changes

    def look(self) -> Subscriptions:
        """The newest book, to look into: it is the store's own, for the thread that makes the changes."""
        return self._newest().book

    def streams(self) -> list[str]:
        """The streams that were declared, or that a subscription was made on."""
        return list(self.look().streams)

    def quarantined(self) -> list[Quarantined]:
        """The definitions that could not be put into the book, and why. For the thread that makes the changes."""
        return list(self._newest().quarantined.values())

    def __len__(self) -> int:
        """How many subscriptions there are, those that are set aside among them."""
        sql = f"SELECT count(*) FROM {_NEWEST.format('=')}"  # noqa: S608 - a constant of this module
        return int(self._database.value(sql, (self.version, SUBSCRIPTION)))

    # -- changing

    def stream(
        self, name: str, attributes: Mapping[str, str] | Schema, time: str | tuple[str, str] | None = None
    ) -> int:
        """Declare a stream. Every change gives the version from which on it counts."""

        def declare(replica: Replica) -> None:
            replica.must_be_free(STREAM, name)
            replica.book.stream(name, attributes, time)

        return self._change(declare)

    def add(
        self,
        name: str,
        text: str,
        on: str | None = None,
        missing: str = "null",
        labels: Mapping[str, str] | None = None,
    ) -> int:
        return self._change(lambda replica: replica.add(name, text, on=on, missing=missing, labels=labels))

    def add_all(self, given: Mapping[str, Mapping[str, Any]]) -> int:
        """Add several by name, each with the arguments of `add`; all or nothing."""

        def every(replica: Replica) -> None:
            for name, arguments in given.items():
                replica.add(name, **arguments)

        return self._change(every)

    def remove_all(self, names: Sequence[str]) -> int:
        """Remove those of the names that are there."""

        def every(replica: Replica) -> None:
            for name in names:
                if name in replica:
                    replica.remove(name)

        return self._change(every)

    def replace(self, name: str, text: str, **changes: Any) -> int:
        return self._change(lambda replica: replica.replace(name, text, **changes))

    def remove(self, name: str) -> int:
        return self._change(lambda replica: replica.remove(name))

    def pause(self, name: str) -> int:
        return self._change(lambda replica: replica.pause(name))

    def resume(self, name: str) -> int:
        return self._change(lambda replica: replica.resume(name))

    def extend(self, script: str, folder: str | FilePath = ".") -> int:
        """Run the statements of a script on the book, all or nothing; paths in it begin at the folder."""

        def run(replica: Replica) -> None:
            replica.book.definitions.folder = FilePath(folder)
            replica.book.extend(script)
            for kind, name in replica.quarantined:
                if kind in KINDS and kind != OPERATOR and KINDS[kind].body(replica.book, name) is not None:
                    replica.must_be_free(kind, name)
            if replica.quarantined and self._undo is not None:
                for name in self._undo[0].entries:
                    if name in replica.book:
                        replica.must_mean_the_same(replica.book[name].text, replica.book[name].stream)

        return self._change(run)

    def discard(self, kind: str, name: str) -> int:
        """Take out a definition that is set aside."""
        return self._change(lambda replica: replica.discard(kind, name))

    def load(self, book: Subscriptions) -> int:
        """Add all of a book: its definitions that the store lacks, and its subscriptions. All or nothing."""
        return self._change(lambda replica: _merge(replica, book))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Changes of the book, and whatever else is written to the database, take effect together or not at all."""
        if self._nested:
            try:
                yield
            except BaseException:
                self._failed = True
                raise
            return
        self._nested = True
        try:
            with self._database.writing():
                yield
        except BaseException:
            self._take_back()
            raise
        else:
            if self._undo is not None and self._replica is not None:
                self._replica.book.forget_record()
        finally:
            self._nested = self._failed = False
            self._undo = None

    def _take_back(self) -> None:
        """The book as it was before the transaction; if that cannot be, it is read again when somebody asks."""
        if self._undo is None or self._replica is None:
            return
        _, version, quarantined = self._undo
        if self._replica.book.take_back():
            self._replica.version, self._replica.quarantined = version, quarantined
            self._replica.rewritten.clear()
        else:
            self._replica = None

    def _change(self, change: Callable[[Replica], Any]) -> int:
        if self._failed:
            raise UsageError("a change of this transaction has failed", "begin another one")
        with self.transaction():
            replica = self._newest()
            if self._undo is None:
                self._undo = (replica.book.record(), replica.version, dict(replica.quarantined))
            change(replica)
            replica.version = self._write(list(self._rows(replica, self._undo[0])))
            return replica.version

    def _rows(self, replica: Replica, journal: Journal) -> Iterator[_Row]:
        """What changed since this was asked last, in the order in which it can be put back."""
        book, touched = replica.book, journal.take(replica.book.catalogue)
        for name in dict.fromkeys(operators_of(book, tuple(touched.subscriptions))):
            if name not in replica.operators:
                replica.operators.add(name)
                yield OPERATOR, name, KINDS[OPERATOR].body(book, name), False
        for kind, name in touched.definitions:
            body = KINDS[kind].body(book, name)
            yield kind, name, body, True
        for name, existed in touched.subscriptions.items():
            yield SUBSCRIPTION, name, KINDS[SUBSCRIPTION].body(book, name), existed
        for (kind, name), body in replica.rewritten.items():
            yield kind, name, body, True
        replica.rewritten.clear()

    def _write(self, rows: Sequence[_Row]) -> int:
        version, now = self.version, time.time()
        written = []
        for number, (kind, name, body, existed) in enumerate(rows, version + 1):
            born = self._born(kind, name) if existed and body is not None else None
            text = None if body is None else _json(kind, name, body)
            written.append((number, kind, name, text, number if born is None else born, now))
        if written:
            self._database.many(
                "INSERT INTO changes (version, kind, name, body, born, at) VALUES (?, ?, ?, ?, ?, ?)", written
            )
        if version // COMPACT_EVERY != (version + len(rows)) // COMPACT_EVERY:
            self.compact()
        return version + len(rows)

    def _born(self, kind: str, name: str) -> int | None:
        """The place of a name in the order of the book: the version with which it came, if it is there."""
        last = "SELECT body, born FROM changes WHERE kind = ? AND name = ? ORDER BY version DESC LIMIT 1"
        for body, born in self._database.rows(last, (kind, name)):
            return None if body is None else int(born)
        return None

    def compact(self, keep: int | None = None) -> int:
        """Forget changes that later ones have made void, but `keep` the newest versions; gives the oldest that is left."""
        with self._database.writing():
            before, newest = self.oldest, self.version
            # Of each query the last batch may be done again, with the version that it had.
            pinned = self._database.value(
                """SELECT min(b.version) FROM batches b JOIN (SELECT query, max(batch) AS last FROM batches GROUP BY query) q
                ON b.query = q.query AND b.batch = q.last WHERE b.at > ?""",
                (time.time() - PINNED_S,),
            )
            # The newest change stays, whatever it is: the versions count on from it.
            left = max(1, COMPACT_EVERY if keep is None else keep)
            oldest = min(newest - left, newest if pinned is None else int(pinned))
            if oldest <= before:
                return before
            self._database.execute(
                """DELETE FROM changes WHERE version <= ?
                AND (kind, name) IN (SELECT c.kind, c.name FROM changes c WHERE c.version > ? AND c.version <= ?)
                AND version < (SELECT max(d.version) FROM changes d
                    WHERE d.kind = changes.kind AND d.name = changes.name AND d.version <= ?)""",
                (oldest, before, oldest, oldest),
            )
            gone = "DELETE FROM changes WHERE body IS NULL AND version > ? AND version <= ?"
            self._database.execute(gone, (before, oldest))
            self._database.execute("UPDATE facts SET value = ? WHERE name = 'oldest'", (str(oldest),))
            self.logs.forget_batches()
        return oldest

    def _newest(self) -> Replica:
        """The book at the newest version, carried on from the last time."""
        newest = self.version
        if self._replica is None or self.follow(self._replica, newest) is None:
            self._replica = self.replica(newest)
        return self._replica


def _change(version: int, kind: str, name: str, body: str | None) -> Change:
    return Change(int(version), kind, name, orjson.loads(body) if body else None)


def _json(kind: str, name: str, body: Body) -> str:
    try:
        return orjson.dumps(body).decode()
    except TypeError as problem:
        raise UsageError(f"the {kind} {name!r} cannot be written down: {problem}", "use UTF-8 text") from None


def _merge(replica: Replica, book: Subscriptions) -> None:
    """Define in a replica what another book defines, as its owner would."""
    mine = replica.book
    for name in operators_of(book, tuple(book)):
        if name not in mine.operators:
            mine.operators.add(book.operators[name])
    for change in all_of(book):
        kind, name = change.kind, change.name
        replica.must_be_free(kind, name)
        if kind == PREFIX:
            mine.definitions.prefix(name, book.catalogue.prefixes[name])
        elif kind == ONTOLOGY:
            mine.definitions.ontology(name, book.catalogue.ontologies[name])
        elif kind == STREAM:
            known = mine.streams.get(name)
            if known is None:
                KINDS[STREAM].restore(mine, name, change.body)
            elif book.streams[name].declared and not known.declared:
                mine.definitions.declare(book.streams[name], book.catalogue.templates.get(name))
        else:
            entry = book[name]
            replica.add(name, entry.text, on=entry.stream, missing=entry.missing, labels=entry.labels)
            if entry.paused:
                mine.pause(name)
