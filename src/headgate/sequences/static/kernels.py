"""Conjunctions with an equality, looked up by key: the compiled loop of the static pass. Twin: `AnyOf` of truths."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def look_up(
    codes: Ints,
    truths: NDArray[np.uint8],
    first: Ints,
    second: Ints,
    scale: Ints,
    key_from: Ints,
    keys: Ints,
    entry_from: Ints,
    rest_from: Ints,
    rest: Ints,
    slots: Ints,
    base: int,
    out: Ints,
    count: int,
) -> tuple[Ints, int]:
    """Appends (event, slot) for every conjunction that holds. `codes[e, a]` says which constant the attribute a of
    event e equals, -1 for none. Signature i has the keys `keys[key_from[i]:key_from[i + 1]]`, sorted; the conjunctions
    of key k are entries entry_from[k] to entry_from[k + 1], each with the atoms `rest` still to be true."""
    for e in range(len(codes)):
        for i in range(len(first)):
            code = codes[e, first[i]]
            if code < 0:
                continue
            if second[i] >= 0:
                other = codes[e, second[i]]
                if other < 0:
                    continue
                code = code * scale[i] + other
            left, right = key_from[i], key_from[i + 1]
            end = right
            while left < right:
                middle = (left + right) // 2
                if keys[middle] < code:
                    left = middle + 1
                else:
                    right = middle
            if left == end or keys[left] != code:
                continue
            for entry in range(entry_from[left], entry_from[left + 1]):
                holds = True
                for a in range(rest_from[entry], rest_from[entry + 1]):
                    if truths[e, rest[a]] == 0:
                        holds = False
                        break
                if holds:
                    if count == len(out):
                        longer = np.empty((2 * len(out), 2), np.int64)
                        longer[:count] = out
                        out = longer
                    out[count, 0], out[count, 1] = base + e, slots[entry]
                    count += 1
    return out, count
