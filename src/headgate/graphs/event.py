"""An event as a graph (OPS, section 3.1): vertices from home on, classes, arcs.

Every triple with a literal object makes a vertex of its own. What the text of an event may get wrong is found here,
and said so that its publisher can mend it: no home, a vertex that home does not reach, a class that is no name, a
literal that does not fit its datatype. A vertex without a class is accepted; it may have any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.errors import EventError
from headgate.graphs.rdf import Triple
from headgate.graphs.terms import HOME, TYPE, IllTyped, Literal, Term, value_of


class BadGraph(EventError):
    """An event whose graph cannot be used."""

    code = "graph"


@dataclass(frozen=True, slots=True)
class Limits:
    """How large an event graph may be, and how long one pattern may be searched for in it."""

    vertices: int = 20_000
    arcs: int = 100_000
    steps: int = 1_000_000
    bindings: int = 10_000


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class EventGraph:
    """`terms[0]` is home. `classes` are those stated: of a literal its datatype, of an untyped vertex none."""

    terms: list[Term]
    classes: list[tuple[str, ...]]
    arcs: list[tuple[int, str, int]]

    @classmethod
    def of(cls, triples: Iterable[Triple], limits: Limits = LIMITS) -> EventGraph:
        number: dict[str, int] = {HOME: 0}
        terms: list[Term] = [HOME]
        stated: dict[str, list[str]] = {}
        arcs: list[tuple[int, str, int]] = []
        homeless = True
        for subject, predicate, object_ in triples:
            if subject == HOME or object_ == HOME:
                homeless = False
            if predicate == TYPE:
                if not isinstance(object_, str) or object_[0] != "<":
                    raise BadGraph(f"the class of {subject} is {object_}, which is no name", "a class is an IRI")
                stated.setdefault(subject, []).append(object_)
                continue
            s = number.get(subject)
            if s is None:
                s = number[subject] = len(terms)
                terms.append(subject)
            if isinstance(object_, Literal):
                try:
                    value_of(object_)
                except IllTyped as problem:
                    raise BadGraph(f"the value of {predicate} does not fit its datatype: {problem}") from None
                o = len(terms)
                terms.append(object_)
            else:
                known = number.get(object_)
                if known is None:
                    known = number[object_] = len(terms)
                    terms.append(object_)
                o = known
            arcs.append((s, predicate, o))
        if homeless:
            raise BadGraph("the graph has no home vertex", "give the node that stands for the event the label _:H")
        if len(terms) > limits.vertices or len(arcs) > limits.arcs:
            message = f"the graph has {len(terms):,} vertices and {len(arcs):,} arcs"
            raise BadGraph(message, f"the limits are {limits.vertices:,} and {limits.arcs:,}")
        _check_reachable(terms, arcs, number, stated)
        classes = [(term.datatype,) if isinstance(term, Literal) else tuple(stated.get(term, ())) for term in terms]
        return cls(terms, classes, arcs)


def _check_reachable(
    terms: list[Term], arcs: list[tuple[int, str, int]], number: dict[str, int], stated: dict[str, list[str]]
) -> None:
    out: list[list[int]] = [[] for _ in terms]
    for s, _, o in arcs:
        out[s].append(o)
    reached = [False] * len(terms)
    reached[0] = True
    front = [0]
    for s in front:
        for o in out[s]:
            if not reached[o]:
                reached[o] = True
                front.append(o)
    if len(front) == len(terms) and all(subject in number for subject in stated):
        return
    lost = next((t for t, r in zip(terms, reached, strict=True) if not r), None)
    lost = lost if lost is not None else next(s for s in stated if s not in number)
    raise BadGraph(f"{lost} cannot be reached from _:H", "connect it by a statement that leads to it from home")
