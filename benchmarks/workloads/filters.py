"""The filter workloads, from fixed seeds: the BDD filtering paper's, a million conjunctions, and A-Tree's generator.

Where a paper does not say how its workload was drawn, what was guessed stands in the docstring of the function.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from headgate.columns import Column, Columns
from headgate.schema import Schema

# ------------------------------------------------------------------ the BDD filtering paper (ICSE 2001, section 8)

PAPER_SCHEMA = Schema.of(
    "paper",
    {
        **{f"i{n}": "bigint" for n in range(3)},
        **{f"d{n}": "double" for n in range(3)},
        **{f"s{n}": "string" for n in range(4)},
    },
)
_NUMBERS = (10, 30, 50, 70)
_STRINGS = ("aa", "bb", "a", "b")
_VALUES = ("", "a", "b", "c", "aa", "ab", "ba", "bb", "aab", "abb", "bba", "aaa", "bbb", "abab", "baab", "cab", "cca",
           "bcb", "aabb", "bbaacc")  # fmt: skip
DENSITIES = {0.077: 1, 0.154: 2, 0.231: 3, 0.308: 4}
"""A density is a share of the 208 atoms: one string attribute has 16 of them, so 7.7% is one, 30.8% all four."""


def paper_atoms() -> list[str]:
    """The 208 atoms: six comparisons of six numbers with four constants, four tests of four texts with four."""
    comparisons = ("=", "<>", "<", "<=", ">", ">=")
    made = [f"i{n} {op} {c}" for n in range(3) for c in _NUMBERS for op in comparisons]
    made += [f"d{n} {op} {c}.0" for n in range(3) for c in _NUMBERS for op in comparisons]
    for n in range(4):
        for c in _STRINGS:
            made += [f"s{n} = '{c}'", f"s{n} <> '{c}'", f"s{n} CONTAINS '{c}'", f"'{c}' CONTAINS s{n}"]
    return made


def paper_queries(count: int, seed: int = 1, shape: str = "chain") -> list[str]:
    """Random queries of 7.6 atoms and 7.7 connectives in the mean.

    The paper gives the means alone, and says that a grammar with probabilities made them. Guessed: atoms uniform, their
    number in 4..10, AND and OR equally likely, and NOT before a subformula often enough to make up the rest of the
    connectives. A "chain" adds one atom after the other, as a left-recursive grammar does: its BDDs have 7.6 nodes a
    query before the restriction, where the paper has 7.1 to 7.2. A "tree" splits its atoms at random; with 9.4 nodes it
    is the harder guess.
    """
    rng = Random(seed)
    atoms = paper_atoms()

    def formula(leaves: int) -> str:
        if leaves == 1:
            text = rng.choice(atoms)
        else:
            left = leaves - 1 if shape == "chain" else rng.randint(1, leaves - 1)
            text = f"({formula(left)} {rng.choice(('AND', 'OR'))} {formula(leaves - left)})"
        return f"NOT {text}" if rng.random() < _NEGATED else text

    return [formula(rng.choice((4, 5, 6, 7, 7, 8, 8, 9, 9, 10, 10))) for _ in range(count)]


_NEGATED = 1.1 / (2 * 7.6 - 1)
"""7.6 atoms take 6.6 binary connectives; 1.1 NOTs over the 14.2 subtrees make 7.7."""


def paper_messages(count: int, attributes: int | None = None, seed: int = 2) -> Columns:
    """Messages: numbers uniform in 0..80, texts of twenty alternatives; `attributes` defines that many texts only."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Column] = {}
    total = attributes is None
    for n in range(3):
        whole = rng.integers(0, 81, count).tolist()
        real = rng.uniform(0, 80, count).round(1).tolist()
        columns[f"i{n}"] = Column.of("bigint", whole if total else [None] * count)
        columns[f"d{n}"] = Column.of("double", real if total else [None] * count)
    defined = np.argsort(rng.random((count, 4)), axis=1) < (4 if attributes is None else attributes)
    for n in range(4):
        texts = [_VALUES[i] for i in rng.integers(0, len(_VALUES), count)]
        columns[f"s{n}"] = Column.of("string", [t if d else None for t, d in zip(texts, defined[:, n], strict=True)])
    return Columns.of("paper", dict(columns.items()))


# ------------------------------------------------------------------ a million conjunctions

MILLION_KEYS = 10_000
MILLION_SCHEMA = Schema.of(
    "ticks",
    {"key": "bigint", **{f"a{n}": "bigint" for n in range(10)}, **{f"a{n}": "double" for n in range(10, 20)}},
)


def _zipf(count: int, exponent: float = 1.0) -> Any:
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    return weights / weights.sum()


def million_texts(count: int, seed: int = 1) -> Iterator[str]:
    """3 to 5 conjuncts: an equality on a Zipf key, the others ranges and equalities on 20 attributes, 100 cuts each."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(MILLION_KEYS, count, p=_zipf(MILLION_KEYS))
    lengths = rng.integers(2, 5, count)
    ops = np.array(["<", "<=", ">", ">=", "="])
    for first in range(0, count, 10_000):
        n = min(10_000, count - first)
        chosen = np.argsort(rng.random((n, 20)), axis=1)[:, :4]
        constants = rng.integers(0, 100, (n, 4))
        drawn = ops[rng.choice(5, (n, 4), p=(0.23, 0.22, 0.23, 0.22, 0.10))]
        for i in range(n):
            parts = [f"a{chosen[i, j]} {drawn[i, j]} {constants[i, j]}" for j in range(lengths[first + i])]
            yield f"key = {keys[first + i]} AND " + " AND ".join(parts)


def million_events(count: int, zipf: bool, seed: int = 2) -> Columns:
    rng = np.random.default_rng(seed)
    there = np.ones(count, np.bool_)
    weights = _zipf(MILLION_KEYS) if zipf else None
    columns: dict[str, Any] = {"key": rng.choice(MILLION_KEYS, count, p=weights).astype(np.int64)}
    for n in range(20):
        columns[f"a{n}"] = rng.integers(0, 100, count) if n < 10 else rng.uniform(0, 100, count)
    kinds = {a.name: a.type for a in MILLION_SCHEMA}
    return Columns.of("ticks", {n: Column(kinds[n], there, v) for n, v in columns.items()})  # type: ignore[arg-type]  # every attribute of this schema has a type


# ------------------------------------------------------------------ A-Tree's generator (SIGMOD 2021)

ABE_ATTRIBUTES = 1000


def abe_schema() -> Schema:
    return Schema.of("abe", {f"a{n}": "bigint" for n in range(ABE_ATTRIBUTES)})


def _cardinalities() -> list[int]:
    rng = Random(0)
    return [rng.randint(3, 1000) for _ in range(ABE_ATTRIBUTES)]


def abe_texts(count: int, zipf: float = 0.5, seed: int = 1) -> Iterator[str]:
    """and/or/not/xor/xnor 40/40/10/5/5 %, depth 1 to 6, 2 to 12 children, predicates on 1000 attributes by Zipf.

    Guessed: a node becomes a predicate with a chance that grows with its depth (else twelve children at six levels make
    millions of predicates), so that an expression has about 1 to 60; xor takes two children and is spelt out.
    """
    rng = Random(seed)
    weights = np.cumsum(_zipf(ABE_ATTRIBUTES, zipf)).tolist()
    cardinality = _cardinalities()

    def predicate() -> str:
        a = min(bisect_left(weights, rng.random()), ABE_ATTRIBUTES - 1)
        op = rng.choice(("=", "<>", "<", "<=", ">", ">=", "="))
        return f"a{a} {op} {rng.randrange(cardinality[a])}"

    def expression(depth: int, budget: list[int]) -> str:
        budget[0] -= 1
        if depth == 0 or budget[0] <= 0 or rng.random() < 0.25:
            return predicate()
        kind = rng.choices(("and", "or", "not", "xor", "xnor"), (40, 40, 10, 5, 5))[0]
        if kind == "not":
            return f"NOT ({expression(depth - 1, budget)})"
        if kind in ("xor", "xnor"):
            a, b = expression(depth - 1, budget), expression(depth - 1, budget)
            same = f"(({a}) AND ({b}) OR NOT ({a}) AND NOT ({b}))"
            return same if kind == "xnor" else f"(({a}) AND NOT ({b}) OR NOT ({a}) AND ({b}))"
        children = [expression(depth - 1, budget) for _ in range(rng.randint(2, 12))]
        return "(" + f" {kind.upper()} ".join(children) + ")"

    for _ in range(count):
        yield expression(rng.randint(1, 6), [rng.randint(1, 56)])


def abe_events(count: int, seed: int = 2) -> Columns:
    """5 to 30 attributes an event, chosen by the same Zipf."""
    rng = np.random.default_rng(seed)
    cardinality = _cardinalities()
    weights = _zipf(ABE_ATTRIBUTES, 0.5)
    defined = np.zeros((ABE_ATTRIBUTES, count), np.bool_)
    for e in range(count):
        defined[rng.choice(ABE_ATTRIBUTES, rng.integers(5, 31), replace=False, p=weights), e] = True
    columns = {}
    for n in range(ABE_ATTRIBUTES):
        values = rng.integers(0, cardinality[n], count)
        columns[f"a{n}"] = (defined[n], np.where(defined[n], values, 0))
    types = {a.name: a.type for a in abe_schema()}
    return Columns.of("abe", {n: Column(types[n], d, v) for n, (d, v) in columns.items()})  # type: ignore[arg-type]  # as above
