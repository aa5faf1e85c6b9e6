"""Rows of numbers, each known once: equal rows have equal numbers, in the order in which they are first met.

This is how patterns are merged: two states are one if the rows of what they are made of are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from headgate.sequences.identities import mixed
from headgate.sequences.tables import Ints


class Column:
    """An array that grows at its end."""

    def __init__(self, width: int | None = None) -> None:
        self._data = np.zeros(16 if width is None else (16, width), np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> Ints:
        return self._data[: self._size]

    def room(self, more: int) -> Ints:
        """The array with room for more behind its end."""
        if self._size + more > len(self._data):
            grown = np.zeros((max(2 * len(self._data), self._size + more), *self._data.shape[1:]), np.int64)
            grown[: self._size] = self.array
            self._data = grown
        return self._data

    def extend(self, values: Any) -> None:
        self.room(len(values))[self._size : self._size + len(values)] = values
        self._size += len(values)

    def resize(self, size: int) -> None:
        self._size = size


class RowNumbers:
    """Numbers rows of one width."""

    def __init__(self, width: int) -> None:
        self._rows = Column(width)
        self._heads = np.full(64, -1, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Ints:
        return self._rows.array

    def of(self, rows: Ints) -> Ints:
        rows = np.ascontiguousarray(rows)
        known = self._rows.room(len(rows))
        most = len(self._rows) + len(rows)
        if 2 * most > len(self._heads):
            self._heads = np.full(1 << int(2 * most).bit_length(), -1, np.int64)
            _enter(self.rows, known, 0, self._heads, np.empty(len(self._rows), np.int64))
        numbers = np.empty(len(rows), np.int64)
        self._rows.resize(_enter(rows, known, len(self._rows), self._heads, numbers))
        return numbers


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """The number of each row, and where each number is first met."""
    known = RowNumbers(len(columns))
    numbers = known.of(np.stack(columns, axis=1))
    first = np.empty(len(known), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, first


def positions(numbers: Ints, count: int) -> list[Ints]:
    """Where each number stands."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1]) if count else []


def inverse(order: Ints) -> Ints:
    """The rank of each in an order."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


@njit(cache=True)
def _enter(rows: Any, known: Any, count: int, heads: Any, numbers: Any) -> int:
    """Numbers rows by those that are known, with open addressing; how many are known then."""
    mask = len(heads) - 1
    width = rows.shape[1]
    for i in range(len(rows)):
        state = np.uint64(width)
        for j in range(width):
            state = mixed(state ^ np.uint64(rows[i, j])) + np.uint64(0x9E3779B97F4A7C15)
        at = np.int64(mixed(state) >> np.uint64(1)) & mask
        while True:
            number = heads[at]
            if number < 0:
                number = count
                for j in range(width):
                    known[count, j] = rows[i, j]
                heads[at] = number
                count += 1
                break
            same = True
            for j in range(width):
                if known[number, j] != rows[i, j]:
                    same = False
                    break
            if same:
                break
            at = (at + 1) & mask
        numbers[i] = number
    return count
