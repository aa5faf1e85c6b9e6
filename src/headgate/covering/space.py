"""The space in which covering is decided: one dimension an attribute, and one for each thing no box can express.

A dimension is *concrete* if a value of it can be put into an event. The others stand for terms (`price * vol`), for
the order of two terms (`low < high`) and for whole atoms (`name MATCHES '...'`): of those only that they are
functions of the event is used. The space then has points that no event reaches, so a proof of cover in it is a proof,
while a witness that depends on such a dimension is none (docs/semantics.md, section 6).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from headgate.covering.portion import Portion
from headgate.language.ast import Path
from headgate.predicates import domain
from headgate.predicates.domain import Domain
from headgate.schema import Attribute, Kind, format_path

DOMAINS = {
    Kind.BOOLEAN: domain.BOOLEAN,
    Kind.BIGINT: domain.BIGINT,
    Kind.DOUBLE: domain.DOUBLE,
    Kind.STRING: domain.STRING,
    Kind.TIMESTAMP: domain.TIMESTAMP,
    Kind.BINARY: domain.BINARY,
}


@dataclass(frozen=True, slots=True)
class Dimension:
    """`key` says what it is; `path` is set for a concrete one."""

    key: Hashable
    domain: Domain = field(compare=False)
    nullable: bool = field(default=True, compare=False)
    path: Path | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return format_path(self.path) if self.path else str(self.key)


Box = Mapping[Dimension, Portion]
"""What a conjunction asks of each dimension; a dimension that is not there is not restricted."""


def of_attribute(attribute: Attribute) -> Dimension:
    """The dimension of an attribute. Values of arrays and graphs are never chosen, only whether there is one.

    The type is part of it: boxes that were read with different types for an attribute say nothing about each other."""
    kind = attribute.type
    key = ("attribute", attribute.path, None if kind is None else (kind.kind, kind.array))
    nullable = not attribute.not_null
    if kind is None or kind.array or kind.kind is Kind.GRAPH:
        return Dimension(key, domain.choice(1), nullable)
    return Dimension(key, DOMAINS[kind.kind], nullable, attribute.path)


def meet(a: Box, b: Box) -> Box | None:
    """The common part of two boxes; None if there is none."""
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    common = dict(large)
    for dimension, portion in small.items():
        there = common.get(dimension)
        if there is not None:
            portion = portion & there
            if not portion:
                return None
        common[dimension] = portion
    return common


def contains(outer: Box, inner: Box) -> bool:
    return all(d in inner and inner[d].within(portion) for d, portion in outer.items())
