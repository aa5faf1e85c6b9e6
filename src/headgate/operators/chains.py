"""Linked chains: subscriptions as chains of predicates with links between equal ones (DEBS 2007, section 4.2).

A subscription comes and goes in time proportional to its length: a table of predicates finds its links, sums over each
predicate give what going first would save it against all chains it is linked with, and that decides where it stands.
The newcomer moves the savings of the others a little; `reorder` puts everything where a fresh build would.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headgate.errors import DuplicateName, UnknownName
from headgate.operators.kernels import chain_key

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Link(Generic[P]):
    """Two neighbouring chains that hold the same predicate, and where."""

    predicate: P
    left: str
    right: str
    places: tuple[int, int]


@dataclass
class _Sums:
    """Over the chains that hold a predicate: the chance to reach it, and what is spent before it."""

    reach: float = 0.0
    spent: float = 0.0
    chains: dict[str, None] = field(default_factory=dict)


class LinkedChains(Generic[P]):
    """`chance` and `cost` tell of a predicate what is known now; `name` breaks ties, the same everywhere."""

    def __init__(
        self, chance: Callable[[P], float], cost: Callable[[P], float], name: Callable[[P], str] = str
    ) -> None:
        self._chance, self._cost, self._name = chance, cost, name
        self._nodes: dict[str, tuple[P, ...]] = {}
        self._given: dict[str, tuple[P, ...]] = {}
        self._sums: dict[P, _Sums] = {}
        self._keys: dict[str, tuple[float, str]] = {}
        self._order: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[str]:
        """The chains in the order of evaluation."""
        return (chain for _, chain in self._order)

    def __getitem__(self, chain: str) -> tuple[P, ...]:
        """The predicates of a chain from top to bottom."""
        return self._nodes[chain]

    def insert(self, chain: str, predicates: Iterable[P]) -> None:
        """Put a chain where its net savings against those present say."""
        if chain in self._nodes:
            raise DuplicateName(f"there is a chain {chain} already", "delete it first")
        given = tuple(dict.fromkeys(predicates))
        nodes = self._sorted(given)
        key = (-self._savings(nodes), chain)
        self._given[chain], self._nodes[chain], self._keys[chain] = given, nodes, key
        for t, reach, spent in self._walk(nodes):
            sums = self._sums.setdefault(t, _Sums())
            sums.reach += reach
            sums.spent += spent
            sums.chains[chain] = None
        insort(self._order, key)

    def delete(self, chain: str) -> None:
        """Take a chain out, with its links."""
        if chain not in self._nodes:
            raise UnknownName(f"there is no chain {chain}")
        for t, reach, spent in self._walk(self._nodes.pop(chain)):
            sums = self._sums[t]
            del sums.chains[chain]
            if sums.chains:
                sums.reach -= reach
                sums.spent -= spent
            else:
                del self._sums[t]
        del self._given[chain]
        key = self._keys.pop(chain)
        del self._order[bisect_left(self._order, key)]

    def reorder(self) -> None:
        """Sort chains and their order anew, by what is known of the predicates now."""
        given = dict(self._given)
        self._nodes = {chain: self._sorted(p) for chain, p in sorted(given.items())}
        self._sums = {}
        for chain, nodes in self._nodes.items():
            for t, reach, spent in self._walk(nodes):
                sums = self._sums.setdefault(t, _Sums())
                sums.reach += reach
                sums.spent += spent
                sums.chains[chain] = None
        self._keys = {chain: (-self._savings(nodes, own=True), chain) for chain, nodes in self._nodes.items()}
        self._order = sorted(self._keys.values())

    def sharing(self, predicate: P) -> Sequence[str]:
        """The chains that hold a predicate."""
        found = self._sums.get(predicate)
        return () if found is None else tuple(found.chains)

    def links(self) -> Iterator[Link[P]]:
        """The equivalence links, between neighbours in the order of evaluation."""
        last: dict[P, tuple[str, int]] = {}
        for chain in self:
            for place, t in enumerate(self._nodes[chain]):
                if t in last:
                    left, at = last[t]
                    yield Link(t, left, chain, (at, place))
                last[t] = (chain, place)

    def _sorted(self, predicates: tuple[P, ...]) -> tuple[P, ...]:
        key = {t: (chain_key(self._chance(t), self._cost(t), 1.0, 0.0), self._name(t)) for t in predicates}
        return tuple(sorted(predicates, key=key.__getitem__))

    def _walk(self, nodes: tuple[P, ...]) -> Iterator[tuple[P, float, float]]:
        """Each node with the chance to reach it and the expected cost of those above it."""
        reach, spent = 1.0, 0.0
        for t in nodes:
            yield t, reach, spent
            spent += reach * self._cost(t)
            reach *= self._chance(t)

    def _savings(self, nodes: tuple[P, ...], own: bool = False) -> float:
        """What going first saves against all linked chains; `own`: the sums hold this chain already."""
        total = 0.0
        for t, reach, spent in self._walk(nodes):
            sums = self._sums.get(t)
            if sums is not None:
                others_reach = sums.reach - (reach if own else 0.0)
                others_spent = sums.spent - (spent if own else 0.0)
                total += (1.0 - self._chance(t)) * (reach * others_spent - spent * others_reach)
        return round(total, 12)
