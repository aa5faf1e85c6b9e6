"""Hypothesis strategies for every node of the language, as the parser would make it, and for texts.

Trees are well formed: AND and OR are flat and have two items or more, a negative number is a literal, the predicate of
a FOLD that keeps everything is TRUE. `bodies()` and `statements()` are what most tests want; `filters(...)` takes the
attributes to use, so that another suite can draw predicates over its own stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.vocabulary import AGGREGATES, FUNCTIONS

Nodes = st.SearchStrategy[Node]

_ODD = [
    "time",
    "with",
    "contains",
    "select",
    "in",
    "Null",
    "a b",
    "ünï",
    "x`y",
    "9lives",
    "a",
    "hom",
    "`",
    "é.è",
    "é\n",
]
words = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True) | st.sampled_from(_ODD)
paths: st.SearchStrategy[ast.Path] = st.lists(words, min_size=1, max_size=3).map(tuple)
names = words.filter(lambda w: w.upper() not in FUNCTIONS) | st.sampled_from(["a.b", "odd one.b"])
texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["", "'", '"', "\\", "--", "a\nb", "`;"])
variables = st.sampled_from(["x", "y", "1", "people"]).map(ast.Variable)
numbers: st.SearchStrategy[int | float] = st.integers(-(2**70), 2**70) | st.floats(
    allow_nan=False, allow_infinity=False
)
amounts = st.integers(0, 10**6) | st.floats(0, 1e9)


def literals() -> Nodes:
    return (st.sampled_from([None, True, False]) | numbers | texts).map(ast.Literal)


def instants() -> Nodes:
    return (st.datetimes().map(lambda t: t.isoformat()) | texts).map(ast.Instant)


def spans() -> st.SearchStrategy[ast.Span]:
    return st.builds(ast.Span, amounts, st.sampled_from(sorted(ast.UNITS)))


def attributes(scopes: Sequence[str] = ("",)) -> st.SearchStrategy[ast.Attribute]:
    return st.builds(ast.Attribute, paths, st.sampled_from(list(scopes)))


def negation(node: Node) -> Node:
    """What the parser makes of a minus sign in front of `node`."""
    if isinstance(node, ast.Literal) and type(node.value) in (int, float) and repr(node.value)[0] != "-":
        return ast.Literal(-node.value)
    return ast.Negate(node)


def junction(kind: type[ast.And] | type[ast.Or], items: Sequence[Node]) -> Node:
    """What the parser makes of items joined with AND or OR."""
    return kind(tuple(x for item in items for x in (item.items if isinstance(item, kind) else (item,))))


def values(leaves: Nodes) -> Nodes:
    """Arithmetic and functions over leaves."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(ast.Arithmetic, st.sampled_from(list("+-*/%")), inner, inner)
            | inner.map(negation)
            | st.builds(ast.Function, st.sampled_from(sorted(FUNCTIONS)), st.tuples(inner))
        ),
        max_leaves=5,
    )


def atoms(operands: Nodes) -> Nodes:
    """Every comparison of the language."""
    some = st.lists(operands, min_size=1, max_size=3).map(tuple)
    patterns = texts.map(ast.Literal)
    return st.one_of(
        st.builds(ast.Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), operands, operands),
        st.builds(ast.Between, operands, operands, operands),
        st.builds(ast.In, operands, some),
        st.builds(ast.Test, st.sampled_from(["LIKE", "ILIKE"]), st.tuples(operands, patterns | operands)),
        st.builds(ast.Test, st.sampled_from(["LIKE", "ILIKE"]), st.tuples(operands, patterns | operands, patterns)),
        st.builds(ast.Test, st.sampled_from(["CONTAINS", "STARTS WITH", "ENDS WITH"]), st.tuples(operands, operands)),
        st.builds(ast.Test, st.just("MATCHES"), st.tuples(operands, patterns)),
        st.builds(ast.IsNull, operands),
    )


def calls() -> Nodes:
    arguments = st.lists(literals() | attributes() | variables | spans(), max_size=3).map(tuple)
    called = names.filter(lambda n: n.upper() != "ALL")
    return st.builds(ast.Call, called, arguments)


def predicates(leaves: Nodes) -> Nodes:
    """AND, OR and NOT over leaves."""
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, min_size=2, max_size=4).map(lambda items: junction(ast.And, items))
            | st.lists(inner, min_size=2, max_size=4).map(lambda items: junction(ast.Or, items))
            | inner.map(ast.Not)
        ),
        max_leaves=6,
    )


def expressions(scopes: Sequence[str] = ("",), *, graphs: bool = True) -> Nodes:
    """Any expression, sensible or not: that a filter is a predicate is not the grammar's business."""
    leaves = st.one_of(
        literals(), instants(), spans(), attributes(scopes), attributes(scopes).map(ast.Every), variables,
        st.just(ast.Duration()),
    )  # fmt: skip
    operands = values(leaves)
    return predicates(st.one_of(atoms(operands), operands, calls(), *([graph_patterns()] if graphs else [])))


def filters(operands: Nodes) -> Nodes:
    """Predicates over operands of your own."""
    return predicates(atoms(operands))


# ------------------------------------------------------------------ graphs

iris = st.sampled_from(["http://example.org/a", "#b", "", "urn:x:y", "/p?q=1"]).map(ast.Iri)
prefixed = st.sampled_from([":Selling", "units:dollar", "a-b:c.d", ":", "rdf:type", "x:9"]).map(ast.Name)


def vertices() -> Nodes:
    tagged = st.builds(ast.Term, texts, st.none(), st.sampled_from(["en", "de-at"]))
    typed = st.builds(ast.Term, texts, iris | prefixed, st.none())
    constants = (st.booleans() | numbers | texts).map(ast.Literal)
    return st.one_of(
        iris, prefixed, st.sampled_from("Hxy").map(ast.Blank), variables, attributes(), tagged, typed, constants
    )


def graph_patterns() -> Nodes:
    triple = st.builds(ast.Triple, vertices(), iris | prefixed, vertices())
    conditions = predicates(atoms(values(variables | literals())))
    return st.builds(
        ast.Graph,
        st.lists(triple, min_size=1, max_size=3).map(tuple),
        st.lists(conditions, max_size=1).map(tuple),
        st.booleans(),
        st.none() | attributes(),
    )


# --------------------------------------------------------------- sequences


def patterns() -> st.SearchStrategy[ast.Pattern]:
    inside = expressions(("", "$1", "$2", "$"), graphs=False)
    theta = st.just(ast.TRUE) | inside
    alias = st.none() | names
    streams = st.builds(ast.Stream, names, alias)
    items = st.lists(st.just(ast.Item(None)) | st.builds(ast.Item, inside, alias), min_size=1, max_size=2).map(tuple)
    aggregate = st.builds(
        ast.Aggregate, st.sampled_from(sorted(AGGREGATES)), values(attributes(("$2", "$1"))), names
    ) | st.builds(ast.Aggregate, st.just("COUNT"), st.none(), names)
    aggregates = st.lists(aggregate | st.builds(ast.Recurrence, inside, names, inside), max_size=2).map(tuple)

    def grow(inner: Nodes) -> Nodes:
        nested = st.builds(ast.Pattern, items, inner, alias)
        return st.one_of(
            st.builds(ast.Filter, theta, inner, alias),
            st.builds(ast.Nested, nested, alias),
            st.builds(ast.Union, inner, inner, alias),
            st.builds(ast.Next, inner, theta, inner),
            st.builds(ast.Fold, inner, inside, theta, aggregates, inner),
            st.builds(ast.Absent, inner, theta, inner, spans() | st.integers(0, 10**9).map(ast.Literal)),
        )

    return st.builds(ast.Pattern, items, st.recursive(streams, grow, max_leaves=4), alias)


def bodies() -> Nodes:
    """The body of a subscription."""
    return expressions() | patterns()


# -------------------------------------------------------------- statements


def statements() -> st.SearchStrategy[Any]:
    constants = literals() | instants() | spans()
    types = st.sampled_from(["BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "GRAPH", "ARRAY<STRING>"])
    columns = st.builds(ast.ColumnDefinition, paths, types, st.none() | constants, st.booleans())
    options = st.lists(st.builds(ast.Option, names, constants), max_size=2).map(tuple)
    return st.one_of(
        st.builds(
            ast.CreateStream,
            names,
            st.lists(columns, min_size=1, max_size=3).map(tuple),
            st.lists(paths, max_size=2).map(tuple),
            st.none() | graph_patterns(),
        ),
        st.builds(ast.Prefix, st.sampled_from(["", "x", "a-b"]), iris.map(lambda iri: iri.text)),
        st.builds(ast.CreateOntology, names, texts),
        st.builds(ast.CreateSubscription, names, st.none() | names, options, bodies()),
        st.builds(ast.Drop, st.sampled_from(["STREAM", "ONTOLOGY", "SUBSCRIPTION"]), names),
    )
