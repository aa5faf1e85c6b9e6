"""From texts to what covering needs: one schema for all of them, and for each its union of boxes.

Texts are checked as those of a book are. Where no schema is given, an attribute has the type in which all texts use it; one
that they use as different types, or not as any, is ANY, and a condition on it covers only its equals.
Operators and prefixes need no registration here: cover treats calls and patterns as black boxes anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.covering.boxes import TooWide, Union, boxes_of
from headgate.covering.portion import Portion
from headgate.covering.space import Dimension
from headgate.errors import LanguageErrors, UsageError
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.catalogue import PREFIXES, Catalogue, Signature
from headgate.language.parser import parse_tokens
from headgate.language.tokens import Tokens, tokenise
from headgate.predicates import domain, values
from headgate.predicates.check import check_filter
from headgate.predicates.modes import MODES
from headgate.predicates.normal import fold, normalise
from headgate.schema import Attribute, Kind, Schema, Type

STREAM = "events"
_INFERRED = "(inferred)"
"""The stream of a schema that nobody gave."""


@dataclass(frozen=True, slots=True)
class Source:
    """A subscription as it was written."""

    text: str
    missing: str = "null"

    def __post_init__(self) -> None:
        if self.missing not in MODES:
            raise UsageError(f"missing = {self.missing!r} is no mode", f"the modes are {', '.join(MODES)}")


def schema_of(given: Mapping[str, str] | Schema | None) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema.of(STREAM, given) if given else Schema(_INFERRED, {}, declared=False)


def checked(sources: Sequence[Source], schema: Schema) -> tuple[list[Node], Schema]:
    """The bodies, and the schema, with the types of their uses if nobody gave one."""
    bodies = []
    for source in sources:
        tokens = tokenise(source.text)
        body = parse_tokens(tokens)
        bodies.append(body)
        if isinstance(body, ast.Pattern):
            continue
        schema = _check(body, tokens, schema)
    return bodies, schema


def _check(body: Node, tokens: Tokens, schema: Schema) -> Schema:
    problems = [tokens.error(problem) for problem in check_filter(body, schema, _permissive(body))]
    if problems:
        raise problems[0] if len(problems) == 1 else LanguageErrors(problems)
    return with_uses(body, schema) if schema.stream == _INFERRED else schema


def with_uses(body: Node, schema: Schema) -> Schema:
    """The schema with the types in which a body uses its attributes."""
    attributes = dict(schema.attributes)
    for path, kind in _uses(body):
        known = attributes.get(path)
        attributes[path] = Attribute(path, Type(kind) if known is None or known.type == Type(kind) else None)
    return replace(schema, attributes=attributes)


def _uses(body: Node) -> Iterator[tuple[ast.Path, Kind]]:
    """The attributes that conditions use as values of a type, each with its type."""
    for node in ast.walk(body):
        wanted: Kind | None = None
        match node:
            case ast.Compare() | ast.Between() | ast.In():
                constants = (fold(n) for n in node.children())
                found = {values.view_of(n.value) for n in constants if isinstance(n, ast.Literal)} - {None}
                wanted = found.pop() if len(found) == 1 else None
            case ast.Arithmetic() | ast.Negate() | ast.Function("ABS"):
                wanted = Kind.DOUBLE
            case ast.Function() | ast.Test():
                wanted = Kind.STRING
            case ast.And() | ast.Or() | ast.Not():
                wanted = Kind.BOOLEAN
        if node is body and isinstance(node, ast.Attribute):
            yield node.path, Kind.BOOLEAN
        for below in node.children():
            if isinstance(below, ast.Attribute) and wanted is not None:
                yield below.path, wanted


def _permissive(body: Node) -> Catalogue:
    """A catalogue that knows whatever the body calls."""
    nodes = list(ast.walk(body))
    operators = {n.name: Signature(n.name) for n in nodes if isinstance(n, ast.Call)}
    prefixes = {n.text.partition(":")[0]: "" for n in nodes if isinstance(n, ast.Name)}
    return Catalogue(operators=operators, prefixes={**prefixes, **PREFIXES})


def union_of(body: Node, missing: str, schema: Schema) -> Union:
    """The boxes of a checked body. A sequence is one opaque atom: it covers its equals, unless it PUBLISHes."""
    if isinstance(body, ast.Pattern):
        dimension = Dimension(
            ("sequence", missing, body if body.publish is None else object()), domain.choice(2), False
        )
        return ({dimension: Portion(dimension.domain.compare("=", 1))},)
    return boxes_of(normalise(body, missing, schema, lists=True), schema)


def read_union(text: str, missing: str, schema: Schema) -> Union | None:
    """The boxes of a text on a stream; None for a filter that is too wide for boxes.

    Boxes can be compared if they were read with the same types of attributes: declare the stream."""
    (body,), resolved = checked([Source(text, missing)], schema)
    return union_or_none(body, missing, resolved)


def union_or_none(body: Node, missing: str, schema: Schema) -> Union | None:
    """The boxes of a checked body; None if they are too many."""
    try:
        return union_of(body, missing, schema)
    except TooWide:
        return None
