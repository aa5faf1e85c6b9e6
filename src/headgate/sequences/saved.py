"""A compiled index of sequences as it is kept in a file, opened without parsing or building.

It is made of columns already. What a whole shape has in common, its outline and the trees of its predicates, is written
as texts, each decoded when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.schema import Schema
from headgate.sequences.engine import Index
from headgate.sequences.index import Layout, Numbered
from headgate.sequences.level_index import LevelIndex
from headgate.sequences.predicate_table import Decoded
from headgate.sequences.publish_levels import Known, Levels
from headgate.sequences.spine_table import Spines, SubscriptionTable
from headgate.sequences.static import Static, StaticIndex
from headgate.sequences.tables import Ints, Tables, check

Encode = Callable[[Any], str]
Decode = Callable[[str], Any]
Bind = Callable[[StaticIndex], StaticIndex]


@dataclass(frozen=True)
class SavedTable:
    """Subscriptions and the number of levels that they have of their own."""

    names: Any
    """Arrow."""
    spine: Ints
    mode: Ints
    quota: Ints
    spines: Spines
    levels: int


@dataclass(frozen=True)
class SavedLevel:
    """Its texts are a column of Arrow, as are its signatures."""

    level: LevelIndex
    texts: Any
    signatures: tuple[Any, Any]


@dataclass(frozen=True)
class SavedIndex:
    tables: tuple[SavedTable, ...]
    alive: NDArray[np.bool_]
    streams: Mapping[str, Schema]
    known: Known
    levels: tuple[SavedLevel, ...]


def save_index(index: Index, encode: Encode) -> SavedIndex:
    """`encode` writes what is shared as text."""

    def texts(values: Any) -> Any:
        return pa.array([encode(v) for v in values], pa.string())

    tables = []
    for table in index.tables:
        spines = table.spines
        predicates = replace(spines.predicates, skeletons=texts(spines.predicates.skeletons))
        spines = replace(spines, outlines=texts(spines.outlines), starts=texts(spines.starts), predicates=predicates)
        levels = sum(level.producers.spines is table.spines for level in index.levels)
        tables.append(
            SavedTable(pa.array(table.names, pa.string()), table.spine, table.mode, table.quota, spines, levels)
        )
    return SavedIndex(tuple(tables), index.alive, index.fed, index.plan.known, tuple(map(_saved, index.levels)))


def _saved(level: LevelIndex) -> SavedLevel:
    layout = replace(level.layout, texts={})
    first, second = (pa.array(signatures, pa.string()) for signatures in level.signatures)
    return SavedLevel(replace(level, layout=layout), pa.array(list(level.layout.texts), pa.string()), (first, second))


def open_index(saved: SavedIndex, decode: Decode, bind: Bind, static: Static) -> Index:
    """`decode` reads what `encode` wrote; `bind` gives static predicates the operators that they call, and `static`
    makes those that ask operators about runs and events together."""
    tables, levels = [], []
    names: list[str] = []
    waiting = iter(saved.levels)
    for table in saved.tables:
        predicates = table.spines.predicates
        spines = replace(
            table.spines,
            outlines=Decoded(table.spines.outlines, decode),
            starts=Decoded(table.spines.starts, decode),
            predicates=replace(predicates, skeletons=Decoded(predicates.skeletons, decode)),
        )
        own = table.names.to_pylist()
        names = [*names, *own]
        tables.append(SubscriptionTable(own, table.spine, table.mode, table.quota, spines))
        levels += [_opened(next(waiting), bind).bound(spines, names, static) for _ in range(table.levels)]
    return Index.opened(tuple(tables), Levels.of(saved.known), levels, saved.alive, saved.streams)


def _opened(saved: SavedLevel, bind: Bind) -> LevelIndex:
    level = saved.level
    tables = Tables(*level.numbered.tables)
    ends = level.numbered.ends
    check(tables, level.predicates, len(level.streams), len(ends.place))
    first, second = saved.signatures
    texts = {str(t): i for i, t in enumerate(saved.texts.to_pylist())}
    return replace(
        level,
        layout=Layout(list(level.layout.schemas), [dict(c) for c in level.layout.columns], texts),
        numbered=Numbered(tables, ends),
        statics={stream: (bind(test), slots) for stream, (test, slots) in level.statics.items()},
        sides={name: tuple(None if s is None else bind(s) for s in sides) for name, sides in level.sides.items()},
        signed=(first.to_pylist(), second.to_pylist()),
    )
