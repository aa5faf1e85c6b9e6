"""The static predicates of one stream, decided for a batch before any automaton moves (AN and FR index).

This is the seam to the filters: a `Static` makes an index from predicates, an index gives `Hits`. The maker here is
complete but plain: conjunctions with equalities are looked up by one or two of their constants, the rest is computed as
vectors of truth, one formula at a time. The filters' own engine can take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.errors import PlanError
from headgate.language.ast import Call, Compare, Graph, Hole, Literal, Node, Path, walk
from headgate.operators.answer import Answer
from headgate.operators.predicate import Key
from headgate.predicates.normal import All, Complete, Formula, Lit, literals, normalise
from headgate.schema import Schema
from headgate.sequences.parameterized import Parameterized, plain, put_in
from headgate.sequences.static.atoms import constant_of, holds
from headgate.sequences.static.kernels import look_up

Ints = NDArray[np.int64]
_CHUNK = 8192
_Entry = tuple[int, list[int], list[int]]
"""A conjunction: its slot, the codes of the constants it is looked up by, the atoms that remain."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A predicate that could not be decided on an event; `slot` is None if the event itself is at fault."""

    event: int
    slot: int | None
    reason: str
    code: str


Answers = dict[Key, Answer]
"""Of the calls that were made about one event."""


class Waiting(Protocol):
    """Predicates that the cheap part leaves open on events of a batch, until somebody needs them."""

    @property
    def pairs(self) -> Hits:
        """What is open."""
        ...

    @property
    def undecided(self) -> Sequence[Undecided]:
        """What is known not to be decidable without asking."""
        ...

    def ask(self, pairs: Hits) -> tuple[Hits, Sequence[Undecided]]:
        """Those of the pairs that hold, and what could not be decided."""
        ...

    def answered(self, row: int) -> Answers:
        """The answers of calls about an event; more may come."""
        ...


class StaticIndex(Protocol):
    def evaluate(self, columns: Columns, answered: Sequence[Answers] | None = None) -> tuple[Hits, Waiting | None]:
        """Which predicates hold for which events, sorted by event, and what is open; a slot is the number of a
        predicate. `answered` has the answers of calls that were made before, for each row: rows may share one."""
        ...

    @property
    def needs(self) -> frozenset[Path]:
        """What it reads besides the attributes that its predicates mention: graphs and operators read more."""
        ...


class Static(Protocol):
    """Makes the index of the static predicates of a stream: bodies, each with its missing-mode."""

    def __call__(self, schema: Schema, predicates: Sequence[tuple[Node, str]]) -> StaticIndex: ...


@dataclass(frozen=True, slots=True)
class _Rest:
    """An atom of a skeleton, the holes in it, and the numbers of the atoms it has become, by their constants."""

    lit: Lit
    tokens: tuple[int, ...]
    numbers: dict[tuple[Any, ...], int]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A conjunction with holes: `keys` are constants with the codes of those of the same attribute."""

    signature: tuple[Path, ...]
    keys: list[tuple[dict[tuple[str, object], int], Any]]
    rest: list[_Rest]


class Conjunctions:
    """The plain index; see above."""

    needs: frozenset[Path] = frozenset()

    def __init__(self, schema: Schema, predicates: Sequence[tuple[Node, str]]) -> None:
        self._schema = schema
        self._atoms: dict[Lit | Complete, int] = {}
        self._constants: dict[Path, dict[tuple[str, object], int]] = {}
        self._general: list[tuple[int, Formula]] = []
        shapes: dict[tuple[int, str], _Shape] = {}
        keyed: dict[tuple[Path, ...], list[_Entry]] = {}
        for slot, (body, missing) in enumerate(predicates):
            values = body.values if isinstance(body, Parameterized) else ()
            key = (id(body.skeleton) if isinstance(body, Parameterized) else id(body), missing)
            shape = shapes.get(key)
            if shape is None:
                shape = shapes[key] = self._shape(body, missing)
            if shape.keys:
                codes = [_coded(known, values[v.token] if isinstance(v, Hole) else v) for known, v in shape.keys]
                keyed.setdefault(shape.signature, []).append(
                    (slot, codes, [self._number(r, values) for r in shape.rest])
                )
            else:
                self._general.append((slot, normalise(plain(body), missing, schema)))
        for _, formula in self._general:
            for lit in literals(formula):
                self._atom(lit)
        self._file(keyed)

    def _shape(self, body: Node, missing: str) -> _Shape:
        """What depends on the skeleton alone: the atoms to look it up by, and those that remain."""
        formula = normalise(body.skeleton if isinstance(body, Parameterized) else body, missing, self._schema)
        for lit in literals(formula):
            if isinstance(lit, Lit) and isinstance(lit.atom, Call | Graph):
                raise PlanError(
                    "an operator or GRAPH inside a sequence needs the filters' engine",
                    "compile the sequence with static=... of the plan",
                )
        keys, rest = self._split(list(formula.items) if isinstance(formula, All) else [formula])
        found = [f for lit in keys if (f := constant_of(lit))]
        return _Shape(
            tuple(path for path, _ in found),
            [(self._constants.setdefault(path, {}), value) for path, value in found],
            [_Rest(lit, _tokens(lit.atom), {}) for lit in rest],
        )

    def _number(self, rest: _Rest, values: tuple[Any, ...]) -> int:
        own = tuple([values[t] for t in rest.tokens])
        number = rest.numbers.get(own)
        if number is None:
            number = rest.numbers[own] = self._atom(_lit(rest.lit, values))
        return number

    def _split(self, parts: Sequence[Formula]) -> tuple[list[Lit], list[Lit]]:
        """Up to two equalities to look the conjunction up by, on different attributes, and the other atoms."""
        if not all(isinstance(part, Lit) for part in parts):
            return [], []
        lits = [part for part in parts if isinstance(part, Lit)]
        keys: dict[Path, Lit] = {}
        for lit in lits:
            found = constant_of(lit)
            if found is not None and self._scalar(found[0]) and len(keys) < 2:
                keys.setdefault(found[0], lit)
        chosen = [keys[path] for path in sorted(keys)]
        return chosen, [lit for lit in lits if lit not in chosen]

    def _scalar(self, path: Path) -> bool:
        attribute = self._schema.get(path)
        return attribute is not None and attribute.type is not None and not attribute.type.array

    def _atom(self, lit: Lit | Complete) -> int:
        return self._atoms.setdefault(lit, len(self._atoms))

    def _file(self, keyed: dict[tuple[Path, ...], list[_Entry]]) -> None:
        columns = {path: i for i, path in enumerate(self._constants)}
        first, second, scale, key_from = [], [], [], [0]
        keys: list[int] = []
        entry_from, rest_from, rest, slots = [0], [0], [], []
        for signature, entries in keyed.items():
            size = len(self._constants[signature[1]]) if len(signature) > 1 else 1
            first.append(columns[signature[0]])
            second.append(columns[signature[1]] if len(signature) > 1 else -1)
            scale.append(size)
            by_key = sorted((c[0] * size + c[1] if len(c) > 1 else c[0], slot, r) for slot, c, r in entries)
            for key, slot, remaining in by_key:
                if len(keys) == key_from[-1] or keys[-1] != key:
                    keys.append(key)
                    entry_from.append(entry_from[-1])
                entry_from[-1] += 1
                slots.append(slot)
                rest += remaining
                rest_from.append(len(rest))
            key_from.append(len(keys))
        lists = (first, second, scale, key_from, keys, entry_from, rest_from, rest, slots)
        self._tables = tuple(np.array(x, np.int64) for x in lists)

    def evaluate(self, columns: Columns, answered: Sequence[Answers] | None = None) -> tuple[Hits, Waiting | None]:
        out, count = np.empty((max(16, len(columns)), 2), np.int64), 0
        truths = {lit: holds(lit, columns, self._schema) for lit in self._atoms}
        codes = self._codes(columns)
        for start in range(0, len(columns), _CHUNK) if len(self._tables[0]) else ():
            end = min(start + _CHUNK, len(columns))
            rows = np.zeros((end - start, max(1, len(truths))), np.uint8)
            for i, mask in enumerate(truths.values()):
                rows[:, i] = mask[start:end]
            first, second, scale, key_from, keys, entry_from, rest_from, rest, slots = self._tables
            out, count = look_up(
                codes[start:end],
                rows,
                first,
                second,
                scale,
                key_from,
                keys,
                entry_from,
                rest_from,
                rest,
                slots,
                start,
                out,
                count,
            )
        found = [out[:count]]
        for slot, formula in self._general:
            events = np.flatnonzero(_truth(formula, truths, len(columns)))
            found.append(np.stack([events, np.full(len(events), slot)], axis=1))
        pairs = np.concatenate(found)
        if len(found) > 1:
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        return Hits(pairs[:, 0], pairs[:, 1].astype(np.int32)), None

    def _codes(self, columns: Columns) -> Ints:
        codes = np.full((len(columns), max(1, len(self._constants))), -1, np.int64)
        for i, (path, constants) in enumerate(self._constants.items()):
            column = columns.get(path)
            if column is None:
                continue
            if isinstance(column.values, np.ndarray):
                found = _numbers(column.values, constants)
            else:
                texts, distinct = column.dictionary()
                known = [constants.get(("text", v), -1) for v in distinct.to_pylist()]
                found = np.array([*known, -1], np.int64)[texts]
            codes[:, i] = np.where(column.defined, found, -1)
        return codes


def _numbers(held: NDArray[np.generic], constants: dict[tuple[str, object], int]) -> Ints:
    """Which constant each number equals; compared by value, so that 1 and 1.0 are one."""
    known = {key[1]: code for key, code in constants.items() if key[0] == "number"}
    distinct, inverse = np.unique(held, return_inverse=True)
    found = [known.get(_nan if v != v else v, -1) for v in distinct.tolist()]
    return np.array(found or [-1], np.int64)[inverse] if len(held) else np.zeros(0, np.int64)


_nan = "NaN"


def _coded(known: dict[tuple[str, object], int], value: object) -> int:
    return known.setdefault(("text" if isinstance(value, str) else "number", value), len(known))


def _tokens(atom: Node) -> tuple[int, ...]:
    found = (n.value.token for n in walk(atom) if isinstance(n, Literal) and isinstance(n.value, Hole))
    return tuple(dict.fromkeys(found))


def _lit(lit: Lit, values: tuple[Any, ...]) -> Lit:
    """The literal with the constants of one text."""
    match lit.atom:
        case Compare(op, left, Literal(Hole(token))):
            return Lit(Compare(op, left, Literal(values[token])), lit.truth, lit.default)
    return Lit(put_in(lit.atom, values), lit.truth, lit.default) if values else lit


def _truth(formula: Formula, truths: dict[Lit | Complete, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
    if isinstance(formula, Lit | Complete):
        return truths[formula]
    every = isinstance(formula, All)
    found = np.full(rows, every)
    for item in formula.items:
        inner = _truth(item, truths, rows)
        found = found & inner if every else found | inner
    return found
