"""The predicates of an index by number: each a skeleton with holes and a row of constants, kept as columns.

A hundred thousand subscriptions are a few shapes with different constants. What depends on the shape alone is done once,
on the skeleton; the constants of all predicates that share it are rows of numbers of values. Number 0 is TRUE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.language.ast import TRUE, Node
from headgate.sequences.distinct import Column, RowNumbers, distinct, positions
from headgate.sequences.parameterized import Parameterized, Part, intern
from headgate.sequences.tables import Ints

_INT, _FLOAT, _TEXT, _OTHER = range(4)


class Decoded(Sequence[Any]):
    """Values that are kept as texts, each decoded when it is first asked for."""

    def __init__(self, texts: Any, decode: Callable[[str], Any]) -> None:
        self._texts, self._decode = texts, decode
        self._known: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, at: Any) -> Any:
        at = int(at)
        if at not in self._known:
            found = self._decode(self._texts[at].as_py())
            self._known[at] = intern(found) if isinstance(found, Node) else found
        return self._known[at]


@dataclass(frozen=True, eq=False)
class Constants:
    """Values by code: the number of one among those of its type, and the type in the last two bits."""

    ints: Ints
    floats: Any
    texts: Any
    """Arrow."""
    others: tuple[Any, ...]

    def __getitem__(self, code: int) -> Any:
        at, kind = int(code) >> 2, int(code) & 3
        if kind == _TEXT:
            return self.texts[at].as_py()
        return self.others[at] if kind == _OTHER else (self.ints, self.floats)[kind][at].item()


@dataclass(frozen=True, eq=False)
class Predicates:
    """Those of an index that is compiled."""

    skeletons: Sequence[Node]
    skeleton: Ints
    """By number, as is the row among those of the skeleton."""
    row: Ints
    rows: tuple[Ints, ...]
    """By skeleton: the codes of constants, by row and hole."""
    constants: Constants
    _nodes: dict[int, Node] = field(default_factory=dict, repr=False)

    def node(self, number: int) -> Node:
        found = self._nodes.get(number)
        if found is None:
            at = int(self.skeleton[number])
            found = self.skeletons[at]
            if codes := self.rows[at][self.row[number]].tolist():
                found = Parameterized(found, tuple(self.constants[c] for c in codes))
            self._nodes[number] = found
        return found


class PredicateTable:
    """Numbers predicates while an index is compiled."""

    def __init__(self) -> None:
        self.skeletons: list[Node] = []
        self._by_identity: dict[int, int] = {}
        self._skeleton, self._row = Column(), Column()
        self._rows: list[RowNumbers] = []
        self._numbers: list[Column] = []
        self._values: tuple[list[Any], ...] = ([], [], [], [])
        self._codes: dict[tuple[int, Any], int] = {}
        self._by_node: dict[Node, int] = {}
        self.add(TRUE)

    @property
    def skeleton(self) -> Ints:
        """Of each predicate."""
        return self._skeleton.array

    def code(self, value: Any) -> int:
        kind: int
        key: Any
        match value:
            case int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
                kind, key = _INT, value
            case float():
                kind, key = _FLOAT, value or repr(value)  # zeros of either sign are two constants
            case str():
                kind, key = _TEXT, value
            case _:
                kind, key = _OTHER, (type(value), value)
        code = self._codes.get((kind, key))
        if code is None:
            code = self._codes[kind, key] = len(self._values[kind]) << 2 | kind
            self._values[kind].append(value)
        return code

    def value(self, code: int) -> Any:
        return self._values[code & 3][code >> 2]

    def codes(self, numbers: Ints) -> Ints:
        """The constants of predicates that have one skeleton."""
        return self._rows[int(self.skeleton[numbers[0]])].rows[self._row.array[numbers]]

    def add(self, node: Node) -> int:
        number = self._by_node.get(node)
        if number is None:
            given = node if isinstance(node, Parameterized) else None
            codes = [] if given is None else [self.code(v) for v in given.values]
            skeleton = intern(node) if given is None else given.skeleton
            number = int(self.rows(skeleton, np.array([codes], np.int64).reshape(1, len(codes)))[0])
            self._by_node[node] = number
        return number

    def fill(self, part: Part, codes: Ints) -> Ints:
        """The numbers of a part of predicates, whose constants are given by row."""
        if not part.tokens:
            return np.full(len(codes), self.add(part.skeleton))
        return self.rows(part.skeleton, codes[:, list(part.tokens)])

    def rows(self, skeleton: Node, codes: Ints) -> Ints:
        """The numbers of predicates that have a skeleton, which is interned, and these constants."""
        at = self._by_identity.get(id(skeleton))
        if at is None:
            at = self._by_identity[id(skeleton)] = len(self.skeletons)
            self.skeletons.append(skeleton)
            self._rows.append(RowNumbers(codes.shape[1]))
            self._numbers.append(Column())
        row = self._rows[at].of(codes)
        numbers, known = self._numbers[at], len(self._skeleton)
        if new := len(self._rows[at]) - len(numbers):
            self._row.extend(np.arange(len(numbers), len(numbers) + new))
            self._skeleton.extend(np.full(new, at))
            numbers.extend(np.arange(known, known + new))
        return numbers.array[row]

    def node(self, number: int) -> Node:
        ((skeleton, _, rows),) = self.by_skeleton(np.array([number]))
        return Parameterized(skeleton, rows[0]) if rows[0] else skeleton

    def by_skeleton(self, numbers: Ints) -> Iterator[tuple[Node, Ints, list[tuple[Any, ...]]]]:
        """Skeletons, each with the places of the predicates that have it, and their constants."""
        skeleton, first = distinct(self.skeleton[numbers])
        for at, which in zip(first.tolist(), positions(skeleton, len(first)), strict=True):
            codes = self.codes(numbers[which])
            columns = [[self._values[c & 3][c >> 2] for c in column] for column in codes.T.tolist()]
            rows = list(zip(*columns, strict=True)) if columns else [()] * len(which)
            yield self.skeletons[int(self.skeleton[numbers[at]])], which, rows

    def finished(self) -> Predicates:
        ints, floats, texts, others = self._values
        constants = Constants(
            np.array(ints, np.int64), np.array(floats, np.float64), pa.array(texts, pa.string()), tuple(others)
        )
        rows = tuple(r.rows for r in self._rows)
        return Predicates(self.skeletons, self.skeleton, self._row.array, rows, constants)
