"""The id of a match: 128 bits, the same for the same match always and everywhere.

It is a hash of the subscription's name and the event's identity, mixed column-wise, so that a million ids cost
milliseconds and a replayed batch, another host or another cut into batches gives the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

Words = NDArray[np.uint64]
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def hashes(texts: Sequence[str]) -> Words:
    """Two words a text, shape (n, 2)."""
    digest = xxhash.xxh3_128_digest
    return np.frombuffer(b"".join([digest(t.encode()) for t in texts]), ">u8").astype(np.uint64).reshape(-1, 2)


def row_hashes(stream: str, rows: NDArray[np.int64]) -> Words:
    """The identity of events that have no id of their own: their row number in their stream."""
    seed = hashes([f"row of {stream}"])[0]
    made = np.empty((len(rows), 2), np.uint64)
    for word in (0, 1):
        made[:, word] = _mix(rows.astype(np.uint64) * _ODD[word] + seed[word])
    return made


def combine(subscription: Words, event: Words) -> Words:
    """The id of each pair, row by row."""
    made = np.empty_like(event)
    for word in (0, 1):
        made[:, word] = _mix(subscription[:, word] * _ODD[word] + _mix(event[:, word]))
    return made


def _mix(x: Words) -> Words:
    """The finaliser of SplitMix64: every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def text(ids: Words) -> pa.Array[Any]:
    """Ids as 32 hexadecimal digits each, without a Python object per row."""
    raw = ids.astype(">u8").view(np.uint8).reshape(len(ids), 16)
    digits = np.empty((len(ids), 32), np.uint8)
    digits[:, 0::2] = _HEX[raw >> 4]
    digits[:, 1::2] = _HEX[raw & 15]
    offsets: Any = np.arange(len(ids) + 1, dtype=np.int32) * 32
    data: Any = digits
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))
