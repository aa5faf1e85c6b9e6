"""What a book's subscriptions may refer to: streams, prefixes, ontologies, templates.

A definition is built when it is made: an ontology is parsed, a template is read against its stream. A name keeps its
meaning: a second definition is refused unless it repeats the first; a prefix that nobody uses may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import TypeVar

from headgate.errors import DuplicateName, HeadgateError, UnknownName, UsageError
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes
from headgate.graphs.rdf import SUFFIXES
from headgate.graphs.template import Template
from headgate.language import ast
from headgate.language.catalogue import Catalogue, OntologyText, nearest
from headgate.language.parser import parse_tokens
from headgate.language.tokens import Tokens, tokenise
from headgate.plan.segment import Entry, Family
from headgate.predicates.declared import declared
from headgate.schema import Schema
from headgate.subscriptions.admission import Admission
from headgate.subscriptions.draft import PARTS
from headgate.subscriptions.journal import STREAM, differences

T = TypeVar("T")


class Definitions:
    def __init__(self, catalogue: Catalogue, entries: Mapping[str, Entry], admission: Admission) -> None:
        self._catalogue = catalogue
        self._entries = entries
        self._admission = admission
        self.folder = FilePath()
        """Where relative paths in a script begin."""

    def declare(self, schema: Schema, template: ast.Graph | None = None, at: int = -1) -> None:
        name = schema.stream
        if template is not None:
            self._check_template(schema, template)
        if "\0" in name or any("\0" in part or len(a.path) > PARTS for a in schema for part in a.path):
            hint = f"leave NUL out; a path has at most {PARTS} parts"
            raise UsageError(f"stream {name!r} has a name with NUL or too many parts", hint)
        known = self._catalogue.streams.get(name)
        if known is not None and known.declared:
            raise DuplicateName(f"stream {name} is declared already", "drop it first", at=at)
        if self._reader_of(name) is not None:
            hint = "declare a stream before the first subscription on it"
            raise DuplicateName(f"stream {name} is in use without a declaration", hint, at=at)
        self._catalogue.streams[name] = schema
        if template is not None:
            self._catalogue.templates[name] = template
        self._admission.forget(name)

    def create_stream(self, statement: ast.CreateStream) -> None:
        self.declare(declared(statement), statement.graph, at=statement.at)

    def _check_template(self, schema: Schema, template: ast.Graph) -> None:
        Template.of(template, Prefixes(self._catalogue.prefixes))
        for node in ast.walk(template):
            if isinstance(node, ast.Attribute):
                self._catalogue.attribute(schema, node.path, node.at)

    def prefix(self, name: str, iri: str, at: int = -1) -> None:
        known = self._catalogue.prefixes.get(name)
        if known == iri:
            return
        if known is not None and (user := self._user_of_prefix(name)) is not None:
            message = f"the prefix {name}: is <{known}> already, and {user} uses it"
            raise DuplicateName(message, "choose another prefix", at=at)
        self._catalogue.prefixes[name] = iri
        self._admission.forget()

    def create_ontology(self, name: str, source: str, at: int) -> None:
        """A relative path is looked up beside the script it stands in."""
        path = self.folder / source
        try:
            text = OntologyText(source, SUFFIXES.get(path.suffix.lower()), path.read_text("utf-8"))
        except (OSError, ValueError) as e:  # ValueError: not UTF-8, or NUL in the path
            message, hint = f"the ontology {source} cannot be read: {e}", "give a path beside the script"
            raise UnknownName(message, hint, at=at) from None
        self.ontology(name, text, at)

    def ontology(self, name: str, text: OntologyText, at: int = -1) -> None:
        try:
            Ontology.parse(text.text, text.format)
        except HeadgateError as e:
            message, hint = f"the ontology {text.source} cannot be read: {e.message}", "mend the file"
            raise UnknownName(message, hint, at=at) from None
        known = self._catalogue.ontologies.get(name)
        if known == text:
            return
        if known is not None:
            user = next(self._graphs(), None)
            depends = "" if user is None else f", and subscription {user[0]} depends on it"
            raise DuplicateName(
                f"there is an ontology {name} already{depends}", f"drop it first: DROP ONTOLOGY {name}", at=at
            )
        self._catalogue.ontologies[name] = text
        self._admission.forget()

    def drop(self, kind: str, name: str, at: int) -> None:
        """Drop a STREAM that no subscription reads, or an ONTOLOGY: what it said counts no more for anyone."""
        known: dict[str, Schema] | dict[str, OntologyText]
        known = self._catalogue.streams if kind == "STREAM" else self._catalogue.ontologies
        if name not in known:
            raise UnknownName(f"there is no {kind.lower()} {name}", nearest(name, known, ""), at=at)
        if kind == "STREAM":
            user = self._reader_of(name)
            if user is not None:
                message, hint = f"stream {name} is in use by subscription {user}", "drop its subscriptions first"
                raise DuplicateName(message, hint, at=at)
            self.restore_stream(name, None)
            return
        del known[name]
        self._admission.forget()

    # -- definitions as data: they were accepted once

    def restore_stream(
        self, name: str, schema: Schema | None, template: ast.Graph | None = None, *, published: bool = False
    ) -> None:
        """A stream as it was; None takes it away."""
        known = self._catalogue.streams.get(name)
        if schema is not None and template is not None:
            self._check_template(schema, template)
        _put(self._catalogue.streams, name, schema)
        _put(self._catalogue.templates, name, template)
        _put(self._catalogue.published, name, name if published else None)
        # What was learned of an open stream since does not make a filter wrong that was right.
        open_still = known is not None and schema is not None and not (known.declared or schema.declared)
        self._admission.forget(None if open_still else name, in_use=known is not None and schema is not None)

    def restore_prefix(self, name: str, iri: str | None) -> None:
        _put(self._catalogue.prefixes, name, iri)
        self._admission.forget()

    def restore_ontology(self, name: str, text: OntologyText | None) -> None:
        if text is not None:
            Ontology.parse(text.text, text.format)
        _put(self._catalogue.ontologies, name, text)
        self._admission.forget()

    def take_back(self, before: Catalogue) -> None:
        """Everything as it was in an earlier catalogue."""
        changed = list(differences(before, self._catalogue))
        if not changed:
            return
        _replace(self._catalogue.streams, before.streams)
        _replace(self._catalogue.templates, before.templates)
        _replace(self._catalogue.published, before.published)
        _replace(self._catalogue.prefixes, before.prefixes)
        _replace(self._catalogue.ontologies, before.ontologies)
        for kind, name in changed:
            self._admission.forget(name if kind == STREAM else None, in_use=name in before.streams)

    def _reader_of(self, stream: str) -> str | None:
        """A subscription that reads a stream, or PUBLISHes it."""
        for name, entry in self._entries.items():
            if entry.family is not Family.SEQUENCE:
                if entry.stream == stream:
                    return name
            elif any(_names(node, stream) for node in ast.walk(_tree(entry))):
                return name
        return None

    def _user_of_prefix(self, prefix: str) -> str | None:
        """A subscription or a template that means something by a prefix."""
        for name, tokens in self._graphs():
            words = zip(tokens.kinds, tokens.raws, strict=True)
            if any(kind == "PNAME" and raw.partition(":")[0] == prefix for kind, raw in words):
                return f"subscription {name}"
        for stream, graph in self._catalogue.templates.items():
            made = Template.of(graph, Prefixes(self._catalogue.prefixes))
            names = (n.text.partition(":")[0] for n in ast.walk(graph) if isinstance(n, ast.Name))
            # An attribute that names things may hold any prefix.
            if made.names or made.classes or prefix in names:
                return f"stream {stream}"
        return None

    def _graphs(self) -> Iterator[tuple[str, Tokens]]:
        """The subscriptions that match a GRAPH."""
        for name, entry in self._entries.items():
            if entry.family is not Family.FILTER and "GRAPH" in entry.text.upper():
                tokens = tokenise(entry.text)
                if "GRAPH" in tokens.kinds:
                    yield name, tokens


def _names(node: ast.Node, stream: str) -> bool:
    return stream == (node.name if isinstance(node, ast.Stream) else getattr(node, "publish", None))


def _put(definitions: dict[str, T], name: str, value: T | None) -> None:
    if value is None:
        definitions.pop(name, None)
    else:
        definitions[name] = value


def _replace(definitions: dict[str, T], others: Mapping[str, T]) -> None:
    definitions.clear()
    definitions.update(others)


def _tree(entry: Entry) -> ast.Node:
    return parse_tokens(tokenise(entry.text))
