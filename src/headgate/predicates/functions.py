"""The functions of the language: for each its types, and what it means on one row, on columns and in kernels.

A new function is one entry here, its name and number of arguments in `language.vocabulary`, and its twin in the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.predicates import values
from headgate.predicates.operands import ByRows, Constant, Numbers, Operand, Typed, Words, as_kind, of_values
from headgate.predicates.values import NUMBER, TEXT
from headgate.schema import Kind, Type

_LEAST = -(2**63)


@dataclass(frozen=True, slots=True)
class Function:
    """`row` takes values that are there, of the kinds in `takes`, and gives None where there is no result. `result` is
    the type it gives; None: that of its first operand. `columns` is the same for whole columns where a call of `row` for
    each distinct value would be slow. `kernel` says that the stack machine of sequences knows it by its name."""

    name: str
    takes: tuple[int, ...]
    result: Type | None
    row: Callable[..., Any]
    columns: Callable[..., Typed] | None = None
    kernel: bool = False

    def over(self, operands: Sequence[Operand]) -> Typed:
        """The function of whole columns. Of an attribute of the type ANY it takes the values that it can."""
        operands = [as_kind(o, values.VIEWS[kind]) for o, kind in zip(operands, self.takes, strict=True)]
        if all(isinstance(o, Constant) for o in operands):
            given = [o.value for o in operands if isinstance(o, Constant)]
            return Constant(None if None in given else self.row(*given))
        if self.columns is not None:
            return self.columns(*operands)
        (words,) = operands
        assert isinstance(words, Words)
        results = [self.row(word) for word in words.distinct]
        if self.result is not None and self.result.kind is Kind.STRING:
            return Words(words.codes, results)
        looked_up = of_values(results)
        if isinstance(looked_up, Constant):
            return Numbers(words.look_up(0, np.int64), words.known)
        assert isinstance(looked_up, Numbers)
        return Numbers(words.look_up(looked_up.data, looked_up.data.dtype), words.known)


def _absolute(a: Typed) -> Typed:
    assert isinstance(a, Numbers)
    if a.exact or (a.data.dtype.kind == "f" and np.any(a.data == _LEAST)):
        raise ByRows  # it may be the least BIGINT, which has no opposite
    return Numbers(np.abs(a.data), a.known if a.data.dtype.kind == "f" else a.known & (a.data != _LEAST))


FUNCTIONS = {
    f.name: f
    for f in (
        Function("LOWER", (TEXT,), Type(Kind.STRING), str.lower),
        Function("UPPER", (TEXT,), Type(Kind.STRING), str.upper),
        Function("LENGTH", (TEXT,), Type(Kind.BIGINT), len),
        Function("ABS", (NUMBER,), None, values.absolute, _absolute, kernel=True),
    )
}
