"""`hg.cover`: is a subscription covered by others, which ones, and if not, which event shows it?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.covering.decision import Decision, Procedure, decide
from headgate.covering.grid import Grid, Rows
from headgate.covering.parse_boxes import Source, checked, schema_of, union_or_none
from headgate.covering.sequences import sequence_covered
from headgate.language import ast
from headgate.language.ast import Node
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Cover:
    """The answer: `covered` is True, False, or None for unknown.

    `by` names the subscriptions that cover together, by index or id. `witness` is an event that matches the
    subscription and none of the others; what it lacks is None. `certainty` is 1.0 for what is proven, less for an RSPC
    answer, 0.0 for unknown. `method` says what decided.
    """

    covered: bool | None
    witness: dict[str, Any] | None = None
    by: tuple[Hashable, ...] = ()
    certainty: float = 1.0
    method: str = ""

    def __bool__(self) -> bool:
        """True only if covered: unknown counts as not covered, for dropping what may be needed loses matches."""
        return self.covered is True


WIDE = Cover(None, None, (), 0.0, "wide")
"""For a filter that is too wide for boxes."""


def cover(
    text: str,
    others: Sequence[str | tuple[str, str]] | Mapping[str, str | tuple[str, str]],
    schema: Mapping[str, str] | Schema | None = None,
    *,
    missing: str = "null",
    mode: str = "exact",
    budget: float = 1.0,
    error: float = 1e-9,
    seed: int = 0,
) -> Cover:
    """Whether every event that matches `text` matches one of `others`, partial events included.

    `others` are texts, or pairs of a text and its missing-mode where that is not `missing`; in a mapping the keys name
    them. `schema` gives the types of the attributes, as a stream does; without one they follow from use. Modes:
    `exact`; `search`, without SAT; `rspc`, which may call something covered that is not, with a chance of at most
    `error`; `mcs` and `pairwise`, which leave more unknown. `budget` is in seconds: what takes longer is unknown.
    """
    procedure = Procedure(mode, budget, error, seed=seed)
    names: list[Hashable] = list(others) if isinstance(others, Mapping) else list(range(len(others)))
    given = list(others.values()) if isinstance(others, Mapping) else list(others)
    sources = [Source(text, missing), *(Source(o, missing) if isinstance(o, str) else Source(*o) for o in given)]
    bodies, resolved = checked(sources, schema_of(schema))
    for name, source, body in zip(names, sources[1:], bodies[1:], strict=True):
        if source.missing == missing:
            if body == bodies[0] and getattr(body, "publish", None) is None:
                return Cover(True, None, (name,), 1.0, "same")
            if _sequences(bodies[0], body, missing, procedure):
                return Cover(True, None, (name,), 1.0, "sequence")
    grid = Grid()
    rows = Rows(grid)
    owners: list[Hashable] = []
    wide = False
    for name, source, body in zip(names, sources[1:], bodies[1:], strict=True):
        union = union_or_none(body, source.missing, resolved)
        wide = wide or union is None
        for box in union or ():
            rows.append(grid.pieces(box))
            owners.append(name)
    subject = union_or_none(bodies[0], missing, resolved)
    if subject is None:
        return WIDE
    decision = decide(rows, np.arange(rows.count), subject, procedure)
    # A coverer that was left out might match the witness.
    return WIDE if wide and decision.covered is False else answer(decision, grid, owners)


def _sequences(inner: Node, outer: Node, missing: str, procedure: Procedure) -> bool:
    if isinstance(inner, ast.Pattern) and isinstance(outer, ast.Pattern):
        return sequence_covered(inner, outer, missing, procedure)
    return False


def answer(decision: Decision, grid: Grid, owners: Sequence[Hashable]) -> Cover:
    """A decision in the words of subscriptions: `owners` names that of every row."""
    if decision.covered:
        by = tuple(dict.fromkeys(owners[row] for row in decision.rows))
        return Cover(True, None, by, 1.0 - decision.error, decision.method)
    if decision.covered is None:
        return Cover(None, None, (), 0.0, decision.method)
    return Cover(False, grid.event(decision.point), (), 1.0, decision.method)
