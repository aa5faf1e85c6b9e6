"""The matches of a feed as columns. Output rows and ids are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.predicates.times import instant_text
from headgate.predicates.values import written
from headgate.results import json_text
from headgate.schema import Kind, Type
from headgate.sequences.arrivals import starts_after
from headgate.sequences.match_rows import Rows, match_id
from headgate.sequences.tables import Ints

if TYPE_CHECKING:
    from headgate.sequences.engine import Index
    from headgate.sequences.level_index import LevelIndex

_NONE = np.zeros(0, np.int64)


class Matches:
    """One row a match: `subscription` numbers those of the index, `event` is the row of the last contributing event
    in the input of base stream number `source`."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: list[tuple[LevelIndex, Rows]] = []
        self._parts: list[Ints] = []
        self.subscription = self.event = self.source = self.t0 = self.t1 = self._level = self._row = _NONE

    @classmethod
    def none(cls, index: Index) -> Matches:
        return cls(index)

    def __len__(self) -> int:
        return len(self.subscription)

    def add(self, level: LevelIndex, rows: Rows) -> None:
        if not len(rows):
            return
        number = len(self._rows)
        self._rows.append((level, rows))
        accept_from, accepts = level.accepts
        targets = rows.target_numbers()
        counts = (accept_from[1:] - accept_from[:-1])[targets]
        row = np.repeat(np.arange(len(targets)), counts)
        inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        subscription = accepts[accept_from[targets][row] + inside]
        others = [
            (i, s)
            for i in range(len(targets), len(rows))
            for p in rows.accepting(i)
            for s in level.producers[p].subscriptions
        ]
        if others:
            row = np.concatenate([row, np.array([i for i, _ in others], np.int64)])
            subscription = np.concatenate([subscription, np.array([s for _, s in others], np.int64)])
        t0, t1 = rows.times()
        first, last = rows.first_and_last()
        keep = self._index.alive[subscription]
        for i in np.flatnonzero(self._index.recent[subscription]):
            since = self._index.since[int(subscription[i])]
            keep[i] = starts_after(self._index, level, rows, int(first[row[i]]), since)
        row, subscription = row[keep], subscription[keep]
        memory = rows.memory
        self._parts.append(
            np.stack(
                [subscription, memory.row[last[row]], memory.source[last[row]], t0[row], t1[row],
                 np.full(len(row), number), row]
            )
        )  # fmt: skip

    def sorted(self) -> Matches:
        """By merged time, stream, event, subscription."""
        if self._parts:
            found = np.concatenate(self._parts, axis=1)
            order = np.lexsort((found[6], found[0], found[1], found[2], found[4]))
            self.subscription, self.event, self.source, self.t0, self.t1, self._level, self._row = found[:, order]
        return self

    def name(self, i: int) -> str:
        return self._index.names[int(self.subscription[i])]

    def output(self, i: int) -> dict[str, Any]:
        level, rows = self._rows[int(self._level[i])]
        return level.output(self._producer(i, level)).row(rows.view(int(self._row[i])))

    def _producer(self, i: int, level: LevelIndex) -> int:
        return level.producer_of[int(self.subscription[i])]

    def id(self, i: int) -> str:
        _, rows = self._rows[int(self._level[i])]
        return match_id(self.name(i), rows.key(int(self._row[i])))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in range(len(self)):
            yield {
                "id": self.id(i),
                "stream": self._index.sources[int(self.source[i])],
                "event": int(self.event[i]),
                "subscription": self.name(i),
                "t0": int(self.t0[i]),
                "t1": int(self.t1[i]),
                "output": self.output(i),
            }

    def to_arrow(self) -> pa.Table:
        """The columns of `Plan.match`: id, stream, event, subscription, output."""
        rows = list(self)
        return pa.table(
            {
                "id": pa.array([r["id"] for r in rows], pa.string()),
                "stream": pa.array([r["stream"] for r in rows], pa.string()),
                "event": pa.array([r["event"] for r in rows], pa.int64()),
                "subscription": pa.array([r["subscription"] for r in rows], pa.string()),
                "output": pa.array([self._json(i, r["output"]) for i, r in enumerate(rows)], pa.string()),
            }
        )

    def _json(self, i: int, output: dict[str, Any]) -> str:
        level, _ = self._rows[int(self._level[i])]
        items = level.producers[self._producer(i, level)].spine.items
        shown = {item.name: _shown(output[item.name], item.type) for item in items}
        return json_text(shown)


def _shown(value: Any, kind: Type | None) -> Any:
    if isinstance(value, list):
        return [_shown(v, None if kind is None else kind.element) for v in value]
    if kind is not None and kind.kind is Kind.TIMESTAMP and isinstance(value, int):
        return instant_text(value)
    return written(value)
