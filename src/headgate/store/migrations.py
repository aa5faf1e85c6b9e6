"""The tables of a store, as steps: each one is applied once, in order, and never altered after a release.

`{serial}` and `{bytes}` stand for what the databases spell differently. A book is kept as its changes: the book at any
version can be made again, which a replayed micro-batch needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headgate.store.database import Database


def _record_open_streams(database: Database) -> None:
    # Loaded here: what only reads a log need not load the compiler of the kernels.
    from headgate.store.open_streams import record

    record(database)


Step = str | Callable[["Database"], None]

STEPS: tuple[tuple[Step, ...], ...] = (
    (
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        """CREATE TABLE changes (
            version {serial}, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT, at DOUBLE PRECISION NOT NULL)""",
        "CREATE INDEX changes_of ON changes (kind, name, version)",
        "CREATE TABLE subscriptions (name TEXT PRIMARY KEY, body TEXT NOT NULL, version BIGINT NOT NULL)",
    ),
    (
        """CREATE TABLE batches (
            query TEXT NOT NULL, batch BIGINT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (query, batch))""",
        "CREATE TABLE events (id {serial}, stream TEXT NOT NULL, body TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)",
        "CREATE INDEX events_of ON events (stream, id)",
        """CREATE TABLE staged (
            job TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, stream TEXT, event TEXT, subscription TEXT,
            output TEXT, labels TEXT, code TEXT, reason TEXT, body TEXT)""",
        "CREATE INDEX staged_of ON staged (job)",
        """CREATE TABLE notifications (
            seq {serial}, id TEXT NOT NULL UNIQUE, stream TEXT, event TEXT, subscription TEXT NOT NULL,
            output TEXT, labels TEXT, at DOUBLE PRECISION NOT NULL)""",
        """CREATE TABLE errors (
            seq {serial}, id TEXT NOT NULL UNIQUE, stream TEXT, event TEXT, code TEXT NOT NULL,
            reason TEXT NOT NULL, body TEXT, at DOUBLE PRECISION NOT NULL)""",
    ),
    (
        """CREATE TABLE files (
            digest TEXT NOT NULL, part BIGINT NOT NULL, bytes {bytes} NOT NULL, PRIMARY KEY (digest, part))""",
    ),
    (
        # The broker's own. A ticket outlives its subscription for a while, so that what was matched still finds its way.
        """CREATE TABLE tickets (
            subscription TEXT PRIMARY KEY, hash TEXT NOT NULL, owner TEXT, name TEXT, delivery TEXT NOT NULL,
            state TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL,
            ended DOUBLE PRECISION, acked BIGINT NOT NULL)""",
        "CREATE INDEX tickets_of ON tickets (owner, subscription)",
        "CREATE INDEX tickets_until ON tickets (expires)",
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, scopes TEXT NOT NULL, rate DOUBLE PRECISION,
            quota BIGINT, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)""",
        """CREATE TABLE quotas (
            key TEXT NOT NULL, day TEXT NOT NULL, events BIGINT NOT NULL, PRIMARY KEY (key, day))""",
        """CREATE TABLE publications (
            key TEXT PRIMARY KEY, digest TEXT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
            at DOUBLE PRECISION NOT NULL)""",
        "CREATE INDEX publications_at ON publications (at)",
        "ALTER TABLE events ADD COLUMN via TEXT",
        "ALTER TABLE events ADD COLUMN origin TEXT",
        "CREATE INDEX notifications_of ON notifications (subscription, seq)",
        """CREATE TABLE cursors (
            subscription TEXT PRIMARY KEY, seq BIGINT NOT NULL, attempts BIGINT NOT NULL,
            due DOUBLE PRECISION NOT NULL, note TEXT)""",
        """CREATE TABLE letters (
            seq {serial}, subscription TEXT NOT NULL, notification BIGINT NOT NULL, id TEXT NOT NULL,
            reason TEXT NOT NULL, attempts BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL)""",
        "CREATE INDEX letters_of ON letters (subscription, seq)",
        """CREATE TABLE sent (
            subscription TEXT NOT NULL, key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (subscription, key))""",
        """CREATE TABLE alarms (
            seq {serial}, subscription TEXT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL)""",
        "CREATE TABLE progress (query TEXT PRIMARY KEY, event BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL)",
        "CREATE TABLE links (peer TEXT PRIMARY KEY, epoch TEXT NOT NULL, number BIGINT NOT NULL)",
        "CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)",
    ),
    (
        # A problem has the columns of `results.PROBLEMS`.
        "ALTER TABLE errors RENAME COLUMN body TO text",
        "ALTER TABLE errors ADD COLUMN subscriptions TEXT",
        "ALTER TABLE errors ADD COLUMN concerned BIGINT",
        "ALTER TABLE staged RENAME COLUMN body TO text",
        "ALTER TABLE staged ADD COLUMN subscriptions TEXT",
        "ALTER TABLE staged ADD COLUMN concerned BIGINT",
        # The state of sequences that the broker runs itself.
        "CREATE TABLE state (name TEXT PRIMARY KEY, bytes {bytes} NOT NULL)",
    ),
    (
        # The place of a name in the order of its book: the version with which it came.
        "ALTER TABLE changes ADD COLUMN born BIGINT",
        """UPDATE changes SET born =
            (SELECT min(c.version) FROM changes c WHERE c.kind = changes.kind AND c.name = changes.name)""",
        "DROP TABLE subscriptions",
        "ALTER TABLE batches ADD COLUMN at DOUBLE PRECISION",
        "UPDATE batches SET at = {now}",
        "INSERT INTO facts VALUES ('oldest', '0')",
        _record_open_streams,
    ),
)
