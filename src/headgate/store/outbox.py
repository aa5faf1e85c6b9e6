"""What the broker's deliveries keep: how far each has come, what could not be delivered, what was said when, and alarms.

A delivery that pushes (a webhook, a topic, a peer) has a cursor on the log of notifications. It moves when a
notification was taken, or went to the dead letters; so a crash repeats at most what was under way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.store.database import Database


@dataclass(frozen=True, slots=True)
class Cursor:
    subscription: str
    seq: int
    """The last notification that is done with."""
    attempts: int = 0
    due: float = 0.0
    """Not before this time."""
    note: str | None = None
    """Why the last attempt failed."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A notification that could not be delivered."""

    seq: int
    subscription: str
    notification: int
    id: str
    reason: str
    attempts: int
    at: float


@dataclass(frozen=True, slots=True)
class Alarm:
    seq: int
    subscription: str
    code: str
    reason: str
    at: float


class Outbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- cursors

    def cursors(self) -> dict[str, Cursor]:
        rows = self._database.rows("SELECT subscription, seq, attempts, due, note FROM cursors")
        return {row[0]: Cursor(*row) for row in rows}

    def cursor(self, subscription: str) -> Cursor | None:
        sql = "SELECT subscription, seq, attempts, due, note FROM cursors WHERE subscription = ?"
        rows = self._database.rows(sql, (subscription,))
        return Cursor(*rows[0]) if rows else None

    def begin(self, subscriptions: Sequence[str], seq: int) -> None:
        """New deliveries start behind a notification."""
        self._database.many(
            "INSERT INTO cursors VALUES (?, ?, 0, 0, NULL) ON CONFLICT (subscription) DO NOTHING",
            [(s, seq) for s in subscriptions],
        )

    def move(self, cursor: Cursor) -> None:
        self._database.execute(
            "UPDATE cursors SET seq = ?, attempts = ?, due = ?, note = ? WHERE subscription = ?",
            (cursor.seq, cursor.attempts, cursor.due, cursor.note, cursor.subscription),
        )

    def drop(self, subscriptions: Sequence[str]) -> None:
        self._database.many("DELETE FROM cursors WHERE subscription = ?", [(s,) for s in subscriptions])

    # -- dead letters

    def bury(self, cursor: Cursor, id: str, reason: str) -> None:
        """The notification after the cursor's goes to the dead letters, and the cursor passes it."""
        with self._database.writing():
            self._database.execute(
                "INSERT INTO letters (subscription, notification, id, reason, attempts, at) VALUES (?, ?, ?, ?, ?, ?)",
                (cursor.subscription, cursor.seq, id, reason, cursor.attempts, time.time()),
            )
            self.move(Cursor(cursor.subscription, cursor.seq))

    def letters(self, subscription: str, since: int = 0, most: int = 100) -> list[Letter]:
        sql = "SELECT seq, subscription, notification, id, reason, attempts, at FROM letters WHERE subscription = ? AND seq > ?"
        return [Letter(*row) for row in self._database.rows(f"{sql} ORDER BY seq LIMIT ?", (subscription, since, most))]

    def letter_count(self) -> int:
        return int(self._database.value("SELECT count(*) FROM letters"))

    def forget(self, letter: int) -> None:
        self._database.execute("DELETE FROM letters WHERE seq = ?", (letter,))

    # -- at most one for a key and interval

    def said(self, subscription: str, key: str) -> float | None:
        found = self._database.value("SELECT at FROM sent WHERE subscription = ? AND key = ?", (subscription, key))
        return None if found is None else float(found)

    def say(self, subscription: str, key: str, at: float) -> None:
        self._database.execute(
            """INSERT INTO sent VALUES (?, ?, ?)
            ON CONFLICT (subscription, key) DO UPDATE SET at = excluded.at""",
            (subscription, key, at),
        )

    def unsay(self, before: float) -> None:
        self._database.execute("DELETE FROM sent WHERE at < ?", (before,))

    # -- alarms

    def alarm(self, subscription: str, code: str, reason: str) -> None:
        self._database.execute(
            "INSERT INTO alarms (subscription, code, reason, at) VALUES (?, ?, ?, ?)",
            (subscription, code, reason, time.time()),
        )

    def alarms(
        self, most: int = 100, subscriptions: Sequence[str] | None = None, owner: str | None = None
    ) -> list[Alarm]:
        """The newest alarms, the oldest of them first: all, or those of some subscriptions and of an owner's."""
        where, values = "TRUE", list[str]()
        if subscriptions is not None:
            marks = ", ".join("?" * len(subscriptions)) or "NULL"
            where = f"(subscription IN ({marks}) OR subscription IN (SELECT subscription FROM tickets WHERE owner = ?))"  # noqa: S608 - marks alone
            values = [*subscriptions, owner or ""]
        sql = f"SELECT seq, subscription, code, reason, at FROM alarms WHERE {where} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - marks alone
        return [Alarm(*row) for row in reversed(self._database.rows(sql, (*values, most)))]
