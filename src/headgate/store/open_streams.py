"""For stores made before version 6, which kept a stream only if it was declared.

A stream that exists by being named, or that a sequence PUBLISHes, was made again from the subscriptions; where a stream
was declared later, or the subscription that named it is gone, that failed, and the store could not be opened. All changes
of such a store are still in it: they are made once more, in their order, and what the book then knows is written down.
"""

from __future__ import annotations

import time

import orjson

from headgate.errors import HeadgateError
from headgate.store.database import Database
from headgate.store.records import KINDS, SUBSCRIPTION, Change
from headgate.subscriptions import Subscriptions
from headgate.subscriptions.journal import STREAM


def record(database: Database) -> None:
    rows = database.rows("SELECT kind, name, body FROM changes ORDER BY version")
    changes = [Change(0, kind, name, orjson.loads(body) if body else None) for kind, name, body in rows]
    declared = {change.name for change in changes if change.kind == STREAM}
    if all(_reads_only(change, declared) for change in changes):
        return
    book = Subscriptions()
    for change in changes:
        try:
            KINDS[change.kind].restore(book, change.name, change.body)
        except HeadgateError:
            # An operator that is not installed here, say; it may yet be opened where it is.
            continue
    written: list[tuple[object, ...]] = []
    for name in book.streams:
        if name not in declared:
            # Before the first version: a micro-batch that is done again asks for an old one.
            version = -len(written)
            body = orjson.dumps(KINDS[STREAM].body(book, name)).decode()
            written.append((version, STREAM, name, body, version, time.time()))
    if written:
        database.many("INSERT INTO changes (version, kind, name, body, born, at) VALUES (?, ?, ?, ?, ?, ?)", written)


def _reads_only(change: Change, declared: set[str]) -> bool:
    """Whether a change names declared streams only, as far as can be seen without reading its text."""
    if change.kind != SUBSCRIPTION or change.body is None:
        return True
    return change.body["on"] in declared and not change.body["text"].lstrip().upper().startswith("SELECT")
