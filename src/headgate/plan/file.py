"""Plans as files: a JSON head that describes the parts, and behind it every array, aligned, to be mapped as it is.

Opening reads the head alone; pages of arrays come in as they are touched, and processes of one host share them. Nothing
in the file is code: classes are looked up in a fixed list.
"""

from __future__ import annotations

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
from headgate.language.catalogue import OntologyText
from headgate.plan.segment import Segment
from headgate.predicates.cells import Cells
from headgate.predicates.normal import Lit
from headgate.schema import Attribute, Kind, Schema, Type

MAGIC = b"HEADGATE"
VERSION = 1
_ALIGN = 64
_CLASSES: dict[str, type[Any]] = {
    c.__name__: c
    for c in (
        Segment, FilterIndex, Lanes, Dense, Roots, Program, Lane, Conjuncts, Rows, Lookup, Cells, Lit, Schema, Attribute,
        Type, OntologyText, GatedIndex, Gate,
    )
}  # fmt: skip


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
    def __init__(self, buffer: Any, table: list[tuple[str, int, int]], start: int) -> None:
        self._buffer = buffer
        self._table = table
        self._start = start

    def unpack(self, value: Any) -> Any:
        match value:
            case {"array": number, "shape": shape}:
                return self._array(number).reshape(shape)
            case {"texts": count, "nulls": nulls, "parts": parts}:
                buffers: list[Any] = [None if p is None else pa.py_buffer(self.unpack(p)) for p in parts]
                return pa.StringArray.from_buffers(count, buffers[1], buffers[2], buffers[0], nulls)
            case {"codes": codes, "words": words}:
                return pa.DictionaryArray.from_arrays(pa.array(self.unpack(codes)), self.unpack(words))
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
        dtype, offset, size = self._table[number]
        kind = np.dtype(dtype)
        return np.frombuffer(self._buffer, kind, size // kind.itemsize, self._start + offset)


def write(parts: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write under a name of its own and rename: a reader sees a whole plan or none."""
    writer = _Writer()
    tree = {name: writer.pack(part) for name, part in parts.items()}
    table, offset = [], 0
    for dtype, array in writer.arrays:
        table.append((dtype, offset, array.nbytes))
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    head = json.dumps({"parts": tree, "arrays": table}, separators=(",", ":")).encode()
    start = -(-(len(MAGIC) + 12 + len(head)) // _ALIGN) * _ALIGN
    target = Path(path)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    with fresh.open("wb") as f:
        f.write(MAGIC + struct.pack("<IQ", VERSION, len(head)) + head)
        f.write(b"\0" * (start - f.tell()))
        for (_, array), (_, at, _) in zip(writer.arrays, table, strict=True):
            f.write(b"\0" * (start + at - f.tell()))
            f.write(array.data)
        f.flush()
        os.fsync(f.fileno())
    fresh.replace(target)


def read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Map a plan. The file may be removed afterwards; it must not be written to."""
    try:
        with Path(path).open("rb") as f:
            front = f.read(len(MAGIC) + 12)
            if not front.startswith(MAGIC) or len(front) < len(MAGIC) + 12:
                raise PlanError(f"{path} is no plan", "plans are written by Plan.save")
            version, size = struct.unpack("<IQ", front[len(MAGIC) :])
            if version != VERSION:
                raise PlanError(
                    f"{path} has plan format {version}, this version reads {VERSION}", "compile the book again"
                )
            head = f.read(size)
            if len(head) < size:
                raise PlanError(f"{path} is cut short")
            mapped = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as e:
        raise PlanError(f"cannot open the plan {path}: {e.strerror}") from None
    described = json.loads(head)
    start = -(-(len(front) + size) // _ALIGN) * _ALIGN
    table = described["arrays"]
    if table and start + table[-1][1] + table[-1][2] > len(mapped):
        raise PlanError(f"{path} is cut short")
    reader = _Reader(mapped, table, start)
    return MappingProxyType({name: reader.unpack(part) for name, part in described["parts"].items()})
