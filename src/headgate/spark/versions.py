"""Which plans a micro-batch uses, where its tasks must find out for themselves.

The stateful step is part of the query, so the driver has no say when a batch begins. It publishes each version of the
book as a small file in the checkpoint: where its plans are. The first task of a batch that asks takes the newest one
there is and writes its version down under the number of the batch; all others, and every replay, use that one.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql import SparkSession

from headgate.errors import EnvironmentProblem, HeadgateError
from headgate.operators import operator_pickling
from headgate.plan import Plan
from headgate.plan.sequence_book import SequenceBook
from headgate.spark import cache
from headgate.spark.cache import Filed
from headgate.spark.checkpoint import folder_of
from headgate.spark.follow import Follower
from headgate.spark.ship import Shipment, filed, ship
from headgate.store import Store

log = logging.getLogger("headgate.spark")

BATCH = "streaming.sql.batchId"
_PLANS = "headgate/plans"
_KEPT = 64
_seen: OrderedDict[tuple[str, int], Shipment] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Following:
    """What a task carries: where the versions are published and written down."""

    store: str
    query: str
    checkpoint: str
    operators: bytes = b""
    stateless: bool = True
    """Whether what needs no state is matched too."""
    buckets: int = 0

    def now(self) -> Shipment:
        """The plans of the batch that this task belongs to."""
        context = TaskContext.get()
        batch = context.getLocalProperty(BATCH) if context is not None else None
        if batch is None:
            raise EnvironmentProblem("this task does not know the number of its micro-batch")
        key = (self.query, int(batch))
        found = _seen.get(key)
        if found is None:
            found = _seen[key] = self._find(int(batch))
            while len(_seen) > _KEPT:
                _seen.popitem(last=False)
        return found

    def _find(self, batch: int) -> Shipment:
        store = Store(self.store)
        try:
            version = store.logs.recorded(self.query, batch)
            if version is None:
                newest = max(published(self.checkpoint), default=store.version)
                version = store.logs.version_of(self.query, batch, newest)
            found = _read(self.checkpoint, version)
            if found is not None and _there(found):
                return found
            # The files of an old version may be gone: it is compiled again from the store.
            operators = operator_pickling.unpack(self.operators) if self.operators else ()
            plan = Follower(Store(self.store, tuple(operators))).at(version)
            book = SequenceBook.of(plan, self.buckets) if plan.living_sequences() else None
            return filed(plan if self.stateless else plan.without_segments(), self.operators, book)
        finally:
            store.close()


def _there(shipment: Shipment) -> bool:
    if shipment.origins:
        return True
    return all((cache.folder() / f.name).exists() for f in shipment.files)


class Publisher:
    """On the driver: publishes every version of the book, as soon as it is there and its plans are with the workers."""

    def __init__(
        self,
        store: Store,
        spark: SparkSession,
        checkpoint: str,
        plans: str | None,
        follower: Follower,
        buckets: int,
        *,
        stateless: bool,
    ) -> None:
        self._store = store
        self._spark = spark
        self._checkpoint = checkpoint
        self._plans = plans
        self._follower = follower
        self._buckets = buckets
        self._stateless = stateless
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.version = -1
        self.plan: Plan | None = None
        self.bytes = 0

    def publish(self) -> int:
        """Publish the newest version, if it is not published yet; gives it."""
        with self._lock:
            version = self._store.version
            if version != self.version:
                plan = self._follower.at(version)
                sent = ship(
                    plan if self._stateless else plan.without_segments(),
                    self._spark,
                    folder=self._plans,
                    beside_driver=True,
                    store=self._store,
                    sequences=SequenceBook.of(plan, self._buckets) if plan.living_sequences() else None,
                )
                _write(self._checkpoint, version, sent)
                self.version, self.plan, self.bytes = version, plan, sent.bytes
            return version

    def follow(self, seconds: float = 0.2) -> None:
        """Publish from now on, in a thread of its own."""
        threading.Thread(target=self._follow, args=(seconds,), name="headgate-publisher", daemon=True).start()

    def _follow(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            try:
                self.publish()
            except HeadgateError:
                log.exception("the newest version of the book cannot be published; the last one stays")
        self._store.close()

    def stop(self) -> None:
        self._stopped.set()


# -- files


def published(checkpoint: str) -> list[int]:
    """The versions that were published."""
    system, root = folder_of(checkpoint)
    chosen = fs.FileSelector(f"{root}/{_PLANS}", allow_not_found=True)
    names = [info.base_name for info in system.get_file_info(chosen)]
    return [int(name.removesuffix(".json")) for name in names if name.endswith(".json")]


def _write(checkpoint: str, version: int, sent: Shipment) -> None:
    system, root = folder_of(checkpoint)
    folder = f"{root}/{_PLANS}"
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/.{version}") as f:
        f.write(json.dumps(_packed(sent)).encode())
    system.move(f"{folder}/.{version}", f"{folder}/{version}.json")
    for old in sorted(published(checkpoint))[:-_KEPT]:
        system.delete_file(f"{folder}/{old}.json")


def _read(checkpoint: str, version: int) -> Shipment | None:
    system, root = folder_of(checkpoint)
    path = f"{root}/{_PLANS}/{version}.json"
    if system.get_file_info(path).type != fs.FileType.File:
        return None
    with system.open_input_stream(path) as f:
        return _unpacked(json.loads(f.read()))


def _packed(sent: Shipment) -> dict[str, Any]:
    def file(filed: Filed) -> list[Any]:
        return [filed.digest, filed.size]

    return {
        "head": file(sent.head),
        "segments": [file(f) for f in sent.segments],
        "origins": sent.origins,
        "operators": base64.b64encode(sent.operators).decode(),
        "sequences": None if sent.sequences is None else file(sent.sequences),
    }


def _unpacked(saved: dict[str, Any]) -> Shipment:
    segments, operators = tuple(Filed(*f) for f in saved["segments"]), base64.b64decode(saved["operators"])
    sequences = None if saved["sequences"] is None else Filed(*saved["sequences"])
    return Shipment(Filed(*saved["head"]), segments, tuple(saved["origins"]), operators, sequences)
