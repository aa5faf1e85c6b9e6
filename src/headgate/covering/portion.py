"""A set of values of one attribute, with or without "missing".

This is what one predicate asks of one attribute: spans between cuts, in order and apart from each other, and whether
an event that lacks the attribute is in the set. Missing is a value of its own here: the semantics of nulls is settled
by whoever makes the portion, and after that there is only set algebra.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.predicates.domain import BOTTOM, TOP, Cut, Span


@dataclass(frozen=True, slots=True)
class Portion:
    spans: tuple[Span, ...]
    missing: bool = False

    def __and__(self, other: Portion) -> Portion:
        spans: list[Span] = []
        i = j = 0
        while i < len(self.spans) and j < len(other.spans):
            a, b = self.spans[i], other.spans[j]
            low, high = max(a[0], b[0]), min(a[1], b[1])
            if low < high:
                spans.append((low, high))
            if a[1] < b[1]:
                i += 1
            else:
                j += 1
        return Portion(tuple(spans), self.missing and other.missing)

    def __or__(self, other: Portion) -> Portion:
        return Portion(_joined([*self.spans, *other.spans]), self.missing or other.missing)

    def __invert__(self) -> Portion:
        spans: list[Span] = []
        start: Cut = BOTTOM
        for low, high in self.spans:
            if start < low:
                spans.append((start, low))
            start = high
        if start < TOP:
            spans.append((start, TOP))
        return Portion(tuple(spans), not self.missing)

    def __bool__(self) -> bool:
        """Whether anything is in it."""
        return self.missing or bool(self.spans)

    def full(self, nullable: bool) -> bool:
        """Whether everything is in it; an attribute that is never missing needs no "missing"."""
        return self.spans == ALL.spans and (self.missing or not nullable)

    def within(self, other: Portion) -> bool:
        return (self & other) == self


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


NONE = Portion(())
ALL = Portion(((BOTTOM, TOP),), True)
PRESENT = Portion(((BOTTOM, TOP),))
MISSING = Portion((), True)
