"""State dealt out anew over another number of buckets.

A run goes where the key of its first event says; what is global goes where its component does now, and where two parts
of the state meet that had the same run, it is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from headgate.results import id_texts
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.group import GLOBAL, CompiledGroup, GroupedSequences
from headgate.runtime.stateful.packing import Packed, unpack
from headgate.runtime.stateful.pages import Choose, Page
from headgate.runtime.stateful.route import bucket_of, buckets_of, dated, routed, with_length
from headgate.runtime.stateful.state_storage import BOOK, HEAD, InMemory, page_name, waiting_name


def redealt(old: Mapping[int, InMemory], book: GroupedSequences, before: int, generation: int) -> dict[int, InMemory]:
    """The state of each new bucket, from that of the old ones. `book` has the new number of buckets."""
    heads = {number: orjson.loads(kept.get(HEAD) or b"{}") for number, kept in old.items()}
    if not heads:
        return {number: _empty(number, book, generation) for number in range(book.buckets)}
    first = min(heads)
    made = {}
    for number in range(book.buckets):
        kept = InMemory()
        bucket = Bucket.load(number, before, old[first], generation)
        groups = sorted({name for head in heads.values() for name in head["groups"]})
        bucket.buckets, bucket.generation, bucket.groups, bucket.alarm = book.buckets, generation, {}, None
        for name in groups:
            compiled = book.compiled(name, number)
            if compiled is not None:
                _group(
                    bucket,
                    compiled,
                    {n: h["groups"][name] for n, h in heads.items() if name in h["groups"]},
                    old,
                    before,
                    kept,
                )
        kept.put(BOOK, old[first].get(BOOK))
        bucket.write_head(kept)
        made[number] = kept
    return made


def _empty(number: int, book: GroupedSequences, generation: int) -> InMemory:
    kept = InMemory()
    Bucket(number, book.buckets, generation).write_head(kept)
    return kept


def _group(
    bucket: Bucket,
    made: CompiledGroup,
    saved: Mapping[int, Mapping[str, Any]],
    old: Mapping[int, InMemory],
    before: int,
    kept: InMemory,
) -> None:
    seen: set[bytes] = set()
    pages = []
    events: dict[str, list[Packed]] = {}
    rows = 0
    for number, group in saved.items():
        for page, _ in group["pages"]:
            read = Page.of(old[number][page_name(made.group, page)]).renumbered(before, number)
            pages.append((read, _chooser(read, made, bucket, seen)))
        rows = max(rows, group["rows"] * before + before)
        for key, *_ in group["chunks"]:
            packed = unpack(old[number][waiting_name(key)])
            events.setdefault(packed.columns.stream, []).append(packed)
    bucket.take_up(made, pages, rows, kept)
    for parts in events.values():
        known: set[str] = set()
        for packed in parts:
            mine = np.flatnonzero(_belongs(packed, made, bucket))
            names = [str(t) for t in id_texts(packed.ids.take(mine)).to_pylist()]
            fresh = mine[[n not in known for n in names]] if len(mine) else mine
            known.update(names)
            bucket.put_off(made, packed.take(fresh), kept)


def _chooser(page: Page, made: CompiledGroup, bucket: Bucket, seen: set[bytes]) -> Choose:
    """The runs of a page that this bucket takes."""

    def choose(level: Mapping[str, Any]) -> NDArray[np.bool_]:
        if made.group != GLOBAL:
            return np.equal(bucket_of(page.key_of(page.firsts(level)), bucket.buckets), bucket.number)
        marks = page.marks(level)
        fresh = np.array([m not in seen for m in marks], np.bool_)
        seen.update(marks)
        return fresh

    return choose


def _belongs(packed: Packed, made: CompiledGroup, bucket: Bucket) -> NDArray[np.bool_]:
    stream = packed.columns.stream
    if made.group != GLOBAL:
        return np.equal(buckets_of(packed.columns[made.keys[stream]], bucket.buckets), bucket.number)
    usable, _ = dated(packed.columns, made.index.streams[stream].time)
    return routed(made, with_length(usable))[0]
