"""Conjuncts that might be filed under a key, what is known of their keys, and what each way costs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.filters.filing import Longs
from headgate.filters.formulas import Tree
from headgate.filters.rows import Keys

FILED, LOOKED_AT, NODE, PAIR = 0.05, 5.0, 0.7, 2000.0
"""Measured costs: of a filed conjunct at all, of one on every event, of a literal in the dense program, and of a match that
must be listed because its subscription has several parts, in which it may be found again."""


@dataclass
class Candidates:
    """Conjuncts of one length that might be filed; `cost` is what each costs in the dense program, and `pair` what a match
    costs that the dense program would only count."""

    slots: Longs
    keys: Keys
    cost: Any
    pair: float = 0.0


@dataclass
class Ranges:
    """Of each conjunct the best key: an attribute and its cells, and the share of the events that these let through;
    `matched` is the share that all its keys let through together."""

    attribute: Any
    low: Any
    high: Any
    share: Any
    matched: Any


class Split:
    """Formulas as disjunctions of conjunctions, these by their length."""

    def __init__(self) -> None:
        self.trees: dict[int, Tree] = {}
        self.slots: dict[int, list[int]] = defaultdict(list)
        self._keys: dict[int, list[int]] = defaultdict(list)
        self._costs: dict[int, list[float]] = defaultdict(list)

    def add(self, slot: int, tree: Tree, disjuncts: list[tuple[int, ...]], cost: float) -> None:
        self.trees[slot] = tree
        for keys in disjuncts:
            self.slots[len(keys)].append(slot)
            self._keys[len(keys)] += keys
            self._costs[len(keys)].append(cost)

    def take(self, length: int) -> Candidates:
        keys = np.array(self._keys.pop(length), np.int64).reshape(-1, length)
        return Candidates(np.array(self.slots[length]), keys, np.array(self._costs.pop(length)), PAIR)
