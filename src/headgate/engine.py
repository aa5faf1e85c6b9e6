"""What every engine answers with.

An engine compiles many expressions of its family into one index, says which attributes that index reads, and
evaluates a whole batch against it. A *slot* is the number of an expression in the index; `Hits` are columns, one row for
each (event, slot) that holds, with the binding of its variables where there is one. Where an engine takes `upstream`, it
says which pairs are asked for: an engine may answer more cheaply for fewer, and never answers a pair it was not asked
about. `None` asks for all of them.

For every engine there is a naive twin in `headgate.oracle`, and the tests run one suite over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Binding = dict[str, Any]
"""Values of variables by name."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Which slots hold for which events: `event` is the row in the batch. Sorted by (event, slot)."""

    event: NDArray[np.int64]
    slot: NDArray[np.int32]
    binding: Sequence[Binding] | None = None

    def __len__(self) -> int:
        return len(self.event)

    @staticmethod
    def none() -> Hits:
        return Hits(np.empty(0, np.int64), np.empty(0, np.int32))
