"""What sequences ask of their static predicates: those that speak of the incoming event alone (AN and FR index).

They are decided for a whole batch before any automaton moves. The filters decide them (`match.static`); the engine
knows only the protocols here, because filters and the solver of late conditions are built beside sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.language.ast import Node, Path
from headgate.operators.answer import Answer
from headgate.operators.predicate import Key
from headgate.schema import Schema

Answers = dict[Key, Answer]
"""Of the calls that were made about one event."""


class Waiting(Protocol):
    """Predicates that the cheap part leaves open on events of a batch, until somebody needs them."""

    @property
    def pairs(self) -> Hits:
        """What is open; its problems are what is known not to be decidable without asking."""
        ...

    def ask(self, pairs: Hits) -> Hits:
        """Those of the pairs that hold, and what could not be decided."""
        ...

    def answered(self, row: int) -> Answers:
        """The answers of calls about an event; more may come."""
        ...


class StaticIndex(Protocol):
    """The static predicates of one stream; a slot is the number of a predicate."""

    def hits(self, columns: Columns) -> Hits:
        """Which predicates hold for which events, sorted by event, of those that ask neither operator nor graph."""
        ...

    def waiting(self, columns: Columns, answered: Sequence[Answers] | None = None) -> Waiting | None:
        """What operators and graphs have to decide. `answered` has the answers of calls that were made before, for each
        row: rows that stand for one event share theirs."""
        ...

    def possible(self, columns: Columns) -> Hits:
        """What `waiting` would leave open."""
        ...

    @property
    def needs(self) -> frozenset[Path]:
        """The attributes that its predicates read."""
        ...


class StaticPredicates(NamedTuple):
    """Predicates that share a skeleton, which is interned, and a missing-mode: a row of constants for each. They are
    numbered in this order, over all skeletons."""

    skeleton: Node
    missing: str
    rows: Sequence[tuple[Any, ...]] = ((),)


class Static(Protocol):
    """Makes the index of the static predicates of a stream."""

    def __call__(self, schema: Schema, predicates: Sequence[StaticPredicates]) -> StaticIndex: ...
