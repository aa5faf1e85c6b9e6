"""From reductions to nodes: one method a rule of grammar.lark.

The parser calls these as it reduces, so no parse tree exists and nothing recurses. Where a shape is parsed, the leaves
become holes; what a name *means* (LOWER, TIMESTAMP, a unit of time) is read from the text, for such names are part of
the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from lark import Token, Transformer

from headgate.errors import LanguageError, SyntaxProblem
from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.language.tokens import Tokens
from headgate.language.vocabulary import AGGREGATES, FUNCTIONS


def negative(value: Any) -> Any:
    return -value


def name(path: ast.Path) -> str:
    return ".".join(path)


def symbol(path: ast.Path) -> str:
    if not all(map(_PLAIN.fullmatch, path)):
        raise SyntaxProblem("a class or property has no odd characters in its name", "write prefix:name or <iri>")
    return ":" + ".".join(path)


_PLAIN = re.compile(r"\w+")


FORMS: dict[str, Callable[[Any], Any]] = {"": lambda value: value, "negative": negative, "name": name, "symbol": symbol}
"""What a `Hole.form` does with the token's value."""


def value_of(tokens: Tokens, index: int) -> Any:
    """The token's value; a problem with it is given its place."""
    try:
        return tokens.value(index)
    except LanguageError as problem:
        problem.at = index
        raise


def _at(x: Any) -> int:
    return cast(int, x.start_pos if isinstance(x, Token) else x.at)


class Build(Transformer[Any, Node]):
    """One method a rule. `leaf` decides whether a token becomes a hole or its value."""

    def begin(self, tokens: Tokens, holes: bool) -> None:
        """Say which text is parsed next."""
        self._tokens = tokens
        self._holes = holes
        self._signed: set[int] = set()

    def leaf(self, token: Token, form: str = "") -> Any:
        index = cast(int, token.start_pos)
        if self._holes:
            return Hole(index, form)
        try:
            return FORMS[form](value_of(self._tokens, index))
        except LanguageError as problem:
            problem.at = index
            raise

    def _meant(self, token: Token) -> str:
        """A name whose text decides the meaning; it is part of the shape."""
        return ".".join(self._tokens.value(cast(int, token.start_pos)))

    # -- statements

    def create_stream(self, c: list[Any]) -> Node:
        name, columns, time, template = c
        return ast.CreateStream(self.leaf(name, "name"), tuple(columns), tuple(time or ()), template, at=_at(name))

    def columns(self, c: list[Any]) -> Any:
        return c

    def column(self, c: list[Any]) -> Node:
        path, type_, *options = c
        default = next((o for o in options if o is not None), None)
        return ast.ColumnDefinition(self.leaf(path), type_, default, None in options, at=_at(path))

    def type(self, c: list[Any]) -> str:
        head = str(c[0]).upper()
        return f"{head}<{c[1]}>" if len(c) == 2 else head

    def default(self, c: list[Any]) -> Any:
        return c[0]

    def not_null(self, _: list[Any]) -> None:
        return None

    def time(self, c: list[Any]) -> Any:
        return [self.leaf(path) for path in c if path is not None]

    def template(self, c: list[Any]) -> Any:
        return c[0]

    def prefix(self, c: list[Any]) -> Node:
        name, iri = c
        if not name.endswith(":"):
            raise SyntaxProblem(
                "a prefix ends with a colon", f"write PREFIX {name.partition(':')[0]}: <...>", at=_at(name)
            )
        return ast.Prefix(str(name)[:-1], str(iri)[1:-1], at=_at(name))

    def create_ontology(self, c: list[Any]) -> Node:
        return ast.CreateOntology(self.leaf(c[0], "name"), self.leaf(c[1]), at=_at(c[0]))

    def create_subscription(self, c: list[Any]) -> Node:
        name, stream, options, body = c
        on = None if stream is None else self.leaf(stream, "name")
        return ast.CreateSubscription(self.leaf(name, "name"), on, tuple(options or ()), body, at=_at(name))

    def options(self, c: list[Any]) -> Any:
        return c

    def option(self, c: list[Any]) -> Node:
        return ast.Option(self.leaf(c[0], "name"), c[1], at=_at(c[0]))

    def drop(self, c: list[Any]) -> Node:
        return ast.Drop(c[0], self.leaf(c[1], "name"), at=_at(c[1]))

    def kind(self, c: list[Any]) -> str:
        return str(c[0]).upper()

    def negative_integer(self, c: list[Any]) -> Node:
        return ast.Literal(self.leaf(c[0], "negative"), at=_at(c[0]))

    negative_real = negative_integer

    # -- expressions

    def disjunction(self, c: list[Any]) -> Node:
        return ast.Or(_flat(c, ast.Or), at=_at(c[0]))

    def conjunction(self, c: list[Any]) -> Node:
        return ast.And(_flat(c, ast.And), at=_at(c[0]))

    def negation(self, c: list[Any]) -> Node:
        return ast.Not(c[0], at=_at(c[0]))

    def inner(self, c: list[Any]) -> Node:
        return cast(Node, c[0])

    def between(self, c: list[Any]) -> Node:
        return ast.Between(*c, at=_at(c[0]))

    def in_(self, c: list[Any]) -> Node:
        return ast.In(c[0], tuple(c[1:]), at=_at(c[0]))

    def words(self, c: list[Any]) -> tuple[str, tuple[Node, ...]]:
        """The words that name a test, and the operands behind them."""
        first = next(i for i, part in enumerate(c) if isinstance(part, Node))
        return " ".join(str(word).upper() for word in c[:first]), tuple(part for part in c if isinstance(part, Node))

    def test(self, c: list[Any]) -> Node:
        operand, (name, behind) = c
        return ast.Test(name, (operand, *behind), at=_at(operand))

    def is_null(self, c: list[Any]) -> Node:
        return ast.IsNull(c[0], at=_at(c[0]))

    def minus_sign(self, c: list[Any]) -> Node:
        (operand,) = c
        number = isinstance(operand, ast.Literal) and self._tokens.kinds[operand.at] in ("INT", "FLOAT")
        # Told by the token, not by the value: -0 is signed and yet no less than 0.
        if number and operand.at not in self._signed:
            self._signed.add(operand.at)
            value = operand.value
            signed = Hole(value.token, "negative") if isinstance(value, Hole) else -value
            return ast.Literal(signed, at=operand.at)
        return ast.Negate(operand, at=_at(operand))

    def attribute(self, c: list[Any]) -> Node:
        return ast.Attribute(self.leaf(c[0]), at=_at(c[0]))

    def run(self, c: list[Any]) -> Node:
        return ast.Attribute(self.leaf(c[0]), "$1", at=_at(c[0]))

    def incoming(self, c: list[Any]) -> Node:
        return ast.Attribute(self.leaf(c[0]), "$2", at=_at(c[0]))

    def iteration(self, c: list[Any]) -> Node:
        return ast.Attribute(self.leaf(c[0]), "$", at=_at(c[0]))

    def variable(self, c: list[Any]) -> Node:
        return ast.Variable(self.leaf(c[0]), at=_at(c[0]))

    def duration(self, c: list[Any]) -> Node:
        return ast.Duration(at=_at(c[0]))

    def call(self, c: list[Any]) -> Node:
        name, arguments = c
        meant, at = self._meant(name), _at(name)
        items = tuple(arguments or ())
        wanted = FUNCTIONS.get(meant.upper())
        if wanted is not None:
            if len(items) != wanted:
                count = "one argument" if wanted == 1 else f"{wanted} arguments"
                raise SyntaxProblem(f"{meant.upper()} takes {count}, not {len(items)}", at=at)
            return ast.Function(meant.upper(), items, at=at)
        if meant.upper() == "ALL" and len(items) == 1:
            if not isinstance(items[0], ast.Attribute):
                raise SyntaxProblem("ALL takes an ARRAY attribute", "write ALL(name)", at=at)
            return ast.Every(items[0], at=at)
        return ast.Call(self.leaf(name, "name"), items, at=at)

    def call_star(self, c: list[Any]) -> Node:
        meant = self._meant(c[0]).upper()
        if meant != "COUNT":
            raise SyntaxProblem(f"{meant}(*) has no meaning", "only COUNT takes *", at=_at(c[0]))
        return ast.Call(self.leaf(c[0], "name"), (), at=_at(c[0]))

    def arguments(self, c: list[Any]) -> Any:
        return c

    def integer(self, c: list[Any]) -> Node:
        return ast.Literal(self.leaf(c[0]), at=_at(c[0]))

    real = integer
    string = integer

    def true(self, c: list[Any]) -> Node:
        return ast.Literal(True, at=_at(c[0]))

    def false(self, c: list[Any]) -> Node:
        return ast.Literal(False, at=_at(c[0]))

    def null(self, c: list[Any]) -> Node:
        return ast.Literal(None, at=_at(c[0]))

    def instant(self, c: list[Any]) -> Node:
        word = self._meant(c[0])
        if word.upper() != "TIMESTAMP":
            raise SyntaxProblem(
                f"{word} before a text has no meaning", "write TIMESTAMP '...' for a time", at=_at(c[0])
            )
        return ast.Instant(self.leaf(c[1]), at=_at(c[0]))

    def span(self, c: list[Any]) -> Node:
        word = self._meant(c[1]).upper()
        unit = word.removesuffix("S")
        if unit not in ast.UNITS:
            units = ", ".join(u.lower() + "s" for u in ast.UNITS)
            hint = f"the units are {units}; two conditions are joined with AND or OR"
            raise SyntaxProblem(f"{word} is no unit of time", hint, at=_at(c[1]))
        return ast.Span(self.leaf(c[0]), unit, at=_at(c[0]))

    # -- graphs

    def graph(self, c: list[Any]) -> Node:
        at, hom, column, parts = _at(c[0]), c[1] is not None, c[2], c[3]
        triples = tuple(t for t in parts if isinstance(t, ast.Triple))
        filters = tuple(f for f in parts if not isinstance(f, ast.Triple))
        attribute = None if column is None else ast.Attribute(self.leaf(column), at=_at(column))
        if not triples:
            raise SyntaxProblem("a GRAPH needs at least one statement", "write GRAPH { _:H a :Class }", at=at)
        return ast.Graph(triples, filters, hom, attribute, at=at)

    def parts(self, c: list[Any]) -> Any:
        return [x for part in c if part is not None for x in (part if isinstance(part, list) else [part])]

    def graph_filter(self, c: list[Any]) -> Node:
        return cast(Node, c[1])

    def triples(self, c: list[Any]) -> Any:
        subject, properties = c
        return [ast.Triple(subject, verb, term, at=_at(subject)) for verb, term in properties]

    def properties(self, c: list[Any]) -> Any:
        return [pair for pairs in c if pairs is not None for pair in pairs]

    def property(self, c: list[Any]) -> Any:
        return [(c[0], term) for term in c[1:]]

    def tuple(self, c: list[Any]) -> Any:
        subject, object_, above, verb, below, condition = c
        rdf_type = ast.Name("rdf:type", at=_at(above))
        made = [
            ast.Triple(subject, rdf_type, above, at=_at(subject)),
            ast.Triple(subject, verb, object_, at=_at(subject)),
            ast.Triple(object_, rdf_type, below, at=_at(object_)),
        ]
        return made if condition is None else [*made, condition]

    def rdf_type(self, c: list[Any]) -> Node:
        return ast.Name("rdf:type", at=_at(c[0]))

    def pname(self, c: list[Any]) -> Node:
        return ast.Name(self.leaf(c[0]), at=_at(c[0]))

    def bare_symbol(self, c: list[Any]) -> Node:
        return ast.Name(self.leaf(c[0], "symbol"), at=_at(c[0]))

    def iri(self, c: list[Any]) -> Node:
        return ast.Iri(self.leaf(c[0]), at=_at(c[0]))

    def blank(self, c: list[Any]) -> Node:
        return ast.Blank(self.leaf(c[0]), at=_at(c[0]))

    def attribute_term(self, c: list[Any]) -> Node:
        return ast.Attribute(self.leaf(c[0]), at=_at(c[0]))

    def tagged(self, c: list[Any]) -> Node:
        return ast.Term(self.leaf(c[0]), None, self.leaf(c[1]), at=_at(c[0]))

    def typed(self, c: list[Any]) -> Node:
        return ast.Term(self.leaf(c[0]), c[1], None, at=_at(c[0]))

    # -- sequences

    def pattern(self, c: list[Any]) -> Node:
        select, *items, source, publish = c
        made = None if publish is None else self.leaf(publish, "name")
        return ast.Pattern(tuple(items), source, made, at=_at(select))

    def star(self, _: list[Any]) -> Node:
        return ast.Item(None)

    def item(self, c: list[Any]) -> Node:
        return ast.Item(c[0], self._name(c[1]), at=_at(c[0]))

    def _name(self, token: Token | None) -> Any:
        return None if token is None else self.leaf(token, "name")

    def next(self, c: list[Any]) -> Node:
        left, theta, right = c
        return ast.Next(left, theta or ast.TRUE, right, at=_at(right))

    def braced(self, c: list[Any]) -> Node:
        return c[0] or ast.TRUE

    def fold_step(self, c: list[Any]) -> Node:
        left, (theta, keep, aggregates), right = c
        return ast.Fold(left, theta, keep, tuple(aggregates), right, at=_at(right))

    def fold(self, c: list[Any]) -> Any:
        theta, *rest = c
        keep: Node = ast.TRUE
        if rest and not isinstance(rest[0], ast.Aggregate | ast.Recurrence):
            keep, *rest = rest
        for extra in rest:
            if not isinstance(extra, ast.Aggregate | ast.Recurrence):
                hint = "FOLD { theta, keep, aggregate AS name, ... }: join predicates with AND"
                raise SyntaxProblem("an aggregate of a FOLD needs a name", hint, at=_at(extra))
        return theta, keep, rest

    def fold_keep(self, c: list[Any]) -> Node:
        return cast(Node, c[0])

    def fold_aggregate(self, c: list[Any]) -> Node:
        call, name = c
        at = _at(call)
        if isinstance(call, ast.Call):
            function = self._meant_at(at)
            if function in AGGREGATES and len(call.arguments) == (function != "COUNT" or bool(call.arguments)):
                operand = call.arguments[0] if call.arguments else None
                return ast.Aggregate(function, operand, self.leaf(name, "name"), at=at)
        hint = f"use one of {', '.join(sorted(AGGREGATES))}, or expr AS name INIT start"
        raise SyntaxProblem("this is no aggregate", hint, at=at)

    def _meant_at(self, index: int) -> str:
        return self._tokens.raws[index].upper()

    def fold_recurrence(self, c: list[Any]) -> Node:
        step, name, start = c
        return ast.Recurrence(step, self.leaf(name, "name"), start, at=_at(step))

    def absent(self, c: list[Any]) -> Node:
        left, theta, right, within = c
        return ast.Absent(left, theta or ast.TRUE, right, within, at=_at(right))

    def stream(self, c: list[Any]) -> Node:
        return ast.Stream(self.leaf(c[0], "name"), self._name(c[1]), at=_at(c[0]))

    def filter(self, c: list[Any]) -> Node:
        _, predicate, source, alias = c
        return ast.Filter(predicate, source, self._name(alias), at=_at(c[0]))

    def nested(self, c: list[Any]) -> Node:
        return ast.Nested(c[0], self._name(c[1]), at=_at(c[0]))

    def union(self, c: list[Any]) -> Node:
        return ast.Union(c[0], c[1], self._name(c[2]), at=_at(c[0]))

    # -- names

    def path(self, c: list[Any]) -> Token:
        return cast(Token, c[0])

    name = path
    soft = path


def _comparison(op: str) -> Callable[[Build, list[Any]], Node]:
    return lambda _, c: ast.Compare(op, *c, at=_at(c[0]))


def _arithmetic(op: str) -> Callable[[Build, list[Any]], Node]:
    return lambda _, c: ast.Arithmetic(op, *c, at=_at(c[0]))


def _negated(rule: str) -> Callable[[Build, list[Any]], Node]:
    return lambda self, c: ast.Not(getattr(self, rule)(c), at=_at(c[0]))


for _rule, _op in (("eq", "="), ("ne", "<>"), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Build, _rule, _comparison(_op))
for _rule, _op in (("plus", "+"), ("minus", "-"), ("times", "*"), ("divide", "/"), ("modulo", "%")):
    setattr(Build, _rule, _arithmetic(_op))
for _rule in ("between", "test"):
    setattr(Build, f"not_{_rule}", _negated(_rule))
Build.not_in = _negated("in_")  # type: ignore[attr-defined]  # one line a rule, as in the grammar
Build.is_not_null = _negated("is_null")  # type: ignore[attr-defined]  # as above


def _flat(items: list[Node], kind: type[ast.And] | type[ast.Or]) -> tuple[Node, ...]:
    return tuple(x for item in items for x in (item.items if isinstance(item, kind) else (item,)))
