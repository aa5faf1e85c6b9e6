"""The state of a checkpoint, read through Spark's state data source: what waits where, for `headgate run --state`; and
dealt out anew over another number of buckets, while its query rests.

Spark's own files are not touched: each new bucket gets a file in the checkpoint, which it takes up in place of its state
when the query runs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession

from headgate.errors import UsageError
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.stateful.group import CompiledGroup
from headgate.runtime.stateful.packing import unpack
from headgate.runtime.stateful.pages import Page
from headgate.runtime.stateful.rebucket import redealt
from headgate.runtime.stateful.state_storage import HEAD, InMemory, page_name, waiting_name
from headgate.sequences.automaton import path_of
from headgate.sequences.level_index import LevelIndex
from headgate.sequences.runs.signatures import signature
from headgate.spark.checkpoint import Claim, claimed, reclaim
from headgate.spark.follow import Follower
from headgate.spark.stateful.rebucketed_files import deal, dealt
from headgate.spark.stateful.settings import MOST_BUCKETS
from headgate.store import Store


@dataclass(frozen=True)
class Held:
    """What a subscription has in a bucket. Runs that subscriptions share count for each of them; the events that wait,
    and the bytes, are those of the group."""

    bucket: int
    group: str
    subscription: str
    runs: int
    waiting: int
    bytes: int


def held(spark: SparkSession, checkpoint: str, store: Store) -> Iterator[Held]:
    """One for each bucket and subscription."""
    mark = require_state(checkpoint)
    book = book_at(store, mark, last_batch(spark, checkpoint))
    for number, kept in sorted(states(spark, checkpoint, mark).items()):
        head = orjson.loads(kept.get(HEAD) or b"{}")
        for group, saved in sorted(head.get("groups", {}).items()):
            made = book.compiled(group, number)
            if made is None:
                continue
            counts: dict[str, int] = {}
            size = 0
            for page, _ in saved["pages"]:
                data = kept[page_name(group, page)]
                size += len(data)
                for name, n in Page.of(data).counts().items():
                    counts[name] = counts.get(name, 0) + n
            waiting = sum(len(unpack(kept[waiting_name(key)])) for key, *_ in saved["chunks"])
            for subscription, signatures in _signatures(made).items():
                runs = sum(counts.get(s, 0) for s in signatures)
                yield Held(number, group, subscription, runs, waiting, size)


def _signatures(made: CompiledGroup) -> dict[str, set[str]]:
    """The states in which runs of each subscription wait."""
    found: dict[str, set[str]] = {}
    for level in made.index.levels:
        for producer, signatures in _by_producer(level).items():
            for number in level.producers[producer].subscriptions:
                if made.emits[number]:
                    found.setdefault(made.index.names[number], set()).update(signatures)
    return found


def _by_producer(level: LevelIndex) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for automaton in (level.compiled, level.interpreted):
        for target in automaton.targets:
            for producer in target.accepts:
                states = {signature(s, level.streams) for s in path_of(target)}
                found.setdefault(producer, set()).update(states)
    return found


def require_state(checkpoint: str) -> Claim:
    mark = claimed(checkpoint)
    if mark is None:
        raise UsageError(f"there is no checkpoint of Headgate in {checkpoint}")
    if not mark.buckets:
        raise UsageError(f"the query of {checkpoint} keeps no state", "only books with sequences do")
    return mark


def last_batch(spark: SparkSession, checkpoint: str) -> int:
    """The last batch that was committed; -1 if there is none."""
    rows = spark.read.format("state-metadata").load(checkpoint).select("maxBatchId").collect()
    return max((int(r["maxBatchId"]) for r in rows), default=-1)


def book_at(store: Store, mark: Claim, batch: int, buckets: int | None = None) -> SequenceBook:
    """The sequences as the last batch ran them."""
    version = store.logs.recorded(mark.query, batch)
    plan = Follower(store).at(store.version if version is None else version)
    return SequenceBook.of(plan, buckets or mark.buckets)


def states(spark: SparkSession, checkpoint: str, mark: Claim) -> dict[int, InMemory]:
    """The state of every bucket: what the query has committed, or what was dealt out since."""
    found: dict[int, InMemory] = {}
    for row in _read(spark, checkpoint, "head").select("key.bucket", "value.data").collect():
        found.setdefault(row["bucket"], InMemory())[HEAD] = bytes(row["data"])
    for variable, name in (("pages", "page"), ("waiting", "waiting")):
        columns = ("key.bucket", "user_map_key.name", "user_map_value.data")
        for row in _read(spark, checkpoint, variable).select(*columns).collect():
            found.setdefault(row["bucket"], InMemory())[f"{name} {row['name']}"] = bytes(row["data"])
    current = {}
    for number in range(mark.buckets):
        one: Any = found.get(number)
        if mark.generation and (
            one is None or orjson.loads(one.get(HEAD) or b"{}").get("generation", 0) < mark.generation
        ):
            one = dealt(checkpoint, mark.generation, number)
        if one is not None:
            current[number] = one
    return current


def rebucket(spark: SparkSession, checkpoint: str, store: Store, buckets: int) -> int:
    """Deals the state of a checkpoint out over `buckets`; gives how many it had."""
    if not 1 <= buckets <= MOST_BUCKETS:
        raise UsageError(f"buckets = {buckets}: choose 1 to {MOST_BUCKETS}")
    mark = require_state(checkpoint)
    old = states(spark, checkpoint, mark)
    book = book_at(store, mark, last_batch(spark, checkpoint), buckets)
    generation = mark.generation + 1
    for number, kept in redealt(old, book, mark.buckets, generation).items():
        deal(checkpoint, generation, number, kept)
    reclaim(checkpoint, replace(mark, buckets=buckets, generation=generation))
    return mark.buckets


def _read(spark: SparkSession, checkpoint: str, variable: str) -> DataFrame:
    return spark.read.format("statestore").option("stateVarName", variable).load(checkpoint)
