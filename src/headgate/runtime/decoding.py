"""Events to columns, for a compiled book: only what it reads, and every event that cannot be used is a problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headgate.errors import HeadgateError
from headgate.events import DEFAULT_LIMITS, Decoded, decode, read_json_lines
from headgate.results import QUARANTINED, Problem, described
from headgate.runtime.book import CompiledBook
from headgate.runtime.quarantine import culprits
from headgate.runtime.rows import shown
from headgate.schema import Path, Schema


def reads(book: CompiledBook, stream: str) -> frozenset[Path]:
    """The attributes that must be decoded to match the events of a stream."""
    schema = book.schemas.get(stream)
    if schema is None:
        return book.needs(stream)
    every = schema.attributes if stream in book.total_streams else ()
    return book.needs(stream).union(schema.time, every)


def decode_events(events: Any, schema: Schema, needs: frozenset[Path], first: int = 0) -> Decoded:
    """As `events.decode`. An event on which the decoder raises is set aside, where events come as a list."""
    if not isinstance(events, list):
        return decode(events, schema, needs, first=first)
    return _surviving(lambda some: decode(some, schema, needs, first=first), events, None)


def decode_json(bodies: Sequence[str | bytes | None], schema: Schema, needs: frozenset[Path]) -> Decoded:
    """Events that are JSON texts: a text that is none is kept whole in its problem."""
    raws = [b"null" if b is None else b.encode() if isinstance(b, str) else b for b in bodies]

    def read(some: list[bytes]) -> Decoded:
        # The batch has its size already: one part, so that rows keep their numbers.
        limits = replace(DEFAULT_LIMITS, batch_rows=len(some) + 1, batch_bytes=1 << 62)
        (part,) = read_json_lines(some, schema, needs, limits=limits)
        return part

    part = _surviving(read, raws, b"null")
    rejected = (
        replace(p, reason=_unnumbered(p.reason), text=raws[p.event].decode("utf-8", "replace")) for p in part.rejected
    )
    return replace(part, rejected=tuple(rejected))


def incomplete(events: Decoded, schema: Schema) -> list[Problem]:
    """Events that lack an attribute of their stream: `total` subscriptions do not see them, and are told so."""
    there = [(a.name, events.columns[a.path].defined) for a in schema]
    complete = np.logical_and.reduce([d for _, d in there]) if there else np.ones(len(events.rows), np.bool_)
    return [
        Problem(
            schema.stream,
            int(events.rows[row]),
            "total",
            f"{', '.join(name for name, d in there if not d[row])} missing: subscriptions in total mode do not see it",
            shown(events.columns, int(row)),
        )
        for row in np.flatnonzero(~complete)
    ]


def _surviving(read: Callable[[list[Any]], Decoded], events: list[Any], nothing: Any) -> Decoded:
    """`nothing` is put in the place of events on which the decoder raises: no event, so it is rejected."""
    try:
        return read(events)
    except HeadgateError:
        raise
    except Exception as error:  # noqa: BLE001 - a defect of the decoder must not cost the other events
        bad = culprits(len(events), lambda some: read(events[some.start : some.stop]), error)
    part = read([nothing if row in bad else event for row, event in enumerate(events)])
    first = int(min([*part.rows[:1], *(p.event for p in part.rejected[:1])]))
    why = {first + row: f"set aside, because decoding failed: {described(error)}" for row, error in bad.items()}
    rejected = (replace(p, code=QUARANTINED, reason=why[p.event]) if p.event in why else p for p in part.rejected)
    return replace(part, rejected=tuple(rejected))


def _unnumbered(reason: str) -> str:
    """Without `event 12: `, which is a place in the batch and means nothing outside it."""
    head, colon, rest = reason.partition(": ")
    return rest if colon and head.startswith("event ") and head[6:].isdigit() else reason
