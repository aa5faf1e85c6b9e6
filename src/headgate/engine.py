"""What every engine offers and answers with.

An engine compiles many expressions of its family into one `BatchIndex`: the functions `compile_filters`, `compile_gated`,
`compile_late`, and the `compile` of graphs and operators. To admit an expression is to compile it alone. An index says
which attributes it reads and decides a whole batch. It is made of arrays and trees, which `plan.file` saves and opens;
operators are code, and are named.

A *slot* is the number of an expression in its index. For each pair of an event and a slot there are three answers: it
holds, and `Hits` lists it, with the binding of its variables where there is one; it does not; or nobody knows, which is a
`Problem` of the pair. Graphs and operators, which decide late atoms for the residual solver, answer in the same way for
the pairs that they are asked about, and an engine that leaves pairs open names these as `Hits` too. Sequences have state
between batches and so a session, but their static predicates are such an index.

For every engine there is a naive twin in `headgate.oracle`, and the tests run one suite over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.schema import Path

Binding = dict[str, Any]
"""Values of variables by name."""


@dataclass(frozen=True, slots=True)
class PairProblem:
    """An event on which a slot could not be decided; `slot` is None if the event itself is at fault. Whoever knows the
    names of event and subscription makes a `results.Problem` of it."""

    event: int
    slot: int | None
    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Which slots hold for which events: `event` is the row in the batch. Sorted by (event, slot)."""

    event: NDArray[np.int64]
    slot: NDArray[np.int32]
    binding: Sequence[Binding] | None = None
    problems: Sequence[PairProblem] = ()
    """The pairs that could not be decided."""

    def __len__(self) -> int:
        return len(self.event)

    @staticmethod
    def none(problems: Sequence[PairProblem] = ()) -> Hits:
        return Hits(np.empty(0, np.int64), np.empty(0, np.int32), problems=problems)


class BatchIndex(Protocol):
    """Expressions of one stream, compiled."""

    @property
    def needs(self) -> frozenset[Path]:
        """The attributes that it reads."""
        ...

    def evaluate(self, columns: Columns) -> Hits:
        """All pairs of a batch."""
        ...
