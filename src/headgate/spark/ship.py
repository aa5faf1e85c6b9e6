"""Plans on their way to the workers.

What a task carries is a `Shipment`: names of files and where they may be had, some hundred bytes. The files themselves
go once to each host (see `cache`). Where from depends on the cluster:

* in local mode the driver's own cache folder is the workers' cache folder, and nothing moves;
* a folder that all hosts see (`plans=`, or the setting `spark.headgate.plans`) is the way that works everywhere, also
  for plans made after a Connect query has started;
* a store that all hosts reach (PostgreSQL) carries the plans of a running query;
* else the files are added to the session: `SparkContext.addFile` or, over Connect, `addArtifacts`.

A shipment holds several plans where a book is large or changes: large shards that stay, one small plan of what is new,
and the names that are gone from the large ones.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from headgate.operators import operator_pickling
from headgate.plan import Plan
from headgate.plan.sequence_book import SequenceBook
from headgate.spark import cache, learned
from headgate.spark.cache import Fetch, Filed
from headgate.spark.session import is_connect, is_local
from headgate.store import Store

SETTING = "spark.headgate.plans"
_SESSION, _STORE = "session:", "store:"
_filed: dict[int, tuple[weakref.ref[Plan | SequenceBook], Filed]] = {}
_added: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Shipment:
    """What a task knows of its plans. `gone` is a file of names that no longer count in any plan but the last."""

    plans: tuple[Filed, ...]
    gone: Filed | None
    origins: tuple[str, ...]
    operators: bytes = b""
    """The users' operators that the plans may call; they are code and travel with the task."""
    sequences: Filed | None = None
    """The plan of the sequences, where there are any."""

    @property
    def folder(self) -> Path | None:
        """The folder that all hosts see, if there is one."""
        folders = [o for o in self.origins if not o.startswith((_SESSION, _STORE))]
        return Path(folders[0]) if folders else None

    @property
    def bytes(self) -> int:
        return sum(f.size for f in (*self.plans, self.gone, self.sequences) if f is not None)


def ship(
    plans: Sequence[Plan],
    spark: SparkSession,
    *,
    gone: Sequence[str] = (),
    folder: str | None = None,
    beside_driver: bool = False,
    store: Store | None = None,
    sequences: SequenceBook | None = None,
) -> Shipment:
    """Put plans where the workers of a session find them.

    `beside_driver` says that this process is on the driver's host, which a Connect client cannot know.
    """
    shared = folder or spark.conf.get(SETTING, "") or None
    where = Path(shared) if shared else None
    filed = tuple(_file(plan, where) for plan in plans)
    names = cache.keep(partial(_write_names, sorted(gone)), where) if gone else None
    stateful = None if sequences is None else _file(sequences, where)
    called = packed_operators(plans)
    learned.share(plans, called, where)
    every = (*filed, *(f for f in (names, stateful) if f is not None))
    if where is not None:
        return Shipment(filed, names, (str(where.absolute()),), called, stateful)
    if is_local(spark) or (beside_driver and (spark.conf.get("spark.master", "") or "").startswith("local")):
        return Shipment(filed, names, (), called, stateful)
    if store is not None and (store.shared or is_connect(spark)):
        for file in every:
            store.files.put(file.digest, cache.path(file))
        return Shipment(filed, names, (_STORE + store.url,), called, stateful)
    for file in every:
        _add(spark, file)
    return Shipment(filed, names, (_SESSION,), called, stateful)


def obtain(shipment: Shipment) -> tuple[list[Plan], pa.Array[Any] | None]:
    """In a worker: the plans, and the names that are gone from all but the last of them."""
    fetches = [(origin, _fetch(origin)) for origin in shipment.origins]
    names = _read_names(cache.path(shipment.gone, fetches)) if shipment.gone else None
    return [cache.plan(filed, fetches, shipment.operators) for filed in shipment.plans], names


def obtain_sequences(shipment: Shipment) -> SequenceBook:
    """In a worker: the sequences."""
    assert shipment.sequences is not None
    fetches = [(origin, _fetch(origin)) for origin in shipment.origins]
    operators = operator_pickling.unpack(shipment.operators) if shipment.operators else ()
    return SequenceBook.open(cache.path(shipment.sequences, fetches), operators)


def packed_operators(plans: Sequence[Plan]) -> bytes:
    """The users' operators of some plans, as code."""
    known = {name: operator for plan in plans for name, operator in plan.context.registry.items()}
    return operator_pickling.pack(known.values()) if known else b""


def _file(plan: Plan | SequenceBook, where: Path | None) -> Filed:
    """A plan is written once for each place, however often it is shipped."""
    known = _filed.get(id(plan))
    if known is not None and known[0]() is plan and _there(known[1], where):
        return known[1]
    filed = cache.keep(plan.save, where)
    key = id(plan)
    _filed[key] = (weakref.ref(plan, lambda _: _filed.pop(key, None)), filed)
    return filed


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


def _write_names(names: Sequence[str], target: Path) -> None:
    table = pa.table({"name": pa.array(names, pa.string())})
    with pa.OSFile(str(target), "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
        writer.write_table(table)


def _read_names(source: Path) -> pa.Array[Any]:
    with pa.memory_map(str(source)) as f:
        return pa.concat_arrays(pa.ipc.open_file(f).read_all().column("name").chunks)
