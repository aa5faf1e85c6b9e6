"""Gates: of the filters compiled together, those that others cover are tested only on events that a coverer matched.

What the active filters match is found first. A *gate* holds the passive ones with the same coverers; it opens for the
events on which one of these matched, and the filters behind it are evaluated on those events alone. Gates with few
filters are put together, because evaluating many small indexes costs more than it saves; such a gate opens for the
coverers of all. No match is lost: an event that matches a passive filter matches one of its coverers (docs/semantics.md,
section 6).

A plain filter cannot fail at run time, so an open gate never has to stand in for one that did; what can fail, operators
and graphs, is neither gated nor a gate. A coverer that was removed from the book since still opens its gates: it is
evaluated like any other slot under a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.covering.coverset import CoverSet
from headgate.covering.parse_boxes import union_or_none
from headgate.engine import Hits
from headgate.filters.engine import FilterIndex, ItemsOf, compile_filters
from headgate.language.ast import Path
from headgate.language.forms import Cut
from headgate.schema import Schema

Slots = NDArray[np.int32]
LEAST = 64
"""So many filters are worth a gate of their own."""
MOST = 32
"""And there are at most so many gates."""


@dataclass(frozen=True)
class Gate:
    """Filters behind a gate, and the active slots that open it."""

    index: FilterIndex
    slots: Slots
    coverers: Slots


@dataclass(frozen=True)
class GatedIndex:
    """Filters of one stream as a `FilterIndex` has them, slot by slot, with some of them behind gates."""

    size: int
    active: FilterIndex
    active_slots: Slots
    gates: tuple[Gate, ...]
    passive: Slots
    by_at: NDArray[np.int64]
    by: Slots
    """The coverers of passive slot i are `by[by_at[i]:by_at[i + 1]]`."""
    unknown: int
    """How many decisions were left open: those filters are active."""

    def __len__(self) -> int:
        return self.size

    @cached_property
    def needs(self) -> frozenset[Path]:
        return self.active.needs.union(*(gate.index.needs for gate in self.gates))

    def bind(self, items: ItemsOf) -> None:
        """See `FilterIndex.bind`."""
        self.active.bind(lambda slots: items(self.active_slots[slots].astype(np.int64)))
        for gate in self.gates:
            gate.index.bind(lambda slots, gate=gate: items(gate.slots[slots].astype(np.int64)))  # type: ignore[misc]  # the default binds the gate of this turn

    def evaluate(self, columns: Columns) -> Hits:
        """Every (event, slot) that matches, sorted."""
        hits = self.active.evaluate(columns)
        slot = self.active_slots[hits.slot]
        events, slots = [hits.event], [slot]
        for gate, rows in self._open(hits.event, slot):
            found = gate.index.evaluate(_taken(columns, rows, gate.index.needs))
            events.append(rows[found.event])
            slots.append(gate.slots[found.slot])
        if len(events) == 1:
            return Hits(hits.event, slot)
        codes = np.sort((np.concatenate(events) << 32) | np.concatenate(slots))
        return Hits(codes >> 32, (codes & 0xFFFFFFFF).astype(np.int32))

    def count(self, columns: Columns) -> NDArray[np.int64]:
        """How many events match each slot; those behind gates are counted without listing them."""
        hits = self.active.evaluate(columns)
        slot = self.active_slots[hits.slot]
        counts = np.bincount(slot, minlength=self.size).astype(np.int64)
        for gate, rows in self._open(hits.event, slot):
            counts[gate.slots] = gate.index.count(_taken(columns, rows, gate.index.needs))
        return counts

    def _open(self, event: NDArray[np.int64], slot: Slots) -> Iterator[tuple[Gate, NDArray[np.int64]]]:
        """The gates that some event opens, with those events."""
        for gate in self.gates:
            opens = np.zeros(self.size, np.bool_)
            opens[gate.coverers] = True
            rows = np.unique(event[opens[slot]])
            if len(rows):
                yield gate, rows

    def coverers(self, slot: int) -> tuple[int, ...] | None:
        """The slots of which one must match before this one can; None for an active one."""
        at = int(np.searchsorted(self.passive, slot))
        if at == len(self.passive) or self.passive[at] != slot:
            return None
        return tuple(self.by[self.by_at[at] : self.by_at[at + 1]].tolist())

    def lane(self, slot: int) -> str:
        """Where a subscription is evaluated, and why there."""
        if self.coverers(slot) is None:
            return self.active.lane(int(np.searchsorted(self.active_slots, slot)))
        gate = next((g for g in self.gates if slot in g.slots), None)
        if gate is None:
            return "nowhere: it can never match"
        inner = gate.index.lane(int(np.flatnonzero(gate.slots == slot)[0]))
        return f"behind a gate of {len(gate.coverers)} that cover it and others; {inner}"

    def stats(self) -> dict[str, Any]:
        return {
            **self.active.stats(),
            "gated": len(self.passive),
            "gates": [{"filters": len(g.slots), "coverers": len(g.coverers), **g.index.stats()} for g in self.gates],
            "undecided": self.unknown,
        }


def compile_gated(
    items: Sequence[tuple[Cut, str]], schema: Schema, sample: Columns | None = None
) -> FilterIndex | GatedIndex:
    """Compile filters of one stream, each a cut text and its mode; a plain index if none of them covers another."""
    covers = CoverSet(schema, demote="pairwise")
    for slot, (made, missing) in enumerate(items):
        covers.add_union(slot, union_or_none(made.body(), missing, schema))
    found = cast("dict[int, frozenset[int]]", covers.gates)
    gates = {slot: tuple(sorted(by)) for slot, by in found.items()}
    if not gates:
        return compile_filters(items, schema, sample)
    active = np.array([slot for slot in range(len(items)) if slot not in gates], np.int32)
    passive = np.array(sorted(gates), np.int32)
    made_gates = [
        Gate(compile_filters([items[s] for s in slots], schema, sample), np.array(slots, np.int32), coverers)
        for coverers, slots in _groups(gates)
    ]
    lists = [gates[int(slot)] for slot in passive]
    return GatedIndex(
        len(items),
        compile_filters([items[s] for s in active.tolist()], schema, sample),
        active,
        tuple(made_gates),
        passive,
        np.cumsum([0, *map(len, lists)]).astype(np.int64),
        np.array([c for by in lists for c in by], np.int32),
        covers.unknown,
    )


def _groups(gates: dict[int, tuple[int, ...]]) -> list[tuple[Slots, list[int]]]:
    """The filters behind each gate. What nothing opens, because it can never match, is behind none."""
    same: dict[tuple[int, ...], list[int]] = {}
    for slot in sorted(gates):
        if gates[slot]:
            same.setdefault(gates[slot], []).append(slot)
    large = sorted((by for by, slots in same.items() if len(slots) >= LEAST), key=lambda by: -len(same[by]))[:MOST]
    found = [(by, same.pop(by)) for by in large]
    if same:
        coverers = tuple(sorted({c for by in same for c in by}))
        found.append((coverers, sorted(slot for slots in same.values() for slot in slots)))
    return [(np.array(by, np.int32), slots) for by, slots in found]


def _taken(columns: Columns, rows: NDArray[np.int64], needs: frozenset[Path]) -> Columns:
    """Some events, with what is needed of them."""
    if len(rows) == columns.rows:
        return columns
    wanted = {path: column.take(rows) for path, column in columns.columns.items() if path in needs}
    return Columns(columns.stream, len(rows), wanted, columns.first)
