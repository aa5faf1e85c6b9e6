"""A stable number of each event, from its id or its row: what ids of matches are made of, here and on every worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numba import njit
from numpy.typing import NDArray

from headgate.columns import Columns

Words = NDArray[np.uint64]
_STEP = np.uint64(0x9E3779B97F4A7C15)


def identities(columns: Columns, rows: NDArray[np.int64]) -> Words:
    """From its identity if it has one, else from its row."""
    seed = np.uint64(xxhash.xxh3_64_intdigest(columns.stream.encode()))
    made: Words = rows.astype(np.uint64) + seed
    if columns.identity is None:
        made = mixed(made)
    else:
        _hash(*_buffers(columns.identity), seed, made)
    return made


def _buffers(texts: Any) -> tuple[Any, Any]:
    """Where each text begins and ends, and the bytes of all."""
    whole = texts.cast(pa.large_string())
    _, offsets, data = whole.buffers()
    places = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return places, np.frombuffer(data if data is not None else b"", np.uint8)


@njit(cache=True)
def mixed(x: Any) -> Any:
    """The finaliser of SplitMix64: every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _hash(places: Any, data: Any, seed: Any, out: Any) -> None:
    """Eight bytes at a time; the length is mixed in first, so that no text is the beginning of another."""
    for i in range(len(out)):
        state = mixed(seed + _STEP * np.uint64(places[i + 1] - places[i] + 1))
        word, bits = np.uint64(0), np.uint64(0)
        for k in range(places[i], places[i + 1]):
            word |= np.uint64(data[k]) << bits
            bits += np.uint64(8)
            if bits == 64:
                state = mixed(state ^ word) + _STEP
                word, bits = np.uint64(0), np.uint64(0)
        out[i] = mixed(state ^ word)
