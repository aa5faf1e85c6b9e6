"""What operators taught, shared by all who match with them: one file for each set of operators, in a folder that they see.

The folder is the host's cache, or the one that all hosts see (`plans=`). A process adds to the file what it has learned
since it last looked, and takes over what the others have: the counts are sums, so the file is what one process would have
learned that had seen all events. The driver takes part, so what was learned before is where workers begin, and what they
learned is in the driver's book and on disk for the next time.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import xxhash

from headgate.errors import PlanError
from headgate.operators.statistics import Statistics
from headgate.plan import Plan
from headgate.spark import cache

_PATIENCE = 20.0
"""Sharing may take a twentieth of the time."""
Counts = dict[str, Any]
Key = tuple[int, Path]
_exchanges: dict[Key, tuple[weakref.ref[Statistics], Exchange]] = {}


def share(plan: Plan, operators: bytes, where: Path | None = None) -> None:
    """Give and take for all operators of a plan; at once the first time, then now and then."""
    if not operators:
        return
    # A shared folder may be one that workers only read.
    folder = where if where is not None and os.access(where, os.W_OK) else cache.folder()
    file = folder / f"{xxhash.xxh3_128_hexdigest(operators)}.learned"
    statistics = plan.context.engine.statistics
    key = (id(statistics), file)
    known = _exchanges.get(key)
    if known is None or known[0]() is not statistics:
        known = _exchanges[key] = (weakref.ref(statistics, partial(_forget, key)), Exchange(file))
    known[1].due(statistics)


def _forget(key: Key, _: object) -> None:
    _exchanges.pop(key, None)


class Exchange:
    """One process's share in a file of statistics."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._last: Counts = {"operators": {}, "predicates": {}, "pairs": {}}
        self._next = 0.0

    def due(self, statistics: Statistics) -> None:
        began = time.monotonic()
        if began < self._next:
            return
        self(statistics)
        ended = time.monotonic()
        self._next = ended + _PATIENCE * (ended - began)

    def __call__(self, statistics: Statistics) -> None:
        with cache.locked(self._file.with_name(f".{self._file.name}.lock")):
            others = read(self._file)
            before = orjson.loads(others.save())
            others.merge([_difference(orjson.loads(statistics.save()), self._last)])
            fresh = self._file.with_name(f".{self._file.name}.{os.getpid()}")
            fresh.write_bytes(others.save())
            fresh.replace(self._file)
        statistics.merge([_difference(before, self._last)])
        self._last = orjson.loads(statistics.save())


def read(file: Path) -> Statistics:
    """What a file holds; nothing, if it is not there or was written by another version."""
    try:
        return Statistics.load(file.read_bytes())
    except (FileNotFoundError, PlanError, ValueError):
        return Statistics()


def _difference(now: Counts, then: Counts) -> Statistics:
    """What was added between two states of statistics; what decayed counts as less."""
    operators = {
        name: [selectivity, cost, *_minus(counts, then["operators"].get(name, [])[2:])]
        for name, (selectivity, cost, *counts) in now["operators"].items()
    }
    predicates = {
        name: [operator, *_minus(counts, then["predicates"].get(name, [])[1:])]
        for name, (operator, *counts) in now["predicates"].items()
    }
    pairs = {
        a: {b: _minus(counts, then["pairs"].get(a, {}).get(b, [])) for b, counts in after.items()}
        for a, after in now["pairs"].items()
    }
    return Statistics.load(orjson.dumps({**now, "operators": operators, "predicates": predicates, "pairs": pairs}))


def _minus(now: Iterable[float], then: Iterable[float]) -> list[float]:
    earlier = list(then) or [0.0] * 4
    return [a - b for a, b in zip(now, earlier, strict=True)]
