"""Attributes of the type ANY pass through buckets and their state as they are."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headgate as hg
from headgate.events import decode
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import TICK, Sent
from headgate.runtime.stateful.route import dated, parcels
from headgate.runtime.stateful.state_storage import InMemory
from headgate.runtime.stateful.watermark import Timing

VALUES: list[Any] = [
    1, 2.5, float("nan"), "t", True, None, [], [1, "a", None, [2.5]], {"a": 1, "f": 2}, {"f": "x"}, {"b": "00"},
    datetime(2026, 1, 1, tzinfo=UTC), b"xy", 2**70, -(2**63), Decimal("1.10"), [{"a": {"b": [b"z"]}}], {},
]  # fmt: skip
TEXTS = {
    "pair": "SELECT e1.x AS x, e2.x AS y FROM s NEXT {$2.k = $1.k} s",
    "same": "SELECT e1.at AS a, e2.at AS b FROM s NEXT {$2.x = $1.x} s",
    "all": "SELECT xs FROM s FOLD {$2.k = $1.k, TRUE, COLLECT($2.x) AS xs} s",
}


def through_a_bucket(subs: hg.Subscriptions, batches: list[list[dict[str, Any]]], *, restart: bool) -> list[Any]:
    schema, book, kept = subs.streams["s"], SequenceBook.of(subs.compile(), 1), InMemory()
    bucket, found = Bucket.load(0, 1, kept), []
    for events in batches:
        bucket = Bucket.load(0, 1, kept) if restart else bucket
        usable, _ = dated(decode(events, schema).columns, schema.time)
        sent = [*parcels(book, usable, pa.array([str(e["at"]) for e in events]))]
        sent.append(Sent(TICK, "s", latest=events[-1]["at"]))
        tables = bucket.advance(book, sent, Timing({"s": 0}), kept).tables
        bucket.write_head(kept)
        found += [(r["subscription"], r["event"], r["output"]) for t in tables for r in t.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("restart", [False, True])
def test_values_of_any_kind_match_in_a_bucket_as_in_the_process(restart: bool) -> None:
    subs = hg.Subscriptions().stream("s", {"k": "string", "x": "any", "at": "bigint"}, "at")
    for name, text in TEXTS.items():
        subs.add(name, text)
    batches = [
        [{"k": str(i), "x": value, "at": 1 + n * len(VALUES) + i} for i, value in enumerate(VALUES)] for n in range(3)
    ]
    events = [e for batch in batches for e in batch]
    expected = [
        (r["subscription"], str(events[r["event"]]["at"]), r["output"])
        for r in subs.compile().match(events).to_pylist()
    ]
    end = [{"k": "end", "x": None, "at": 1000}]
    assert through_a_bucket(subs, [*batches, end], restart=restart) == sorted(expected)
