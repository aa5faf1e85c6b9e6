"""Accepted runs as rows: what SELECT gives, who gets it, and the ids by which the same match is always known.

A kernel's runs and a stepper's have one form here: a stepper's `Run` over a memory that holds the bound events only, so
that output may be computed when it is asked for, after the engine has moved on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xxhash

from headgate.predicates.programs.kernels import FLOAT, INT
from headgate.predicates.rows import Value, compile_value
from headgate.schema import Kind, Type
from headgate.sequences.aggregates import WIDTH
from headgate.sequences.automaton import Target
from headgate.sequences.index import Ends
from headgate.sequences.memory import Memory
from headgate.sequences.merging import Folds
from headgate.sequences.spine import Spine
from headgate.sequences.stepper import Run, View
from headgate.sequences.tables import HANDLES, NODE, T0, T1, Ints


class Rows:
    """Accepted runs of one level and batch, the kernel's first, then the stepper's."""

    def __init__(
        self,
        memory: Memory,
        out: Ints,
        ends: Ends,
        cells_at: int,
        others: Sequence[tuple[Target, Run]],
    ) -> None:
        self._ends = ends
        self._others = others
        self._cells_at = cells_at
        handles = out[:, HANDLES:cells_at]
        used = np.unique(
            np.concatenate([handles.ravel(), np.array([h for _, r in others for h in r.handles], np.int64)])
        )
        used = used[used >= 0]
        self.memory = memory.snapshot(used)
        self._out = out.copy()
        places = np.searchsorted(used, handles)
        self._out[:, HANDLES:cells_at] = np.where(handles >= 0, places, -1)
        self._moved = {int(h): i for i, h in enumerate(used)} if others else {}

    def __len__(self) -> int:
        return len(self._out) + len(self._others)

    def accepting(self, i: int) -> list[int]:
        """The producers that accept a row."""
        if i < len(self._out):
            return [int(p) for p in self._ends.accepting(int(self._out[i, NODE]))]
        return self._others[i - len(self._out)][0].accepts

    def _folds(self, i: int) -> Folds:
        if i < len(self._out):
            return self._ends.folds[int(self._ends.fold[int(self._out[i, NODE])])]
        return self._others[i - len(self._out)][0].folds

    def times(self) -> tuple[Ints, Ints]:
        t0 = [run.t0 for _, run in self._others]
        t1 = [run.t1 for _, run in self._others]
        return (
            np.concatenate([self._out[:, T0], np.array(t0, np.int64)]),
            np.concatenate([self._out[:, T1], np.array(t1, np.int64)]),
        )

    def target_numbers(self) -> Ints:
        """Of the kernel's rows."""
        return self._out[:, NODE]

    def first_and_last(self) -> tuple[Ints, Ints]:
        """The handles of the first and of the last bound event of each row."""
        handles = self._out[:, HANDLES : self._cells_at]
        places = (
            handles.shape[1] - 1 - np.argmax(handles[:, ::-1] >= 0, axis=1) if len(handles) else np.zeros(0, np.int64)
        )
        others = [self.run(i).handles for i in range(len(self._out), len(self))]
        first = np.concatenate([handles[:, 0], np.array([h[0] for h in others], np.int64)])
        last = np.concatenate([handles[np.arange(len(handles)), places], np.array(list(map(_last, others)), np.int64)])
        return first, last

    def run(self, i: int) -> Run:
        if i >= len(self._out):
            run = self._others[i - len(self._out)][1]
            moved = tuple(self._moved[h] if h >= 0 else -1 for h in run.handles)
            return Run(run.t0, run.t1, moved, run.states)
        row = self._out[i]
        cell = self._cells_at
        states = []
        for _, accumulators in self._folds(i):
            known = []
            for a in accumulators:
                width = WIDTH[a.function]
                known.append(tuple(self._cell(row, cell + 2 * w, a.type if width == 1 else None) for w in range(width)))
                cell += 2 * width
            states.append(tuple(known))
        handles = tuple(int(h) for h in row[HANDLES : HANDLES + int(self._ends.place[int(row[NODE])]) + 1])
        return Run(int(row[T0]), int(row[T1]), handles, tuple(states))

    def _cell(self, row: Ints, at: int, kind: Type | None) -> Any:
        if row[at] == INT:
            known = kind is not None and kind.kind not in (Kind.BIGINT, Kind.DOUBLE)
            return self.memory.decode(int(row[at + 1]), kind) if known else int(row[at + 1])
        return float(row[at + 1 : at + 2].view(np.float64)[0]) if row[at] == FLOAT else None

    def view(self, i: int) -> View:
        run = self.run(i)
        return View(self.memory, run, self._folds(i), now=run.t1)

    def key(self, i: int) -> bytes:
        """The bound events, the aggregates and the interval as bytes: what makes two runs one."""
        run = self.run(i)
        parts = [struct.pack("<qq", run.t0, run.t1)]
        parts += [
            b"-" if handle < 0 else b"e" + int(self.memory.identity[handle]).to_bytes(8, "little")
            for handle in run.handles
        ]
        for (place, _), states in zip(self._folds(i), run.states, strict=True):
            parts.append(struct.pack("<q", place) + repr(states).encode())
        return b"".join(parts)


def _last(handles: tuple[int, ...]) -> int:
    return next((h for h in reversed(handles) if h >= 0), -1)


class Output:
    """The SELECT of a spine, on rows."""

    def __init__(self, spine: Spine) -> None:
        self.names = [item.name for item in spine.items]
        self._values: list[Value] = [compile_value(item.expression) for item in spine.items]

    def row(self, view: View) -> dict[str, Any]:
        return {name: f(view) for name, f in zip(self.names, self._values, strict=True)}

    def rows(self, rows: Rows, which: Sequence[int]) -> Iterator[dict[str, Any]]:
        return (self.row(rows.view(i)) for i in which)


def match_id(subscription: str, key: bytes) -> str:
    """The same for the same match always and everywhere."""
    return xxhash.xxh3_128_hexdigest(subscription.encode() + b"\0" + key)
