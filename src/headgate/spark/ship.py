"""Plans on their way to the workers.

What a task carries is a `Shipment`: names of files and where they may be had, some hundred bytes. The files themselves
go once to each host (see `cache`). Where from depends on the cluster:

* in local mode the driver's own cache folder is the workers' cache folder, and nothing moves;
* a folder that all hosts see (`plans=`, or the setting `spark.headgate.plans`) is the way that works everywhere, also
  for plans made after a Connect query has started;
* a store that all hosts reach (PostgreSQL) carries the plans of a running query;
* else the files are added to the session: `SparkContext.addFile` or, over Connect, `addArtifacts`.

A plan travels as its segments and a head, which has the tombstones: after a change the segments stay, and what moves is a
head and a small new segment.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from headgate.operators import operator_pickling
from headgate.plan import Plan, file
from headgate.plan.segment import Segment
from headgate.plan.sequence_book import SequenceBook
from headgate.spark import cache, learned
from headgate.spark.cache import Fetch, Filed
from headgate.spark.session import is_connect, is_local
from headgate.store import Store

SETTING = "spark.headgate.plans"
_SESSION, _STORE = "session:", "store:"
_filed: dict[int, tuple[weakref.ref[Plan | Segment | SequenceBook], Filed]] = {}
_added: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Shipment:
    """What a task knows of its plan."""

    head: Filed
    segments: tuple[Filed, ...]
    origins: tuple[str, ...]
    operators: bytes = b""
    """The users' operators that the plan may call; they are code and travel with the task."""
    sequences: Filed | None = None
    """The sequences, where there are any."""

    @property
    def files(self) -> tuple[Filed, ...]:
        return (self.head, *self.segments, *(() if self.sequences is None else (self.sequences,)))

    @property
    def folder(self) -> Path | None:
        """The folder that all hosts see, if there is one."""
        folders = [o for o in self.origins if not o.startswith((_SESSION, _STORE))]
        return Path(folders[0]) if folders else None

    @property
    def bytes(self) -> int:
        return sum(f.size for f in self.files)


def ship(
    plan: Plan,
    spark: SparkSession,
    *,
    folder: str | None = None,
    beside_driver: bool = False,
    store: Store | None = None,
    sequences: SequenceBook | None = None,
) -> Shipment:
    """Put a plan where the workers of a session find it.

    `beside_driver` says that this process is on the driver's host, which a Connect client cannot know.
    """
    shared = folder or spark.conf.get(SETTING, "") or None
    where = Path(shared) if shared else None
    called = packed_operators(plan)
    sent = filed(plan, called, sequences, where)
    learned.share(plan, called, where)
    if where is not None:
        return replace(sent, origins=(str(where.absolute()),))
    if is_local(spark) or (beside_driver and (spark.conf.get("spark.master", "") or "").startswith("local")):
        return sent
    if store is not None and (store.shared or is_connect(spark)):
        for one in sent.files:
            store.files.put(one.digest, cache.path(one))
        return replace(sent, origins=(_STORE + store.url,))
    for one in sent.files:
        _add(spark, one)
    return replace(sent, origins=(_SESSION,))


def filed(plan: Plan, operators: bytes, sequences: SequenceBook | None, where: Path | None = None) -> Shipment:
    """A shipment for this host alone: its files are in the cache, or in a folder."""
    segments = tuple(_file(s, partial(file.write, {"segment": s}), where) for s in plan.segments)
    stateful = None if sequences is None else _file(sequences, sequences.save, where)
    return Shipment(_file(plan, plan.save_head, where), segments, (), operators, stateful)


def obtain(shipment: Shipment) -> Plan:
    """In a worker: the plan, without its sequences."""
    fetches = [(origin, _fetch(origin)) for origin in shipment.origins]
    return cache.plan(shipment.head, shipment.segments, fetches, shipment.operators)


def obtain_sequences(shipment: Shipment) -> SequenceBook:
    """In a worker: the sequences."""
    assert shipment.sequences is not None
    fetches = [(origin, _fetch(origin)) for origin in shipment.origins]
    return cache.sequences(shipment.sequences, fetches, shipment.operators)


def packed_operators(plan: Plan) -> bytes:
    """The users' operators of a plan, as code."""
    known = dict(plan.context.registry.items())
    return operator_pickling.pack(known.values()) if known else b""


def _file(what: Plan | Segment | SequenceBook, write: Callable[[Path], None], where: Path | None) -> Filed:
    """It is written once for each place, however often it is shipped."""
    known = _filed.get(id(what))
    if known is not None and known[0]() is what and _there(known[1], where):
        return known[1]
    kept = cache.keep(write, where)
    key = id(what)
    _filed[key] = (weakref.ref(what, lambda _: _filed.pop(key, None)), kept)
    return kept


def _there(filed: Filed, where: Path | None) -> bool:
    return ((where or cache.folder()) / filed.name).exists()


def _add(spark: SparkSession, filed: Filed) -> None:
    known = _added.setdefault(spark, set())
    if filed.digest in known:
        return
    file = str(cache.path(filed))
    if is_connect(spark):
        spark.addArtifacts(file, file=True)
    else:
        spark.sparkContext.addFile(file)
    known.add(filed.digest)


def _fetch(origin: str) -> Fetch:
    if origin == _SESSION:
        return lambda filed, target: cache.link_or_copy(Path(SparkFiles.get(filed.name)), target)
    if origin.startswith(_STORE):
        return lambda filed, target: Store(origin.removeprefix(_STORE)).files.fetch(filed.digest, target)
    return lambda filed, target: cache.link_or_copy(Path(origin) / filed.name, target)
