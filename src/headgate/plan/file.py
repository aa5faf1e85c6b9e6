"""Plans as files: a JSON head that describes the parts, and behind it every array, aligned, to be mapped as it is.

Opening reads the head and checks it; pages of arrays are shared by the processes of one host. Nothing in the file is
code: classes are looked up in a fixed list, and every array must lie inside the file and have the digest that the head
says (docs/decisions/0008-plan-files.md). What does not fit is refused before anything is built from it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from headgate.covering.gates import Gate, GatedIndex
from headgate.errors import PlanError
from headgate.filters.compile import Lanes
from headgate.filters.dense import Dense, Roots
from headgate.filters.engine import FilterIndex
from headgate.filters.filing import Conjuncts, Lane
from headgate.filters.lookup import Lookup
from headgate.filters.program import Program
from headgate.filters.rows import Rows
from headgate.language import codec
from headgate.language.ast import Node
from headgate.language.catalogue import Catalogue, OntologyText
from headgate.match.static import FilterStatic
from headgate.plan.segment import Segment
from headgate.predicates.cells import Cells
from headgate.predicates.normal import Lit
from headgate.schema import Attribute, Kind, Schema, Type
from headgate.sequences.index import Ends, Layout, Numbered
from headgate.sequences.level_index import LevelIndex
from headgate.sequences.merging import MergedAutomata
from headgate.sequences.predicate_table import Constants, Predicates
from headgate.sequences.predicates import Equality
from headgate.sequences.producers import ProducerKind, Producers
from headgate.sequences.publish_levels import Joined, Known, Side
from headgate.sequences.saved import SavedIndex, SavedLevel, SavedTable
from headgate.sequences.spine import Accumulator, Merged, Selected, Source, Spine, Step
from headgate.sequences.spine_table import Spines

MAGIC = b"HEADGATE"
VERSION = 4
AGAIN = "compile the book again"
_ALIGN = 64
_FRONT = struct.Struct("<IQ32s")
_KINDS = frozenset("iufb")
"""Kinds of numbers that an array may hold."""
_CLASSES: dict[str, type[Any]] = {
    c.__name__: c
    for c in (
        Segment, FilterIndex, Lanes, Dense, Roots, Program, Lane, Conjuncts, Rows, Lookup, Cells, Lit, Schema, Attribute,
        Type, OntologyText, GatedIndex, Gate, FilterStatic, SavedIndex, SavedTable, SavedLevel, LevelIndex, Layout, Numbered,
        Ends, MergedAutomata, Producers, ProducerKind, Spines, Predicates, Constants, Known, Spine, Source, Merged, Step,
        Accumulator, Selected, Equality, Joined, Side,
    )
}  # fmt: skip


def know(kind: type[Any]) -> type[Any]:
    """Makes a dataclass part of what a file may hold."""
    _CLASSES[kind.__name__] = kind
    return kind


class _Writer:
    def __init__(self) -> None:
        self.arrays: list[tuple[str, Any]] = []

    def pack(self, value: Any) -> Any:
        """A value as JSON, its arrays put aside."""
        if isinstance(value, np.ndarray):
            self.arrays.append((value.dtype.str, np.ascontiguousarray(value)))
            return {"array": len(self.arrays) - 1, "shape": value.shape}
        if isinstance(value, pa.Array):
            return self._arrow(value)
        if isinstance(value, Kind):
            return {"kind": value.value}
        if isinstance(value, Node):
            return {"node": codec.encode(value)}
        if is_dataclass(value) and not isinstance(value, type):
            kept = {f.name: self.pack(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
            return {"class": type(value).__name__, "fields": kept}
        if isinstance(value, Mapping):
            return {"map": [[self.pack(k), self.pack(v)] for k, v in value.items()]}
        if isinstance(value, tuple | list):
            return {"tuple" if isinstance(value, tuple) else "list": [self.pack(v) for v in value]}
        if isinstance(value, np.generic):
            return self.pack(value.item())
        if isinstance(value, float | int | str | None) and not isinstance(value, Enum):
            return codec.encode(value)
        raise AssertionError(f"a plan cannot hold a {type(value).__name__}")

    def _arrow(self, value: Any) -> Any:
        if pa.types.is_dictionary(value.type):
            return {"codes": self.pack(value.indices.to_numpy()), "words": self._arrow(value.dictionary)}
        whole = pa.concat_arrays([value])  # offsets from zero, whatever it was cut from
        validity, offsets, data = whole.buffers()
        parts = [None if b is None else np.frombuffer(b, np.uint8) for b in (validity, offsets, data)]
        return {
            "texts": len(whole),
            "nulls": whole.null_count,
            "parts": [None if p is None else self.pack(p) for p in parts],
        }


class _Reader:
    def __init__(self, buffer: Any, table: list[tuple[str, int, int, str]], start: int) -> None:
        self._buffer = buffer
        self._table = table
        self._start = start

    def unpack(self, value: Any) -> Any:
        match value:
            case {"array": int(number), "shape": shape}:
                return self._array(number).reshape(shape)
            case {"texts": int(count), "nulls": int(nulls), "parts": [validity, offsets, data]}:
                return self._texts(
                    count, nulls, *(None if p is None else self.unpack(p) for p in (validity, offsets, data))
                )
            case {"codes": codes, "words": words}:
                # From a buffer: pa.array would import pandas, which takes longer than all the rest.
                numbers = self.unpack(codes)
                kind = pa.from_numpy_dtype(numbers.dtype)
                indices: Any = pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)])
                return pa.DictionaryArray.from_arrays(indices, self.unpack(words))
            case {"kind": name}:
                return Kind(name)
            case {"node": tree}:
                return codec.decode(tree)
            case {"class": name, "fields": kept}:
                if name not in _CLASSES:
                    raise PlanError(f"the plan holds a {name}, which this version does not know")
                return _CLASSES[name](**{k: self.unpack(v) for k, v in kept.items()})
            case {"map": pairs}:
                return {self.unpack(k): self.unpack(v) for k, v in pairs}
            case {"tuple": items}:
                return tuple(map(self.unpack, items))
            case {"list": items}:
                return list(map(self.unpack, items))
        return codec.decode(value)

    def _array(self, number: int) -> Any:
        dtype, offset, size, _ = self._table[number]
        kind = np.dtype(dtype)
        return np.frombuffer(self._buffer, kind, size // kind.itemsize, self._start + offset)

    def _texts(self, count: int, nulls: int, validity: Any, offsets: Any, data: Any) -> Any:
        at = np.zeros(1, np.int32) if offsets is None else offsets.view(np.int32)[: count + 1]
        size = 0 if data is None else len(data)
        whole = len(at) == count + 1 and at[0] == 0 and at[-1] <= size and bool((np.diff(at) >= 0).all())
        if not whole or (validity is not None and 8 * len(validity) < count):
            raise PlanError("the plan is damaged: a column of texts points outside itself", AGAIN)
        buffers: list[Any] = [None if b is None else pa.py_buffer(b) for b in (validity, offsets, data)]
        return pa.StringArray.from_buffers(count, buffers[1], buffers[2], buffers[0], nulls)


def encode(value: Any) -> str:
    """A value without arrays as a text of its own, to be decoded when it is needed."""
    writer = _Writer()
    text = orjson.dumps(writer.pack(value)).decode()
    assert not writer.arrays
    return text


def decode(text: str) -> Any:
    return _Reader(b"", [], 0).unpack(orjson.loads(text))


def definitions(known: Catalogue) -> dict[str, Any]:
    """The parts of a file that say what names mean; operators are code and are not among them."""
    return {
        "streams": dict(known.streams),
        "prefixes": known.prefixes,
        "ontologies": known.ontologies,
        "templates": known.templates,
        "published": known.published,
    }


def write(parts: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write under a name of its own and rename: a reader sees a whole plan or none."""
    writer = _Writer()
    tree = {name: writer.pack(part) for name, part in parts.items()}
    table, offset = [], 0
    for dtype, array in writer.arrays:
        table.append((dtype, offset, array.nbytes, hashlib.sha256(array.data).hexdigest()))
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    head = json.dumps({"parts": tree, "arrays": table}, separators=(",", ":")).encode()
    start = -(-(len(MAGIC) + _FRONT.size + len(head)) // _ALIGN) * _ALIGN
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    with fresh.open("wb") as f:
        f.write(MAGIC + _FRONT.pack(VERSION, len(head), _digest(head)) + head)
        f.write(b"\0" * (start - f.tell()))
        for (_, array), (_, at, _, _) in zip(writer.arrays, table, strict=True):
            f.write(b"\0" * (start + at - f.tell()))
            f.write(array.data)
        f.flush()
        os.fsync(f.fileno())
    fresh.replace(target)


def read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Map a plan. The file may be removed afterwards; it must not be written to."""
    try:
        with Path(path).open("rb") as f:
            front = f.read(len(MAGIC) + _FRONT.size)
            if not front.startswith(MAGIC) or len(front) < len(MAGIC) + _FRONT.size:
                raise PlanError(f"{path} is no plan", "plans are written by Plan.save")
            version, size, digest = _FRONT.unpack(front[len(MAGIC) :])
            if version != VERSION:
                raise PlanError(f"{path} has plan format {version}, this version reads {VERSION}", AGAIN)
            head = f.read(size)
            if len(head) < size:
                raise PlanError(f"{path} is cut short", AGAIN)
            # A private mapping, so that arrays seem writable: kernels would be compiled a second time for those that
            # are not. Nobody writes, so the pages stay shared.
            mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as e:  # a NUL in a path is a ValueError
        raise PlanError(f"cannot open the plan {os.fspath(path)}: {getattr(e, 'strerror', e)}") from None
    if _digest(head) != digest:
        raise PlanError(f"{path} is damaged: its head is not what was written", AGAIN)
    start = -(-(len(front) + size) // _ALIGN) * _ALIGN
    try:
        described = json.loads(head)
        table = [(str(d), int(at), int(count), str(mark)) for d, at, count, mark in described["arrays"]]
        _check(table, mapped, start, path)
        reader = _Reader(mapped, table, start)
        return MappingProxyType({name: reader.unpack(part) for name, part in described["parts"].items()})
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError, pa.ArrowException) as problem:
        raise PlanError(f"{path} is damaged: {problem}", AGAIN) from None


def _check(table: list[tuple[str, int, int, str]], mapped: Any, start: int, path: Any) -> None:
    """Every array lies inside the file, holds numbers, and is what was written."""
    view = memoryview(mapped)
    for dtype, at, size, mark in table:
        if at < 0 or size < 0 or at % _ALIGN or start + at + size > len(mapped):
            raise PlanError(f"{path} is cut short", AGAIN)
        if np.dtype(dtype).kind not in _KINDS or size % np.dtype(dtype).itemsize:
            raise PlanError(f"{path} is damaged: it has an array of {dtype}", AGAIN)
        if hashlib.sha256(view[start + at : start + at + size]).hexdigest() != mark:
            raise PlanError(f"{path} is damaged: an array is not what was written", AGAIN)


def _digest(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=32).digest()
