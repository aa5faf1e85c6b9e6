"""The abstract syntax: frozen, comparable, hashable, without behaviour.

There is one hierarchy of expressions; that a filter must be a predicate and an operand a value is found by the type
check, not by the grammar, so that `(a)` needs no lookahead. `at` is the index of the token a node begins with. It takes
no part in comparison. Because it counts tokens and not characters it is the same for all texts of one shape, which is
what lets a parse be cached by shape and still point a caret at the right column.

In the tree of a shape a leaf holds a `Hole` where a text of that shape holds a name or a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of the token number `token` in a shape; a text of the shape fills it."""

    token: int
    form: str = ""
    """How the token's value is used: as it is, 'negative', or as one 'name' rather than a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    at: int = field(default=-1, compare=False, repr=False)

    def children(self) -> list[Node]:
        found = []
        for name in names_of(type(self)):
            value = getattr(self, name)
            if isinstance(value, Node):
                found.append(value)
            elif type(value) is tuple:
                found += [v for v in value if isinstance(v, Node)]
        return found


_names: dict[type, tuple[str, ...]] = {}


def names_of(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a node besides its place. Trees are walked very often, and `fields` takes its time."""
    found = _names.get(kind)
    if found is None:
        found = _names[kind] = tuple(f.name for f in fields(kind) if f.name != "at")
    return found


# ------------------------------------------------------------------ values


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """None, bool, int, float or str. TRUE and 1 are different literals although Python holds them equal."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and (self.value == other.value or (self.value != self.value and other.value != other.value))
        )

    def __hash__(self) -> int:
        return hash((type(self.value), "NaN" if self.value != self.value else self.value))


@dataclass(frozen=True, slots=True)
class Instant(Node):
    """TIMESTAMP '2026-01-01T00:00:00Z'; the text is kept as it was typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Span(Node):
    """`30 MINUTES`: a length of time. `unit` is one of UNITS, in the singular."""

    amount: Any
    unit: str


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`a`, `a.b`, `alias.a`, `$1.a`, `$2.a`, `$.a`. `scope` is '', '$1', '$2' or '$'."""

    path: Path
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Every(Node):
    """ALL(a) over an ARRAY attribute."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Variable(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """DUR."""


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negate(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A function by its name in capitals: LOWER(a). `predicates.functions` says what each means."""

    name: str
    operands: tuple[Node, ...]


# -------------------------------------------------------------- predicates


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`op` is one of = <> < <= > >=."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Node
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Test(Node):
    """A test written in words between its operands: `a STARTS WITH b`, `a LIKE 'x' ESCAPE '!'`. The name is the words
    behind the first operand, in capitals. `predicates.tests` says what each means."""

    __test__ = False  # pytest: not a test case

    name: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call(Node):
    """An operator: arguments are literals, attributes or variables."""

    name: str
    arguments: tuple[Node, ...]


# ------------------------------------------------------------------ graphs


@dataclass(frozen=True, slots=True)
class Iri(Node):
    """<http://...> written out."""

    text: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """`prefix:local`; the prefix may be empty. `a` stands as `rdf:type`."""

    text: str


@dataclass(frozen=True, slots=True)
class Blank(Node):
    label: str


@dataclass(frozen=True, slots=True)
class Term(Node):
    """An RDF literal with a datatype or a language; a plain number, text or boolean is a Literal."""

    text: str
    datatype: Iri | Name | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Triple(Node):
    subject: Node
    predicate: Node
    object: Node


@dataclass(frozen=True, slots=True)
class Graph(Node):
    """GRAPH [HOM] [column] { triples . FILTER (...) }; `column` names the GRAPH attribute where there are several."""

    triples: tuple[Triple, ...]
    filters: tuple[Node, ...] = ()
    hom: bool = False
    column: Attribute | None = None


# --------------------------------------------------------------- sequences


@dataclass(frozen=True, slots=True)
class Stream(Node):
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Filter(Node):
    predicate: Node
    source: Node
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Nested(Node):
    """( SELECT ... ) [AS alias]."""

    pattern: Pattern
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Union(Node):
    left: Node
    right: Node
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Next(Node):
    left: Node
    theta: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """COUNT(*), SUM(a), ... AS name. `function` is upper case; COUNT(*) has no operand."""

    function: str
    operand: Node | None
    name: str


@dataclass(frozen=True, slots=True)
class Recurrence(Node):
    """`expr AS name INIT expr0`: the general aggregate; `$.name` is its previous value."""

    step: Node
    name: str
    start: Node


@dataclass(frozen=True, slots=True)
class Fold(Node):
    left: Node
    theta: Node
    keep: Node
    aggregates: tuple[Aggregate | Recurrence, ...]
    right: Node


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """`within` is a Span, or a whole number of ticks as a Literal."""

    left: Node
    theta: Node
    right: Node
    within: Span | Literal


@dataclass(frozen=True, slots=True)
class Item(Node):
    """One SELECTed expression; `*` has no expression."""

    expression: Node | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    items: tuple[Item, ...]
    source: Node
    publish: str | None = None


# -------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class ColumnDefinition(Node):
    path: Path
    type: str
    default: Node | None = None
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class CreateStream(Node):
    """`graph` is the template that turns plain columns into an RDF event: bare names in it are attributes."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    time: tuple[Path, ...] = ()
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    name: str
    iri: str


@dataclass(frozen=True, slots=True)
class CreateOntology(Node):
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Option(Node):
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class CreateSubscription(Node):
    name: str
    stream: str | None
    options: tuple[Option, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class Drop(Node):
    """`kind` is STREAM, ONTOLOGY or SUBSCRIPTION."""

    kind: str
    name: str


Statement = CreateStream | Prefix | CreateOntology | CreateSubscription | Drop

DUR = "DUR()"
"""The attribute that holds the length of an event or run; not a name that a text can hold by accident."""
RUN = "RUN()"
"""Heads the paths of what a run holds, where they stand beside those of the incoming event."""
TRUE = Literal(True)

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack += reversed(top.children())


def rewrite(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """The tree with the nodes replaced for which `change` gives another."""
    changed = change(node)
    if changed is not None:
        return changed
    changes: dict[str, Any] = {}
    for name in names_of(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            made = rewrite(value, change)
            if made is not value:
                changes[name] = made
        elif type(value) is tuple and any(isinstance(v, Node) for v in value):
            parts = [rewrite(v, change) if isinstance(v, Node) else v for v in value]
            if any(p is not v for p, v in zip(parts, value, strict=True)):
                changes[name] = tuple(parts)
    return replace(node, **changes) if changes else node
