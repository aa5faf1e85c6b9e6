"""The static predicates of one stream, decided for a batch before any automaton moves (AN and FR index).

This is the seam to the filters: a `Static` makes an index from predicates, an index gives `Hits`. The maker here is
complete but plain: conjunctions with equalities are looked up by one or two of their constants, the rest is computed as
vectors of truth, one formula at a time. The filters' own engine can take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.errors import PlanError
from headgate.language.ast import Call, Graph, Node, Path
from headgate.language.normal import All, Complete, Formula, Lit, literals, normalise
from headgate.schema import Schema
from headgate.sequences.static.atoms import constant_of, holds
from headgate.sequences.static.kernels import look_up

Ints = NDArray[np.int64]
_CHUNK = 8192


class StaticIndex(Protocol):
    def evaluate(self, columns: Columns) -> Hits:
        """Which predicates hold for which events, sorted by event; a slot is the number of a predicate."""
        ...


class Static(Protocol):
    """Makes the index of the static predicates of a stream: bodies, each with its missing-mode."""

    def __call__(self, schema: Schema, predicates: Sequence[tuple[Node, str]]) -> StaticIndex: ...


class Conjunctions:
    """The plain index; see above."""

    def __init__(self, schema: Schema, predicates: Sequence[tuple[Node, str]]) -> None:
        self._schema = schema
        self._atoms: dict[Lit | Complete, int] = {}
        self._constants: dict[Path, dict[tuple[str, object], int]] = {}
        self._general: list[tuple[int, Formula]] = []
        keyed: dict[tuple[Path, ...], list[tuple[int, list[Lit], list[Lit]]]] = {}
        for slot, (body, missing) in enumerate(predicates):
            formula = normalise(body, missing, schema)
            for lit in literals(formula):
                if isinstance(lit, Lit) and isinstance(lit.atom, Call | Graph):
                    raise PlanError(
                        "an operator or GRAPH inside a sequence needs the filters' engine",
                        "compile the sequence with static=... of the plan",
                    )
            parts = list(formula.items) if isinstance(formula, All) else [formula]
            keys, rest = self._split(parts)
            if keys:
                signature = tuple(path for lit in keys if (found := constant_of(lit)) for path in (found[0],))
                keyed.setdefault(signature, []).append((slot, keys, rest))
            else:
                self._general.append((slot, formula))
        for _, formula in self._general:
            for lit in literals(formula):
                self._atom(lit)
        self._file(keyed)

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

    def _constant(self, lit: Lit) -> tuple[Path, int]:
        found = constant_of(lit)
        assert found is not None
        path, value = found
        known = self._constants.setdefault(path, {})
        key = ("text", value) if isinstance(value, str) else ("number", value)
        return path, known.setdefault(key, len(known))

    def _file(self, keyed: dict[tuple[Path, ...], list[tuple[int, list[Lit], list[Lit]]]]) -> None:
        coded = {
            signature: [
                (slot, [self._constant(k)[1] for k in keys], [self._atom(r) for r in rest])
                for slot, keys, rest in entries
            ]
            for signature, entries in keyed.items()
        }
        columns = {path: i for i, path in enumerate(self._constants)}
        first, second, scale, key_from = [], [], [], [0]
        keys: list[int] = []
        entry_from, rest_from, rest, slots = [0], [0], [], []
        for signature, entries in coded.items():
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

    def evaluate(self, columns: Columns) -> Hits:
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
        return Hits(pairs[:, 0], pairs[:, 1].astype(np.int32))

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


def _truth(formula: Formula, truths: dict[Lit | Complete, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
    if isinstance(formula, Lit | Complete):
        return truths[formula]
    every = isinstance(formula, All)
    found = np.full(rows, every)
    for item in formula.items:
        inner = _truth(item, truths, rows)
        found = found & inner if every else found | inner
    return found
