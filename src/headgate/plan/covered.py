"""Which subscriptions of a book others cover: redundant for whoever gets the matches of those too.

Filters of one stream are decided together, operators and graphs in them as black boxes; a sequence is compared with one
other at a time. All of it has a budget of time, for a book may be large: what was not looked at in time is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from headgate.covering.cover import Cover, cover
from headgate.covering.coverset import BUDGET, CoverSet
from headgate.covering.parse_boxes import union_or_none
from headgate.covering.sequences import sequence_covered
from headgate.language import ast
from headgate.language.forms import cut_text
from headgate.language.parser import parse_tokens
from headgate.language.tokens import tokenise
from headgate.plan.segment import Entry
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Covered:
    """`by` has the coverers of each covered subscription; `left` were not looked at for want of time."""

    by: Mapping[str, tuple[str, ...]]
    left: int = 0


def covered_filters(names: Sequence[str], entries: Mapping[str, Entry], schema: Schema, budget: float) -> Covered:
    """The filters among these of one stream that others of them cover."""
    deadline = perf_counter() + budget
    covers = CoverSet(schema, BUDGET, demote="pairwise")
    for i, name in enumerate(names):
        if perf_counter() > deadline:
            return Covered(_named(covers), len(names) - i)
        entry = entries[name]
        covers.add_union(name, union_or_none(cut_text(entry.text).body(), entry.missing, schema))
    return Covered(_named(covers))


def covered_sequences(names: Sequence[str], entries: Mapping[str, Entry], budget: float) -> Covered:
    """The sequences among these that another of them covers; of two that cover each other, the later one."""
    deadline = perf_counter() + budget
    found: dict[str, tuple[str, ...]] = {}
    patterns = {name: p for name in names if isinstance(p := parse_tokens(tokenise(entries[name].text)), ast.Pattern)}
    for i, (name, inner) in enumerate(patterns.items()):
        for other, outer in patterns.items():
            if perf_counter() > deadline:
                return Covered(found, len(patterns) - i)
            if other == name or other in found or entries[other].missing != entries[name].missing:
                continue
            if sequence_covered(inner, outer, entries[name].missing, BUDGET):
                found[name] = (other,)
                break
    return Covered(found)


def cover_of(name: str, entries: Mapping[str, Entry], schemas: Mapping[str, Schema], budget: float = 1.0) -> Cover:
    """Whether the others of the book cover this subscription; `by` names those that do it together."""
    entry = entries[name]
    others = {
        other: (e.text, e.missing)
        for other, e in entries.items()
        if other != name and e.stream == entry.stream and not e.paused
    }
    return cover(entry.text, others, schemas.get(entry.stream), missing=entry.missing, budget=budget)


def _named(covers: CoverSet) -> dict[str, tuple[str, ...]]:
    return {str(name): tuple(sorted(map(str, by))) for name, by in covers.gates.items() if by}
