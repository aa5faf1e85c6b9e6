"""Runs to and from bytes, so that a session can go on elsewhere or under another plan.

A run is filed under the signature of its state: a hash of everything from the start of its pattern to the step it waits
in, streams by name. Numbers of states, slots and columns are never written, so that subscriptions may come and go and
the others keep their runs. Runs of states that the new plan does not have are left out and counted.

    HGSQ, version (2 bytes), length of the header (8 bytes), header (JSON), arrays one after the other

The header says what the arrays are. Numbers are little-endian int64; a DOUBLE is its bits.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import xxhash
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.errors import PlanError
from headgate.schema import Kind, Type, format_path, parse_path
from headgate.sequences.aggregates import WIDTH
from headgate.sequences.automaton import State
from headgate.sequences.memory import Arrivals
from headgate.sequences.stepper import Run
from headgate.sequences.tables import BORN, HANDLES, HIGH, NODE, T0, T1, Ints

if TYPE_CHECKING:
    from headgate.sequences.engine import Index, LevelIndex, Session

MAGIC, VERSION = b"HGSQ", 2
_ARRAYS = ("cells", "defined", "t0", "t1", "stream", "source", "row", "identity")
_HEAD = struct.Struct("<4sHQ")


def signature(state: State, streams: list[str]) -> str:
    """The structure from the start to this state."""
    parts: list[object] = [state.missing]
    at: State | None = state
    while at is not None:
        step = at.step
        starts = sorted(step.starts.items())
        parts += [step.kind, streams[at.stream], step.theta, step.keep, step.accumulators, starts, step.within]
        parts.append(at.origin.after)
        if at.origin.origin is None:
            parts.append(streams[at.origin.streams[0]])
        at = at.origin.origin
    return xxhash.xxh3_128_hexdigest(repr(parts).encode())


@dataclass
class Restored:
    """What became of saved runs: how many go on, and how many had no state in the new plan."""

    kept: int = 0
    left_out: int = 0


@dataclass
class _Writer:
    arrays: list[bytes] = field(default_factory=list)

    def put(self, array: NDArray[Any]) -> list[Any]:
        data = np.ascontiguousarray(array)
        self.arrays.append(data.tobytes())
        return [str(data.dtype.newbyteorder("<")), list(data.shape)]


@dataclass
class _Reader:
    data: memoryview
    at: int = 0

    def take(self, described: list[Any]) -> NDArray[Any]:
        dtype, shape = np.dtype(described[0]), tuple(described[1])
        size = dtype.itemsize * int(np.prod(shape))
        if self.at + size > len(self.data):
            raise PlanError("the saved state of the sequences is cut short", "use the state of an earlier checkpoint")
        array = np.frombuffer(self.data[self.at : self.at + size], dtype).reshape(shape)
        self.at += size
        return array


def save(session: Session) -> bytes:
    writer = _Writer()
    header = {
        "closed": session.clock.closed,
        "tick": session.clock.tick,
        "sources": session.clock.sources,
        "waiting": [_waiting(a) for a in session.waiting],
        "levels": [_level(session, at, level, writer) for at, level in enumerate(session.index.levels)],
    }
    text = orjson.dumps(header)
    return b"".join([_HEAD.pack(MAGIC, VERSION, len(text)), text, *writer.arrays])


def restore(index: Index, data: bytes) -> tuple[Session, Restored]:
    """A session of this index that goes on where the saved one stopped."""
    if len(data) < _HEAD.size or data[:4] != MAGIC:
        raise PlanError("these bytes are no saved state of sequences")
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise PlanError(
            f"the saved state of the sequences has version {version}, this program reads version {VERSION}",
            "start it with the program that wrote it, or begin with an empty state",
        )
    header = orjson.loads(data[_HEAD.size : _HEAD.size + length])
    reader = _Reader(memoryview(data)[_HEAD.size + length :])
    session = index.session()
    session.clock.closed, session.clock.tick = header["closed"], header["tick"]
    session.waiting = [_arrivals(w) for w in header["waiting"] if w["stream"] in index.plan.base]
    report = Restored()
    sources = [index.sources.index(s) if s in index.sources else -1 for s in header["sources"]]
    for level in header["levels"]:
        _restore_level(session, level, reader, sources, report)
    return session, report


# -- waiting events


def _waiting(a: Arrivals) -> dict[str, Any]:
    columns = {
        format_path(path): [str(column.type), [_text(column.value(i)) for i in range(len(column))]]
        for path, column in a.columns.columns.items()
    }
    numbers = {name: getattr(a, name).tolist() for name in ("t0", "t1", "identity", "row", "source")}
    return {"stream": a.stream, "columns": columns, **numbers}


def _arrivals(w: dict[str, Any]) -> Arrivals:
    columns = {
        parse_path(name): Column.of(Type.parse(kind), [_value(v) for v in values])
        for name, (kind, values) in w["columns"].items()
    }
    whole = {name: np.array(w[name], np.int64) for name in ("t0", "t1", "row", "source")}
    events = Columns(w["stream"], len(w["t1"]), columns)
    return Arrivals(
        w["stream"], events, whole["t0"], whole["t1"], np.array(w["identity"], np.uint64), whole["row"], whole["source"]
    )


def _text(value: Any) -> Any:
    """A value in JSON that comes back as it was."""
    if isinstance(value, float):
        return {"f": value.hex()}
    if isinstance(value, bytes):
        return {"b": value.hex()}
    return [_text(v) for v in value] if isinstance(value, list | tuple) else value


def _value(shown: Any) -> Any:
    if isinstance(shown, dict):
        return float.fromhex(shown["f"]) if "f" in shown else bytes.fromhex(shown["b"])
    return [_value(v) for v in shown] if isinstance(shown, list) else shown


# -- levels


def _level(session: Session, at: int, level: LevelIndex, writer: _Writer) -> dict[str, Any]:
    table = session.tables[at]
    memory, cells_at = table.memory, level.numbered.tables.cells_at
    rows = table.runs.rows[: table.runs.scalars[HIGH]]
    rows = rows[rows[:, NODE] >= 0]
    rows = rows[np.argsort(rows[:, BORN])]
    slow = [(n, run) for n, runs in table.stepper.runs.items() for run in runs.values()]
    handles = [rows[:, HANDLES:cells_at].ravel(), np.array([h for _, r in slow for h in r.handles], np.int64)]
    used = np.unique(np.concatenate(handles))
    used = used[used >= 0]
    moved = {int(h): i for i, h in enumerate(used)} | {-1: -1}
    kept = memory.snapshot(used)
    rows = rows.copy()
    rows[:, HANDLES:cells_at] = np.where(
        rows[:, HANDLES:cells_at] >= 0, np.searchsorted(used, rows[:, HANDLES:cells_at]), -1
    )
    layouts = zip(level.layout.schemas, level.layout.columns, strict=True)
    return {
        "streams": level.streams,
        "columns": [
            [[format_path(p), c, None if (a := schema.get(p)) is None else str(a.type)] for p, c in columns.items()]
            for schema, columns in layouts
        ],
        "values": [_text(v) for v in memory.listed()],
        "states": [signature(s, level.streams) for s in level.numbered.states],
        "cells_at": cells_at,
        "slow": [
            [signature(level.interpreted.states[n], level.streams), run.t0, run.t1, [moved[h] for h in run.handles],
             _text(run.states)]
            for n, run in slow
        ],
        "arrays": [writer.put(a) for a in (*(getattr(kept, name) for name in _ARRAYS), rows)],
    }  # fmt: skip


def _restore_level(
    session: Session, saved: dict[str, Any], reader: _Reader, sources: list[int], report: Restored
) -> None:
    cells, defined, t0, t1, stream, source, row, identity, rows = (reader.take(d) for d in saved["arrays"])
    events = _Events(saved, cells, defined, t0, t1, stream, np.array([*sources, -1])[source], row, identity)
    known: set[str] = set()
    for at, level in enumerate(session.index.levels):
        signatures = {signature(s, level.streams): i for i, s in enumerate(level.numbered.states)}
        slow = {signature(s, level.streams): s for s in level.interpreted.states}
        numbers = np.array([signatures.get(s, -1) for s in saved["states"]] or [-1], np.int64)
        ours = rows[numbers[rows[:, NODE]] >= 0]
        others = [run for run in saved["slow"] if run[0] in slow]
        if not len(ours) and not others:
            continue
        known |= signatures.keys() | slow.keys()
        table = session.tables[at]
        old_at, new_at = saved["cells_at"], level.numbered.tables.cells_at
        used = {int(h) for h in ours[:, HANDLES:old_at].ravel() if h >= 0} | {
            h for run in others for h in run[3] if h >= 0
        }
        moved = events.into(session, at, sorted(used))
        waiting = np.zeros((max(1, len(ours)), level.numbered.tables.width), np.int64)
        waiting[:, HANDLES:new_at] = -1
        for i, old in enumerate(ours):
            state = level.numbered.states[int(numbers[old[NODE]])]
            waiting[i, NODE], waiting[i, T0], waiting[i, T1] = numbers[old[NODE]], old[T0], old[T1]
            for place in range(state.place + 1):
                handle = int(old[HANDLES + place])
                waiting[i, HANDLES + place] = moved[handle] if handle >= 0 else -1
            count = len(old) - old_at
            span = min(count, waiting.shape[1] - new_at)
            waiting[i, new_at : new_at + span] = old[old_at : old_at + span]
            _recode(state, waiting[i], new_at, saved["values"], session, at)
        table.put_in(waiting, len(ours))
        for sig, start, end, handles, states in others:
            moved_handles = tuple(moved[h] if h >= 0 else -1 for h in handles)
            frozen = tuple(tuple(_state(_value(s)) for s in fold) for fold in states)
            table.stepper.restore(slow[sig], Run(start, end, moved_handles, frozen))
        report.kept += len(ours) + len(others)
    states = [saved["states"][int(r[NODE])] for r in rows] + [run[0] for run in saved["slow"]]
    report.left_out += sum(s not in known for s in states)


def _state(values: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(v) if isinstance(v, list) else v for v in values)


def _recode(state: State, row: Ints, cells_at: int, values: list[Any], session: Session, at: int) -> None:
    """Texts in aggregates have the codes of the new session."""
    cell = cells_at
    for accumulators in (*(a for _, a in state.origin.folds), state.step.accumulators):
        for a in accumulators:
            if a.type is not None and a.type.kind in (Kind.STRING, Kind.BINARY) and a.function != "COUNT" and row[cell]:
                row[cell + 1] = session.tables[at].memory.code(_value(values[int(row[cell + 1])]))
            cell += 2 * WIDTH[a.function]


@dataclass
class _Events:
    """The bound events of a saved level."""

    saved: dict[str, Any]
    cells: Ints
    defined: NDArray[Any]
    t0: Ints
    t1: Ints
    stream: Ints
    source: Ints
    row: Ints
    identity: NDArray[Any]

    def into(self, session: Session, at: int, used: list[int]) -> dict[int, int]:
        """Enters events into the memory of a level; gives their new handles."""
        level, memory = session.index.levels[at], session.tables[at].memory
        moved: dict[int, int] = {}
        for number, name in enumerate(self.saved["streams"]):
            which = np.array([h for h in used if self.stream[h] == number], np.int64)
            if not len(which):
                continue
            columns: dict[Any, Column] = {}
            for text, column, kind in self.saved["columns"][number]:
                there = self.defined[which, column].astype(np.bool_)
                columns[parse_path(text)] = self._column(kind, self.cells[which, column], there)
            events = Columns(name, len(which), columns)
            arrivals = Arrivals(
                name, events, self.t0[which], self.t1[which], self.identity[which].astype(np.uint64),
                self.row[which], self.source[which],
            )  # fmt: skip
            first = memory.size
            memory.append([(level.streams.index(name), arrivals, np.arange(len(which)))])
            moved |= {int(h): first + i for i, h in enumerate(which)}
        return moved

    def _column(self, kind: str | None, cells: Ints, there: NDArray[np.bool_]) -> Column:
        held = None if kind is None or kind == "None" else Type.parse(kind)
        if held is not None and not held.array and held.kind in (Kind.BIGINT, Kind.TIMESTAMP):
            return Column(held, there, cells.copy())
        if held is not None and not held.array and held.kind is Kind.DOUBLE:
            return Column(held, there, cells.copy().view(np.float64))
        if held is not None and not held.array and held.kind is Kind.BOOLEAN:
            return Column(held, there, cells.astype(np.bool_))
        values = [_value(self.saved["values"][c]) if d else None for c, d in zip(cells.tolist(), there, strict=True)]
        return Column.of(held or Type(Kind.STRING), values)
