"""Publishing: events into the log, many publications in one transaction, each of them at most once by its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.store.database import Database
from headgate.store.keys import Keys


@dataclass(frozen=True, slots=True)
class Publication:
    """Events of one stream that were published together, as JSON texts."""

    stream: str
    bodies: Sequence[str]
    at: float
    """When they were taken in."""
    key: str | None = None
    """The publisher's idempotency key."""
    digest: str = ""
    """Of the content, to tell a repetition from a key used twice."""
    account: str | None = None
    """The API key whose quota is charged."""
    quota: int | None = None
    """Events that the key may publish in a day."""
    day: str = ""
    via: str | None = None
    """The neighbouring broker that it came from."""
    origins: Sequence[str] = ()
    """For each event, where it was first published: a broker and an id there."""


@dataclass(frozen=True, slots=True)
class Published:
    first: int
    last: int
    repeated: bool = False
    conflict: bool = False
    """The key was used before for something else; nothing was published."""
    over_quota: int | None = None
    """How many events the key has published today, if these are too many; nothing was published."""


class Publications:
    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._keys = keys

    def publish(self, given: Sequence[Publication]) -> list[Published]:
        """All in one transaction; the answers in the order of what was given."""
        with self._database.writing():
            return [self._one(one) for one in given]

    def _one(self, one: Publication) -> Published:
        database = self._database
        if one.key is not None:
            sql = "SELECT digest, first, last FROM publications WHERE key = ?"
            known = database.rows(sql, (one.key,))
            if known:
                digest, first, last = known[0]
                return Published(first, last, repeated=digest == one.digest, conflict=digest != one.digest)
        if not one.bodies:
            return Published(0, -1)
        if one.account is not None and one.quota is not None:
            # In the transaction that charges it: publications at the same time must not count on the same rest.
            used = self._keys.used(one.account, one.day)
            if used + len(one.bodies) > one.quota:
                return Published(0, -1, over_quota=used)
        origins: Sequence[str | None] = one.origins or [None] * len(one.bodies)
        database.many(
            "INSERT INTO events (stream, body, at, via, origin) VALUES (?, ?, ?, ?, ?)",
            [(one.stream, body, one.at, one.via, origin) for body, origin in zip(one.bodies, origins, strict=True)],
        )
        # Writers take turns, so the ids of one publication follow each other.
        last = int(database.value("SELECT max(id) FROM events"))
        first = last - len(one.bodies) + 1
        if one.key is not None:
            database.execute(
                "INSERT INTO publications VALUES (?, ?, ?, ?, ?)", (one.key, one.digest, first, last, one.at)
            )
        if one.account is not None:
            self._keys.use(one.account, one.day, len(one.bodies))
        return Published(first, last)

    def forget(self, before: float) -> None:
        """Keys that were used long ago may be used again."""
        self._database.execute("DELETE FROM publications WHERE at < ?", (before,))
