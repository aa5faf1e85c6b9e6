"""What brokers and pipelines on one store tell each other: who does the work of one, how far matching has come, and how
far the subscriptions of each neighbouring broker are known."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager

from headgate.store.database import Database

SEQUENCES = "headgate-broker-sequences"
"""The query of the sequences, beside the one of all others: it starts with the first of them."""


class Shared:
    def __init__(self, database: Database) -> None:
        self._database = database

    def writing(self) -> AbstractContextManager[None]:
        """Several changes, all or none."""
        return self._database.writing()

    def lease(self, name: str, holder: str, seconds: float) -> bool:
        """Take a lease, or keep it: whether it is this holder's now. One who is killed loses it in time."""
        now = time.time()
        self._database.execute(
            """INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE
            SET holder = excluded.holder, until = excluded.until
            WHERE leases.holder = excluded.holder OR leases.until < ?""",
            (name, holder, now + seconds, now),
        )
        return bool(self._database.value("SELECT holder FROM leases WHERE name = ?", (name,)) == holder)

    def release(self, name: str, holder: str) -> None:
        self._database.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))

    def progress(self) -> int | None:
        """The last event that was matched; None if no query has told. Queries of one store follow each other."""
        found = self._database.value("SELECT max(event) FROM progress WHERE query <> ?", (SEQUENCES,))
        return None if found is None else int(found)

    def sequences(self) -> int | None:
        """The last event that sequences have seen, or need not see; None if there never were any."""
        found = self._database.value("SELECT event FROM progress WHERE query = ?", (SEQUENCES,))
        return None if found is None else int(found)

    def begin_sequences(self, event: int) -> None:
        """The first sequence is there: it sees what comes after this event. What was begun stays."""
        self._database.execute(
            "INSERT INTO progress VALUES (?, ?, ?) ON CONFLICT (query) DO NOTHING", (SEQUENCES, event, time.time())
        )

    def advance(self, query: str, event: int) -> None:
        """A query has matched the events up to this one."""
        self._database.execute(
            """INSERT INTO progress VALUES (?, ?, ?) ON CONFLICT (query) DO UPDATE
            SET event = excluded.event, at = excluded.at WHERE progress.event < excluded.event""",
            (query, event, time.time()),
        )

    def link(self, peer: str) -> tuple[str, int] | None:
        """The epoch of a neighbour, and the number of its last message that was taken in."""
        rows = self._database.rows("SELECT epoch, number FROM links WHERE peer = ?", (peer,))
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def linked(self, peer: str, epoch: str, number: int) -> None:
        self._database.execute(
            """INSERT INTO links VALUES (?, ?, ?)
            ON CONFLICT (peer) DO UPDATE SET epoch = excluded.epoch, number = excluded.number""",
            (peer, epoch, number),
        )
