"""The logs of a store: events to match, notifications to deliver, errors, and the version of each micro-batch.

The ids of a log grow in the order in which rows become visible, so a reader that remembers the last one it saw misses
nothing. Notifications come in by jobs: tasks stage their rows, and one transaction moves them all; a match that is
there already stays as it is, by its id. So a job that is done twice, or half and then again, leaves each match once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headgate.results import clean
from headgate.store.database import Database

_MATCH = ("id", "stream", "event", "subscription", "output", "labels")
_PROBLEM = ("id", "stream", "event", "subscriptions", "concerned", "code", "reason", "text")
STAGED = ("kind", *_MATCH, *_PROBLEM[3:])
MATCH, ERROR = "match", "error"
_FEW = 500
"""Values in one statement."""
BATCH_SIZE = 64 << 20
"""Characters of the events in a batch of matching; one event may be larger."""
PAGE_SIZE = 1 << 20
"""Characters in a page of notices; one notice may be larger."""
_BATCHES = 100
"""Of each query, so many of the versions of its batches are kept."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    id: int
    stream: str
    body: str
    at: float


@dataclass(frozen=True, slots=True)
class Notification:
    seq: int
    id: str
    stream: str
    event: str
    subscription: str
    output: str | None
    labels: str | None
    at: float


@dataclass(frozen=True, slots=True)
class LoggedProblem:
    """A problem as the log has it: with the event's own id, and the names of the first subscriptions it concerns."""

    seq: int
    id: str
    stream: str
    event: str | None
    subscriptions: list[str] | None
    concerned: int
    code: str
    reason: str
    text: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification with the event that it is about, where the log still has it."""

    seq: int
    id: str
    stream: str
    event: str
    subscription: str
    output: str | None
    at: float
    body: str | None
    published: float | None
    via: str | None
    origin: str | None

    @property
    def size(self) -> int:
        """Characters of its event and its output."""
        return len(self.body or "") + len(self.output or "")


def staged(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of matches and problems (`results.row_schema`) as it is staged."""
    error = row.get("error")
    event = None if row["event"] is None else str(row["event"])
    if error is None:
        return {**{name: row.get(name) for name in _MATCH}, "kind": MATCH, "event": event}
    names = orjson.dumps(list(error["subscriptions"])).decode() if error["subscriptions"] else None
    return {"id": row["id"], "stream": row["stream"], **error, "kind": ERROR, "event": event, "subscriptions": names}


def _kept(value: Any) -> Any:
    """A value as a database can keep it. What events hold may be anything, and is told all the same."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return clean(value, len(value))


class Logs:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- events

    def append(self, stream: str, bodies: Iterable[str]) -> int:
        """Add events, JSON texts; the id of the last one."""
        now = time.time()
        with self._database.writing():
            rows = [(stream, body, now) for body in bodies]
            self._database.many("INSERT INTO events (stream, body, at) VALUES (?, ?, ?)", rows)
            return self.last()

    def last(self) -> int:
        return int(self._database.value("SELECT coalesce(max(id), 0) FROM events"))

    def events(self, since: int, until: int, stream: str | None = None) -> list[LoggedEvent]:
        """The events with ids above `since` and up to `until`."""
        sql, values = "SELECT id, stream, body, at FROM events WHERE id > ? AND id <= ?", [since, until]
        if stream is not None:
            return [
                LoggedEvent(*r) for r in self._database.rows(f"{sql} AND stream = ? ORDER BY id", (*values, stream))
            ]
        return [LoggedEvent(*r) for r in self._database.rows(f"{sql} ORDER BY id", values)]

    def until(self, since: int, count: int, size: int = BATCH_SIZE) -> int:
        """The id of the event `count` events, or `size` characters, after `since`, or of the last one there is."""
        found = self._database.value(
            """SELECT coalesce(max(CASE WHEN total <= ? THEN id END), min(id)) FROM (
                SELECT id, sum(length(body)) OVER (ORDER BY id) AS total FROM events WHERE id > ? ORDER BY id LIMIT ?
            ) AS next""",
            (size, since, count),
        )
        return since if found is None else int(found)

    def trim(self, until: int) -> int:
        """Forget the events up to an id, but never the last one, from which the ids count on; how many there were."""
        return self._database.execute("DELETE FROM events WHERE id <= ? AND id < ?", (until, self.last()))

    def older(self, than: float) -> int:
        """The id of the last event that was published before a time."""
        found = self._database.value("SELECT max(id) FROM events WHERE at < ?", (than,))
        return 0 if found is None else int(found)

    def first(self) -> int:
        return int(self._database.value("SELECT coalesce(min(id), 0) FROM events"))

    # -- notifications and errors

    def stage(self, job: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows of one task of a job; nobody sees them before `commit`."""
        with self._database.writing():
            self._stage(job, rows)

    def _stage(self, job: str, rows: Iterable[Mapping[str, Any]]) -> None:
        marks = ", ".join("?" * (len(STAGED) + 1))
        values = ([job, *(_kept(row.get(name)) for name in STAGED)] for row in rows)
        self._database.many(f"INSERT INTO staged (job, {', '.join(STAGED)}) VALUES ({marks})", values)  # noqa: S608 - constants of this module

    def commit(self, jobs: Sequence[str], rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """Make the rows of jobs visible, all at once; with them `rows` of the first job that nobody has staged."""
        now = time.time()
        with self._database.writing():
            self._stage(jobs[0], rows)
            for job in jobs:
                for table, names, kind, order in (
                    ("notifications", _MATCH, MATCH, "event, subscription"),
                    ("errors", _PROBLEM, ERROR, "event"),
                ):
                    columns = ", ".join(names)
                    self._database.execute(
                        f"""INSERT INTO {table} ({columns}, at) SELECT {columns}, ? FROM staged
                        WHERE job = ? AND kind = ? ORDER BY {order} ON CONFLICT (id) DO NOTHING""",  # noqa: S608 - names above
                        (now, job, kind),
                    )
                self._database.execute("DELETE FROM staged WHERE job = ?", (job,))

    def notify(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows as `stage` takes them, visible at once. One that is there already stays as it is."""
        now, listed = time.time(), list(rows)
        with self._database.writing():
            for table, names, kind in (("notifications", _MATCH, MATCH), ("errors", _PROBLEM, ERROR)):
                values = [(*(_kept(row.get(n)) for n in names), now) for row in listed if row["kind"] == kind]
                marks = ", ".join("?" * (len(names) + 1))
                sql = f"INSERT INTO {table} ({', '.join(names)}, at) VALUES ({marks}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names above
                if values:
                    self._database.many(sql, values)

    def abort(self, jobs: Sequence[str]) -> None:
        with self._database.writing():
            for job in jobs:
                self._database.execute("DELETE FROM staged WHERE job = ?", (job,))

    def notifications(self, since: int = 0, most: int = 10_000) -> list[Notification]:
        """Notifications after the one numbered `since`."""
        sql = "SELECT seq, id, stream, event, subscription, output, labels, at FROM notifications WHERE seq > ?"
        return [Notification(*row) for row in self._database.rows(f"{sql} ORDER BY seq LIMIT ?", (since, most))]

    def notices(self, since: int = 0, most: int = 1000) -> list[Notice]:
        """Notifications after the one numbered `since`, with their events."""
        return self._noticed("seq > ?", [since], most)

    def notices_of(self, subscriptions: Sequence[str], since: int, most: int = 1000) -> list[Notice]:
        """Those of a few subscriptions."""
        if not subscriptions:
            return []
        marks = ", ".join("?" * len(subscriptions))
        return self._noticed(f"subscription IN ({marks}) AND seq > ?", [*subscriptions, since], most)

    def notices_for(self, owner: str, since: int, most: int = 1000) -> list[Notice]:
        """Those of all subscriptions made with an API key."""
        # By number, and each looked up: an owner may have very many subscriptions, and a page is short.
        mine = "EXISTS (SELECT 1 FROM tickets t WHERE t.subscription = notifications.subscription AND t.owner = ?)"
        return self._noticed(f"seq > ? AND {mine}", [since, owner], most)

    def _noticed(self, where: str, values: Sequence[Any], most: int) -> list[Notice]:
        # Sizes first: a thousand events of a megabyte each must not be in memory at once.
        heads = self._database.rows(
            f"""SELECT seq, event, coalesce(length(output), 0) FROM notifications
            WHERE {where} ORDER BY seq LIMIT ?""",  # noqa: S608 - conditions of this class
            (*values, most),
        )
        sizes = self._by_id("length(body)", {event for _, event, _ in heads})
        count, size = 0, 0
        for _, event, output in heads:
            size += output + sizes.get(event, (0,))[0]
            if count and size > PAGE_SIZE:
                break
            count += 1
        rows = self._database.rows(
            f"""SELECT seq, id, stream, event, subscription, output, at FROM notifications
            WHERE {where} ORDER BY seq LIMIT ?""",  # noqa: S608 - conditions of this class
            (*values, count),
        )
        events = self._by_id("body, at, via, origin", {row[3] for row in rows})
        return [Notice(*row, *events.get(row[3], (None, None, None, None))) for row in rows]

    def _by_id(self, columns: str, ids: set[str]) -> dict[str, tuple[Any, ...]]:
        """Columns of events by their ids; what is no id of the log has none."""
        found: dict[str, tuple[Any, ...]] = {}
        wanted = sorted(int(id) for id in ids if str(id).isdecimal())
        for at in range(0, len(wanted), _FEW):
            part = wanted[at : at + _FEW]
            sql = f"SELECT id, {columns} FROM events WHERE id IN ({', '.join('?' * len(part))})"  # noqa: S608 - names of this class, marks
            found.update((str(id), tuple(rest)) for id, *rest in self._database.rows(sql, part))
        return found

    def trim_notifications(self, before: float) -> int:
        """Forget notifications and errors that are older than a time, but the last of each."""
        done = 0
        for table in ("notifications", "errors"):
            sql = f"DELETE FROM {table} WHERE at < ? AND seq < (SELECT max(seq) FROM {table})"  # noqa: S608 - names above
            done += self._database.execute(sql, (before,))
        return done

    def last_notification(self) -> int:
        return int(self._database.value("SELECT coalesce(max(seq), 0) FROM notifications"))

    def last_error(self) -> int:
        return int(self._database.value("SELECT coalesce(max(seq), 0) FROM errors"))

    def errors(
        self, since: int | None = 0, most: int = 10_000, stream: str | None = None, longest: int = 2000
    ) -> list[LoggedProblem]:
        """Problems after the one numbered `since`, or the newest; of long events the first `longest` characters."""
        columns = ", ".join(f"substr(text, 1, {longest:d})" if name == "text" else name for name in _PROBLEM)
        of_stream, named = ("", ()) if stream is None else ("AND stream = ?", (stream,))
        order = "DESC" if since is None else "ASC"
        sql = f"SELECT seq, {columns}, at FROM errors WHERE seq > ? {of_stream} ORDER BY seq {order} LIMIT ?"  # noqa: S608 - names above
        rows = self._database.rows(sql, (since or 0, *named, most))
        return [
            LoggedProblem(seq, id, stream, event, orjson.loads(names or "null"), concerned or 0, *rest)
            for seq, id, stream, event, names, concerned, *rest in sorted(rows)
        ]

    # -- micro-batches

    def version_of(self, query: str, batch: int, version: int) -> int:
        """The version that a micro-batch uses: `version` if it has none yet, else the one it had the first time."""
        self._database.execute(
            "INSERT INTO batches (query, batch, version, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (query, batch, version, time.time()),
        )
        found = self._database.value("SELECT version FROM batches WHERE query = ? AND batch = ?", (query, batch))
        return int(found)

    def recorded(self, query: str, batch: int) -> int | None:
        found = self._database.value("SELECT version FROM batches WHERE query = ? AND batch = ?", (query, batch))
        return None if found is None else int(found)

    def last_batch(self, query: str) -> int | None:
        """The number of the newest batch that a query has begun."""
        found = self._database.value("SELECT max(batch) FROM batches WHERE query = ?", (query,))
        return None if found is None else int(found)

    def forget_batches(self) -> None:
        """Spark does only the last batch of a query again."""
        self._database.execute(
            """DELETE FROM batches WHERE batch <
            (SELECT max(b.batch) FROM batches b WHERE b.query = batches.query) - ?""",
            (_BATCHES,),
        )
