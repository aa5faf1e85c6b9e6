"""The runs of a bucket as pages of bytes: what changed is written, the rest stays as it is.

A run belongs to the page that the identity of its first event says, so that runs which could be equal are on one page,
with the events they have bound. Runs never change, they are born and die: the pages to be written are those of the runs
that were born or died since the last time. There are more pages where there are more runs.

Runs are filed under the signature of their state and attributes by name, never by number,
so that subscriptions may come and go. A page is

    HGPG, version (2 bytes), length of the header (4 bytes), header (JSON), arrays one after the other, ids (Arrow)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.errors import PlanError
from headgate.events.any_values import of_objects
from headgate.runtime.stateful.packing import from_bytes, of_json, to_bytes, to_json, whole
from headgate.schema import Kind, Type, format_path, parse_path
from headgate.sequences.aggregates import WIDTH
from headgate.sequences.engine import Session
from headgate.sequences.level_index import LevelIndex
from headgate.sequences.memory import Arrivals, Memory
from headgate.sequences.merging import Folds
from headgate.sequences.runs.table import RunTable
from headgate.sequences.stepper import Run
from headgate.sequences.tables import BORN, HANDLES, HIGH, NODE, T0, T1, Ints

if TYPE_CHECKING:
    from headgate.columns import Array

MAGIC, VERSION = b"HGPG", 1
RUNS_A_PAGE = 2048
MOST_PAGES = 256
_HEAD = struct.Struct("<4sHI")
_PLAIN = (Kind.BIGINT, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.DOUBLE)


class EventIds:
    """What must be known of the events that a session was fed, by row number: the id, and the hash of the key, which says
    where its runs belong should there be another number of buckets. What no run has bound is forgotten in time."""

    def __init__(self) -> None:
        self._rows: Ints = np.zeros(0, np.int64)
        self._keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._ids: Array | None = None
        self._settled = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Ints, ids: Array, keys: NDArray[np.uint64]) -> None:
        """Rows that may be known already, in any order."""
        fresh = np.flatnonzero(~np.isin(rows, self._rows)) if len(self._rows) else np.arange(len(rows))
        if not len(fresh):
            return
        joined = np.concatenate([self._rows, rows[fresh]])
        taken = ids.take(fresh)
        named = taken if self._ids is None else pa.concat_arrays([self._ids, taken])
        order = np.argsort(joined, kind="stable")
        self._rows, self._keys = joined[order], np.concatenate([self._keys, keys[fresh]])[order]
        self._ids = named if (order == np.arange(len(order))).all() else named.take(order)

    def take(self, rows: Ints) -> Array:
        assert self._ids is not None
        return self._ids.take(np.searchsorted(self._rows, rows))

    def keys(self, rows: Ints) -> NDArray[np.uint64]:
        return self._keys[np.searchsorted(self._rows, rows)]

    def forget(self, session: Session) -> None:
        if len(self._rows) < 2 * self._settled + 4096:
            return
        bound = [table.memory.row[: table.memory.size] for table in session.tables]
        kept = np.flatnonzero(np.isin(self._rows, np.concatenate(bound))) if bound else np.zeros(0, np.int64)
        if self._ids is not None:
            self._rows, self._keys, self._ids = self._rows[kept], self._keys[kept], self._ids.take(kept)
        self._settled = len(kept)


@dataclass
class Pages:
    """Which run of a session is on which page, as it was written last."""

    count: int = 1
    written: dict[int, int] = field(default_factory=dict)
    """The pages there are, each with a digest of its bytes."""
    _born: list[Ints] = field(default_factory=list)
    _page: list[Ints] = field(default_factory=list)

    def clean(self, session: Session) -> None:
        """Takes the session as written."""
        self._born, self._page = [], []
        for table in session.tables:
            born = _born(table)
            self._born.append(born)
            self._page.append(_pages(table, born >= 0, self.count))

    def changed(
        self, session: Session, ids: EventIds, *, everything: bool = False
    ) -> Iterator[tuple[int, bytes | None]]:
        """The pages that are other than they were, with their bytes; None for one that is empty now."""
        alive = sum(int((_born(t) >= 0).sum()) for t in session.tables)
        wanted = min(MOST_PAGES, 1 << max(0, (alive // RUNS_A_PAGE).bit_length()))
        if wanted > self.count or 8 * wanted < self.count:
            yield from ((page, None) for page in self.written)
            self.written, self.count, everything = {}, wanted, True
        dirty: set[int] = set(range(self.count)) if everything else set()
        before, pages_before = self._born, self._page
        self.clean(session)
        if not everything:
            for at, (born, page) in enumerate(zip(self._born, self._page, strict=True)):
                old, old_page = _padded(before[at], len(born)), _padded(pages_before[at], len(born))
                moved = np.flatnonzero(old != born)
                dirty.update(old_page[moved[old[moved] >= 0]].tolist())
                dirty.update(page[moved[born[moved] >= 0]].tolist())
        slow = _slow_runs(session, self.count)
        if any(level.slow for level in session.index.levels):
            dirty |= slow.keys() | self.written.keys()
        for number in sorted(dirty):
            data = _encode(session, [p == number for p in self._page], slow.get(number, []), ids)
            if data is None:
                if self.written.pop(number, None) is not None:
                    yield number, None
            elif self.written.get(number) != (digest := xxhash.xxh3_64_intdigest(data)):
                self.written[number] = digest
                yield number, data


def _padded(old: Ints, size: int) -> Ints:
    return old if len(old) == size else np.concatenate([old[:size], np.full(max(0, size - len(old)), -1, np.int64)])


def _born(table: RunTable) -> Ints:
    rows = table.runs.rows[: int(table.runs.scalars[HIGH])]
    return np.where(rows[:, NODE] >= 0, rows[:, BORN], -1)


def _pages(table: RunTable, alive: NDArray[np.bool_], count: int) -> Ints:
    """The page of each run, -1 where there is none."""
    made = np.full(len(alive), -1, np.int64)
    rows = np.flatnonzero(alive)
    made[rows] = _page_of(table.memory.identity[table.runs.rows[rows, HANDLES]], count)
    return made


def _page_of(identity: NDArray[np.uint64], count: int) -> Ints:
    mixed = (identity ^ (identity >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(40)) % np.uint64(count)).astype(np.int64)


def _slow_runs(session: Session, count: int) -> dict[int, list[tuple[int, int, Run]]]:
    """The runs of the slower path by page: level, number of the state, run."""
    found: dict[int, list[tuple[int, int, Run]]] = {}
    for at, table in enumerate(session.tables):
        for number, runs in table.stepper.runs.items():
            for run in runs.values():
                first = table.memory.identity[run.handles[0] : run.handles[0] + 1]
                found.setdefault(int(_page_of(first, count)[0]), []).append((at, number, run))
    return found


# -- to bytes


def _encode(
    session: Session, chosen: list[NDArray[np.bool_]], slow: list[tuple[int, int, Run]], ids: EventIds
) -> bytes | None:
    arrays: list[NDArray[Any]] = []
    levels: list[Any] = []
    numbers: list[Ints] = []
    for at, level in enumerate(session.index.levels):
        ours = [(n, run) for where, n, run in slow if where == at]
        rows = np.flatnonzero(chosen[at])
        if len(rows) or ours:
            levels.append(_level(session.tables[at], level, rows, ours, arrays, numbers))
    if not levels:
        return None
    header = orjson.dumps(
        {"sources": session.index.sources, "levels": levels, "arrays": [[a.dtype.str, a.shape] for a in arrays]}
    )
    bound = np.unique(np.concatenate(numbers))
    held = to_bytes(pa.table({"row": pa.array(bound), "id": ids.take(bound), "key": pa.array(ids.keys(bound))}))
    return b"".join([_HEAD.pack(MAGIC, VERSION, len(header)), header, *(a.tobytes() for a in arrays), held])


def _level(
    table: RunTable,
    level: LevelIndex,
    chosen: Ints,
    slow: list[tuple[int, Run]],
    arrays: list[NDArray[Any]],
    numbers: list[Ints],
) -> dict[str, Any]:
    memory, cells_at = table.memory, level.numbered.tables.cells_at
    names, slow_names = level.signatures
    rows = table.runs.rows[chosen]
    rows = rows[np.argsort(rows[:, BORN])]
    bound = [rows[:, HANDLES:cells_at].ravel(), np.array([h for _, r in slow for h in r.handles], np.int64)]
    used = np.unique(np.concatenate(bound))
    used = used[used >= 0]
    nodes, node = np.unique(rows[:, NODE], return_inverse=True)
    handles = np.where(rows[:, HANDLES:cells_at] >= 0, np.searchsorted(used, rows[:, HANDLES:cells_at]), -1)
    place = {int(h): i for i, h in enumerate(used)} if slow else {}
    numbers.append(memory.row[used])
    made = {
        "states": [names[n] for n in nodes.tolist()],
        "places": handles.shape[1],
        "folds": _text_cells(level, nodes, rows, node, cells_at, memory),
        "slow": [
            [slow_names[n], run.t0, run.t1, [place.get(h, -1) for h in run.handles], to_json(run.states)]
            for n, run in slow
        ],
        "streams": [_events(memory, level, number, used, arrays) for number in range(len(level.streams))],
        "first": len(arrays),
    }
    arrays += [node.astype(np.int64), rows[:, T0], rows[:, T1], handles, rows[:, cells_at:]]
    return {k: v for k, v in made.items() if k != "first"} | {"runs": made["first"]}


def _text_cells(
    level: LevelIndex, nodes: Ints, rows: Ints, node: Ints, cells_at: int, memory: Memory
) -> list[list[Any]]:
    """Texts in aggregates, by run and cell: the codes of a session mean nothing elsewhere."""
    found = []
    for i, number in enumerate(nodes.tolist()):
        for cell in _texts_of(level.numbered.folds(number)):
            for run in np.flatnonzero(node == i):
                if rows[run, cells_at + cell]:
                    code = int(rows[run, cells_at + cell + 1])
                    found.append([int(run), cell, to_json(memory.listed()[code])])
    return found


def _texts_of(folds: Folds) -> Iterator[int]:
    cell = 0
    for _, accumulators in folds:
        for a in accumulators:
            if a.type is not None and a.type.kind in (Kind.STRING, Kind.BINARY, Kind.GRAPH) and a.function != "COUNT":
                yield cell
            cell += 2 * WIDTH[a.function]


def _events(memory: Memory, level: LevelIndex, number: int, used: Ints, arrays: list[NDArray[Any]]) -> Any:
    """The bound events of one stream; None if there are none."""
    at = np.flatnonzero(memory.stream[used] == number)
    if not len(at):
        return None
    rows = used[at]
    schema, layout = level.layout.schemas[number], level.layout.columns[number]
    first = len(arrays)
    arrays += [at, memory.t0[rows], memory.t1[rows], memory.identity[rows], memory.row[rows], memory.source[rows]]
    columns = []
    for path, column in layout.items():
        there, cells = memory.defined[rows, column] == 1, memory.cells[rows, column]
        attribute = schema.get(path)
        kind = None if attribute is None else attribute.type
        values = None
        if kind is None or kind.array or kind.kind not in _PLAIN:
            codes, cells = np.unique(np.where(there, cells, -1), return_inverse=True)
            values = [None if c < 0 else to_json(memory.listed()[c]) for c in codes.tolist()]
        columns.append([format_path(path), None if kind is None else str(kind), values, len(arrays)])
        arrays += [there, cells.astype(np.int64)]
    return {"name": level.streams[number], "at": first, "columns": columns}


# -- from bytes


@dataclass(frozen=True)
class Page:
    """A page, read: its header, its arrays, and the ids of its events."""

    header: Mapping[str, Any]
    arrays: list[NDArray[Any]]
    rows: Ints
    ids: Array
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, data: bytes) -> Page:
        if len(data) < _HEAD.size or data[:4] != MAGIC:
            raise PlanError("these bytes are no page of runs")
        _, version, length = _HEAD.unpack_from(data)
        if version != VERSION:
            raise PlanError(
                f"the state of the sequences has version {version}, this program reads version {VERSION}",
                "start it with the program that wrote it, or with a new checkpoint",
            )
        header = orjson.loads(data[_HEAD.size : _HEAD.size + length])
        at, arrays = _HEAD.size + length, []
        for dtype, shape in header["arrays"]:
            kind = np.dtype(dtype)
            count = int(np.prod(shape))
            if at + count * kind.itemsize > len(data):
                raise PlanError("a page of runs is cut short", "go back to an earlier checkpoint")
            arrays.append(np.frombuffer(data, kind, count, at).reshape(shape))
            at += count * kind.itemsize
        held = from_bytes(data[at:])
        keys = held.column("key").to_numpy()
        return cls(header, arrays, held.column("row").to_numpy(), whole(held.column("id")), keys)

    def renumbered(self, times: int, plus: int) -> Page:
        """With other row numbers, so that pages of several buckets can meet."""
        arrays = list(self.arrays)
        for level in self.header["levels"]:
            for stream in filter(None, level["streams"]):
                arrays[stream["at"] + 4] = arrays[stream["at"] + 4] * times + plus
        return replace(self, arrays=arrays, rows=self.rows * times + plus)

    def firsts(self, level: Mapping[str, Any]) -> Ints:
        """The row of the first event of each run of a level: the kernel's runs, then those of the slower path."""
        row_of = np.zeros(
            1 + max((int(self.arrays[s["at"]].max()) for s in level["streams"] if s), default=0), np.int64
        )
        for stream in filter(None, level["streams"]):
            row_of[self.arrays[stream["at"]]] = self.arrays[stream["at"] + 4]
        first = [self.arrays[level["runs"] + 3][:, 0], np.array([r[3][0] for r in level["slow"]], np.int64)]
        found: Ints = row_of[np.concatenate(first)]
        return found

    def key_of(self, rows: Ints) -> NDArray[np.uint64]:
        return self.keys[np.searchsorted(self.rows, rows)]

    def marks(self, level: Mapping[str, Any]) -> list[bytes]:
        """What tells each run of a level from every other: the state, the interval, the bound events, the aggregates."""
        known = np.zeros(
            1 + max((int(self.arrays[s["at"]].max()) for s in level["streams"] if s), default=0), np.uint64
        )
        for stream in filter(None, level["streams"]):
            known[self.arrays[stream["at"]]] = self.arrays[stream["at"] + 3]
        node, t0, t1, handles, cells = self.arrays[level["runs"] : level["runs"] + 5]
        bound = np.where(handles >= 0, known[handles], 0)
        texts: dict[int, list[Any]] = {}
        for run, cell, value in level["folds"]:
            texts.setdefault(run, []).append([cell, value])
        made = []
        for i in range(len(node)):
            parts = (level["states"][node[i]], int(t0[i]), int(t1[i]), bound[i].tobytes(), handles[i] < 0)
            made.append(
                repr((*parts[:4], parts[4].tobytes(), cells[i].tobytes() if i not in texts else texts[i])).encode()
            )
        for name, start, end, held, states in level["slow"]:
            events = [int(known[h]) if h >= 0 else -1 for h in held]
            made.append(repr((name, start, end, events, states)).encode())
        return made

    def counts(self) -> dict[str, int]:
        """How many runs there are in each state, by signature."""
        found: dict[str, int] = {}
        for level in self.header["levels"]:
            counts = np.bincount(self.arrays[level["runs"]], minlength=len(level["states"]))
            for name, n in zip(level["states"], counts.tolist(), strict=True):
                found[name] = found.get(name, 0) + n
            for run in level["slow"]:
                found[run[0]] = found.get(run[0], 0) + 1
        return found


Choose = Callable[[Mapping[str, Any]], NDArray[np.bool_]]
"""Which runs of a level are wanted: the kernel's, then those of the slower path."""


def decode(session: Session, page: Page, ids: EventIds, choose: Choose | None = None) -> tuple[int, int]:
    """Puts the runs of a page into a session; how many there were, and how many of them have a state there."""
    there = kept = 0
    ids.add(page.rows, page.ids, page.keys)
    known = {name: i for i, name in enumerate(session.index.sources)}
    sources = np.array([*(known.get(s, -1) for s in page.header["sources"]), -1])
    for saved in page.header["levels"]:
        there += len(page.arrays[saved["runs"]]) + len(saved["slow"])
        chosen = None if choose is None else choose(saved)
        for at in range(len(session.index.levels)):
            kept += _restore(session, at, saved, page.arrays, sources, chosen)
    return there, kept


def _restore(
    session: Session,
    at: int,
    saved: Any,
    arrays: list[NDArray[Any]],
    sources: Ints,
    chosen: NDArray[np.bool_] | None,
) -> int:
    level, table = session.index.levels[at], session.tables[at]
    kernel, slower = level.numbers
    numbers = np.array([kernel.get(s, -1) for s in saved["states"]], np.int64)
    node, t0, t1, handles, cells = arrays[saved["runs"] : saved["runs"] + 5]
    wanted = np.ones(len(node) + len(saved["slow"]), np.bool_) if chosen is None else chosen
    mine = np.flatnonzero((numbers[node] >= 0) & wanted[: len(node)]) if len(node) else np.zeros(0, np.int64)
    slow = [r for r, w in zip(saved["slow"], wanted[len(node) :], strict=True) if w and r[0] in slower]
    if not len(mine) and not slow:
        return 0
    used = np.unique(np.concatenate([handles[mine].ravel(), np.array([h for r in slow for h in r[3]], np.int64)]))
    moved = _bound(level, table.memory, saved, arrays, sources, used[used >= 0])
    if len(mine):
        tables = level.numbered.tables
        waiting = np.zeros((len(mine), tables.width), np.int64)
        waiting[:, NODE], waiting[:, T0], waiting[:, T1] = numbers[node[mine]], t0[mine], t1[mine]
        waiting[:, HANDLES : tables.cells_at] = -1
        places = min(handles.shape[1], tables.cells_at - HANDLES)
        waiting[:, HANDLES : HANDLES + places] = moved[handles[mine, :places]]
        span = min(cells.shape[1], tables.width - tables.cells_at)
        waiting[:, tables.cells_at : tables.cells_at + span] = cells[mine, :span]
        row_of = {int(r): i for i, r in enumerate(mine)} if saved["folds"] else {}
        for run, cell, value in saved["folds"]:
            if run in row_of:
                waiting[row_of[run], tables.cells_at + cell + 1] = table.memory.code(of_json(value))
        table.put_in(waiting, len(mine))
    for name, start, end, bound, states in slow:
        run = Run(start, end, tuple(int(moved[h]) for h in bound), of_json(states))
        table.stepper.restore(level.interpreted.states[slower[name]], run)
    return len(mine) + len(slow)


def _bound(
    level: LevelIndex, memory: Memory, saved: Any, arrays: list[NDArray[Any]], sources: Ints, used: Ints
) -> Ints:
    """Enters the bound events into memory; gives their new handles, and -1 for -1."""
    moved = np.full(int(used[-1]) + 2 if len(used) else 1, -1, np.int64)
    for stream in saved["streams"]:
        if stream is None or stream["name"] not in level.streams:
            continue
        at, t0, t1, identity, row, source = arrays[stream["at"] : stream["at"] + 6]
        which = np.flatnonzero(np.isin(at, used))
        if not len(which):
            continue
        columns: dict[Any, Column] = {}
        for text, kind, values, first in stream["columns"]:
            columns[parse_path(text)] = _column(kind, values, arrays[first][which], arrays[first + 1][which])
        events = Arrivals(
            stream["name"], Columns(stream["name"], len(which), columns), t0[which], t1[which],
            identity[which].astype(np.uint64), row[which], sources[source[which]],
        )  # fmt: skip
        first = memory.size
        memory.append([(level.streams.index(stream["name"]), events, np.arange(len(which)))])
        moved[at[which]] = first + np.arange(len(which))
    return moved


def _column(kind: str | None, values: list[Any] | None, there: NDArray[np.bool_], cells: Ints) -> Column:
    held = None if kind is None else Type.parse(kind)
    if values is not None:
        read = [of_json(v, list) for v in values]
        listed = [read[c] if d else None for c, d in zip(cells.tolist(), there.tolist(), strict=True)]
        return of_objects(listed) if held is None else Column.of(held, listed)
    assert held is not None
    if held.kind is Kind.DOUBLE:
        return Column(held, there, cells.copy().view(np.float64))
    return Column(held, there, cells.astype(np.bool_) if held.kind is Kind.BOOLEAN else cells.copy())
