"""What a text may refer to: streams with their schemas, operators with their signatures, prefixes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headgate.errors import LanguageError, TypeProblem, UnknownName
from headgate.language import ast
from headgate.schema import Attribute, Schema, Type, format_path

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
"""Prefixes that every script knows."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How an operator is called: how many arguments, and which of them may be variables (None: any)."""

    name: str
    least: int = 0
    most: int | None = None
    variables: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class OntologyText:
    """An ontology as it was read: where from, its format (None: to be told from the text) and its text."""

    source: str
    format: str | None
    text: str


@dataclass
class Catalogue:
    streams: dict[str, Schema] = field(default_factory=dict)
    operators: Mapping[str, Signature] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=lambda: dict(PREFIXES))
    ontologies: dict[str, OntologyText] = field(default_factory=dict)
    templates: dict[str, ast.Graph] = field(default_factory=dict)
    """By stream: how plain columns become an RDF event."""
    published: dict[str, str] = field(default_factory=dict)
    """By stream: a subscription that PUBLISHes it."""

    def copy(self) -> Catalogue:
        """The catalogue as it is now; later definitions do not reach it."""
        return Catalogue(
            dict(self.streams),
            self.operators,
            dict(self.prefixes),
            dict(self.ontologies),
            dict(self.templates),
            dict(self.published),
        )

    def meaning(self) -> tuple[object, ...]:
        """What the names in GRAPH patterns mean: what was compiled under one meaning says nothing under another."""
        return tuple(self.ontologies.items()), tuple(sorted(self.prefixes.items())), tuple(self.templates.items())

    def stream(self, name: str, at: int = -1) -> Schema:
        """The schema of a stream. Where nothing is declared at all, a stream exists by being named."""
        found = self.streams.get(name)
        if found is not None:
            return found
        if any(s.declared for n, s in self.streams.items() if n not in self.published):
            raise UnknownName(f"there is no stream {name}", nearest(name, self.streams, "declare it first"), at=at)
        return Schema(name, {}, declared=False)

    def attribute(self, schema: Schema, path: ast.Path, at: int = -1) -> Type | None:
        """The type of an attribute; None is ANY."""
        found = schema.get(path)
        if found is not None:
            return found.type
        if not schema.declared:
            return None
        names = [format_path(a.path) for a in schema]
        name = format_path(path)
        below = [n for n in names if n.startswith(name + ".")]
        if below:
            raise TypeProblem(f"{name} is a struct, not a value", f"write {below[0]}", at=at)
        holder = f"this {schema.stream[1:-1]}" if schema.stream.startswith("(") else f"stream {schema.stream}"
        raise UnknownName(
            f"{holder} has no attribute {name}",
            nearest(name, names, f"it has {', '.join(names[:8])}"),
            at=at,
        )

    def mention(self, stream: str, paths: Iterable[ast.Path]) -> None:
        """An undeclared stream exists, and has the attributes that texts speak of, by being named."""
        schema = self.streams.get(stream) or Schema(stream, {}, declared=False)
        new = {path: Attribute(path, None) for path in paths if path not in schema.attributes}
        if new or stream not in self.streams:
            self.streams[stream] = replace(schema, attributes={**schema.attributes, **new})


def nearest(name: str, names: Iterable[str], otherwise: str) -> str:
    """A hint: the name that was probably meant."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}?" if close else otherwise


def unknown_operator(name: str, catalogue: Catalogue, at: int) -> LanguageError:
    functions = ("LOWER", "UPPER", "LENGTH", "ABS", "ALL")
    hint = nearest(name, [*catalogue.operators, *functions], "register it with Subscriptions(operators=[...])")
    return UnknownName(f"there is no operator {name}", hint, at=at)
