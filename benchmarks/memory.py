"""How many bytes something holds: arrays, Arrow columns and the Python objects around them, each counted once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pyarrow as pa


def held(root: object) -> dict[str, int]:
    """Bytes by kind: "arrays" that can be mapped from a file, and the Python "objects" that hold them together."""
    found = {"arrays": 0, "objects": 0}
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        item = waiting.pop()
        owner = item.base if isinstance(item, np.ndarray) and isinstance(item.base, np.ndarray) else item
        if id(owner) in seen or isinstance(item, type):
            continue
        seen.add(id(owner))
        if isinstance(owner, np.ndarray | pa.Array | pa.ChunkedArray):
            found["arrays"] += owner.nbytes
        else:
            found["objects"] += sys.getsizeof(owner)
            waiting.extend(_parts(owner))
    return found


def _parts(item: Any) -> Iterator[Any]:
    if isinstance(item, Mapping):
        yield from item.keys()
        yield from item.values()
    elif isinstance(item, list | tuple | set | frozenset):
        yield from item
    elif is_dataclass(item):
        yield from (getattr(item, f.name) for f in fields(item))
        # What a cached property keeps is held too.
        yield from getattr(item, "__dict__", {}).values()
    elif hasattr(item, "__dict__"):
        yield from vars(item).values()


def largest(root: Any, count: int = 8) -> dict[str, int]:
    """The bytes of the largest arrays under a dataclass, by the path to them."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()

    def visit(item: Any, path: str) -> None:
        if id(item) in seen:
            return
        seen.add(id(item))
        if isinstance(item, np.ndarray | pa.Array):
            sizes[path] = sizes.get(path, 0) + item.nbytes
        elif is_dataclass(item):
            for f in fields(item):
                visit(getattr(item, f.name), f"{path}.{f.name}")
        elif isinstance(item, Mapping):
            for value in item.values():
                visit(value, path)
        elif isinstance(item, list | tuple):
            for value in item:
                visit(value, path)

    visit(root, type(root).__name__.lower())
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1])[:count])
