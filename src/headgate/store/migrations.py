"""The tables of a store, as steps: each one is applied once, in order, and never altered after a release.

`{serial}` and `{bytes}` stand for what the databases spell differently. A book is kept as its changes: the book at any
version can be made again, which a replayed micro-batch needs. `subscriptions` is the newest state, for quick lists.
"""

from __future__ import annotations

STEPS: tuple[tuple[str, ...], ...] = (
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
)
