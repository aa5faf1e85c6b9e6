"""Random books over a stream with an attribute of every type, random batches of it, and their matches by the oracle.

Hypothesis draws the atoms, the distinct events and a seed; subscriptions and batches are put together from those with
the seed. So a book has sixty subscriptions and a batch a thousand events, the oracle is asked about eight of them, and
an example takes milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.filters.atoms_strategy import POOLS, SCALARS, TYPES, atoms, stored
from tests.language.strategies import junction

from headgate.columns import Column, Columns
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.forms import Cut, cut
from headgate.language.parser import parse_body
from headgate.language.printer import print_node
from headgate.language.tokens import tokenise
from headgate.oracle.filters import truth
from headgate.predicates.modes import MODES
from headgate.schema import Kind, Schema

SIZES = (0, 1, 63, 64, 65, 513, 1025)
Pairs = list[tuple[int, int]]
_SIMPLE = (Kind.BIGINT, Kind.DOUBLE, Kind.STRING)
_CONSTANTS: list[Node] = [ast.Literal(True), ast.Literal(False), ast.Literal(None)]


@dataclass(frozen=True)
class Case:
    """A book and a batch: `events` are the distinct rows, `rows` tells which of them each row of the batch is."""

    texts: list[str]
    modes: list[str]
    schema: Schema
    events: Columns
    rows: list[int]

    @property
    def items(self) -> list[tuple[Cut, str]]:
        return [(cut(tokenise(text)), mode) for text, mode in zip(self.texts, self.modes, strict=True)]

    @property
    def batch(self) -> Columns:
        return self.events.take(np.array(self.rows, np.int64))

    def matches(self) -> Pairs:
        """What the oracle says."""
        bodies = [parse_body(text) for text in self.texts]
        held = []
        for event in range(self.events.rows):
            row = self.events.row(event)
            truths = [truth(b, row, self.schema, mode) for b, mode in zip(bodies, self.modes, strict=True)]
            held.append([slot for slot, found in enumerate(truths) if found is True])
        return [(row, slot) for row, event in enumerate(self.rows) for slot in held[event]]


def written(value: Any) -> Any:
    """The tree with infinities and NaN, which have no literal, computed; too long whole numbers are shortened."""
    if isinstance(value, ast.Literal) and isinstance(value.value, float) and not math.isfinite(value.value):
        infinite = ast.Arithmetic("*", ast.Literal(-1e308 if value.value < 0 else 1e308), ast.Literal(10.0))
        return ast.Arithmetic("-", infinite, infinite) if math.isnan(value.value) else infinite
    if isinstance(value, ast.Literal) and type(value.value) is int:
        return ast.Literal(max(-(10**300), min(10**300, value.value)))
    if isinstance(value, Node):
        return replace(value, **{f.name: written(getattr(value, f.name)) for f in fields(value) if f.name != "at"})
    return tuple(map(written, value)) if isinstance(value, tuple) else value


@st.composite
def comparisons(draw: st.DrawFn) -> Node:
    """An attribute against a constant: what look-ups decide."""
    name = draw(st.sampled_from([n for n, t in SCALARS.items() if t.kind in _SIMPLE]))
    attribute = ast.Attribute((name,))
    pool = POOLS[SCALARS[name].kind].map(ast.Literal)
    op = draw(st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">=", "BETWEEN", "IN", "IS NULL"]))
    if op == "BETWEEN":
        return ast.Between(attribute, draw(pool), draw(pool))
    if op == "IN":
        return ast.In(attribute, tuple(draw(st.lists(pool, min_size=1, max_size=4))))
    return ast.IsNull(attribute) if op == "IS NULL" else ast.Compare(op, attribute, draw(pool))


def _body(random: Random, pool: list[Node], depth: int) -> Node:
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return random.choice(_CONSTANTS) if random.random() < 0.05 else random.choice(pool)
    if kind < 0.45:
        return ast.Not(_body(random, pool, depth - 1))
    items = [_body(random, pool, depth - 1) for _ in range(random.randint(2, 4))]
    return junction(ast.And if kind < 0.8 else ast.Or, items)


@st.composite
def cases(draw: st.DrawFn, sizes: tuple[int, ...] = SIZES, most: int = 60) -> Case:
    pool = [written(a) for a in draw(st.lists(comparisons() | atoms(), min_size=1, max_size=6))]
    random = Random(draw(st.integers(0, 2**32)))
    count = random.choice([1, 2, 5, most])
    texts = [print_node(_body(random, pool, random.choice([0, 1, 2, 3]))) for _ in range(count)]
    modes = [random.choice(MODES) for _ in range(count)]
    used = sorted({n.path[0] for atom in pool for n in ast.walk(atom) if isinstance(n, ast.Attribute)})
    # Few attributes, or no event is ever complete for `total`.
    schema_types = {name: TYPES[name] for name in used} or {"bigint_1": TYPES["bigint_1"]}
    distinct = draw(st.integers(1, 8))
    columns: dict[Any, Any] = {}
    defaults: dict[str, object] = {}
    not_null = []
    for name, of in schema_types.items():
        seen = draw(st.lists(stored(of), min_size=1, max_size=4))
        shape = draw(st.sampled_from(["plain", "plain", "plain", "default", "not null", "absent"]))
        if shape == "default":
            defaults[name] = draw(stored(of))
        if shape == "not null":
            not_null.append(name)
        else:
            seen.append(None)
        if shape != "absent":
            columns[name] = Column.of(of, random.choices(seen, k=distinct))
    columns["row"] = ("bigint", list(range(distinct)))
    schema = Schema.of("s", schema_types, not_null=not_null, defaults=defaults)
    rows = random.choices(range(distinct), k=draw(st.sampled_from(sizes)))
    return Case(texts, modes, schema, Columns.of("s", columns), rows)
